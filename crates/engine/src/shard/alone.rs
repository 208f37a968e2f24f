//! Sampling for a volume that is the only busy one: most of its operations bypass the gate and are only counted.
//!
//! Without competition the gate has nothing to decide; it only learns costs and attained service. So of each [`ROW`]
//! operations it follows the first [`FOLLOWED`] one by one, which gives their cost. The others are added up here, and the gate
//! receives the sums at each tick and before it decides anything.

use qos::{AloneEnded, Request};
use std::cell::Cell;

/// Operations of a row, and how many of them the gate follows one by one.
const ROW: usize = 4096;
const FOLLOWED: usize = 128;

/// Sums of completed operations of one kind and size that bypassed the gate, and the position in the row.
#[derive(Default)]
pub(crate) struct Alone {
    ended: Cell<Option<AloneEnded>>,
    /// Operations that take longer are late, in nanoseconds; `u64::MAX`: no maximum latency.
    most_ns: Cell<u64>,
    /// Operations followed without interruption, and those that may still bypass the gate.
    followed: Cell<usize>,
    left: Cell<usize>,
    /// Operations that bypassed the gate and are not reported to it yet.
    passed: Cell<usize>,
}

impl Alone {
    /// Adds followed operations. True when the rest of the row may bypass the gate.
    pub fn follow(&self, count: usize) -> bool {
        self.followed.set(self.followed.get() + count);
        self.followed.get() >= FOLLOWED
    }

    /// Another volume is busy as well: the row restarts.
    pub fn is_interrupted(&self) {
        self.followed.set(0);
    }

    /// The rest of the row bypasses the gate. `max_latency_ns`: 0 where the volume has none.
    pub fn start(&self, max_latency_ns: u64) {
        let most_ns = match max_latency_ns {
            0 => u64::MAX,
            most_ns => most_ns,
        };
        self.most_ns.set(most_ns);
        self.followed.set(0);
        self.left.set(ROW - FOLLOWED);
    }

    /// Takes `count` operations from the row; false when fewer are left.
    #[inline]
    pub fn pass(&self, count: usize) -> bool {
        match self.left.get().checked_sub(count) {
            Some(left) => {
                self.left.set(left);
                self.passed.set(self.passed.get() + count);
                true
            }
            None => false,
        }
    }

    /// Adds `count` completed operations of this latency. False when sums of another kind or size have to be taken first.
    #[inline]
    pub fn end(&self, of: Request, count: u64, took_ns: u64) -> bool {
        let late = if took_ns > self.most_ns.get() {
            count
        } else {
            0
        };
        let ended = match self.ended.get() {
            None => AloneEnded::new(of),
            Some(ended) if ended.of == of => ended,
            Some(_) => return false,
        };
        self.ended.set(Some(AloneEnded {
            count: ended.count + count,
            took_ns: ended.took_ns.saturating_add(took_ns.saturating_mul(count)),
            late: ended.late + late,
            ..ended
        }));
        true
    }

    /// Takes the number of operations that bypassed the gate.
    pub fn take_passed(&self) -> usize {
        self.passed.take()
    }

    /// Takes the sums of completed operations.
    pub fn take_ended(&self) -> Option<AloneEnded> {
        self.ended.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qos::Kind;

    const READ: Request = Request {
        volume: 3,
        kind: Kind::Read,
        bytes: 4096,
    };

    #[test]
    fn most_operations_of_a_row_bypass_the_gate() {
        let alone = Alone::default();
        let (mut followed, mut counted, mut is_counting) = (0, 0, false);
        for _ in 0..2 * ROW {
            if is_counting && alone.pass(1) {
                counted += 1;
                continue;
            }
            followed += 1;
            is_counting = alone.follow(1);
            if is_counting {
                alone.start(0);
            }
        }
        assert_eq!((followed, counted), (2 * FOLLOWED, 2 * (ROW - FOLLOWED)));
        assert_eq!([(); 2].map(|()| alone.take_passed()), [counted, 0]);
        // Another volume restarts the row.
        assert!(!alone.follow(FOLLOWED - 1));
        alone.is_interrupted();
        assert!(!alone.follow(FOLLOWED - 1));
    }

    #[test]
    fn completed_operations_are_reported_once_by_kind_and_size() {
        let alone = Alone::default();
        alone.start(1_000);
        assert!(alone.end(READ, 2, 900) && alone.end(READ, 1, 1_100));
        let write = Request {
            kind: Kind::Write,
            ..READ
        };
        assert!(!alone.end(write, 1, 5), "reads are to be taken before");
        let ended = alone.take_ended().expect("reads have ended");
        let sums = (ended.of, ended.count, ended.took_ns, ended.late);
        assert_eq!(sums, (READ, 3, 2_900, 1));
        assert_eq!(alone.take_ended(), None);
        assert!(alone.end(write, 1, 5));
    }
}
