//! One phase: writes, and once a second the status of the pool's fast tier.

use crate::daemon::Daemon;
use crate::failure::Result;
use crate::load::{self, Load, Series};
use crate::scene::{POOL, Scene};
use crate::screen::{Progress, thousands};
use std::ops::Range;

/// The fast tier at a second's end; parts are from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tier {
    /// Part of it that is in use.
    pub used: f64,
    /// Part of it that the slow tier does not have.
    pub dirty: f64,
    /// Bytes that have sunk in that second.
    pub sunk: u64,
}

/// Measurements of a phase.
pub struct Phase {
    pub name: &'static str,
    pub series: Series,
    /// The fast tier at each second's end.
    pub tier: Vec<Tier>,
}

/// Seconds after which a fast tier that became no fuller counts as full.
const STEADY: usize = 3;
/// Part of the tier that does not count as fuller.
const LITTLE: f64 = 0.005;
/// A tier is not full before so much of it is dirty, however slowly that grows.
const HALF: f64 = 0.5;

/// Whether as much is demoted as is written: the dirty part has stopped growing. How much a pool lets become
/// dirty is its own affair.
pub fn is_full(tier: &[Tier]) -> bool {
    let Some((now, before)) = tier.last().zip(tier.iter().rev().nth(STEADY)) else {
        return false;
    };
    now.dirty >= HALF && now.dirty - before.dirty < LITTLE
}

/// Examines a pool once a second.
struct Watch<'a> {
    daemon: &'a Daemon,
    demoted: u64,
}

impl Watch<'_> {
    fn look(&mut self) -> Result<Tier> {
        let pool = self.daemon.pool(POOL)?;
        let demoted = self.daemon.counters(POOL)?.demoted_bytes;
        let part = |bytes: u64| bytes as f64 / pool.fast_capacity.max(1) as f64;
        let sunk = demoted - self.demoted;
        self.demoted = demoted;
        Ok(Tier {
            used: part(pool.fast_dirty + pool.fast_shadow),
            dirty: part(pool.fast_dirty),
            sunk,
        })
    }
}

/// Writes all over a part of the volume, for a number of seconds or until `ends` returns true for the fast tier.
pub fn write(
    scene: &Scene,
    name: &'static str,
    bytes: Range<u64>,
    seconds: u64,
    ends: impl Fn(&[Tier]) -> bool,
) -> Result<Phase> {
    let load = Load::all_over(scene.target(), true, bytes, seconds);
    let mut watch = Watch {
        daemon: &scene.daemon,
        demoted: scene.daemon.counters(POOL)?.demoted_bytes,
    };
    let (mut tier, mut progress) = (Vec::new(), Progress::new());
    let series = load::run(&load, |second, iops| {
        let now = watch.look()?;
        tier.push(now);
        if progress.is_due() {
            progress.draw(&format!(
                "  {name:<10} {:>4} s {:>8} IOPS  fast tier {:.0} % full, {:.0} % dirty",
                second + 1,
                thousands(iops),
                100.0 * now.used,
                100.0 * now.dirty
            ));
        }
        Ok(!ends(&tier))
    })?;
    progress.clear();
    Ok(Phase { name, series, tier })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_full_when_its_dirty_part_has_stopped_growing() {
        let tier = |parts: &[f64]| -> Vec<Tier> {
            let tiers = parts.iter().map(|dirty| Tier {
                dirty: *dirty,
                ..Tier::default()
            });
            tiers.collect()
        };
        for (parts, full) in [
            (&[0.80, 0.83, 0.84, 0.84][..], false),
            (&[0.83, 0.84, 0.83, 0.83], true),
            (&[0.2, 0.2, 0.2, 0.2], false),
            (&[0.84, 0.84, 0.84], false),
            (&[], false),
        ] {
            assert_eq!(is_full(&tier(parts)), full, "{parts:?}");
        }
    }
}
