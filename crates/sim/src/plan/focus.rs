//! Plans that are bent towards one kind of bug, so that the gate meets it within seconds whatever the
//! engine's timing is.

use super::{ALL_CHUNKS, Bent, CHUNKS, FEW_CHUNKS, ONE_CHUNK, Plan};
use crate::aims::Aim;
use crate::races::Activity;
use crate::random::Random;
use crate::request::{Faults, Meta};
use crate::tempo::Tempo;
use engine::LayoutSpec;

/// Events that happen more often than usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Focus {
    /// Flushes fail, on a drive without a copy, while labels are often written.
    Flushes,
    /// Writes to a mirror's member cannot be read again when the pool is opened.
    Latent,
    /// Flushes fail, on a drive without a copy, when a label was written.
    Labels,
    /// Flushes of a mirror's member fail, beside many checkpoints.
    Legs,
    /// Bits of what was written turn over, in short lives.
    Rot,
    /// Pools are scrubbed under load.
    Scrubs,
    /// A mirror's last member that has to be asked often holds or gives something wrong.
    Mends,
    /// The power goes in the middle of openings, and while snapshots are taken.
    Midway,
    /// Data is demoted, on drives that are slow.
    Sinking,
    /// Short lives, with a short journal.
    Lives,
    /// Members go away and come back, with power cuts in the middle of the openings in between.
    Returns,
    /// Home copies of chunks become stale by unflushed writes.
    Homes,
    /// Space is scarce, and reads take longer than what they read stays where it is.
    Reuse,
    /// Snapshots fill a small metadata region.
    Metadata,
    /// Pages of maps come and go, beneath snapshots.
    Pages,
    /// Quotas and reservations change.
    Limits,
    /// Any two pieces of background work go on together, on the chunks that hosts use.
    Races,
    /// A vdrive is removed while data is demoted.
    Evacuations,
    /// Volumes are deleted while data is demoted.
    Deletions,
    /// Layers are merged while data is demoted and is read.
    Merges,
    /// Members of mirrors come back beneath writes.
    Resyncs,
    /// Volumes are deleted while their homes are written.
    SinkingDeletions,
    /// A vdrive is removed while hosts' writes to it are in flight.
    Departures,
    /// Members of mirrors are away for a moment, with and without writes.
    Absences,
    /// Layers are merged while hosts wait for what they have at home.
    ColdMerges,
    /// Blocks are promoted while they are written and demoted.
    Promotions,
    /// Parts of a block are zeroed while others are written.
    Halves,
    /// Wrong copies are repaired while space is used again.
    Mending,
    /// Quotas, reservations, promotions of clones, and streams.
    Control,
    /// Volumes get and lose policies.
    Policies,
    /// The engine is killed again and again, on a host whose memory outlives it.
    Kills,
    /// Drives are restored to earlier states, truncated, exchanged, copied or emptied between lives.
    Drives,
}

impl Focus {
    /// Whether it is about background work that runs at the same time, in any order.
    pub fn races(self) -> bool {
        matches!(
            self,
            Self::Races
                | Self::Evacuations
                | Self::Deletions
                | Self::Merges
                | Self::Resyncs
                | Self::Mending
                | Self::SinkingDeletions
                | Self::Departures
                | Self::Absences
                | Self::ColdMerges
                | Self::Promotions
                | Self::Halves
                | Self::Control
        )
    }

    /// Whether a pool has the drives for it. Another one would only take time.
    pub fn suits(self, plan: &Plan) -> bool {
        match self {
            Self::Merges
            | Self::Deletions
            | Self::SinkingDeletions
            | Self::ColdMerges
            | Self::Promotions => plan.has_slow_tier(),
            Self::Departures => !plan.has_slow_tier(),
            Self::Halves => !plan.drives[0].in_memory,
            Self::Absences => plan.legs >= 2 && !plan.drives[0].in_memory,
            Self::Resyncs => {
                let mut mirrored = plan.drives_where(true).into_iter();
                mirrored.any(|drive| plan.drives[drive].slow)
            }
            Self::Mending => plan.legs >= 2,
            Self::Flushes | Self::Labels | Self::Rot => {
                let mut vdrives = plan.vdrives.iter();
                vdrives.any(|vdrive| vdrive.layout != LayoutSpec::Mirror)
            }
            Self::Mends => plan.legs >= 2 && !plan.drives[0].in_memory,
            Self::Latent | Self::Legs | Self::Returns => plan.legs >= 2,
            Self::Homes | Self::Sinking => plan.has_slow_tier(),
            Self::Reuse => !plan.has_slow_tier(),
            _ => true,
        }
    }
}

impl Plan {
    /// Bends the plan of a seed that suits it.
    pub fn focus(&mut self, focus: Focus, random: &mut Random) {
        match focus {
            Focus::Flushes => {
                self.snapshots = true;
                let faults = Faults {
                    flush_error: 12,
                    ..Faults::default()
                };
                self.go_wrong(random, faults);
            }
            Focus::Labels => {
                self.snapshots = true;
                let faults = Faults {
                    flush_error: 8,
                    after: Some(Meta::Label),
                    ..Faults::default()
                };
                self.go_wrong(random, faults);
            }
            Focus::Legs => {
                (self.bad, self.wild, self.journal_blocks) = (None, false, 32);
                // What it takes is two crashes that lose the right things: many of one record are examined.
                (self.every, self.looks) = (64, 24);
                let faults = Faults {
                    flush_error: 4,
                    after: Some(Meta::Page),
                    ..Faults::default()
                };
                self.faulty = Some((random.below(2) as usize, faults));
                // One checkpoint follows another, with nothing in between that makes its pages durable.
                self.spare_groups = 1 << 16;
                self.bent = Bent::Lives;
            }
            Focus::Rot => {
                self.bent = Bent::Lives;
                self.every = 4;
                self.journal_blocks = 32;
                let faults = Faults {
                    rot: 6,
                    ..Faults::default()
                };
                self.go_wrong(random, faults);
            }
            Focus::Scrubs => {
                self.live_only();
                (self.bent, self.journal_blocks) = (Bent::Scrubs, 32);
                self.healthy();
            }
            Focus::Midway => {
                (self.midway, self.snapshots, self.scarce) = (true, true, false);
                // More happens, and each moment is examined less.
                (self.every, self.looks) = (64, 3);
            }
            Focus::Latent => {
                self.live_only();
                (self.bent, self.snapshots) = (Bent::Openings, false);
                (self.bad, self.wild) = (None, false);
                let faults = Faults {
                    latent: 12,
                    ..Faults::default()
                };
                self.faulty = Some((random.below(2) as usize, faults));
            }
            Focus::Mends => {
                self.live_only();
                (self.bad, self.wild) = (None, false);
                let faults = Faults {
                    wrong_read: 8,
                    rot: 8,
                    ..Faults::default()
                };
                self.faulty = Some((self.legs - 1, faults));
            }
            Focus::Sinking => {
                self.bent = Bent::Sinking;
                self.live_only();
                (self.chunks, self.blocks, self.filled) = (&ONE_CHUNK, [2, 2], false);
                // Meanwhile a block is written so often that it comes to be where it was.
                self.calm.slow = 0;
                for drive in self.drives.iter_mut().filter(|drive| drive.slow) {
                    drive.latency_us = (20_000, 60_000);
                }
            }
            Focus::Lives => {
                self.bent = Bent::Lives;
                self.every = 4;
                self.journal_blocks = 32;
            }
            Focus::Returns => {
                self.live_only();
                self.healthy();
                (self.midway, self.bent, self.journal_blocks) = (true, Bent::Lives, 32);
            }
            Focus::Homes => {
                self.healthy();
                // Everything is demoted repeatedly, of each chunk enough for a home, which is freed when something is
                // discarded beside what was written again.
                (self.bent, self.snapshots, self.every) = (Bent::Snapshots, false, 4);
                (self.chunks, self.blocks) = (&ALL_CHUNKS, [72, 68]);
            }
            Focus::Reuse => {
                self.live_only();
                self.healthy();
                (self.tight, self.snapshots, self.calm.slow) = (true, false, 8);
            }
            Focus::Metadata => {
                self.live_only();
                (self.snapshots, self.scarce) = (true, true);
            }
            Focus::Pages => {
                self.snapshots = true;
                self.map_cache = 96 << 10;
                self.live_only();
                self.bent = Bent::Snapshots;
                self.blocks = [72, 68];
                self.chunks = match self.tiny {
                    true => &ALL_CHUNKS,
                    false => &CHUNKS,
                };
            }
            Focus::Limits => {
                self.live_only();
                (self.limits, self.bent) = (true, Bent::Limits);
            }
            Focus::Races => self.race(None),
            Focus::Evacuations => {
                let other = match self.has_slow_tier() {
                    true => *random.pick(&[Activity::Cool, Activity::Merge]),
                    false => *random.pick(&[Activity::Free, Activity::Merge]),
                };
                self.race(Some([Activity::Evacuate, other]));
            }
            Focus::Deletions => self.race(Some([Activity::Free, Activity::Cool])),
            Focus::Merges => self.race(Some([Activity::Merge, Activity::Cool])),
            Focus::Resyncs => self.race(Some([Activity::Resync, Activity::Cool])),
            Focus::SinkingDeletions => {
                self.aim(Aim::Deletion);
                for drive in self.drives.iter_mut().filter(|drive| drive.slow) {
                    drive.latency_us = (5_000, 20_000);
                }
            }
            Focus::Departures => {
                self.aim(Aim::Departure);
                // What hosts write there is in progress for long.
                if let Some(drive) = self.drives.last_mut() {
                    (drive.latency_us, drive.in_memory) = ((2_000, 20_000), false);
                }
            }
            Focus::Absences => self.aim(Aim::Absence),
            Focus::ColdMerges => {
                self.aim(Aim::ColdMerge);
                for drive in self.drives.iter_mut().filter(|drive| drive.slow) {
                    drive.latency_us = (2_000, 12_000);
                }
            }
            Focus::Promotions => {
                self.aim(Aim::Promotion);
                self.ram_tier = 256 << 10;
                for drive in self.drives.iter_mut().filter(|drive| drive.slow) {
                    drive.latency_us = (50, 400);
                }
            }
            Focus::Halves => self.aim(Aim::Halves),
            Focus::Mending => {
                self.race(Some([Activity::Scrub, Activity::Scrub]));
                self.live_only();
                (self.tight, self.snapshots) = (!self.has_slow_tier(), false);
                let faults = Faults {
                    wrong_read: 6,
                    ..Faults::default()
                };
                let leg = random.below(2) as usize;
                self.faulty = Some((leg, faults));
                // What repairs may come long after what is written to the same place then.
                self.drives[leg].tempo = Tempo::Late(200);
            }
            Focus::Control => {
                self.live_only();
                self.healthy();
                (self.bent, self.limits, self.snapshots) = (Bent::Control, true, true);
                self.scarce = false;
            }
            Focus::Policies => {
                self.healthy();
                (self.policies, self.bent) = (true, Bent::Lives);
            }
            Focus::Kills => {
                self.live_only();
                self.healthy();
                (self.killed, self.bent, self.calm.slow) = (true, Bent::Lives, 0);
            }
            Focus::Drives => {
                self.live_only();
                self.healthy();
                (self.tampered, self.bent, self.calm.slow) = (true, Bent::Lives, 0);
                (self.rich, self.snapshots, self.limits) = (false, false, false);
            }
        }
    }

    /// These pieces of background work go on together again and again, on few chunks.
    fn race(&mut self, pair: Option<[Activity; 2]>) {
        self.healthy();
        (self.bent, self.pair, self.snapshots) = (Bent::Races, pair, true);
        (self.scarce, self.limits) = (false, false);
        (self.chunks, self.blocks) = (&FEW_CHUNKS, [72, 68]);
        (self.every, self.looks) = (64, 3);
    }

    /// This race alone, on few chunks.
    fn aim(&mut self, aim: Aim) {
        self.race(None);
        self.live_only();
        (self.aim, self.snapshots) = (Some(aim), aim == Aim::ColdMerge);
    }

    /// States after crashes are hardly examined: faults show while the pool runs.
    fn live_only(&mut self) {
        (self.every, self.looks) = (256, 0);
    }

    /// No drive goes wrong.
    fn healthy(&mut self) {
        (self.faulty, self.bad, self.wild) = (None, None, false);
    }

    /// Whether there are drives below the fast ones when the pool is made.
    pub fn has_slow_tier(&self) -> bool {
        self.drives[..self.members].iter().any(|drive| drive.slow)
    }

    /// A drive without a copy, if there is one, goes wrong like this and in no other way.
    fn go_wrong(&mut self, random: &mut Random, faults: Faults) {
        self.faulty = None;
        self.go_bad(random);
        self.wild = false;
        if let Some((_, known)) = &mut self.bad {
            *known = Faults {
                told: true,
                ..faults
            };
        }
    }
}
