//! What a seed's pool looks like.

use crate::check::Kind;
use crate::random::Random;
use crate::request::Faults;
use engine::{LayoutSpec, PoolSpec, SpacePolicy, Tier, VdriveSpec, VolumeSpec};

const MIB: u64 = 1 << 20;

/// Chunks of a volume that are used: of three regions, so that several shards have some.
pub const CHUNKS: [u64; 10] = [0, 1, 2, 5, 7, 256, 260, 290, 513, 600];

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
}

/// A pool, and what may join it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Loops that the shards live on.
    pub loops: usize,
    shards: u16,
    /// Blocks of a shard's journal.
    pub journal_blocks: u64,
    /// Every drive, those that are not yet of the pool last.
    pub drives: Vec<DrivePlan>,
    vdrives: Vec<VdriveSpec>,
    /// Drives of the pool when it is made: the first so many.
    pub members: usize,
    policy: SpacePolicy,
    spare: Option<VdriveSpec>,
    /// The vdrive that joined.
    pub added: Option<u8>,
    /// A vdrive was asked to leave, once at least.
    pub left: bool,
    /// Legs of the mirror that is the fast tier, which are the first drives; 0 where it is none.
    pub legs: usize,
    /// A leg of a mirror that goes wrong, and how.
    pub faulty: Option<(usize, Faults)>,
    /// A drive that has no copy goes wrong, and how.
    pub bad: Option<(usize, Faults)>,
    /// The bad drive has metadata that no other has, and that goes wrong, too.
    pub wild: bool,
    /// What all drives do now and then that is no fault: take a hundred times as long.
    pub calm: Faults,
    /// Blocks that are used of a volume's first chunk, enough for a home, and of the others.
    pub blocks: [u64; 2],
    /// Volumes are written as far as they are used when they are made.
    pub filled: bool,
    /// Snapshots are taken.
    pub snapshots: bool,
    /// A crash is looked at once in so many writes and flushes of drives: the others let more
    /// happen.
    pub every: u64,
    /// How long nothing happens now and then, in nanoseconds.
    pub pause_ns: u64,
}

impl Plan {
    /// A seed's.
    pub fn new(random: &mut Random) -> Self {
        let shards = *random.pick(&[1u16, 1, 1, 1, 1, 1, 2, 2, 2, 3, 4]);
        let mut plan = Self {
            loops: random.within(1..=u64::from(shards)) as usize,
            shards,
            journal_blocks: *random.pick(&[32, 32, 64, 64, 64, 256]),
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
                slow: *random.pick(&[0, 20, 100]),
                ..Faults::default()
            },
            blocks: *random.pick(&[[72, 6], [72, 6], [72, 6], [40, 30], [80, 70], [200, 80]]),
            filled: random.one_in(2),
            snapshots: random.one_in(2),
            every: *random.pick(&[1, 4, 16, 64]),
            pause_ns: random.within(1..=10) * 500_000_000,
        };
        let mirrored = random.one_in(2);
        // Metadata lies on the first two drives: of three, one has data alone.
        let fast = if mirrored {
            let legs = random.within(2..=3) as usize;
            plan.legs = legs;
            plan.vdrive(random, Tier::Fast, LayoutSpec::Mirror, legs)
        } else {
            let drives = *random.pick(&[1, 1, 3]);
            plan.vdrive(random, Tier::Fast, LayoutSpec::Concat, drives)
        };
        let two = fast.drives.len() >= 2;
        plan.vdrives.push(fast);
        // Data lies on drives without metadata, too.
        if two && random.one_in(2) {
            let fast = plan.vdrive(random, Tier::Fast, LayoutSpec::Concat, 1);
            plan.vdrives.push(fast);
        }
        if mirrored && random.one_in(3) {
            plan.faulty = Some((random.below(2) as usize, faults(random)));
        }
        let slow = match random.below(6) {
            0 => Some((LayoutSpec::Mirror, 2)),
            1 => Some((LayoutSpec::Stripe { chunk: 64 << 10 }, 2)),
            2 => None,
            _ => Some((LayoutSpec::Concat, 1)),
        };
        if let Some((layout, count)) = slow {
            let slow = plan.vdrive(random, Tier::Slow, layout, count);
            plan.vdrives.push(slow);
            plan.spare = Some(plan.vdrive(random, Tier::Slow, LayoutSpec::Concat, 1));
        } else {
            plan.spare = Some(plan.vdrive(random, Tier::Fast, LayoutSpec::Concat, 1));
        }
        plan.members = plan.vdrives.iter().map(|vdrive| vdrive.drives.len()).sum();
        if plan.faulty.is_none() && random.one_in(3) {
            plan.go_bad(random);
        }
        plan
    }

    /// Some drive that no other has a copy of goes wrong.
    fn go_bad(&mut self, random: &mut Random) {
        let mut first = 0;
        let mut alone = Vec::new();
        for vdrive in &self.vdrives {
            let drives = first..first + vdrive.drives.len();
            first = drives.end;
            if vdrive.layout != LayoutSpec::Mirror {
                alone.extend(drives);
            }
        }
        if alone.is_empty() {
            return;
        }
        let drive = *random.pick(&alone);
        let fast = self.drives[..first]
            .iter()
            .filter(|drive| !drive.slow)
            .count();
        // Metadata lies on the first two fast drives, or on the first two of all.
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
        } else {
            // Half of them are soon full.
            let more = random.pick(&[0..=2, 6..=16]);
            self.least_fast() + random.within(more.clone()) * MIB
        };
        let latency_us = match slow {
            true => *random.pick(&[(500, 12_000), (50, 400)]),
            false => (10, 150),
        };
        let mut specs = Vec::new();
        for _ in 0..count {
            let spec = format!("given:{}", self.drives.len());
            specs.push(spec.clone());
            self.drives.push(DrivePlan {
                spec,
                size,
                slow,
                latency_us,
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
            size: *random.pick(&[8, 300, 700]) * MIB,
            lba_size: *random.pick(&[512, 4096]),
            thick: false,
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
        flush_error: often(200),
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
