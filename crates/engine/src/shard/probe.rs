//! A shard over drives in memory that count their flushes and take their time for them.

use super::state::Shard;
use crate::harness::Harness;
use crate::{
    Engine, EngineConfig, LayoutSpec, PoolSpec, SpacePolicy, Tier, VdriveSpec, VolumeSpec,
};
use block::{Drive, DriveInfo, DriveIo, DriveIoKind, DriveQueue, DriveQueueExt, Lent, Shown};
use drives::OpenDrive;
use format::{LABEL_SIZE, Label, label_offsets};
use reactor::{Clock, Handle};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time that passes between two readings of the clock, and in each turn of a task, in nanoseconds.
const LOOK_NS: u64 = 100;
const TURN_NS: u64 = 1000;

/// Groups of map pages of a pool that has many of them.
const PAGE_GROUPS: u64 = 12;

#[derive(Clone, Default)]
struct Virtual(Rc<Cell<u64>>);

impl Clock for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.set(self.0.get() + LOOK_NS);
        self.0.get()
    }
}

/// Runs a test on a loop of its own, whose time is only a number: what a test waits for comes however busy the machine is.
pub(crate) fn run<T: Future<Output = ()> + 'static>(test: impl FnOnce(Handle) -> T) {
    let clock = Virtual::default();
    let handle = Handle::simulated(Box::new(clock.clone()), 1).unwrap();
    let ended = Rc::new(Cell::new(false));
    let (future, tell) = (test(handle.clone()), ended.clone());
    handle.spawn(async move {
        future.await;
        tell.set(true);
    });
    while !ended.get() {
        let turns = handle.run_ready(64);
        let mut now_ns = clock.0.get() + turns as u64 * TURN_NS;
        if turns == 0 {
            let next_ns = handle.next_timer_ns();
            now_ns = now_ns.max(next_ns.expect("a test waits for what nobody does"));
        }
        clock.0.set(now_ns);
        handle.fire_timers();
    }
}

/// Number of flushes of a drive, and their duration.
#[derive(Default)]
struct Flushes {
    count: AtomicU64,
    /// Nanoseconds for each KiB that was written since the last one.
    per_kib_ns: AtomicU64,
    /// Nanoseconds for each read and write.
    transfer_ns: AtomicU64,
    written: AtomicU64,
}

struct Probed {
    drive: Arc<dyn OpenDrive>,
    flushes: Arc<Flushes>,
    in_place: bool,
}

struct Queue {
    handle: Handle,
    queue: Rc<dyn DriveQueue>,
    flushes: Arc<Flushes>,
    in_place: bool,
}

impl Drive for Probed {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }
}

impl OpenDrive for Probed {
    fn queue(&self, handle: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(Queue {
            handle: handle.clone(),
            queue: self.drive.queue(handle)?,
            flushes: self.flushes.clone(),
            in_place: self.in_place,
        }))
    }
}

impl DriveQueue for Queue {
    fn submit(&self, io: DriveIo) {
        let flushes = &self.flushes;
        match io.kind {
            DriveIoKind::Write => flushes.written.fetch_add(io.len, Ordering::Relaxed),
            DriveIoKind::Flush => flushes.count.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let per_kib_ns = flushes.per_kib_ns.load(Ordering::Relaxed);
        let takes_ns = match io.kind {
            DriveIoKind::Flush if per_kib_ns > 0 => {
                per_kib_ns * (flushes.written.swap(0, Ordering::Relaxed) >> 10)
            }
            DriveIoKind::Flush => 0,
            _ => flushes.transfer_ns.load(Ordering::Relaxed),
        };
        if takes_ns == 0 {
            return self.queue.submit(io);
        }
        let (handle, queue) = (self.handle.clone(), self.queue.clone());
        self.handle.spawn(async move {
            handle.sleep(takes_ns).await;
            queue.submit(io);
        });
    }

    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    fn is_in_memory(&self) -> bool {
        self.in_place
    }

    fn read_in_place(&self, offset: u64, len: usize, see: &mut dyn FnMut(Shown<'_>)) -> bool {
        self.in_place && self.queue.read_in_place(offset, len, see)
    }

    fn write_in_place(&self, offset: u64, len: usize, fill: &mut dyn FnMut(Lent<'_>)) -> bool {
        self.in_place && self.queue.write_in_place(offset, len, fill)
    }
}

/// The shard of a pool with a fast and a slow drive, which has one volume.
pub(crate) struct Probe {
    pub shard: Rc<Shard>,
    pub volume: u32,
    flushes: [Arc<Flushes>; 2],
    said: Cell<[u64; 2]>,
    names: [String; 2],
}

impl Probe {
    /// A shard that has just been opened; nothing of its own runs. `name` is no other test's.
    pub async fn open(handle: &Handle, name: &str) -> Self {
        Self::open_with(handle, name, &EngineConfig::default()).await
    }

    /// The same, with as much memory.
    pub async fn open_with(handle: &Handle, name: &str, memory: &EngineConfig) -> Self {
        Self::open_on(handle, name, memory, [false, false], None).await
    }

    /// The same with room for many map pages.
    pub async fn open_with_pages(handle: &Handle, name: &str) -> Self {
        let memory = EngineConfig::default();
        Self::open_on(handle, name, &memory, [false, false], Some(PAGE_GROUPS)).await
    }

    /// The same; its drives are read and written in place.
    pub async fn open_in_place(handle: &Handle, name: &str) -> Self {
        Self::open_on(handle, name, &EngineConfig::default(), [true, false], None).await
    }

    /// The same with drives that have to be asked; the slow one takes as long as a disk.
    pub async fn open_over_disk(handle: &Handle, name: &str) -> Self {
        Self::open_on(handle, name, &EngineConfig::default(), [false, true], None).await
    }

    async fn open_on(
        handle: &Handle,
        name: &str,
        memory: &EngineConfig,
        [in_place, over_disk]: [bool; 2],
        meta_groups: Option<u64>,
    ) -> Self {
        let names = ["fast", "slow"].map(|tier| format!("{name}-{tier}"));
        make(&names, meta_groups);
        let flushes: [Arc<Flushes>; 2] = Default::default();
        let (mut pool_drives, mut config) = (Vec::new(), None);
        let kinds = match over_disk {
            true => ["ram", "model:hdd-7200:ram"],
            false => ["ram", "ram"],
        };
        for ((name, flushes), kind) in names.iter().zip(&flushes).zip(kinds) {
            let drive = drives::open(&format!("{kind}:{name}")).unwrap();
            let label = label_of(handle, &drive).await;
            let flushes = flushes.clone();
            let probed: Arc<dyn OpenDrive> = Arc::new(Probed {
                drive,
                flushes,
                in_place,
            });
            pool_drives.push((label.drive, probed));
            config = Some((label.pool, label.config));
        }
        let (pool, config) = config.unwrap();
        let harness = Harness::open(handle, pool, &config, &pool_drives, memory).await;
        let shard = harness.unwrap().shards[0].clone();
        // As a pool does once its shards are open.
        shard.shared.space.set_capacity(1 << 14);
        Self {
            shard,
            volume: config.volumes[0].id,
            flushes,
            said: Cell::new([0, 0]),
            names,
        }
    }

    /// Bytes that each drive was given to write: the fast one, the slow one.
    pub fn written(&self) -> [u64; 2] {
        let drives = self.flushes.each_ref();
        drives.map(|drive| drive.written.load(Ordering::Relaxed))
    }

    /// Flushes of each drive since the last call: the fast one, the slow one.
    pub fn since(&self) -> [u64; 2] {
        let now = self.flushes.each_ref();
        let now = now.map(|drive| drive.count.load(Ordering::Relaxed));
        let before = self.said.replace(now);
        [now[0] - before[0], now[1] - before[1]]
    }

    /// From now on a flush of the fast drive takes so long for each KiB written before.
    pub fn slow_down(&self, per_kib_ns: u64) {
        let fast = &self.flushes[0];
        fast.per_kib_ns.store(per_kib_ns, Ordering::Relaxed);
    }

    /// From now on each read and write of any drive takes so long.
    pub fn take_time(&self, transfer_ns: u64) {
        let drives = self.flushes.iter();
        drives.for_each(|drive| drive.transfer_ns.store(transfer_ns, Ordering::Relaxed));
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        for name in &self.names {
            drives::forget_ram(name);
        }
    }
}

/// A closed pool on drives in memory, with a volume.
fn make(names: &[String; 2], meta_groups: Option<u64>) {
    let memory = EngineConfig {
        threads: 1,
        meta_groups,
        ..EngineConfig::default()
    };
    let engine = Engine::start(&memory).unwrap();
    let vdrive = |tier, name: &String| VdriveSpec {
        tier,
        layout: LayoutSpec::Concat,
        drives: vec![format!("ram:{name}?size=192M")],
    };
    let pool = PoolSpec {
        name: "tank".into(),
        vdrives: vec![vdrive(Tier::Fast, &names[0]), vdrive(Tier::Slow, &names[1])],
        policy: SpacePolicy::SlowFirst,
        shards: 1,
        force: true,
        accept_unmirrored: true,
    };
    engine.pool_create(&pool).unwrap();
    let volume = VolumeSpec {
        name: "v".into(),
        size: 1 << 30,
        lba_size: 512,
        thick: false,
        quota: 0,
        reservation: 0,
    };
    engine.volume_create("tank", &volume).unwrap();
    engine.pool_export("tank").unwrap();
    engine.shutdown();
}

async fn label_of(handle: &Handle, drive: &Arc<dyn OpenDrive>) -> Label {
    let queue = drive.queue(handle).unwrap();
    let mut newest: Option<Label> = None;
    for offset in label_offsets(drive.info().size) {
        let buf = handle.dma().get(LABEL_SIZE as usize);
        let label = Label::decode(&queue.read(offset, buf).await.unwrap()).ok();
        newest = newest
            .into_iter()
            .chain(label)
            .max_by_key(|label| label.generation);
    }
    newest.unwrap()
}

/// How often another task of the loop has its turn while something is done.
pub(crate) async fn turns(probe: &Probe, work: impl Future<Output = ()>) -> u64 {
    let (turns, ended) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let (handle, counted, until) = (probe.shard.handle.clone(), turns.clone(), ended.clone());
    probe.shard.handle.spawn(async move {
        while !until.get() {
            counted.set(counted.get() + 1);
            handle.yield_now().await;
        }
    });
    work.await;
    ended.set(true);
    turns.get()
}
