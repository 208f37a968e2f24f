//! An engine with a pool, made the same way each time.

use crate::failure::{Result, while_doing};
use crate::generator::{Generator, Span};
use crate::loops::Loops;
use block::{BlockDevice, OpKind};
use engine::{
    Engine, EngineConfig, LayoutSpec, PolicyChoice, PoolSpec, SpacePolicy, Tier, VdriveSpec,
    VolumeChange, VolumeSpec,
};
use futures_channel::oneshot::{Receiver, channel};
use reactor::{Remote, control};
use std::ops::Range;
use std::sync::Arc;

pub const MIB: u64 = 1 << 20;
pub const BLOCK: u64 = 4096;
const POOL: &str = "bench";
const POLICY: &str = "mission-critical";
const GIB: u64 = 1 << 30;

/// The engine, and the loops that it runs on: these end after it.
pub struct Scene {
    engine: Engine,
    pub remotes: Vec<Remote>,
    _loops: Loops,
}

impl Scene {
    /// A pool with a shard on each of these loops, on drives of a kind: one fast and one slow, of `gib` GiB each.
    ///
    /// # Errors
    /// When the pool cannot be made.
    pub fn new(loops: Loops, kind: &str, gib: u64) -> Result<Self> {
        let remotes = loops.remotes();
        let config = EngineConfig {
            threads: remotes.len(),
            ram_tier: 64 * MIB,
            ..EngineConfig::default()
        };
        let engine = Engine::on_loops(&config, remotes.clone());
        let vdrive = |tier, name: &str| VdriveSpec {
            tier,
            layout: LayoutSpec::Concat,
            drives: vec![format!("{kind}:{name}?size={}", gib * GIB)],
        };
        let spec = PoolSpec {
            name: POOL.to_owned(),
            vdrives: vec![vdrive(Tier::Fast, "fast"), vdrive(Tier::Slow, "slow")],
            policy: SpacePolicy::FastFirst,
            shards: remotes.len() as u16,
            force: true,
            accept_unmirrored: true,
        };
        let made = engine.pool_create(&spec);
        made.map_err(while_doing("the pool cannot be made"))?;
        Ok(Self {
            engine,
            remotes,
            _loops: loops,
        })
    }

    /// Creates a volume of `mib` MiB; returns its number and the way to it.
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
        // As hosts have it: by an export, which is counted for.
        let opened = self.engine.volume_open_export(POOL, name, "e", None);
        let opened = opened.map_err(while_doing("the volume cannot be opened"))?;
        Ok((made.id, opened))
    }

    /// Gives a volume the policy `mission-critical`, or takes it away.
    ///
    /// # Errors
    /// When that fails.
    pub fn promise(&self, name: &str, promised: bool) -> Result<()> {
        let choice = PolicyChoice {
            policy: if promised { POLICY } else { "" }.to_owned(),
            overcommit: true,
            ..PolicyChoice::default()
        };
        let change = VolumeChange {
            policy: Some(choice),
            ..VolumeChange::default()
        };
        let set = self.engine.volume_change(POOL, name, &change);
        set.map_err(while_doing("the policy")).map(drop)
    }

    /// Moves everything to the slow tier alone.
    ///
    /// # Errors
    /// When that fails.
    pub fn cool(&self) -> Result<()> {
        let cooled = self.engine.pool_cool(POOL);
        cooled.map_err(while_doing("the pool cannot be cooled"))
    }

    /// Reads all of a range, or writes it with zeroes, from a loop.
    ///
    /// # Errors
    /// When a request fails.
    pub fn sweep(
        &self,
        number: usize,
        device: &Arc<dyn BlockDevice>,
        kind: OpKind,
        range: Range<u64>,
    ) -> Result<()> {
        let all = Generator {
            device: device.clone(),
            kind,
            first: range.start,
            bytes: range.end - range.start,
            length: MIB,
            sequential: true,
            flush: false,
            requests: (range.end - range.start) / MIB,
            depth: 1,
        };
        self.run(&[(number, all)]).map(|_| ())
    }

    /// Runs loads, each on a loop; returns the seconds from the first request of any to the last answer.
    ///
    /// # Errors
    /// When a request fails.
    pub fn run(&self, loads: &[(usize, Generator)]) -> Result<f64> {
        self.start(loads).wait()
    }

    /// Begins to run loads, each on a loop.
    pub fn start(&self, loads: &[(usize, Generator)]) -> Running {
        let spans = loads.iter().map(|(number, load)| {
            let (give, take) = channel();
            let load = load.clone();
            self.remotes[*number].spawn(move |handle| async move {
                // The receiver is gone.
                let _ = give.send(load.run(handle).await);
            });
            take
        });
        Running {
            spans: spans.collect(),
        }
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

/// Loads that are being run.
pub struct Running {
    spans: Vec<Receiver<std::result::Result<Span, String>>>,
}

impl Running {
    /// Waits for their end; returns the seconds from the first request of any to the last answer.
    ///
    /// # Errors
    /// When a request fails.
    pub fn wait(self) -> Result<f64> {
        let (mut first, mut last) = (u64::MAX, 0);
        for span in self.spans {
            let ended = control::receive(span).map_err(while_doing("a loop has ended"))?;
            let (began, ended) = ended.map_err(while_doing("a request"))?;
            (first, last) = (first.min(began), last.max(ended));
        }
        Ok((last - first) as f64 / 1e9)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}
