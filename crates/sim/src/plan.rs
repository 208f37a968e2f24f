//! The layout of a seed's pool.

mod focus;

pub use focus::Focus;

use crate::aims::Aim;
use crate::check::MEMORY;
use crate::openings::Kind;
use crate::races::Activity;
use crate::random::Random;
use crate::request::Faults;
use crate::run::Length;
use crate::tempo::Tempo;
use crate::world::Order;
use engine::{LayoutSpec, PoolSpec, SpacePolicy, Tier, VdriveSpec, VolumeSpec};

const MIB: u64 = 1 << 20;

/// Of a volume in a group: each is on one shard.
const ONE_CHUNK: [u64; 1] = [0];
/// Chunks of a volume that are used: of three regions, so that several shards have some.
const CHUNKS: [u64; 10] = [0, 1, 2, 5, 7, 256, 260, 290, 513, 600];
/// Of one that is left alone.
pub const ALL_CHUNKS: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
/// Of a volume in a tiny pool.
const FEW_CHUNKS: [u64; 3] = [0, 1, 5];

/// The main activity of a run besides operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bent {
    /// All that there is.
    Everything,
    /// Short lives: what was unflushed when the last one ended is near when the next one ends.
    Lives,
    /// Data goes up and down between tiers.
    Tiers,
    /// All is scrubbed under load.
    Scrubs,
    /// A few blocks are written again and again while they be demoted.
    Sinking,
    /// Snapshots are taken, read and deleted.
    Snapshots,
    /// The pool is exported and imported.
    Openings,
    /// Quotas and reservations change.
    Limits,
    /// Background work is begun together, on the chunks that hosts use.
    Races,
    /// Actions of the control plane with limits, clones and streams.
    Control,
}

/// A drive.
#[derive(Clone, Debug)]
pub struct DrivePlan {
    /// How it is opened.
    pub spec: String,
    /// Bytes.
    pub size: u64,
    /// A disk.
    pub slow: bool,
    /// How long a request takes at least and at most, in microseconds.
    pub latency_us: (u64, u64),
    /// How its answers are in time.
    pub tempo: Tempo,
    /// It reads and writes in place, where that goes well.
    pub in_memory: bool,
}

/// A pool, and what may join it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Loops that the shards live on.
    pub loops: usize,
    /// Which of a loop's tasks goes next.
    pub order: Order,
    /// Background work races on purpose, drives have tempos of their own, and more is done with mirrors and by the control
    /// plane.
    pub rich: bool,
    /// Background work that races in this run, if not any.
    pub pair: Option<[Activity; 2]>,
    /// The race to provoke, if any.
    pub aim: Option<Aim>,
    shards: u16,
    /// Blocks of a shard's journal.
    pub journal_blocks: u64,
    /// Every drive, those that are not yet of the pool last.
    pub drives: Vec<DrivePlan>,
    vdrives: Vec<VdriveSpec>,
    /// Number of drives of the pool at its creation: the first ones.
    pub members: usize,
    policy: SpacePolicy,
    spare: Option<VdriveSpec>,
    /// The vdrive that joined.
    pub added: Option<u8>,
    /// A vdrive was asked to leave, once at least.
    pub left: bool,
    /// Members of the mirror that is the fast tier, which are the first drives; 0 if the fast tier is no mirror.
    pub legs: usize,
    /// A member of a mirror that goes wrong, and how.
    pub faulty: Option<(usize, Faults)>,
    /// A drive that has no copy goes wrong, and how.
    pub bad: Option<(usize, Faults)>,
    /// The bad drive has metadata that no other has, and that goes wrong, too.
    pub wild: bool,
    /// Occasional behaviour of all drives that is not a fault: a hundredfold latency.
    pub calm: Faults,
    /// The focus.
    pub bent: Bent,
    /// A small pool with small volumes, of which each state is quickly examined.
    pub tiny: bool,
    /// A volume that is written once takes most of the fast tier.
    pub tight: bool,
    /// Blocks of that volume.
    pub ballast: u64,
    /// Chunks of a volume that are used.
    pub chunks: &'static [u64],
    /// Blocks that are used of a volume's first chunk, enough for a home, and of the others.
    pub blocks: [u64; 2],
    /// Nothing but group snapshots.
    groups: bool,
    /// Volumes are written as far as they are used when they are made.
    pub filled: bool,
    /// Snapshots are taken.
    pub snapshots: bool,
    /// The metadata region is small and fills with snapshots.
    pub scarce: bool,
    /// Volumes have quotas and reservations.
    pub limits: bool,
    /// Their placement is changed.
    pub knobs: bool,
    /// Volumes get policies of quality of service.
    pub policies: bool,
    /// The power goes in the middle of openings, and of snapshots that are taken, too.
    pub midway: bool,
    /// Every life ends with a kill, on a host whose memory outlives the engine.
    pub killed: bool,
    /// Drives are tampered with between lives.
    pub tampered: bool,
    /// Memory for maps in bytes: all of them, or so little that pages are evicted.
    pub map_cache: u64,
    /// Memory for what is read, in bytes.
    pub ram_tier: u64,
    /// Groups of space below which shards release space for one another: by itself hardly any pool comes to
    /// that.
    pub spare_groups: u64,
    /// A crash is examined once in this many writes and flushes of drives: the others let more
    /// happen.
    pub every: u64,
    /// Crashes that are examined in the moment of a checkpoint's record.
    pub looks: u64,
    /// How long nothing happens now and then, in nanoseconds.
    pub pause_ns: u64,
}

impl Plan {
    /// A seed's, of so much of it, before it is bent.
    pub fn of(seed: u64, length: &Length) -> Self {
        Self::new(&mut Random::new(seed), seed, length)
    }

    /// The same, with the random sequence that the rest of the run continues.
    pub fn new(random: &mut Random, seed: u64, length: &Length) -> Self {
        let rich = length.is_rich(seed);
        let mut own = Random::new(seed.rotate_left(12));
        // Most have a mirror.
        let mirrors = rich && own.one_in(2);
        let mut plan = Self::basic(random, length.groups, mirrors);
        if rich {
            plan.enrich(&mut own);
        }
        // What is looked for in a bent run was found in one without.
        plan.policies &= !length.plain && length.focus.is_none();
        plan
    }

    /// Tasks and drives in orders of their own.
    fn enrich(&mut self, random: &mut Random) {
        self.rich = true;
        self.order = *random.pick(&[Order::Any, Order::Any, Order::Ranks, Order::Fifo]);
        for drive in &mut self.drives {
            drive.tempo = Tempo::any(random, drive.slow);
        }
    }

    /// With `groups` of many small volumes on several shards, each with a loop of its own.
    fn basic(random: &mut Random, groups: bool, mirrors: bool) -> Self {
        let tiny = random.one_in(2) && !groups;
        let shards = match tiny {
            true => 1,
            false if groups => random.within(3..=4) as u16,
            false => *random.pick(&[1u16, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4]),
        };
        let bent = *random.pick(&[Bent::Everything, Bent::Everything, Bent::Lives, Bent::Tiers]);
        let mut plan = Self {
            loops: match groups {
                true => usize::from(shards),
                false => random.within(1..=u64::from(shards)) as usize,
            },
            order: Order::Fifo,
            rich: false,
            pair: None,
            aim: None,
            shards,
            journal_blocks: *random.pick(&[32, 32, 32, 32, 64, 256]),
            drives: Vec::new(),
            vdrives: Vec::new(),
            members: 0,
            policy: *random.pick(&[
                SpacePolicy::SlowFirst,
                SpacePolicy::SlowFirst,
                SpacePolicy::FastFirst,
            ]),
            spare: None,
            added: None,
            left: false,
            legs: 0,
            faulty: None,
            bad: None,
            wild: false,
            calm: Faults {
                slow: match groups {
                    true => 0,
                    false => *random.pick(&[0, 20, 100]),
                },
                ..Faults::default()
            },
            bent,
            tiny,
            tight: false,
            ballast: 0,
            chunks: match (tiny, bent) {
                _ if groups => &ONE_CHUNK,
                (true, Bent::Tiers) => &ALL_CHUNKS,
                (true, _) => &FEW_CHUNKS,
                _ => &CHUNKS,
            },
            blocks: match tiny {
                _ if groups => [8, 8],
                true => *random.pick(&[[72, 4], [72, 4], [20, 8]]),
                false => *random.pick(&[[72, 6], [72, 6], [72, 6], [40, 30], [80, 70], [200, 80]]),
            },
            filled: random.one_in(2) && !groups,
            groups,
            // By a chance of its own: the rest of the run is as without.
            snapshots: Random::new(!random.clone().next()).one_in(2),
            scarce: Random::new(random.clone().next().rotate_left(16)).one_in(4),
            limits: Random::new(random.clone().next().rotate_left(48)).one_in(4) && !groups,
            knobs: Random::new(random.clone().next().rotate_left(8)).one_in(4) && !groups,
            policies: Random::new(random.clone().next().rotate_left(56)).one_in(4) && !groups,
            midway: Random::new(random.clone().next().rotate_left(24)).one_in(4) && !groups,
            killed: false,
            tampered: false,
            map_cache: match Random::new(random.clone().next().rotate_left(32)).one_in(4) {
                true => 96 << 10,
                false => MEMORY.map_cache,
            },
            ram_tier: MEMORY.ram_tier,
            spare_groups: match Random::new(random.clone().next().rotate_left(40)).one_in(3) {
                true => 1 << 16,
                false => MEMORY.spare_groups,
            },
            every: match (tiny, bent) {
                (_, Bent::Lives) => *random.pick(&[4, 64, 64]),
                _ => *random.pick(&[1, 4, 16, 64]),
            },
            looks: 8,
            pause_ns: random.within(1..=10) * 500_000_000,
        };
        plan.snapshots |= groups;
        plan.scarce &= !groups;
        let mirrored = random.one_in(2) || mirrors;
        // Metadata is on the first two drives: of three, one has data alone.
        let fast = if mirrored {
            let legs = random.within(2..=3) as usize;
            plan.legs = legs;
            plan.vdrive(random, Tier::Fast, LayoutSpec::Mirror, legs)
        } else {
            let drives = if tiny { 1 } else { *random.pick(&[1, 1, 3]) };
            plan.vdrive(random, Tier::Fast, LayoutSpec::Concat, drives)
        };
        let two = fast.drives.len() >= 2;
        plan.vdrives.push(fast);
        // Data is on drives without metadata, too.
        if two && random.one_in(2) {
            let fast = plan.vdrive(random, Tier::Fast, LayoutSpec::Concat, 1);
            plan.vdrives.push(fast);
        }
        if mirrored && random.one_in(3) {
            let faults = faults(random);
            // Half of them only have reported faults: what they are said to have
            // they have.
            let faults = if random.one_in(2) {
                faults.announced()
            } else {
                faults
            };
            plan.faulty = Some((random.below(2) as usize, faults));
        }
        let slow = match random.below(6) {
            // Labels are on every drive: on fast ones snapshots are quickly taken.
            _ if groups => None,
            1..=2 if bent == Bent::Tiers => Some((LayoutSpec::Concat, 1)),
            0 => Some((LayoutSpec::Mirror, 2)),
            3 => Some((LayoutSpec::Stripe { chunk: 64 << 10 }, 2)),
            1 | 2 => None,
            _ => Some((LayoutSpec::Concat, 1)),
        };
        if let Some((layout, count)) = slow {
            let slow = plan.vdrive(random, Tier::Slow, layout, count);
            plan.vdrives.push(slow);
            plan.spare = Some(plan.vdrive(random, Tier::Slow, LayoutSpec::Concat, 1));
        } else {
            plan.spare = Some(plan.vdrive(random, Tier::Fast, LayoutSpec::Concat, 1));
        }
        plan.tight = slow.is_none() && (tiny || random.one_in(2)) && !groups;
        plan.members = plan.vdrives.iter().map(|vdrive| vdrive.drives.len()).sum();
        if plan.faulty.is_none() && random.one_in(3) && !groups {
            plan.go_bad(random);
        }
        plan
    }

    /// Drives of the pool that hold a part of a mirror, or those that do not.
    pub fn drives_where(&self, mirrored: bool) -> Vec<usize> {
        let (mut first, mut found) = (0, Vec::new());
        for vdrive in &self.vdrives {
            let drives = first..first + vdrive.drives.len();
            first = drives.end;
            if (vdrive.layout == LayoutSpec::Mirror) == mirrored {
                found.extend(drives);
            }
        }
        found
    }

    /// Shards of the pool.
    pub fn shards(&self) -> usize {
        self.shards.into()
    }

    /// Groups of the metadata region.
    pub fn meta_groups(&self) -> Option<u64> {
        (self.snapshots && self.scarce).then_some(u64::from(self.shards))
    }

    /// A member that may lack unreported writes.
    pub fn fragile(&self) -> Option<usize> {
        let (leg, faults) = self.faulty?;
        (!faults.is_announced()).then_some(leg)
    }

    /// Some drive that no other has a copy of goes wrong.
    fn go_bad(&mut self, random: &mut Random) {
        let alone = self.drives_where(false);
        if alone.is_empty() {
            return;
        }
        let drive = *random.pick(&alone);
        let all = self.vdrives.iter().map(|vdrive| vdrive.drives.len()).sum();
        let fast = self.drives[..all]
            .iter()
            .filter(|drive| !drive.slow)
            .count();
        // Metadata is on the first two fast drives, or on the first two of all.
        let metadata = drive < fast.min(2);
        self.wild = metadata && fast == 1 && random.one_in(3);
        let mut faults = Faults {
            told: !self.wild,
            ..faults(random)
        };
        if metadata && !self.wild {
            faults.lying_flush = 0;
        }
        self.bad = Some((drive, faults));
    }

    /// Bytes of a fast drive with room for the metadata and little else: what is freed there is
    /// soon used again.
    fn least_fast(&self) -> u64 {
        let shards = u64::from(self.shards);
        let blocks = 512 + shards * self.journal_blocks + 512 * (2 * shards + 2);
        (2 * blocks * 4096).next_multiple_of(MIB)
    }

    fn vdrive(
        &mut self,
        random: &mut Random,
        tier: Tier,
        layout: LayoutSpec,
        count: usize,
    ) -> VdriveSpec {
        let slow = tier == Tier::Slow;
        let size = if slow {
            random.within(24..=64) * MIB
        } else if self.tiny && !self.drives.is_empty() && layout != LayoutSpec::Mirror {
            // The first one has the metadata.
            random.within(8..=10) * MIB
        } else {
            // Half of them are soon full.
            let more = if self.tiny {
                0..=2
            } else {
                random.pick(&[0..=2, 6..=16]).clone()
            };
            self.least_fast() + random.within(more) * MIB
        };
        let latency_us = match slow {
            true => *random.pick(&[(500, 12_000), (50, 400)]),
            false => (10, 150),
        };
        // Told by what was drawn for other ends, so that what was seen with a seed stays.
        let in_memory = !slow && reactor::mix(size ^ self.drives.len() as u64).is_multiple_of(3);
        let mut specs = Vec::new();
        for _ in 0..count {
            let spec = format!("given:{}", self.drives.len());
            specs.push(spec.clone());
            self.drives.push(DrivePlan {
                spec,
                size,
                slow,
                latency_us,
                tempo: Tempo::Even,
                in_memory,
            });
        }
        VdriveSpec {
            tier,
            layout,
            drives: specs,
        }
    }

    /// Drives as the checker opens them.
    pub fn kinds(&self) -> Vec<Kind> {
        let kind = |drive: &DrivePlan| Kind {
            spec: drive.spec.clone(),
            size: drive.size,
        };
        self.drives.iter().map(kind).collect()
    }

    /// How all drives are opened.
    pub fn specs(&self) -> Vec<String> {
        self.drives.iter().map(|drive| drive.spec.clone()).collect()
    }

    /// The pool.
    pub fn pool(&self, name: &str) -> PoolSpec {
        PoolSpec {
            name: name.to_owned(),
            vdrives: self.vdrives.clone(),
            policy: self.policy,
            shards: self.shards,
            force: false,
            accept_unmirrored: true,
        }
    }

    /// A vdrive that has not joined yet.
    pub fn another_vdrive(&mut self) -> Option<VdriveSpec> {
        if self.added.is_some() {
            return None;
        }
        self.spare.clone()
    }

    /// The vdrive that joined is being emptied; it may join again later.
    pub fn leaving(&mut self) {
        self.added = None;
        self.left = true;
    }

    /// A volume.
    pub fn volume(&self, name: &str, random: &mut Random) -> VolumeSpec {
        VolumeSpec {
            name: name.to_owned(),
            size: match self.tiny || self.groups {
                true => 8 * MIB,
                false => *random.pick(&[8, 300, 700]) * MIB,
            },
            lba_size: match *random.pick(&[512, 4096]) {
                _ if self.aim == Some(Aim::Halves) => 512,
                drawn => drawn,
            },
            thick: false,
            quota: 0,
            reservation: 0,
        }
    }
}

/// A drive that goes wrong in some ways, each more or less often.
fn faults(random: &mut Random) -> Faults {
    let mut often = |least: u64| {
        if random.one_in(2) {
            0
        } else {
            least * random.within(1..=20)
        }
    };
    Faults {
        read_error: often(20),
        write_error: often(200),
        flush_error: often(20),
        after: None,
        wrong_read: often(20),
        lost_write: often(50),
        misdirected: often(100),
        stale_read: often(20),
        torn_write: often(100),
        rot: often(100),
        latent: often(200),
        lying_flush: often(20),
        hang: often(2000),
        slow: often(20),
        told: false,
    }
}
