//! How much a drive may cache before it is flushed early.
//!
//! Many drives take longer for a flush the more was written since the last one, and answer nothing
//! meanwhile: solid-state drives without protected caches, disks, drives of virtual machines. What is
//! flushed early, a little at a time, shortens the flush that a client waits for, a guest's or a
//! snapshot's, and the stop that all others notice. Where a flush takes the same whatever was written it
//! does not pay, and is left to the clock.

/// A flush that takes this long, in nanoseconds, is long enough that the next one should come sooner.
const LONG_NS: u64 = 1_000_000;
/// Bytes below which none is made early.
const LEAST: u64 = 1 << 20;
/// Share of the time for the fixed cost of early flushes: one part in this many.
const SHARE: u64 = 20;

/// Statistics of one drive's flushes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FlushCost {
    /// Bytes after which one is to be made.
    enough: u64,
    /// Duration of a nearly empty flush, in nanoseconds; `None` before the first.
    floor_ns: Option<u64>,
    /// Time in nanoseconds to leave between one and the next.
    pause_ns: u64,
}

impl Default for FlushCost {
    fn default() -> Self {
        Self {
            enough: 64 << 20,
            floor_ns: None,
            pause_ns: 0,
        }
    }
}

impl FlushCost {
    /// Bytes written since the last flush after which another one pays.
    pub fn enough(&self) -> u64 {
        self.enough
    }

    /// Time to leave after a flush before one is made early, in nanoseconds.
    pub fn pause_ns(&self) -> u64 {
        self.pause_ns
    }

    /// Learns of a flush that no other one overlapped: `written` bytes before it, and how long it took.
    pub fn note(&mut self, written: u64, took_ns: u64) {
        // It grows slowly: a drive may become slower.
        let known = self.floor_ns.unwrap_or(took_ns);
        let floor = took_ns.min(known + known / 1024 + 1);
        self.floor_ns = Some(floor);
        self.pause_ns = floor.saturating_mul(SHARE);
        let target = LONG_NS.max(2 * floor);
        // One after little that was quick says nothing of one after much.
        if took_ns <= target && written < self.enough / 4 {
            return;
        }
        let share = u128::from(target - floor) * u128::from(written);
        let wanted = share / u128::from((took_ns - floor).max(1));
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        // A step at a time: a single one may have waited for something else.
        let (least, most) = (self.enough / 2, self.enough.saturating_mul(2));
        self.enough = wanted.clamp(least, most).max(LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MIB: u64 = 1 << 20;

    /// Flushes of a drive that takes `fixed_ns`, and `per_mib_ns` more for each MiB written before; at
    /// most 16 MiB are written between two. What is written between the last ones.
    fn settle(cost: &mut FlushCost, fixed_ns: u64, per_mib_ns: u64) -> u64 {
        let mut written = 0;
        for _ in 0..200 {
            written = cost.enough().min(16 * MIB);
            cost.note(written, fixed_ns + written * per_mib_ns / MIB);
            // Another caller's, right after it.
            cost.note(0, fixed_ns);
        }
        written
    }

    #[test]
    fn a_drive_that_takes_longer_for_more_is_flushed_often() {
        let mut cost = FlushCost::default();
        let written = settle(&mut cost, MS / 2, MS);
        assert!((MIB..3 * MIB).contains(&written), "{written}");
        // One that took long for another reason changes little.
        cost.note(written, 100 * MS);
        assert!(cost.enough() >= MIB);
        assert_eq!(settle(&mut cost, MS / 2, MS), written);
    }

    #[test]
    fn a_drive_that_always_takes_the_same_is_left_alone() {
        for fixed_ns in [MS / 20, 3 * MS, 12 * MS] {
            let mut cost = FlushCost::default();
            assert_eq!(settle(&mut cost, fixed_ns, 0), 16 * MIB, "{fixed_ns}");
        }
    }

    #[test]
    fn one_that_becomes_slower_is_learned_anew() {
        let mut cost = FlushCost::default();
        assert_eq!(settle(&mut cost, MS / 20, 0), 16 * MIB);
        let often = settle(&mut cost, MS / 20, 2 * MS);
        assert_eq!(often, MIB);
        assert_eq!(settle(&mut cost, MS / 20, 0), 16 * MIB);
    }

    #[test]
    fn what_they_always_take_is_a_small_share_of_the_time() {
        let mut cost = FlushCost::default();
        cost.note(0, MS / 2);
        cost.note(100 * MIB, 50 * MS);
        assert!((10 * MS..11 * MS).contains(&cost.pause_ns()));
    }
}
