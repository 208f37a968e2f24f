//! Blocks stored, promised and free, over all shards of a pool.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use units::mutation::{Mutation, is_on};

/// The space of a pool's volumes, and how much of it is neither used nor reserved: one number for all
/// shards, that a write takes its blocks from before it is applied. So no promise is broken,
/// however much is written at a time.
#[derive(Default, Debug)]
pub struct SpaceShared {
    /// Blocks that volumes can store in all.
    capacity: AtomicI64,
    /// Blocks that volumes have stored.
    stored: AtomicI64,
    /// Below 0 when space has gone that was promised.
    free: AtomicI64,
    /// Some write found no space since space was last added or freed.
    pub full: AtomicBool,
}

impl SpaceShared {
    /// Blocks that volumes can store in all.
    pub fn capacity(&self) -> i64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Sets the number of blocks that volumes can store.
    pub fn set_capacity(&self, blocks: i64) {
        let before = self.capacity.swap(blocks, Ordering::Relaxed);
        self.free.fetch_add(blocks - before, Ordering::Relaxed);
    }

    /// Blocks that volumes have stored.
    pub fn stored(&self) -> i64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Blocks that are neither used nor reserved.
    pub fn available(&self) -> i64 {
        self.free.load(Ordering::Relaxed)
    }

    /// Blocks that are promised and not stored.
    pub fn promised(&self) -> i64 {
        // Three numbers that change meanwhile: it is only reported.
        (self.capacity() - self.stored() - self.available()).max(0)
    }

    /// Whether `blocks` could be claimed now.
    pub fn has(&self, blocks: i64) -> bool {
        blocks <= self.available().max(0) || is_on(Mutation::PromiseTaken)
    }

    /// Takes `blocks` of the space that is neither used nor reserved, if there is enough.
    pub fn claim(&self, blocks: i64) -> bool {
        let enough = |free: i64| free >= blocks || is_on(Mutation::PromiseTaken);
        let fits = |free: i64| enough(free).then_some(free - blocks);
        blocks == 0
            || self
                .free
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
                .is_ok()
    }

    /// Counts `stored` blocks more, or less when below 0.
    pub fn count(&self, stored: i64) {
        self.stored.fetch_add(stored, Ordering::Relaxed);
    }

    /// Takes `blocks` unconditionally, or returns them if below 0.
    pub fn take(&self, blocks: i64) {
        self.free.fetch_sub(blocks, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_goes_with_the_capacity_and_is_taken_once() {
        let space = SpaceShared::default();
        space.set_capacity(100);
        assert!(!space.claim(101) && space.claim(60) && !space.claim(41));
        space.count(20);
        assert_eq!((space.available(), space.promised()), (40, 40));
        // Space that goes may have been promised: nothing is given out until it is back.
        space.set_capacity(50);
        assert_eq!(space.available(), -10);
        assert!(!space.claim(1) && space.claim(0));
        space.take(-30);
        assert!(space.claim(20) && !space.claim(1));
    }
}
