//! Everything that a demonstration measured.

use crate::fio::Figures;
use api::v1::{Counters, VolumeMap};

/// Which parts of the blocks read came from where, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// From RAM.
    pub ram: f64,
    /// From the fast tier.
    pub fast: f64,
    /// From the slow tier.
    pub slow: f64,
}

impl Shares {
    /// Differences between two readings of the counters; `None` without reads.
    pub fn between(before: &Counters, after: &Counters) -> Option<Self> {
        let ram = after.blocks_ram.saturating_sub(before.blocks_ram) as f64;
        let fast = after.blocks_fast.saturating_sub(before.blocks_fast) as f64;
        let slow = after.blocks_slow.saturating_sub(before.blocks_slow) as f64;
        let all = ram + fast + slow;
        (all > 0.0).then(|| Self {
            ram: ram / all,
            fast: fast / all,
            slow: slow / all,
        })
    }

    /// In a line, in per cent.
    pub fn text(&self) -> String {
        let [ram, fast, slow] = [self.ram, self.fast, self.slow].map(|share| share * 100.0);
        format!("from RAM {ram:.1} %, fast {fast:.1} %, slow {slow:.1} %")
    }
}

/// One measurement of the volume.
#[derive(Clone, Debug)]
pub struct Run {
    /// As it is in the table.
    pub name: String,
    /// fio's results.
    pub figures: Figures,
    /// Where the blocks came from.
    pub shares: Shares,
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Outcome {
    /// The machine, in a line.
    pub machine: String,
    /// Size of the volume in bytes.
    pub volume: u64,
    /// Size of the hot region in bytes.
    pub hot: u64,
    /// Seconds a run.
    pub seconds: u64,
    /// Requests outstanding.
    pub depth: u32,
    /// The volume with nothing promoted.
    pub slow: Run,
    /// The raw file by io_uring, without any server.
    pub raw_direct: Figures,
    /// The raw file by the same client path, before the first run and after the last.
    pub raw_same: [Figures; 2],
    /// The runs in succession.
    pub runs: Vec<Run>,
    /// Where the volume lay before the first run.
    pub map_before: VolumeMap,
    /// And after the last.
    pub map_after: VolumeMap,
}

impl Outcome {
    /// How many times the slow tier alone.
    pub fn times_slow(&self, figures: &Figures) -> f64 {
        figures.iops / self.slow.figures.iops.max(1.0)
    }

    /// The part of the raw file by the same client path; the better of its two measurements
    /// counts.
    pub fn part_of_raw(&self, figures: &Figures) -> f64 {
        figures.iops / self.raw_same[0].iops.max(self.raw_same[1].iops).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_was_read_in_between() {
        let before = Counters {
            blocks_ram: 10,
            blocks_slow: 5,
            ..Counters::default()
        };
        let after = Counters {
            blocks_ram: 20,
            blocks_fast: 20,
            blocks_slow: 15,
            ..Counters::default()
        };
        let shares = Shares::between(&before, &after).unwrap();
        assert_eq!(
            shares,
            Shares {
                ram: 0.25,
                fast: 0.5,
                slow: 0.25
            }
        );
        assert_eq!(Shares::between(&after, &after), None);
    }
}
