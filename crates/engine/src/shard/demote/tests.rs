//! Which drives are flushed for what sinks, and when.

use crate::harness::Harness;
use crate::{
    Engine, EngineConfig, LayoutSpec, PoolSpec, SpacePolicy, Tier, VdriveSpec, VolumeSpec,
};
use block::{Drive, DriveInfo, DriveIo, DriveIoKind, DriveQueue, DriveQueueExt, IoBuf};
use drives::OpenDrive;
use format::{LABEL_SIZE, Label, label_offsets};
use reactor::{Handle, Reactor};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::BLOCK;

const FAST: &str = "ram:demote-fast";
const SLOW: &str = "ram:demote-slow";

/// A drive whose flushes are counted.
struct Counted {
    drive: Arc<dyn OpenDrive>,
    flushes: Arc<AtomicU64>,
}

struct Queue {
    queue: Rc<dyn DriveQueue>,
    flushes: Arc<AtomicU64>,
}

impl Drive for Counted {
    fn info(&self) -> DriveInfo {
        self.drive.info()
    }
}

impl OpenDrive for Counted {
    fn queue(&self, handle: &Handle) -> io::Result<Rc<dyn DriveQueue>> {
        let (queue, flushes) = (self.drive.queue(handle)?, self.flushes.clone());
        Ok(Rc::new(Queue { queue, flushes }))
    }
}

impl DriveQueue for Queue {
    fn submit(&self, io: DriveIo) {
        let flush = io.kind == DriveIoKind::Flush;
        self.flushes.fetch_add(u64::from(flush), Ordering::Relaxed);
        self.queue.submit(io);
    }

    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }
}

/// A closed pool on drives in memory, with a volume.
fn make() {
    let memory = EngineConfig {
        threads: 1,
        ..EngineConfig::default()
    };
    let engine = Engine::start(&memory).unwrap();
    let vdrive = |tier, drive: &str| VdriveSpec {
        tier,
        layout: LayoutSpec::Concat,
        drives: vec![format!("{drive}?size=192M")],
    };
    let pool = PoolSpec {
        name: "tank".into(),
        vdrives: vec![vdrive(Tier::Fast, FAST), vdrive(Tier::Slow, SLOW)],
        policy: SpacePolicy::SlowFirst,
        shards: 1,
        force: true,
        accept_unmirrored: true,
    };
    engine.pool_create(&pool).unwrap();
    let volume = VolumeSpec {
        name: "v".into(),
        size: 64 << 20,
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

/// Hosts' barriers wait for the drives that bear what hosts wrote, and not for the heads of those that
/// bear what has sunk.
#[test]
fn a_barrier_does_not_flush_what_was_flushed_before_it_sank() {
    make();
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let ran = reactor.block_on(async move {
        let flushes: [Arc<AtomicU64>; 2] = Default::default();
        let (mut members, mut config) = (Vec::new(), None);
        for (spec, flushes) in [FAST, SLOW].into_iter().zip(&flushes) {
            let drive = drives::open(spec).unwrap();
            let label = label_of(&handle, &drive).await;
            let flushes = flushes.clone();
            let counted: Arc<dyn OpenDrive> = Arc::new(Counted { drive, flushes });
            members.push((label.drive, counted));
            config = Some((label.pool, label.config));
        }
        let (pool, config) = config.unwrap();
        let memory = EngineConfig::default();
        let harness = Harness::open(&handle, pool, &config, &members, &memory).await;
        let shard = harness.unwrap().shards[0].clone();
        // As a pool does once its shards are open.
        shard.shared.space.set_capacity(1 << 14);
        let volume = config.volumes[0].id;
        let said = Cell::new([0, 0]);
        // How often each drive was flushed since the last time.
        let since = || {
            let now = flushes
                .each_ref()
                .map(|count| count.load(Ordering::Relaxed));
            let before = said.replace(now);
            [now[0] - before[0], now[1] - before[1]]
        };
        let block = IoBuf::zeroed(BLOCK);
        shard.write(volume, 0, &block).await.unwrap();
        shard.barrier().await.unwrap();
        since();
        // One block of a chunk: it is packed into a slot of the slow tier.
        shard.cool().await.unwrap();
        assert_eq!(since()[1], 1, "what sinks is flushed");
        shard.barrier().await.unwrap();
        assert!(
            matches!(since(), [(1..), 0]),
            "its record is, and nothing else"
        );
        // What hosts wrote to slots is flushed by the barrier alone.
        shard.write(volume, 0, &block).await.unwrap();
        since();
        shard.barrier().await.unwrap();
        assert!(matches!(since(), [(1..), 0]));
    });
    ran.unwrap();
    for drive in [FAST, SLOW] {
        drives::forget_ram(drive.trim_start_matches("ram:"));
    }
}
