//! Quotas and reservations: how much a volume may still store, and how much is reserved for it.

use super::SpaceShared;
use std::sync::atomic::{AtomicI64, Ordering};
use units::mutation::{Mutation, is_on};

/// Blocks that a volume and its snapshots may store beside those that they do, and how many of
/// those the pool keeps for them: one number each for all shards. With a part for each shard, a
/// write would be refused while another shard has room left, or would have to ask there first. It
/// is the room and not what is stored, so that a new quota and a write that comes meanwhile cannot
/// both use the previous state.
#[derive(Debug)]
pub struct Allowance {
    /// Below 0 when more is stored than the quota says.
    room: AtomicI64,
    /// Reserved and not used; below 0 if more is used than was reserved.
    kept: AtomicI64,
}

/// Why blocks may not be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The volume's quota is reached.
    Quota,
    /// The pool has nothing left that others were not promised.
    Space,
}

/// Blocks that the pool keeps for a volume whose promise is this far from what is stored.
fn unused(kept: i64) -> i64 {
    kept.max(0)
}

impl Allowance {
    /// Blocks of a volume without a quota: more than any pool has.
    pub const UNLIMITED: i64 = 1 << 60;

    /// For a volume that stores nothing yet, may store `limit` blocks and is promised none.
    pub fn new(limit: i64) -> Self {
        Self {
            room: AtomicI64::new(limit),
            kept: AtomicI64::new(0),
        }
    }

    /// Blocks that may still be stored, by the quota.
    pub fn room(&self) -> i64 {
        self.room.load(Ordering::Relaxed)
    }

    /// Blocks that are promised and not stored; below 0 when more is stored than was promised.
    pub fn kept(&self) -> i64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Why `blocks` more could not be stored now.
    pub fn refuses(&self, blocks: i64, space: &SpaceShared) -> Option<Refusal> {
        if self.room() < blocks && !is_on(Mutation::QuotaIgnored) {
            return Some(Refusal::Quota);
        }
        (!space.has(self.beyond(self.kept(), blocks))).then_some(Refusal::Space)
    }

    /// Of `blocks` more, those beyond the reservation.
    fn beyond(&self, kept: i64, blocks: i64) -> i64 {
        blocks - (unused(kept) - unused(kept - blocks))
    }

    /// Counts `blocks` (at least 0) as stored, all of them or none: of what the volume was promised
    /// first, then of what is free.
    ///
    /// # Errors
    /// Why they may not be.
    pub fn claim(&self, blocks: i64, space: &SpaceShared) -> Result<(), Refusal> {
        let fits = |room: i64| {
            let fits = room >= blocks || is_on(Mutation::QuotaIgnored);
            fits.then_some(room - blocks)
        };
        self.room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| Refusal::Quota)?;
        if self.change_kept(-blocks, |kept| self.beyond(kept, blocks), space) {
            return Ok(());
        }
        self.room.fetch_add(blocks, Ordering::Relaxed);
        Err(Refusal::Space)
    }

    /// Counts `blocks` more as stored, or less when below 0, whatever was said; returns how many the
    /// pool has to take for that, or gets back when below 0.
    #[must_use]
    pub fn add(&self, blocks: i64) -> i64 {
        self.room.fetch_sub(blocks, Ordering::Relaxed);
        let kept = self.kept.fetch_sub(blocks, Ordering::Relaxed);
        self.beyond(kept, blocks)
    }

    /// Changes the quota by `more` blocks, or by less when below 0: only as far as what is stored
    /// leaves room.
    pub fn change(&self, more: i64) -> bool {
        let fits = |room: i64| (more >= 0 || room + more >= 0).then_some(room + more);
        self.room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }

    /// Changes the quota by `more` blocks, or by less when below 0, whatever is stored.
    pub fn allow(&self, more: i64) {
        self.room.fetch_add(more, Ordering::Relaxed);
    }

    /// Promises `more` blocks, if those that are not stored yet are free; with less than 0, gives
    /// back the unused part.
    pub fn promise(&self, more: i64, space: &SpaceShared) -> bool {
        self.change_kept(more, |kept| unused(kept + more) - unused(kept), space)
    }

    /// Promises `more` blocks, whether they are free or not.
    pub fn owe(&self, more: i64, space: &SpaceShared) {
        let kept = self.kept.fetch_add(more, Ordering::Relaxed);
        space.take(unused(kept + more) - unused(kept));
    }

    /// Changes what is kept by `more` if the pool has what that takes, which is claimed first: what
    /// others see is never more than there is.
    fn change_kept(&self, more: i64, takes: impl Fn(i64) -> i64, space: &SpaceShared) -> bool {
        let mut kept = self.kept();
        loop {
            let needed = takes(kept);
            if !space.claim(needed.max(0)) {
                return false;
            }
            let changed = self.kept.compare_exchange_weak(
                kept,
                kept + more,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match changed {
                Ok(_) => {
                    space.take(needed.min(0));
                    return true;
                }
                Err(now) => {
                    space.take(-needed.max(0));
                    kept = now;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(blocks: i64) -> SpaceShared {
        let space = SpaceShared::default();
        space.set_capacity(blocks);
        space
    }

    #[test]
    fn no_block_is_stored_beyond_the_quota_and_none_is_refused_within_it() {
        let space = space(1 << 40);
        let allowance = Allowance::new(10_000);
        let claim = |size: i64| {
            let claims = (0..4_000).map(|_| allowance.claim(size, &space));
            claims.filter(Result::is_ok).count() as i64
        };
        let claimed: i64 = std::thread::scope(|scope| {
            let ones = scope.spawn(|| claim(1));
            let threes = scope.spawn(|| claim(3) * 3);
            ones.join().unwrap() + threes.join().unwrap()
        });
        // Together they request 16,000; what is left at the end no one of three blocks fits in.
        assert_eq!(claimed + allowance.room(), 10_000);
        assert!(allowance.room() >= 0 && allowance.room() < 3);
        space.take(allowance.add(-5));
        let room = allowance.room();
        assert_eq!(allowance.claim(room + 1, &space), Err(Refusal::Quota));
        assert_eq!(allowance.claim(room, &space), Ok(()));
        assert_eq!(space.available(), (1 << 40) - 10_000);
    }

    #[test]
    fn what_the_pool_refuses_leaves_the_quota_as_it_was() {
        let space = space(10);
        let allowance = Allowance::new(100);
        for _ in 0..20 {
            assert_eq!(allowance.claim(11, &space), Err(Refusal::Space));
        }
        assert_eq!((allowance.room(), allowance.kept()), (100, 0));
        assert_eq!(allowance.claim(10, &space), Ok(()));
        assert_eq!((allowance.room(), space.available()), (90, 0));
    }

    #[test]
    fn a_quota_does_not_shrink_below_what_is_stored() {
        let allowance = Allowance::new(Allowance::UNLIMITED);
        assert_eq!(allowance.add(7), 7);
        assert!(!allowance.change(6 - Allowance::UNLIMITED));
        assert!(allowance.change(8 - Allowance::UNLIMITED));
        assert_eq!(allowance.room(), 1);
        // One that has more than it may is allowed more, though it is not enough.
        assert_eq!(allowance.add(5), 5);
        assert!(allowance.change(2) && !allowance.change(-1));
        assert_eq!(allowance.room(), -2);
    }

    #[test]
    fn a_promise_is_kept_whatever_others_write_at_once() {
        let space = space(30_000);
        let promised = Allowance::new(Allowance::UNLIMITED);
        assert!(!promised.promise(30_001, &space) && promised.promise(10_000, &space));
        // Others ask for more than is left, while the promise is used, given back and used again.
        let others = || (0..30_000).filter(|_| space.claim(1)).count() as i64;
        let own = || {
            for step in 0..10_000 {
                assert_eq!(promised.claim(1, &space), Ok(()), "{step}");
                if step % 4 == 0 {
                    space.take(promised.add(-1));
                }
            }
            7_500
        };
        let (one, two, own) = std::thread::scope(|scope| {
            let (one, two) = (scope.spawn(others), scope.spawn(others));
            let own = scope.spawn(own);
            let join = |thread: std::thread::ScopedJoinHandle<'_, i64>| thread.join().unwrap();
            (join(one), join(two), join(own))
        });
        assert_eq!(one + two, 20_000);
        assert_eq!((promised.kept(), space.available()), (10_000 - own, 0));
        // What is left of the promise is there, and nothing beyond it.
        assert_eq!(promised.refuses(2_501, &space), Some(Refusal::Space));
        assert_eq!(promised.claim(2_501, &space), Err(Refusal::Space));
        assert_eq!(promised.refuses(2_500, &space), None);
        assert_eq!(promised.claim(2_500, &space), Ok(()));
        // Room that others make is for everybody.
        space.take(-3);
        assert_eq!(promised.claim(2, &space), Ok(()));
        assert!(space.claim(1) && !space.claim(1));
        // Stored beyond the promise: that comes back to all, the rest stays the volume's.
        space.take(promised.add(-12));
        assert_eq!((promised.kept(), space.available()), (10, 2));
    }

    #[test]
    fn a_promise_that_is_changed_takes_only_what_is_not_stored() {
        let space = space(100);
        let allowance = Allowance::new(Allowance::UNLIMITED);
        assert_eq!(allowance.claim(40, &space), Ok(()));
        assert!(!allowance.promise(101, &space) && allowance.promise(100, &space));
        assert_eq!(space.available(), 0);
        assert!(allowance.promise(-70, &space));
        assert_eq!((allowance.kept(), space.available()), (-10, 60));
        // One that was promised before is so, whether there is space or not.
        allowance.owe(90, &space);
        assert_eq!((allowance.kept(), space.available()), (80, -20));
        allowance.owe(-120, &space);
        assert_eq!(space.available(), 60);
    }
}
