//! Plans that are bent towards one kind of bug, so that the gate meets it within seconds whatever the
//! engine's timing is.

use super::{ALL_CHUNKS, Bent, Plan};
use crate::random::Random;
use crate::request::Faults;

/// What happens more than usual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Focus {
    /// Flushes fail, on a drive without a copy, while labels are often written.
    Flushes,
    /// What was written to a mirror's leg cannot be read again.
    Latent,
    /// Flushes of a drive without metadata lie.
    Lies,
    /// Data sinks, on drives that are slow.
    Sinking,
    /// Short lives, with a short journal.
    Lives,
    /// Snapshots fill a small metadata region.
    Metadata,
    /// Pages of maps come and go, beneath snapshots.
    Pages,
    /// Quotas and reservations change.
    Limits,
}

impl Plan {
    /// Bends a seed's plan, where that is possible with its drives.
    pub fn focus(&mut self, focus: Focus, random: &mut Random) {
        match focus {
            Focus::Flushes => {
                self.snapshots = true;
                self.go_wrong(random, |_| Faults {
                    flush_error: 12,
                    ..Faults::default()
                });
            }
            Focus::Lies => {
                self.bent = Bent::Lives;
                self.every = 4;
                self.go_wrong(random, |metadata| Faults {
                    lying_flush: if metadata { 0 } else { 6 },
                    ..Faults::default()
                });
            }
            Focus::Latent if self.legs >= 2 => {
                (self.bad, self.wild) = (None, false);
                let faults = Faults {
                    latent: 12,
                    ..Faults::default()
                };
                self.faulty = Some((random.below(2) as usize, faults));
            }
            Focus::Latent => {}
            Focus::Sinking => {
                self.bent = Bent::Tiers;
                self.calm.slow = 10;
                if self.tiny {
                    self.chunks = &ALL_CHUNKS;
                }
            }
            Focus::Lives => {
                self.bent = Bent::Lives;
                self.every = 4;
                self.journal_blocks = 32;
            }
            Focus::Metadata => (self.snapshots, self.scarce) = (true, true),
            Focus::Pages => {
                self.snapshots = true;
                self.map_cache = 96 << 10;
            }
            Focus::Limits => self.limits = true,
        }
    }

    /// A drive without a copy, if there is one, goes wrong like this and in no other way; `faults` is
    /// told whether it has metadata.
    fn go_wrong(&mut self, random: &mut Random, faults: impl FnOnce(bool) -> Faults) {
        self.faulty = None;
        self.go_bad(random);
        self.wild = false;
        let fast = self.drives.iter().filter(|drive| !drive.slow).count();
        if let Some((drive, known)) = &mut self.bad {
            *known = Faults {
                told: true,
                ..faults(*drive < fast.min(2))
            };
        }
    }
}
