//! Operations of a volume that alone is busy, counted beside the gate.
//!
//! Where nobody competes the gate decides nothing, and what it does for each operation is only for what it learns: costs, and
//! what was attained. So it follows the first operations of each row of [`ROW`] one by one, which tell what they cost, and the
//! others are only added up here, until the gate is given the sums: at each tick, and before it decides anything.

use qos::{AloneEnded, Request};
use std::cell::Cell;

/// Operations of a row, and how many of them the gate follows.
const ROW: usize = 4096;
const FOLLOWED: usize = 128;

/// What has ended beside the gate, all of one kind and size, and where in its row the volume is.
#[derive(Default)]
pub(crate) struct Alone {
    ended: Cell<Option<AloneEnded>>,
    /// Longer ones are late, in nanoseconds; `u64::MAX`: none is.
    most_ns: Cell<u64>,
    /// Operations that were followed in a row, and that may still pass beside the gate.
    followed: Cell<usize>,
    left: Cell<usize>,
    /// Operations that passed and that the gate does not know of yet.
    passed: Cell<usize>,
}

impl Alone {
    /// So many were followed, one after the other. True when the next ones need not be.
    pub fn follow(&self, count: usize) -> bool {
        self.followed.set(self.followed.get() + count);
        self.followed.get() >= FOLLOWED
    }

    /// Somebody else came: the row begins anew.
    pub fn is_interrupted(&self) {
        self.followed.set(0);
    }

    /// The rest of the row is counted here. `max_latency_ns`: 0 where the volume has none.
    pub fn start(&self, max_latency_ns: u64) {
        let most_ns = match max_latency_ns {
            0 => u64::MAX,
            most_ns => most_ns,
        };
        self.most_ns.set(most_ns);
        self.followed.set(0);
        self.left.set(ROW - FOLLOWED);
    }

    /// So many pass, if the row is that long.
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

    /// Adds `count` that ended and took so long each. False when others are to be taken before.
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

    /// Gives away how many have passed.
    pub fn take_passed(&self) -> usize {
        self.passed.take()
    }

    /// Gives away what was added up of those that ended.
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
    fn most_operations_of_a_row_are_not_followed() {
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
        // Beside somebody else it begins anew.
        assert!(!alone.follow(FOLLOWED - 1));
        alone.is_interrupted();
        assert!(!alone.follow(FOLLOWED - 1));
    }

    #[test]
    fn what_ended_is_given_away_once_by_kind_and_size() {
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
