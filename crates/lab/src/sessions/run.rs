//! The measurement.

use crate::arguments::Sessions;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::iscsi::{Initiator, Lun, Opened, Waiting};
use crate::load::{self, Blocks, Content, Figures, Load, Pattern, Watched, measure};
use crate::machine;
use crate::scratch::Scratch;
use crate::screen::thousands;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};
use units::format_bytes;

const TARGET: &str = "iqn.2026-11.io.convect.lab:many";
const VOLUME: &str = "many/disk";
/// Reads of a boot by size: small files, and their read-ahead.
const BOOT_BLOCKS: &str = "4k:50,16k:30,64k:20";
/// How unevenly a boot's reads lie: most guests read the same files.
const BOOT_ZIPF: f64 = 0.9;
/// Reads that a guest that boots has outstanding.
const BOOT_DEPTH: u16 = 2;
/// How long the daemon may take to notice that sessions ended.
const END_TIME: Duration = Duration::from_secs(30);

struct Scene {
    daemon: Daemon,
    lun: Lun,
    /// Bytes of memory before there was any session.
    idle_bytes: u64,
    _scratch: Scratch,
}

impl Scene {
    fn new(convect: &Path, with: &Sessions) -> Result<Self> {
        let scratch = Scratch::new("sessions", 1 << 20)?;
        let daemon = Daemon::start(convect, scratch.path(), "")?;
        let drive = |name| format!("ram:{name}?size={}", 2 * with.size + (256 << 20));
        let (fast, slow) = (drive("fast"), drive("slow"));
        let create = ["pool", "create", "many", "fast", &fast, "slow", &slow];
        // Nothing moves by itself: the drives are memory, too.
        let policy = ["--policy", "fast-first", "--accept-unmirrored"];
        daemon.run(&[&create[..], &policy].concat())?;
        let size = with.size.to_string();
        daemon.run(&["volume", "create", VOLUME, "--size", &size])?;
        let portal = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let (address, create) = (
            portal.to_string(),
            ["export", "create", "many", VOLUME, "iscsi"],
        );
        daemon.run(&[&create[..], &["--portal", &address, "--target", TARGET]].concat())?;
        let mut scene = Self {
            daemon,
            lun: Lun {
                portal,
                target: TARGET.to_owned(),
                number: 0,
            },
            idle_bytes: 0,
            _scratch: scratch,
        };
        scene.idle_bytes = machine::resident_bytes(scene.daemon.pid())?;
        Ok(scene)
    }

    fn sessions(&self) -> Result<usize> {
        Ok(self.daemon.export("many")?.sessions as usize)
    }

    fn wait_for_sessions(&self, count: usize) -> Result<()> {
        match interrupt::wait_for(END_TIME, || Ok(self.sessions()? == count))? {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "the daemon reports {} sessions instead of {count}",
                self.sessions()?
            ))),
        }
    }

    /// All connections and their logins first, then the answers.
    fn log_in(&self, count: u32) -> Result<Vec<Opened>> {
        let initiator = Initiator::default();
        let mut waiting = Vec::new();
        for _ in 0..count {
            let begun = Waiting::begin(&self.lun, &initiator);
            waiting.push(begun.during(|| format!("session {} cannot begin", waiting.len()))?);
        }
        let mut opened = Vec::new();
        for one in waiting {
            opened.push(one.end().during(|| format!("session {}", opened.len()))?);
        }
        Ok(opened)
    }

    fn logins(&self, with: &Sessions) -> Result<()> {
        for round in 1..=with.rounds {
            let (begun, before) = (
                Instant::now(),
                machine::processor_seconds(self.daemon.pid())?,
            );
            let mut opened = self.log_in(with.sessions)?;
            let took = begun.elapsed();
            let processor = machine::processor_seconds(self.daemon.pid())? - before;
            self.wait_for_sessions(opened.len())?;
            let logged_in = machine::resident_bytes(self.daemon.pid())?;
            for (number, session) in opened.iter_mut().enumerate() {
                session
                    .capacity()
                    .during(|| format!("session {number} of {}", with.sessions))?;
            }
            let used = machine::resident_bytes(self.daemon.pid())?;
            let beyond = |bytes: u64| format_bytes(bytes.saturating_sub(self.idle_bytes));
            println!(
                "  round {round}: {} concurrent logins in {:.2} s ({:.2} s of the server's processor time); \
                 memory beyond idle {}, after commands of each {}",
                opened.len(),
                took.as_secs_f64(),
                processor,
                beyond(logged_in),
                beyond(used),
            );
            drop(opened);
            self.wait_for_sessions(0)?;
        }
        Ok(())
    }

    fn storm(&self, with: &Sessions) -> Result<()> {
        let disk = load::Disk::Iscsi(self.lun.clone());
        load::fill(&disk, with.size, Content::Random)?;
        self.wait_for_sessions(0)?;
        let blocks: Blocks = BOOT_BLOCKS.parse().map_err(Failure::new)?;
        let load = Load {
            disks: vec![disk],
            first: 1.0,
            read_percent: 100,
            aim: Pattern::Zipf(BOOT_ZIPF).aim(0..with.size, blocks.smallest(), 1),
            blocks,
            queues: with.booting,
            depth: BOOT_DEPTH,
            threads: 1,
            cores: Vec::new(),
            polling: false,
            rate: None,
            content: Content::Random,
            warm_up: 1,
            seconds: with.seconds,
            requests: None,
            seed: 1,
        };
        let watched = Watched {
            server: Some(self.daemon.pid()),
        };
        let mut least = usize::MAX;
        let outcome = measure(&load, watched, |_, _| {
            least = least.min(self.sessions()?);
            Ok(true)
        })?;
        let figures = Figures::from(&outcome);
        if least < usize::from(with.booting) {
            return Err(Failure::new(format!(
                "{least} of {} sessions were left",
                with.booting
            )));
        }
        println!(
            "  boot storm: {} sessions, {} reads outstanding of each ({BOOT_BLOCKS}, zipf {BOOT_ZIPF}), for {} s: {} reads \
             a second, {} MiB/s, p99 {:.1} ms, the slowest {:.1} ms; none lost",
            with.booting,
            BOOT_DEPTH,
            with.seconds,
            thousands(figures.all.iops),
            thousands(figures.all.mib_per_s),
            figures.all.latency.p99_us / 1e3,
            figures.all.latency.max_us / 1e3,
        );
        self.wait_for_sessions(0)
    }
}

/// Measures and prints it.
///
/// # Errors
/// When a login is refused, or a session is lost.
pub fn run(convect: &Path, with: &Sessions) -> Result<()> {
    println!(
        "iSCSI sessions over the loopback, a volume of {} in memory\n  {}",
        format_bytes(with.size),
        machine::describe()
    );
    let mut scene = Scene::new(convect, with)?;
    let measured = scene.logins(with).and_then(|()| scene.storm(with));
    scene.daemon.explain(measured)?;
    scene.daemon.stop()
}
