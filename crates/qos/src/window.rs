//! Limits the number of operations that a shard has in flight.
//!
//! Drives reorder their requests, so the gate cannot reorder operations that it has released. While one
//! volume alone is busy, everything passes. While several are, as many pass as keep the shard busy for half a
//! millisecond, which is more than a fast drive has in flight at its maximum throughput. When a volume
//! with a guarantee is delayed by that, it shrinks by a quarter at each tick, and then grows again by an eighth: for
//! latency no further than to a quarter of the maximum latency, since less would not help a request that waits for a disk.
//! Operations that wait for a slow drive or for space do not occupy the shard, and do not count.

/// Work in flight while several volumes are busy, in nanoseconds of the shard's time.
const WORK_NS: u64 = 500_000;
/// Minimum of operations in flight, unless some are late: enough for a drive that sorts them or has several channels.
const FEW: usize = 16;
/// Minimum if some are late.
const LEAST: usize = 2;

/// Guaranteed service that a volume misses because of operations in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hurt {
    /// Everyone gets what they were promised, as far as this matters.
    Nobody,
    /// A volume is below its minimum.
    Below,
    /// Operations of a volume exceed its maximum latency, in nanoseconds.
    Late(u64),
}

/// The limit, and what is in progress.
#[derive(Clone, Debug)]
pub struct Window {
    limit: usize,
    under_way: usize,
    /// Of these, those that wait for something other than this shard and its fast drives.
    aside: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            limit: usize::MAX,
            under_way: 0,
            aside: 0,
        }
    }
}

impl Window {
    /// Whether another operation may pass.
    pub fn has_room(&self) -> bool {
        self.under_way.saturating_sub(self.aside) < self.limit
    }

    /// Operations in progress.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether there is a limit.
    pub fn is_limited(&self) -> bool {
        self.limit != usize::MAX
    }

    /// Adds operations in flight.
    pub fn enter(&mut self, count: usize) {
        self.under_way += count;
    }

    /// Removes ended operations. Some of them may have passed uncounted.
    pub fn leave(&mut self, count: usize) {
        self.under_way = self.under_way.saturating_sub(count);
    }

    /// An operation in flight waits for another resource from now on.
    pub fn step_aside(&mut self) {
        self.aside += 1;
    }

    /// It does not any longer.
    pub fn come_back(&mut self) {
        self.aside = self.aside.saturating_sub(1);
    }

    /// A tick has passed. `cost_ns`: mean shard time of an operation, if several volumes are
    /// busy; none where at most one is.
    pub fn tick(&mut self, hurt: Hurt, cost_ns: Option<u64>) {
        let Some(cost_ns) = cost_ns else {
            self.limit = usize::MAX;
            return;
        };
        let cost_ns = cost_ns.max(1);
        let usual = ((WORK_NS / cost_ns) as usize).max(FEW);
        let limit = self.limit.min(usual);
        self.limit = match hurt {
            Hurt::Nobody => (limit + limit.div_ceil(8)).min(usual),
            Hurt::Below => (limit * 3 / 4).max(FEW.min(limit)),
            Hurt::Late(most_ns) => {
                let enough = (most_ns / 4 / cost_ns) as usize;
                (limit * 3 / 4).max(enough.clamp(LEAST.min(limit), limit))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(window: &Window) -> usize {
        let mut window = window.clone();
        let entered = (0..10_000).take_while(|_| {
            let has_room = window.has_room();
            window.enter(1);
            has_room
        });
        entered.count()
    }

    #[test]
    fn one_volume_alone_has_no_limit_and_several_have_half_a_millisecond() {
        let mut window = Window::default();
        assert_eq!(room(&window), 10_000);
        window.tick(Hurt::Nobody, Some(5000));
        assert_eq!(room(&window), 100);
        window.tick(Hurt::Nobody, Some(10_000_000));
        assert_eq!(room(&window), FEW);
        window.tick(Hurt::Nobody, None);
        assert_eq!(room(&window), 10_000);
    }

    #[test]
    fn it_shrinks_while_somebody_is_hurt_and_grows_again() {
        let mut window = Window::default();
        let mut after = |hurt, ticks| {
            (0..ticks).for_each(|_| window.tick(hurt, Some(5000)));
            room(&window)
        };
        assert_eq!(after(Hurt::Below, 1), 75);
        assert_eq!(after(Hurt::Below, 100), FEW);
        assert_eq!(
            after(Hurt::Late(1_000_000), 100),
            FEW,
            "that is fast enough"
        );
        assert_eq!(after(Hurt::Late(10_000), 100), LEAST);
        assert_eq!(after(Hurt::Below, 100), LEAST);
        assert_eq!(after(Hurt::Nobody, 100), 100);
    }

    #[test]
    fn what_passed_uncounted_does_not_count_when_it_ends() {
        let mut window = Window::default();
        window.enter(1);
        window.leave(10);
        assert_eq!(window.under_way(), 0);
    }

    #[test]
    fn what_waits_for_something_else_does_not_count() {
        let mut window = Window::default();
        window.tick(Hurt::Nobody, Some(5000));
        window.enter(100);
        assert!(!window.has_room());
        window.step_aside();
        assert_eq!(room(&window), 1);
        window.come_back();
        assert!(!window.has_room());
        window.leave(100);
        assert_eq!(room(&window), 100);
    }
}
