//! Figures over time: what pools, tiers, drives, volumes and exports did since the last look.

use super::core::Manager;
use crate::history::{Counts, Kind, SERIES_MAX, Values};
use engine::{IoCounters, PoolLook, PoolStatus, Tier};
use std::collections::BTreeMap;
use std::time::Duration;
use units::BLOCK;

/// What an object had counted.
type Counted = [u64; SERIES_MAX];

/// What the last look saw.
#[derive(Default)]
pub(super) struct Sampled {
    /// When: since the daemon was started, and seconds since 1970.
    at: Option<(Duration, u64)>,
    counted: BTreeMap<String, Counted>,
    /// Operations of volumes by times and sizes.
    spreads: BTreeMap<String, Counts>,
    /// Figures are not kept, and that was said.
    failing: bool,
}

/// What was gathered at a look.
struct Sample {
    /// Seconds since the last one.
    seconds: f64,
    before: BTreeMap<String, Counted>,
    counted: BTreeMap<String, Counted>,
    figures: Vec<(String, Values)>,
    spreads_before: BTreeMap<String, Counts>,
    spreads: BTreeMap<String, Counts>,
    counts: Vec<(String, Counts)>,
}

impl Sample {
    /// How the operations of a pool's volumes since the last look were spread, and of the pool all together.
    fn spread(&mut self, pool: &PoolLook) {
        let (name, mut all) = (&pool.status.name, Counts::default());
        for volume in &pool.volumes {
            let object = Kind::Volume.object(name, Some(&volume.status.name));
            self.spreads.insert(object.clone(), volume.spread);
            let Some(before) = self.spreads_before.get(&object) else {
                continue;
            };
            let since = volume.spread.since(before);
            if since != Counts::default() {
                all.add(&since);
                self.counts.push((object, since));
            }
        }
        if all != Counts::default() {
            self.counts.push((Kind::Pool.object(name, None), all));
        }
    }

    /// What an object counted since the last look; nothing when it was not there then.
    fn since(&mut self, object: &str, now: Counted) -> Option<Counted> {
        self.counted.insert(object.to_owned(), now);
        let before = self.before.get(object)?;
        // A pool that was opened anew counts from 0 on.
        let anew = now.iter().zip(before).any(|(now, before)| now < before);
        let differences = |index: usize| now[index] - before[index];
        Some(if anew {
            now
        } else {
            std::array::from_fn(differences)
        })
    }

    fn rate(&self, count: u64) -> f32 {
        (count as f64 / self.seconds) as f32
    }

    /// What hosts did to a pool or a volume.
    fn hosts(&mut self, object: String, counters: &IoCounters) {
        let now = [
            counters.reads,
            counters.writes,
            counters.read_bytes,
            counters.write_bytes,
            counters.read_ns,
            counters.write_ns,
        ];
        let Some(did) = self.since(&object, now) else {
            return;
        };
        let mean = |ns: u64, count: u64| match count {
            0 => f32::NAN,
            count => (ns as f64 / count as f64 / 1e9) as f32,
        };
        let values = [
            self.rate(did[0]),
            self.rate(did[1]),
            self.rate(did[2]),
            self.rate(did[3]),
            mean(did[4], did[0]),
            mean(did[5], did[1]),
        ];
        self.figures.push((object, values));
    }

    /// What was read of a tier and moved to it, and the bytes there: used, dirty, shadow.
    fn tier(&mut self, object: String, (served, moved_in): (u64, u64), bytes: [Option<u64>; 3]) {
        let Some(did) = self.since(&object, [served, moved_in, 0, 0, 0, 0]) else {
            return;
        };
        let level = |bytes: Option<u64>| bytes.map_or(f32::NAN, |bytes| bytes as f32);
        let [used, dirty, shadow] = bytes.map(level);
        let rates = [self.rate(did[0]), self.rate(did[1])];
        let values = [rates[0], rates[1], used, dirty, shadow, f32::NAN];
        self.figures.push((object, values));
    }

    fn pool(&mut self, pool: &PoolStatus, counters: &IoCounters) {
        let name = &pool.name;
        self.hosts(Kind::Pool.object(name, None), counters);
        let block = BLOCK as u64;
        let used = |tier: Tier| {
            let vdrives = pool.vdrives.iter().filter(|vdrive| vdrive.tier == tier);
            let mut used = vdrives.map(|vdrive| vdrive.used).peekable();
            used.peek()?;
            Some(used.sum::<u64>())
        };
        let ram = [Some(pool.ram_bytes), None, None];
        let served = (counters.blocks_ram * block, 0);
        self.tier(Kind::Tier.object(name, Some("ram")), served, ram);
        if let Some(used) = used(Tier::Fast) {
            let served = (counters.blocks_fast * block, counters.promoted_bytes);
            let bytes = [Some(used), Some(pool.fast_dirty), Some(pool.fast_shadow)];
            self.tier(Kind::Tier.object(name, Some("fast")), served, bytes);
        }
        if let Some(used) = used(Tier::Slow) {
            let served = (counters.blocks_slow * block, counters.demoted_bytes);
            let bytes = [Some(used), None, None];
            self.tier(Kind::Tier.object(name, Some("slow")), served, bytes);
        }
        for drive in pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives) {
            let now = [
                drive.reads,
                drive.writes,
                drive.read_bytes,
                drive.write_bytes,
                drive.errors + drive.timeouts,
                0,
            ];
            let object = Kind::Drive.object(name, Some(&drive.spec));
            if let Some(did) = self.since(&object, now) {
                let mut values = did.map(|count| self.rate(count));
                values[SERIES_MAX - 1] = f32::NAN;
                self.figures.push((object, values));
            }
        }
    }
}

/// Seconds for which a look is written down. Whole seconds of the wall clock, so that their sum is what was counted,
/// unless somebody set that.
fn seconds_between(before: (Duration, u64), now: (Duration, u64)) -> f64 {
    let elapsed = now.0.saturating_sub(before.0).as_secs_f64();
    let shown = now.1 as f64 - before.1 as f64;
    match (shown - elapsed).abs() < 2.0 && shown >= 1.0 {
        true => shown,
        false => elapsed,
    }
}

impl Manager {
    /// Writes down what was done since the last look, at `up` since the daemon was started and `at_s`, seconds since
    /// 1970.
    pub(super) fn sample(
        &self,
        sampled: &mut Sampled,
        pools: &[PoolLook],
        up: Duration,
        at_s: u64,
    ) {
        let seconds = match sampled.at {
            // The second is not over: what was done since counts for the next.
            Some((_, before_s)) if before_s == at_s => return,
            Some((before, before_s)) => seconds_between((before, before_s), (up, at_s)),
            None => 0.0,
        };
        sampled.at = Some((up, at_s));
        let mut sample = Sample {
            seconds,
            before: std::mem::take(&mut sampled.counted),
            counted: BTreeMap::new(),
            figures: Vec::new(),
            spreads_before: std::mem::take(&mut sampled.spreads),
            spreads: BTreeMap::new(),
            counts: Vec::new(),
        };
        for pool in pools {
            sample.pool(&pool.status, &pool.counters);
            for volume in &pool.volumes {
                let object = Kind::Volume.object(&pool.status.name, Some(&volume.status.name));
                sample.hosts(object, &volume.counters);
            }
            sample.spread(pool);
        }
        for export in self.export_list(None).items {
            let mut values = [f32::NAN; SERIES_MAX];
            values[0] = export.sessions as f32;
            let object = Kind::Export.object(&export.pool, Some(&export.name));
            sample.figures.push((object, values));
        }
        sampled.counted = sample.counted;
        sampled.spreads = sample.spreads;
        if sample.seconds == 0.0 {
            return;
        }
        let seconds = sample.seconds.round() as u64;
        match self
            .history
            .write(at_s, seconds, &sample.figures, &sample.counts)
        {
            Ok(()) => sampled.failing = false,
            Err(error) => {
                if !std::mem::replace(&mut sampled.failing, true) {
                    tracing::error!("figures are not kept until this is mended: {error}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_does_not_make_rates_wrong() {
        let at = |up_ms: u64, at_s: u64| (Duration::from_millis(up_ms), at_s);
        for (before, now, seconds) in [
            (at(0, 100), at(1004, 101), 1.0),
            (at(0, 100), at(1004, 102), 2.0),
            (at(0, 100), at(9990, 110), 10.0),
            (at(0, 100), at(1500, 4000), 1.5),
            (at(0, 100), at(1500, 50), 1.5),
        ] {
            assert_eq!(seconds_between(before, now), seconds);
        }
    }
}
