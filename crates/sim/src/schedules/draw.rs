//! The elements of a schedule, drawn from its seed.

use crate::random::Random;
use format::{QosPolicyConfig, ReactionConfig};
use qos::Kind;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// Where a volume's operations go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// To all shards in turn.
    All,
    /// To one of them.
    One(usize),
}

/// How a volume is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Habit {
    /// Keeps a number of operations in flight.
    Flood(usize),
    /// The same, with pauses: on for so long, then off.
    Bursts(usize, u64, u64),
    /// An operation per interval in nanoseconds.
    Paced(u64),
}

/// A volume, and who uses it.
#[derive(Clone, Debug)]
pub struct Volume {
    pub policy: Option<QosPolicyConfig>,
    pub kind: Kind,
    pub bytes: u64,
    pub habit: Habit,
    pub spread: Spread,
}

/// A change while it runs.
#[derive(Clone, Debug)]
pub struct Change {
    pub at_ns: u64,
    pub volume: usize,
    pub policy: Option<QosPolicyConfig>,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Plan {
    pub shards: usize,
    /// Operations that a shard serves at a time.
    pub channels: u64,
    /// Time of one there, in nanoseconds, and per KiB.
    pub base_ns: u64,
    pub kib_ns: u64,
    pub volumes: Vec<Volume>,
    pub changes: Vec<Change>,
    pub length_ns: u64,
}

impl Plan {
    /// Time of an operation on one channel, in nanoseconds.
    pub fn service_ns(&self, kind: Kind, bytes: u64) -> u64 {
        let kib = match kind {
            Kind::Other => 0,
            Kind::Read | Kind::Write => bytes / 1024,
        };
        self.base_ns + self.kib_ns * kib
    }

    /// Operations of a volume that all shards that it uses do in a second when they do nothing else.
    pub fn most(&self, volume: &Volume) -> f64 {
        let shards = match volume.spread {
            Spread::All => self.shards,
            Spread::One(_) => 1,
        };
        let service = self.service_ns(volume.kind, volume.bytes);
        (shards as u64 * self.channels * SECOND) as f64 / service as f64
    }
}

const SIZES: [u64; 5] = [4096, 8192, 16_384, 65_536, 262_144];

fn policy(random: &mut Random, id: u32, most: f64, has_floor: bool) -> QosPolicyConfig {
    let part =
        |random: &mut Random, from, to| (most * random.within(from..=to) as f64 / 100.0) as u64;
    let min_iops = match random.one_in(5) || !has_floor {
        true => 0,
        false => part(random, 5, 70).max(1),
    };
    let max_iops = match random.one_in(8) {
        true => part(random, 10, 60).max(min_iops).max(20),
        false => 0,
    };
    QosPolicyConfig {
        id,
        name: String::new(),
        level: random.within(1..=5) as u8,
        min_iops,
        min_bandwidth: 0,
        max_iops,
        max_bandwidth: 0,
        burst_s: u32::from(max_iops > 0 && random.one_in(4)),
        max_latency_ns: match random.one_in(8) {
            true => random.within(5..=100) * MS,
            false => 0,
        },
        weight: *random.pick(&[50, 100, 100, 300]),
        reaction: ReactionConfig::Normal,
        fast_floor: 0,
        ram_percent: 0,
    }
}

/// That of a seed.
pub fn plan(seed: u64) -> Plan {
    let random = &mut Random::new(seed);
    let mut plan = Plan {
        shards: random.within(1..=3) as usize,
        channels: *random.pick(&[1, 1, 2, 4, 8]),
        base_ns: 0,
        kib_ns: 0,
        volumes: Vec::new(),
        changes: Vec::new(),
        length_ns: random.within(1_700..=2_500) * MS,
    };
    // So that a schedule has some thousand operations, whatever it has of shards and channels.
    let together = plan.shards as u64 * plan.channels;
    plan.base_ns = together * random.within(150..=1_000) * 1_000;
    plan.kib_ns = together * random.within(0..=2_000);
    // In most schedules all are spread alike: then what each has to get is known beforehand.
    let alike = !random.one_in(4);
    // In some, all is about weights and what operations cost.
    let has_floors = !random.one_in(4);
    let of_one_size = has_floors && random.one_in(2);
    let size = *random.pick(&SIZES);
    for id in 0..random.within(2..=6) as u32 {
        let depth = random.within(20..=80) as usize * plan.shards;
        let spread = match alike || random.one_in(2) {
            true => Spread::All,
            false => Spread::One(random.below(plan.shards as u64) as usize),
        };
        let mut volume = Volume {
            policy: None,
            kind: *random.pick(&[Kind::Read, Kind::Read, Kind::Write, Kind::Other]),
            bytes: if of_one_size {
                size
            } else {
                *random.pick(&SIZES)
            },
            habit: Habit::Flood(depth),
            spread,
        };
        let most = plan.most(&volume);
        volume.policy = (!random.one_in(4)).then(|| policy(random, 64 + id, most, has_floors));
        if random.one_in(4) {
            let floor = volume.policy.as_ref().map_or(0, |policy| policy.min_iops);
            let pace = (floor as f64 / 3.0).max(most / 100.0).max(4.0);
            volume.habit = match random.one_in(2) {
                true => Habit::Paced((SECOND as f64 / pace) as u64),
                false => Habit::Bursts(
                    depth,
                    random.within(50..=400) * MS,
                    random.within(50..=600) * MS,
                ),
            };
        }
        plan.volumes.push(volume);
    }
    if random.one_in(3) {
        for _ in 0..random.within(1..=4) {
            let volume = random.below(plan.volumes.len() as u64) as usize;
            let most = plan.most(&plan.volumes[volume]);
            let at_ns = random.within(1..=plan.length_ns / MS / 3) * MS;
            let policy = (!random.one_in(3)).then(|| policy(random, 200, most, has_floors));
            plan.changes.push(Change {
                at_ns,
                volume,
                policy,
            });
        }
        // Once in a while all of it ends: what is held has to continue.
        if random.one_in(3) {
            let at_ns = plan.length_ns / 2;
            let none = (0..plan.volumes.len()).map(|volume| Change {
                at_ns,
                volume,
                policy: None,
            });
            plan.changes.extend(none);
        }
        plan.changes.sort_by_key(|change| change.at_ns);
    }
    plan
}
