//! What a volume with a quota may still store.

use std::sync::atomic::{AtomicI64, Ordering};

/// Blocks that a volume and its snapshots may store beside those that they do: one number for all
/// shards. With a part for each shard, a write would be refused while another shard has room left,
/// or would have to ask there first. It is the room and not what is stored, so that a new quota and
/// a write that comes meanwhile cannot both go by what was before.
#[derive(Debug)]
pub struct Allowance {
    /// Below 0 when more is stored than the quota says.
    room: AtomicI64,
}

impl Allowance {
    /// Blocks of a volume without a quota: more than any pool has.
    pub const UNLIMITED: i64 = 1 << 60;

    /// For a volume that stores nothing yet and may store `limit` blocks.
    pub fn new(limit: i64) -> Self {
        Self {
            room: AtomicI64::new(limit),
        }
    }

    /// Blocks that may still be stored.
    pub fn room(&self) -> i64 {
        self.room.load(Ordering::Relaxed)
    }

    /// Counts `blocks` as stored, if there is room for all of them.
    pub fn claim(&self, blocks: i64) -> bool {
        let fits = |room: i64| (room >= blocks).then_some(room - blocks);
        self.room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }

    /// Counts `blocks` more as stored, or less when below 0, whatever the quota says.
    pub fn add(&self, blocks: i64) {
        self.room.fetch_sub(blocks, Ordering::Relaxed);
    }

    /// Changes the quota by `more` blocks, or by less when below 0: only as far as what is stored
    /// leaves room.
    pub fn change(&self, more: i64) -> bool {
        let fits = |room: i64| (more >= 0 || room + more >= 0).then_some(room + more);
        self.room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_is_stored_beyond_the_quota_and_none_is_refused_within_it() {
        let allowance = Allowance::new(10_000);
        let claim = |size: i64| (0..4_000).filter(|_| allowance.claim(size)).count() as i64;
        let claimed: i64 = std::thread::scope(|scope| {
            let ones = scope.spawn(|| claim(1));
            let threes = scope.spawn(|| claim(3) * 3);
            ones.join().unwrap() + threes.join().unwrap()
        });
        // Together they ask for 16,000; what is left at the end no one of three blocks fits in.
        assert_eq!(claimed + allowance.room(), 10_000);
        assert!(allowance.room() >= 0 && allowance.room() < 3);
        allowance.add(-5);
        let room = allowance.room();
        assert!(!allowance.claim(room + 1) && allowance.claim(room));
    }

    #[test]
    fn a_quota_does_not_shrink_below_what_is_stored() {
        let allowance = Allowance::new(Allowance::UNLIMITED);
        allowance.add(7);
        assert!(!allowance.change(6 - Allowance::UNLIMITED));
        assert!(allowance.change(8 - Allowance::UNLIMITED));
        assert_eq!(allowance.room(), 1);
        // One that has more than it may is allowed more, though it is not enough.
        allowance.add(5);
        assert!(allowance.change(2) && !allowance.change(-1));
        assert_eq!(allowance.room(), -2);
    }
}
