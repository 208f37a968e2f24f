//! An engine with a pool, made the same way each time.

use crate::failure::{Result, while_doing};
use block::{BlockDevice, CompletionQueue, IoBuf, Op, OpFlags, OpKind};
use engine::{
    Engine, EngineConfig, LayoutSpec, PoolSpec, SpacePolicy, Tier, VdriveSpec, VolumeSpec,
};
use reactor::{ReactorThread, Remote};
use std::sync::Arc;
use std::sync::mpsc::channel;

pub const MIB: u64 = 1 << 20;
pub const BLOCK: u64 = 4096;
const POOL: &str = "bench";
const GIB: u64 = 1 << 30;

/// The engine, and the loops that it runs on: these end after it.
pub struct Scene {
    pub engine: Engine,
    loops: Vec<ReactorThread>,
}

impl Scene {
    /// A pool of so many shards, each on a loop of its own, on drives of a kind: one fast and one slow, of
    /// `gib` GiB each.
    ///
    /// # Errors
    /// When a loop or the pool cannot be made.
    pub fn new(shards: u16, kind: &str, gib: u64) -> Result<Self> {
        let mut loops = Vec::new();
        for number in 0..shards {
            // The engine's own loops begin their random sequences anywhere.
            let name = format!("bench-{number}");
            let started = ReactorThread::start(&name, u64::from(number) + 1);
            loops.push(started.map_err(while_doing("a loop cannot be started"))?);
        }
        let remotes = loops.iter().map(|one| one.remote().clone()).collect();
        let config = EngineConfig {
            threads: usize::from(shards),
            ram_tier: 64 * MIB,
            ..EngineConfig::default()
        };
        let engine = Engine::on_loops(&config, remotes);
        let vdrive = |tier, name: &str| VdriveSpec {
            tier,
            layout: LayoutSpec::Concat,
            drives: vec![format!("{kind}:{name}?size={}", gib * GIB)],
        };
        let spec = PoolSpec {
            name: POOL.to_owned(),
            vdrives: vec![vdrive(Tier::Fast, "fast"), vdrive(Tier::Slow, "slow")],
            policy: SpacePolicy::FastFirst,
            shards,
            force: false,
            accept_unmirrored: true,
        };
        let made = engine.pool_create(&spec);
        made.map_err(while_doing("the pool cannot be made"))?;
        Ok(Self { engine, loops })
    }

    /// The loops.
    pub fn remotes(&self) -> impl Iterator<Item = &Remote> {
        self.loops.iter().map(ReactorThread::remote)
    }

    /// Makes a volume of `mib` MiB; gives its number and the way to it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn volume(&self, name: &str, mib: u64) -> Result<(u32, Arc<dyn BlockDevice>)> {
        let spec = VolumeSpec {
            name: name.to_owned(),
            size: mib * MIB,
            lba_size: 512,
            thick: false,
            quota: 0,
            reservation: 0,
        };
        let made = self.engine.volume_create(POOL, &spec);
        let made = made.map_err(while_doing("the volume cannot be made"))?;
        let opened = self.engine.volume_open(POOL, name, None);
        Ok((
            made.id,
            opened.map_err(while_doing("the volume cannot be opened"))?,
        ))
    }

    /// Moves everything to the slow tier alone.
    ///
    /// # Errors
    /// When that fails.
    pub fn cool(&self) -> Result<()> {
        let cooled = self.engine.pool_cool(POOL);
        cooled.map_err(while_doing("the pool cannot be cooled"))
    }

    /// Blocks of 4 KiB that hosts have read so far: from RAM, from the fast tier, from anywhere else.
    ///
    /// # Errors
    /// When the engine does not tell.
    pub fn blocks(&self) -> Result<[u64; 3]> {
        let counters = self.engine.pool_counters(POOL);
        let counters = counters.map_err(while_doing("the pool's counters"))?;
        let elsewhere = counters.blocks_slow + counters.blocks_zero;
        Ok([counters.blocks_ram, counters.blocks_fast, elsewhere])
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}

/// Does one operation after the other to a range, each of a MiB. A write's bytes are all `content`.
///
/// # Errors
/// That of the operation that failed.
pub fn sweep(
    remote: &Remote,
    device: &Arc<dyn BlockDevice>,
    kind: OpKind,
    range: std::ops::Range<u64>,
    content: u8,
) -> Result<()> {
    let (give, take) = channel();
    let device = Arc::clone(device);
    remote.spawn(move |_| async move {
        let done = CompletionQueue::new();
        let mut result = Ok(());
        for offset in range.step_by(MIB as usize) {
            let op = Op {
                tag: offset,
                kind,
                flags: OpFlags::default(),
                offset,
                len: MIB,
                buf: IoBuf::from_bytes(vec![content; MIB as usize].into()),
                done: done.clone(),
            };
            result = match device.submit(op) {
                Ok(()) => done.next().await.result,
                Err(_) => unreachable!("one at a time"),
            };
            if result.is_err() {
                break;
            }
        }
        // Whoever asked has gone.
        let _ = give.send(result);
    });
    let ended = take.recv().map_err(while_doing("the loop has ended"))?;
    ended.map_err(while_doing("the volume cannot be made ready"))
}
