//! A sample of the history: rates of pools, tiers, vdrives, drives, volumes, policies and exports
//! since the previous one. Pure functions.
//!
//! The activity of an object with parts is the sum of its parts' deltas, so that a removed drive
//! does not reduce what its tier did before.

mod policies;
mod waits;

use crate::history::{Counts, Kind, SERIES_MAX, Values};
use engine::{DriveStatus, IoCounters, PoolLook, PoolStatus, SourceTimes, Tier, VdriveStatus};
use std::collections::BTreeMap;
use units::BLOCK;

const BLOCK_BYTES: u64 = BLOCK as u64;
/// Indices of metrics, as in `history::Kind`.
const ERRORS: usize = 6;
const SESSIONS: usize = 6;
const VDRIVE_USED: usize = 7;
/// Of a pool or a volume: nanoseconds that operations waited at the gate.
const LIMIT_WAIT: usize = 12;
const SHARE_WAIT: usize = 13;
/// Of a tier: first own metric, and the levels among them.
const TIER_OWN: usize = 6;
const TIER_LEVELS: usize = 10;

/// Counters of an object, or their deltas, in the order of its metrics with latency sums instead of
/// means; and its latency and size histograms.
#[derive(Clone, Copy, Default)]
pub struct Deltas {
    counted: [u64; SERIES_MAX],
    spread: Counts,
}

impl Deltas {
    /// Accesses of hosts to an object.
    fn hosts(counters: &IoCounters, spread: Counts) -> Self {
        let mut counted = [0; SERIES_MAX];
        let all = [
            counters.reads,
            counters.writes,
            counters.read_bytes,
            counters.write_bytes,
            counters.read_ns,
            counters.write_ns,
            counters.blocks_ram * BLOCK_BYTES,
            counters.blocks_fast * BLOCK_BYTES,
            counters.blocks_slow * BLOCK_BYTES,
            counters.blocks_zero * BLOCK_BYTES,
            counters.promoted_bytes,
            counters.demoted_bytes,
        ];
        counted[..all.len()].copy_from_slice(&all);
        Self { counted, spread }
    }

    fn drive(drive: &DriveStatus) -> Self {
        let mut counted = [0; SERIES_MAX];
        let all = [
            drive.reads,
            drive.writes,
            drive.read_bytes,
            drive.write_bytes,
            drive.read_ns,
            drive.write_ns,
            drive.errors + drive.timeouts,
        ];
        counted[..all.len()].copy_from_slice(&all);
        let spread = drive.spread;
        Self { counted, spread }
    }

    /// Reads of a volume served from RAM.
    fn ram(sources: &SourceTimes) -> Self {
        let mut did = Self::default();
        did.counted[0] = sources.ram.counts.iter().sum();
        did.counted[4] = sources.ram.ns;
        did.spread.reads.times = sources.ram.counts;
        did
    }

    fn add(&mut self, more: &Self) {
        let counted = self.counted.iter_mut().zip(more.counted);
        counted.for_each(|(sum, more)| *sum += more);
        self.spread.add(&more.spread);
    }

    fn since(&self, before: &Self) -> Self {
        // Counters of a reopened pool restart at 0.
        let mut pairs = self.counted.iter().zip(&before.counted);
        if pairs.any(|(now, before)| now < before) {
            return *self;
        }
        Self {
            counted: std::array::from_fn(|index| self.counted[index] - before.counted[index]),
            spread: self.spread.since(&before.spread),
        }
    }

    /// The metrics for these deltas over some seconds.
    fn values(&self, seconds: f64) -> Values {
        let rate = |index: usize| (self.counted[index] as f64 / seconds) as f32;
        let mut values: Values = std::array::from_fn(rate);
        for (mean, of) in [(4, 0), (5, 1)] {
            let (ns, count) = (self.counted[mean] as f64, self.counted[of]);
            values[mean] = match count {
                0 => f32::NAN,
                count => (ns / count as f64 / 1e9) as f32,
            };
        }
        values
    }
}

/// A sample.
pub struct Sample {
    /// Seconds since the previous one.
    pub seconds: f64,
    before: BTreeMap<String, Deltas>,
    /// Counters of each object.
    pub counted: BTreeMap<String, Deltas>,
    /// Metrics of each object.
    pub figures: Vec<(String, Values)>,
    /// Histograms of each object that had operations.
    pub counts: Vec<(String, Counts)>,
}

impl Sample {
    /// A sample over `seconds`, given the counters at its beginning.
    pub fn new(seconds: f64, before: BTreeMap<String, Deltas>) -> Self {
        Self {
            seconds,
            before,
            counted: BTreeMap::new(),
            figures: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Deltas of an object; nothing if it is new.
    fn since(&mut self, key: &str, now: Deltas) -> Option<Deltas> {
        self.counted.insert(key.to_owned(), now);
        Some(now.since(self.before.get(key)?))
    }

    fn tell(&mut self, kind: Kind, object: String, mut values: Values, spread: Counts) {
        if matches!(kind, Kind::Pool | Kind::Volume) {
            // Nanoseconds waited a second are billions of waiting operations (Little's law).
            values[LIMIT_WAIT..=SHARE_WAIT]
                .iter_mut()
                .for_each(|wait| *wait /= 1e9);
        }
        values[kind.names().count()..].fill(f32::NAN);
        if spread != Counts::default() {
            self.counts.push((object.clone(), spread));
        }
        self.figures.push((object, values));
    }

    /// Adds a pool with all of its objects. `sessions`: number of sessions of each export.
    pub fn pool(&mut self, look: &PoolLook, sessions: &BTreeMap<&str, u64>) {
        let pool = &look.status;
        let (mut all, mut ram) = (Counts::default(), Deltas::default());
        let (mut volumes, mut sums) = (BTreeMap::new(), [0; 2]);
        for volume in &look.volumes {
            let object = Kind::Volume.object(&pool.name, Some(&volume.status.name));
            let from_ram = self.since(&format!("ram of {object}"), Deltas::ram(&volume.sources));
            ram.add(&from_ram.unwrap_or_default());
            let now = Deltas::hosts(&volume.counters, volume.spread);
            if let Some(mut did) = self.since(&object, now) {
                let waited = self.waited(&pool.name, &volume.status, &did);
                did.counted[LIMIT_WAIT..=SHARE_WAIT].copy_from_slice(&waited);
                all.add(&did.spread);
                sums[0] += waited[0];
                sums[1] += waited[1];
                volumes.insert(volume.status.name.as_str(), did);
                self.tell(Kind::Volume, object, did.values(self.seconds), did.spread);
            }
        }
        self.policies(look, &volumes);
        let drives = self.vdrives(pool);
        let object = Kind::Pool.object(&pool.name, None);
        let now = Deltas::hosts(&look.counters, Counts::default());
        if let Some(mut did) = self.since(&object, now) {
            did.counted[LIMIT_WAIT..=SHARE_WAIT].copy_from_slice(&sums);
            self.tell(Kind::Pool, object, did.values(self.seconds), all);
            self.tiers(pool, &did, (&ram, &drives));
        }
        self.exports(look, sessions);
    }

    /// Adds vdrives and drives of a pool; returns the deltas by tier.
    fn vdrives(&mut self, pool: &PoolStatus) -> Vec<(Tier, Deltas)> {
        let each = pool.vdrives.iter();
        each.map(|vdrive| (vdrive.tier, self.vdrive(&pool.name, vdrive)))
            .collect()
    }

    fn vdrive(&mut self, pool: &str, vdrive: &VdriveStatus) -> Deltas {
        let mut all = Deltas::default();
        for drive in &vdrive.drives {
            let object = Kind::Drive.object(pool, Some(&drive.spec));
            if let Some(did) = self.since(&object, Deltas::drive(drive)) {
                all.add(&did);
                self.tell(Kind::Drive, object, did.values(self.seconds), did.spread);
            }
        }
        let mut values = all.values(self.seconds);
        values[ERRORS + 1..].fill(f32::NAN);
        values[VDRIVE_USED] = vdrive.used as f32;
        let object = Kind::Vdrive.object(pool, Some(&vdrive.id.to_string()));
        // Activity before the first sample is unknown.
        if self.since(&object, all).is_some() {
            self.tell(Kind::Vdrive, object, values, all.spread);
        }
        all
    }

    /// Adds the tiers of a pool: reads served, I/O of RAM and drives, and levels.
    fn tiers(
        &mut self,
        pool: &PoolStatus,
        did: &Deltas,
        (ram, drives): (&Deltas, &[(Tier, Deltas)]),
    ) {
        let [from_ram, fast, slow] = [6, 7, 8].map(|index| did.counted[index]);
        let (promoted, demoted) = (did.counted[10], did.counted[11]);
        let served = from_ram + fast + slow;
        let mut from_memory = *ram;
        from_memory.counted[2] = from_ram;
        from_memory.counted[TIER_OWN..TIER_OWN + 2].copy_from_slice(&[from_ram, served]);
        let mut values = from_memory.values(self.seconds);
        // Writes bypass the RAM tier, and its fills and evictions are not counted.
        for index in [1, 3, 8, 9] {
            values[index] = f32::NAN;
        }
        let name = |tier| Kind::Tier.object(&pool.name, Some(tier));
        let level = |bytes: Option<u64>| bytes.map_or(f32::NAN, |bytes| bytes as f32);
        let with = |mut values: Values, levels: [Option<u64>; 3]| {
            values[TIER_LEVELS..TIER_LEVELS + 3].copy_from_slice(&levels.map(level));
            values
        };
        let there = with(values, [Some(pool.ram_bytes), None, None]);
        self.tell(Kind::Tier, name("ram"), there, from_memory.spread);
        let tiers = [
            (Tier::Fast, "fast", [fast, served, promoted, demoted]),
            (Tier::Slow, "slow", [slow, served, demoted, promoted]),
        ];
        for (tier, called, own) in tiers {
            let vdrives = pool.vdrives.iter().filter(|vdrive| vdrive.tier == tier);
            let mut used = vdrives.map(|vdrive| vdrive.used).peekable();
            if used.peek().is_none() {
                continue;
            }
            let mut all = Deltas::default();
            let of_tier = drives.iter().filter(|(of, _)| *of == tier);
            of_tier.for_each(|(_, did)| all.add(did));
            all.counted[TIER_OWN..TIER_OWN + own.len()].copy_from_slice(&own);
            let (dirty, shadow) = match tier {
                Tier::Fast => (Some(pool.fast_dirty), Some(pool.fast_shadow)),
                Tier::Slow => (None, None),
            };
            let values = with(all.values(self.seconds), [Some(used.sum()), dirty, shadow]);
            self.tell(Kind::Tier, name(called), values, all.spread);
        }
    }

    fn exports(&mut self, look: &PoolLook, sessions: &BTreeMap<&str, u64>) {
        let pool = &look.status.name;
        for (name, sessions) in sessions {
            let known = look.exports.iter().find(|export| export.name == *name);
            let now = known.map_or_else(Deltas::default, |export| {
                let mut did = Deltas::hosts(&export.counters, export.spread);
                did.counted[SESSIONS..].fill(0);
                did
            });
            let object = Kind::Export.object(pool, Some(name));
            // A new object has no activity in this sample.
            let did = self.since(&object, now).unwrap_or_default();
            let mut values = did.values(self.seconds);
            values[SESSIONS] = *sessions as f32;
            self.tell(Kind::Export, object, values, did.spread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{LayoutSpec, WearStatus};

    fn drive(spec: &str, reads: u64, took_ns: u64) -> DriveStatus {
        let mut spread = Counts::default();
        spread.reads.times[3] = reads;
        DriveStatus {
            id: spec.to_owned(),
            spec: spec.to_owned(),
            size: 1 << 30,
            state: "online".to_owned(),
            reads,
            writes: 0,
            read_bytes: reads * BLOCK_BYTES,
            write_bytes: 0,
            read_ns: reads * took_ns,
            write_ns: 0,
            spread,
            errors: 0,
            repaired: 0,
            timeouts: 0,
            slow: false,
            why: String::new(),
            synced_percent: None,
            wear: WearStatus::default(),
        }
    }

    /// A sample of one second in which vdrive 1 of `tank` has these drives.
    fn second(before: BTreeMap<String, Deltas>, drives: Vec<DriveStatus>) -> (Sample, Deltas) {
        let vdrive = VdriveStatus {
            id: 1,
            tier: Tier::Fast,
            layout: LayoutSpec::Mirror,
            state: "online".to_owned(),
            capacity: 1 << 30,
            used: 5,
            drives,
        };
        let mut sample = Sample::new(1.0, before);
        let did = sample.vdrive("tank", &vdrive);
        (sample, did)
    }

    fn of(sample: &Sample, object: &str) -> Values {
        let found = sample.figures.iter().find(|(known, _)| known == object);
        found.unwrap().1
    }

    #[test]
    fn vdrive_activity_is_the_sum_of_its_drives_deltas() {
        let (first, _) = second(
            BTreeMap::new(),
            vec![drive("a", 1000, 100), drive("b", 500, 100)],
        );
        assert!(first.figures.is_empty(), "since when is not known");
        let (next, did) = second(
            first.counted,
            vec![drive("a", 1030, 100), drive("b", 510, 100)],
        );
        let vdrive = of(&next, "vdrive/tank/1");
        assert_eq!((vdrive[0], vdrive[2]), (40.0, 40.0 * BLOCK_BYTES as f32));
        assert_eq!((vdrive[VDRIVE_USED], vdrive[ERRORS]), (5.0, 0.0));
        assert!((vdrive[4] - 1e-7).abs() < 1e-12 && vdrive[5].is_nan());
        assert_eq!(did.spread.reads.times[3], 40);
        assert!(
            next.counts
                .contains(&("vdrive/tank/1".to_owned(), did.spread))
        );
        // `b` is replaced by a drive with high counters from elsewhere.
        let (last, _) = second(
            next.counted,
            vec![drive("a", 1031, 100), drive("c", 9000, 100)],
        );
        assert_eq!(of(&last, "vdrive/tank/1")[0], 1.0);
        let (replaced, _) = second(
            last.counted,
            vec![drive("a", 7, 100), drive("c", 9000, 100)],
        );
        assert_eq!(
            of(&replaced, "drive/tank/a")[0],
            7.0,
            "counters restart at 0"
        );
    }
}
