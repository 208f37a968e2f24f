//! A daemon with three pools of drives that are limited in their rate: each of two drives alone, and
//! one with both as its tiers.

use crate::daemon::Daemon;
use crate::failure::{Failure, Result};
use crate::fio::{self, Load, Target};
use crate::interrupt;
use crate::scratch::Scratch;
use std::path::Path;
use std::time::Duration;
use units::format_bytes;

/// The drives alone, and both.
pub const POOLS: [&str; 3] = ["fast-alone", "slow-alone", "both"];
/// Memory for cached data of each pool: little, so that the drives answer.
const RAM: &str = "ram_tier = \"16M\"\n";
/// How long what was written may take to come down; far beyond what is expected.
const SETTLE: Duration = Duration::from_secs(300);
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The pools; the daemon ends before the folder goes.
pub struct Stage {
    pub daemon: Daemon,
    scratch: Scratch,
}

impl Stage {
    /// Makes the files, the pools and in each a volume that is full.
    pub fn new(convect: &Path, rates: [u64; 2], used: u64) -> Result<Self> {
        // What is used, and the metadata.
        let size = (used + GIB).div_ceil(MIB) * MIB;
        let scratch = Scratch::new("tiers", 4 * size + GIB)?;
        let daemon = Daemon::start(convect, scratch.path(), RAM)?;
        let mut stage = Self { daemon, scratch };
        let made = stage.make(rates, used, size);
        stage.daemon.explain(made)?;
        Ok(stage)
    }

    fn make(&self, rates: [u64; 2], used: u64, size: u64) -> Result<()> {
        // Filling the volumes gives the files their blocks.
        let drive = |file: &str, rate: u64| {
            let path = self.scratch.join(file);
            format!(
                "model:ssd-sata,iops={rate}:file:{}?size={size}",
                path.display()
            )
        };
        let [fast, slow] = rates;
        let (fast_alone, slow_alone) = (drive("a.img", fast), drive("b.img", slow));
        let (upper, lower) = (drive("upper.img", fast), drive("lower.img", slow));
        let tiers = [
            vec!["fast", &fast_alone],
            vec!["fast", &slow_alone],
            vec!["fast", &upper, "slow", &lower],
        ];
        for (pool, tiers) in POOLS.into_iter().zip(tiers) {
            let policy = ["--policy", "slow-first", "--accept-unmirrored"];
            let create = [&["pool", "create", pool][..], &tiers, &policy].concat();
            self.daemon.run(&create)?;
            let volume = format!("{pool}/disk");
            let size = used.to_string();
            self.daemon
                .run(&["volume", "create", &volume, "--size", &size])?;
            let listen = format!("unix:{}", self.socket(pool).display());
            self.daemon.run(&[
                "export", "create", pool, &volume, "nbd", "--listen", &listen,
            ])?;
            let fill = Load::fill(self.target(pool), used);
            fio::run(&fill, self.scratch.path(), || Ok(()))?;
        }
        self.settle(used)
    }

    /// Waits until both tiers of the pool that has two have everything.
    fn settle(&self, used: u64) -> Result<()> {
        let pool = POOLS[2];
        let settled = interrupt::wait_for(SETTLE, || Ok(self.daemon.pool(pool)?.fast_dirty == 0))?;
        let shadow = self.daemon.pool(pool)?.fast_shadow;
        if settled && shadow >= used {
            return Ok(());
        }
        Err(Failure::new(format!(
            "after {} s both tiers have {} of {}: `convect pool show {pool}` says where the rest is",
            SETTLE.as_secs(),
            format_bytes(shadow),
            format_bytes(used)
        )))
    }

    fn socket(&self, pool: &str) -> std::path::PathBuf {
        self.scratch.join(&format!("{pool}.sock"))
    }

    /// A pool's volume.
    pub fn target(&self, pool: &str) -> Target {
        Target::Nbd {
            export: pool.to_owned(),
            socket: self.socket(pool),
        }
    }
}
