//! The history of a pool under load, compared with the operations performed, for every object and
//! metric; with the real engine on modelled drives.

use crate::common::{export_request, volume_request};
use api::v1::{History, HistorySpreads, Layout, PoolCreate, SpacePolicy, Tier, VdriveSpec};
use block::{BlockDevice, Completion, CompletionSink, IoBuf, Op, OpFlags, OpKind};
use daemon::ManagerConfig;
use daemon::{Manager, StateDir};
use engine::{Engine, EngineConfig};
use reactor::{Export, FrontEnd, Parameter, StartExport};
use std::cell::RefCell;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const BEGIN_S: u64 = 2_000_000;
const MIB: u64 = 1 << 20;
pub const SIZE: u64 = 64 << 10;

thread_local! {
    /// Devices of the exports started by the test's thread, by name.
    static STARTED: RefCell<Vec<(String, Arc<dyn BlockDevice>)>> = const { RefCell::new(Vec::new()) };
}

struct Offer(String);

impl Export for Offer {
    fn address(&self) -> String {
        self.0.clone()
    }

    fn hints(&self) -> Vec<String> {
        Vec::new()
    }

    fn sessions(&self) -> usize {
        2
    }
}

/// A fake protocol that passes the device to the test.
const FRONT_ENDS: &[FrontEnd] = &[FrontEnd {
    name: "pipe",
    about: "Offers it to a test.",
    parameters: &[Parameter {
        name: "listen",
        about: "where: any word.",
        required: true,
    }],
    start: |with: StartExport| {
        STARTED.with_borrow_mut(|started| started.push((with.name.clone(), with.device)));
        Ok(Box::new(Offer(with.name)) as Box<dyn Export>)
    },
}];

struct Answer(Mutex<Sender<Completion>>);

impl CompletionSink for Answer {
    fn complete(&self, completion: Completion) {
        let _ = self.0.lock().unwrap().send(completion);
    }
}

/// Performs an operation through an export, and waits for it.
pub fn does(export: &str, kind: OpKind, offset: u64) {
    let device = STARTED.with_borrow(|started| {
        let found = started.iter().find(|(name, _)| name == export);
        found.unwrap().1.clone()
    });
    let (give, take) = channel();
    let op = Op {
        tag: 1,
        kind,
        flags: OpFlags::default(),
        offset,
        len: SIZE,
        buf: IoBuf::from_bytes(vec![offset as u8 | 1; SIZE as usize].into()),
        done: Arc::new(Answer(Mutex::new(give))),
    };
    assert!(device.submit(op).is_ok());
    let answer = take.recv_timeout(Duration::from_secs(300)).unwrap();
    answer.result.unwrap();
}

fn drive(folder: &Path, kind: &str, name: &str, mib: u64) -> String {
    let path = folder.join(name);
    format!("{kind}file:{}?size={mib}M", path.display())
}

/// A daemon over the real engine, with one pool and one volume.
pub struct Site {
    pub manager: Manager,
    /// Seconds since [`BEGIN_S`].
    pub second: u64,
    folder: tempfile::TempDir,
}

impl Site {
    /// A mirror of two fast drives over a modelled disk; a volume with two exports.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::start(&EngineConfig {
            threads: 2,
            ram_tier: 2 * MIB,
            map_cache: 8 * MIB,
            ..EngineConfig::default()
        });
        let state = StateDir::open(&folder.path().join("state")).unwrap();
        let manager = Manager::new(
            Arc::new(engine.unwrap()),
            FRONT_ENDS,
            state,
            ManagerConfig::default(),
        );
        manager.start(&[]).unwrap();
        let at = folder.path();
        let vdrive = |tier, layout, drives| VdriveSpec {
            tier,
            layout,
            drives,
        };
        let fast = ["fast-1", "fast-2"].map(|name| drive(at, "", name, 192));
        let slow = vec![drive(at, "model:hdd-7200:", "slow", 256)];
        let vdrives = vec![
            vdrive(Tier::Fast, Layout::Mirror, fast.to_vec()),
            vdrive(Tier::Slow, Layout::Concat, slow),
        ];
        let made = manager.pools.create(PoolCreate {
            name: "tank".to_owned(),
            vdrives,
            policy: SpacePolicy::SlowFirst,
            shards: 2,
            force: false,
            accept_unmirrored: true,
        });
        made.unwrap();
        let mut volume = volume_request("tank", "v");
        volume.size = 32 * MIB;
        manager.volumes.create(volume).unwrap();
        for name in ["one", "two"] {
            let request = export_request(name, "tank", "v", name);
            manager.exports.create(request).unwrap();
        }
        let mut site = Self {
            manager,
            second: 0,
            folder,
        };
        site.look();
        site
    }

    /// Ends a second: it is recorded.
    pub fn look(&mut self) {
        self.second += 1;
        let up = Duration::from_secs(self.second);
        self.manager.observer.observe(up, BEGIN_S + self.second);
    }

    /// Sum of a metric over all recorded seconds.
    fn sum(&self, object: &str, name: &str) -> f64 {
        let now = BEGIN_S + self.second;
        let times = (Some(BEGIN_S + 1), Some(now + 1), Some(1));
        let told = self.manager.history.query(object, &[name], times, now + 1);
        let told = told.unwrap_or_else(|problem| panic!("{object}: {problem}"));
        told.series[0].values.iter().flatten().sum()
    }

    /// The last recorded second.
    fn kept(&self, object: &str) -> RecordedSecond {
        let at = BEGIN_S + self.second;
        let times = (Some(at), Some(at + 1), Some(1));
        let told = self.manager.history.query(object, &[], times, at + 1);
        RecordedSecond(told.unwrap_or_else(|problem| panic!("{object}: {problem}")))
    }

    fn vdrive_of(&self, tier: Tier) -> (String, Vec<String>) {
        let pool = self.manager.pools.show("tank").unwrap();
        let mut vdrives = pool.vdrives.iter();
        let found = vdrives.find(|vdrive| vdrive.tier == tier).unwrap();
        let drives = found.drives.iter();
        let drives = drives.map(|drive| format!("drive/tank/{}", drive.spec));
        (format!("vdrive/tank/{}", found.id), drives.collect())
    }
}

struct RecordedSecond(History);

impl RecordedSecond {
    fn get(&self, name: &str) -> Option<f64> {
        let mut all = self.0.series.iter();
        let found = all.find(|series| series.name == name);
        let series = found.unwrap_or_else(|| panic!("{} has no {name}", self.0.object));
        assert_eq!(series.values.len(), 1);
        series.values[0]
    }

    #[track_caller]
    fn is(&self, name: &str, wanted: f64) {
        let value = self.get(name);
        let near = value.is_some_and(|value| (value - wanted).abs() <= wanted.abs() / 1000.0);
        assert!(
            near,
            "{} {name}: {value:?} instead of {wanted}",
            self.0.object
        );
    }

    #[track_caller]
    fn least(&self, name: &str, least: f64) -> f64 {
        let value = self.get(name);
        let right = value.filter(|value| *value >= least);
        right.unwrap_or_else(|| panic!("{} {name}: {value:?} below {least}", self.0.object))
    }

    fn spreads(&self) -> HistorySpreads {
        let object = &self.0.object;
        let spreads = self.0.spreads.clone();
        spreads.unwrap_or_else(|| panic!("{object} has no spreads"))
    }

    /// Asserts that percentiles are ordered, and the queue depth is recorded.
    #[track_caller]
    fn has_times_of(&self, what: &str) {
        let [half, most, all] =
            ["p50", "p99", "p999"].map(|of| self.least(&format!("{what}_latency_{of}"), 1e-9));
        assert!(half <= most && most <= all, "{half} {most} {all}");
        self.least(&format!("{what}_latency"), 1e-9);
        self.least("queue_depth", 1e-9);
    }
}

/// Asserts that `count` writes of `SIZE` bytes were recorded.
fn written(kept: &RecordedSecond, count: u64) {
    kept.is("writes", count as f64);
    kept.is("write_bytes", (count * SIZE) as f64);
    kept.is("reads", 0.0);
    kept.is("read_share", 0.0);
    kept.is("write_size_p50", SIZE as f64);
    kept.has_times_of("write");
    assert_eq!(kept.get("read_latency"), None);
    assert_eq!(kept.get("read_latency_p99"), None);
    let writes = kept.spreads().writes;
    assert_eq!(writes.sizes[7], count, "{:?}", writes.sizes);
    assert_eq!(writes.times.iter().sum::<u64>(), count);
}

/// The same for reads.
fn read(kept: &RecordedSecond, count: u64) {
    kept.is("reads", count as f64);
    kept.is("read_bytes", (count * SIZE) as f64);
    kept.is("writes", 0.0);
    kept.is("read_share", 1.0);
    kept.is("read_size_p50", SIZE as f64);
    kept.has_times_of("read");
    assert_eq!(kept.get("write_latency"), None);
    let reads = kept.spreads().reads;
    assert_eq!(reads.sizes[7], count, "{:?}", reads.sizes);
    assert_eq!(reads.times.iter().sum::<u64>(), count);
}

#[test]
fn history_of_each_object_matches_its_operations() {
    let mut site = Site::start();
    let (fast, fast_drives) = site.vdrive_of(Tier::Fast);
    let (slow, slow_drives) = site.vdrive_of(Tier::Slow);
    // 100 writes through one export, 20 through the other, to distinct offsets.
    (0..100).for_each(|at| does("one", OpKind::Write, at * SIZE));
    (100..120).for_each(|at| does("two", OpKind::Write, at * SIZE));
    site.look();
    written(&site.kept("export/tank/one"), 100);
    written(&site.kept("export/tank/two"), 20);
    written(&site.kept("volume/tank/v"), 120);
    written(&site.kept("pool/tank"), 120);
    site.kept("export/tank/one").is("sessions", 2.0);
    // Each member has all data, plus metadata; the tier is the sum of its vdrives.
    let bytes = (120 * SIZE) as f64;
    let of = |name: &str, what: &str| site.kept(name).get(what).unwrap();
    for drive in &fast_drives {
        let kept = site.kept(drive);
        kept.least("write_bytes", bytes);
        kept.has_times_of("write");
        kept.is("errors", 0.0);
    }
    for what in ["writes", "write_bytes", "reads", "errors"] {
        let legs: f64 = fast_drives.iter().map(|drive| of(drive, what)).sum();
        site.kept(&fast).is(what, legs);
    }
    for name in [fast.as_str(), "tier/tank/fast"] {
        site.kept(name).least("write_bytes", 2.0 * bytes);
        site.kept(name).has_times_of("write");
        site.kept(name).least("used", bytes);
    }
    let legs: u64 = fast_drives
        .iter()
        .map(|drive| {
            let writes = site.kept(drive).spreads().writes;
            writes.sizes.iter().sum::<u64>()
        })
        .sum();
    let writes = site.kept("tier/tank/fast").spreads().writes;
    assert!(legs.abs_diff(writes.sizes.iter().sum()) * 100 <= legs);
    // Everything is demoted.
    site.manager.pools.cool("tank").unwrap();
    site.look();
    // On a busy machine some data may have been demoted before.
    for (name, what, wanted) in [
        ("pool/tank", "demoted_bytes", bytes),
        ("volume/tank/v", "demoted_bytes", bytes),
        ("tier/tank/fast", "moved_out_bytes", bytes),
        ("tier/tank/slow", "moved_in_bytes", bytes),
        ("tier/tank/slow", "moved_out_bytes", 0.0),
    ] {
        let moved = site.sum(name, what);
        let near = (moved - wanted).abs() <= wanted / 1000.0;
        assert!(near, "{name} {what}: {moved} instead of {wanted}");
    }
    for name in [slow.as_str(), "tier/tank/slow", slow_drives[0].as_str()] {
        assert!(site.sum(name, "write_bytes") >= bytes, "{name}");
    }
    // These reads are served by the disk, and repeated reads by RAM.
    (0..20).for_each(|at| does("two", OpKind::Read, at * SIZE));
    site.look();
    read(&site.kept("export/tank/two"), 20);
    read(&site.kept("volume/tank/v"), 20);
    site.kept("export/tank/one").is("reads", 0.0);
    let bytes = (20 * SIZE) as f64;
    for name in ["volume/tank/v", "pool/tank"] {
        let kept = site.kept(name);
        // On a busy machine some of it may be promoted before it is read.
        let served = ["ram_bytes", "fast_bytes", "slow_bytes"].map(|of| kept.get(of).unwrap());
        let sum = served.iter().sum::<f64>();
        assert!((sum - bytes).abs() < 1.0, "{name}: {served:?}");
        assert!(2.0 * served[1] < bytes, "{name}: {served:?}");
        let shares = ["ram_share", "fast_share", "slow_share"].map(|of| kept.get(of).unwrap());
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        assert!(shares[2] > 0.0, "{shares:?}");
    }
    let pool = site.kept("pool/tank");
    for tier in ["ram", "fast", "slow"] {
        let kept = site.kept(&format!("tier/tank/{tier}"));
        let own = pool.get(&format!("{tier}_bytes")).unwrap();
        kept.is("served_bytes", own);
        let share = pool.get(&format!("{tier}_share")).unwrap();
        kept.is("share", share);
    }
    for name in [slow.as_str(), "tier/tank/slow", slow_drives[0].as_str()] {
        let kept = site.kept(name);
        kept.has_times_of("read");
        // A seek of the disk takes milliseconds.
        kept.least("read_latency_p999", 1e-3);
    }
    let before = site.kept("tier/tank/ram").get("reads").unwrap();
    (0..4).for_each(|at| does("one", OpKind::Read, at * SIZE));
    site.look();
    let ram = site.kept("tier/tank/ram");
    assert!(ram.get("reads").unwrap() + before >= 4.0);
    drop(site.folder);
}

#[test]
fn idle_seconds_are_recorded_as_quiet() {
    let mut site = Site::start();
    does("one", OpKind::Write, 0);
    site.look();
    let (fast, drives) = site.vdrive_of(Tier::Fast);
    // Background writes happen at any time.
    let is_quiet = |site: &Site| {
        let drives = drives.iter().chain([&fast]);
        let mut writes = drives.map(|name| site.kept(name).get("writes"));
        writes.all(|writes| writes == Some(0.0))
    };
    for _ in 0..1200 {
        std::thread::park_timeout(Duration::from_millis(50));
        site.look();
        if is_quiet(&site) {
            break;
        }
    }
    for name in [
        "pool/tank",
        "volume/tank/v",
        "export/tank/one",
        "tier/tank/fast",
        fast.as_str(),
        drives[0].as_str(),
    ] {
        let kept = site.kept(name);
        for figure in [
            "reads",
            "writes",
            "read_bytes",
            "write_bytes",
            "queue_depth",
        ] {
            kept.is(figure, 0.0);
        }
        for figure in [
            "read_latency",
            "write_latency_p99",
            "read_size_p50",
            "read_share",
        ] {
            assert_eq!(kept.get(figure), None, "{name} {figure}");
        }
        assert_eq!(kept.0.spreads, None, "{name}");
    }
    site.kept("export/tank/one").is("sessions", 2.0);
    site.kept(&fast).least("used", 1.0);
}
