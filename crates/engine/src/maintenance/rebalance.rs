//! Space that one shard has and another needs.
//!
//! Responsible for: asking the pool's other shards for groups when none is free, and
//! releasing groups for others: those that are empty, and those that can be emptied, by evicting what is kept for reads
//! alone and by compaction.

use crate::shard::state::Shard;
use crate::space::{Class, Run};
use block::IoError;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use units::CHUNK_BLOCKS;

/// Timeout of a write's wait for other shards, in nanoseconds.
const PATIENCE_NS: u64 = 20_000_000_000;
/// Its polling interval, in nanoseconds.
const LOOK_NS: u64 = 2_000_000;
/// Number of unsuccessful requests to shards in a row, and the time between them, in nanoseconds: it grows by as much each
/// time. What can be released may be held by a checkpoint or a demotion in progress for a second, more on a busy host.
const TRIES: u64 = 6;
const AGAIN_NS: u64 = 100_000_000;
/// Time for which copies are evicted for others, in nanoseconds.
const EVICTING_NS: u64 = 2_000_000_000;
/// Unsuccessful passes of eviction before the rest is kept: the heat of hot copies is halved in each.
const PASSES: usize = 8;
/// Groups of each kind that are released at a time.
const GROUPS: usize = 8;
/// Homes with at most this many valid blocks are dissolved; the next number applies if nothing could be
/// released by then.
const SPARSE: [usize; 4] = [
    CHUNK_BLOCKS / 2,
    CHUNK_BLOCKS * 3 / 4,
    CHUNK_BLOCKS * 15 / 16,
    CHUNK_BLOCKS - 1,
];
/// Checkpoints after which an empty group is returned to the pool.
const CHECKPOINTS: usize = 3;

/// Space requests between the shards of a pool.
#[derive(Default, Debug)]
pub struct Asking {
    /// Number of requests: a shard found no space while the pool should have some.
    asked: AtomicU64,
    /// The number of requests that each shard has served.
    acked_requests: Mutex<BTreeMap<u16, u64>>,
    /// Number of successful requests.
    worked: AtomicU64,
    /// Waiting writes.
    waiting: AtomicU64,
}

/// Counts a write that waits for other shards, for as long as it does.
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn new(asking: &'a Asking) -> Self {
        asking.waiting.fetch_add(1, Ordering::AcqRel);
        Self(&asking.waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Asking {
    fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    fn heed(&self, shard: u16, asked: u64) {
        let mut acked_requests = self
            .acked_requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        acked_requests.insert(shard, asked);
    }

    /// Whether this many shards have done what they could.
    fn is_acked(&self, asked: u64, shards: usize) -> bool {
        let acked_requests = self
            .acked_requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        acked_requests
            .values()
            .filter(|upto| **upto >= asked)
            .count()
            >= shards
    }
}

impl Shard {
    /// Takes slots once all shards have released what they can, for a write that the pool has space
    /// for. False when that does not bring enough.
    pub(crate) async fn slots_given_up(
        &self,
        classes: [Class; 2],
        count: usize,
        runs: &mut Vec<Run>,
    ) -> bool {
        let now = self.handle.now_ns();
        if !self.requests.may_ask(now) {
            return false;
        }
        let asking = &self.shared.asking;
        let _waiting = Waiting::new(asking);
        let mut asked = (asking.ask(), asking.worked.load(Ordering::Acquire));
        let mut in_vain = 0;
        self.moves.wake_mover();
        while self.handle.now_ns() < now + PATIENCE_NS && !self.lifecycle.is_closing() {
            let acked_requests = asking.is_acked(asked.0, self.config.shards.into());
            for class in classes {
                if self.host_slots(class, count, runs) {
                    return true;
                }
            }
            if !acked_requests {
                self.handle.sleep(LOOK_NS).await;
                continue;
            }
            // Others may have been faster, and the released space may suffice for more; demotion may be in progress.
            let worked = asking.worked.load(Ordering::Acquire);
            in_vain = if worked == asked.1 { in_vain + 1 } else { 0 };
            if in_vain == TRIES {
                break;
            }
            self.handle.sleep(in_vain * AGAIN_NS).await;
            asked = (asking.ask(), worked);
            self.moves.wake_mover();
        }
        self.requests.back_off(self.handle.now_ns());
        false
    }

    /// Whether some write, of this shard or another, waits for space.
    pub(super) fn is_space_awaited(&self) -> bool {
        self.space_waiters.are_any() || self.shared.asking.waiting.load(Ordering::Acquire) > 0
    }

    /// Serves requests of other shards, and sends requests before a write has to.
    pub(crate) fn look_for_others(&self) {
        let asking = &self.shared.asking;
        let now = self.handle.now_ns();
        if self.is_short() && self.requests.may_ask_early(now) {
            self.requests.asked_early(now);
            asking.ask();
        }
        if asking.asked() != self.requests.taken_up() {
            self.requests.wake();
        }
    }

    /// Whether fewer groups are free for it than there should be, while the pool has more.
    fn is_short(&self) -> bool {
        let own = {
            let state = self.state.borrow();
            state.alloc.free_slots(Class::Fast) + state.alloc.free_slots(Class::Slow)
        };
        let group = self.config.group_blocks;
        let space = &self.shared.space;
        let rest = space.capacity() - space.stored();
        own < self.config.spare_groups * group && rest > own.min(group) as i64
    }

    /// Releases groups for other shards while the shard runs.
    pub(crate) async fn spare_loop(self: Rc<Self>) {
        while !self.lifecycle.is_closing() {
            let wake = self.requests.until_asked();
            let asked = self.shared.asking.asked();
            if self.requests.take_up(asked) {
                let asking = &self.shared.asking;
                match self.heed().await {
                    Ok(true) => drop(asking.worked.fetch_add(1, Ordering::AcqRel)),
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(shard = self.config.shard.0, %error, "space was not released");
                    }
                }
                asking.heed(self.config.shard.0, asked);
                continue;
            }
            wake.await;
        }
    }

    /// Serves requests of other shards: clean copies are evicted, slots are compacted, and empty groups
    /// are returned to the pool. Returns whether any space was released.
    ///
    /// # Errors
    /// A drive's error.
    async fn heed(&self) -> Result<bool, IoError> {
        self.check()?;
        self.requests.spare(self.handle.now_ns());
        let worked = self.give_up_copies().await?;
        self.barrier().await?;
        self.requests.set_compacting(true);
        let given = self.give_groups().await;
        self.requests.set_compacting(false);
        Ok(given? || worked)
    }

    /// Empties groups and releases them, dissolving homes if nothing else helps. Returns whether any space was released.
    async fn give_groups(&self) -> Result<bool, IoError> {
        self.move_together(GROUPS).await?;
        let mut given = self.give_empty().await?;
        for valid in SPARSE {
            if given {
                break;
            }
            if self.dissolve_homes(valid, GROUPS).await? > 0 {
                self.move_together(GROUPS).await?;
                given = self.give_empty().await?;
            }
        }
        Ok(given)
    }

    /// Whether there were empty groups.
    async fn give_empty(&self) -> Result<bool, IoError> {
        if !self.state.borrow_mut().alloc.release_empty_groups() {
            return Ok(false);
        }
        for _ in 0..CHECKPOINTS {
            self.checkpoint().await?;
        }
        Ok(true)
    }

    /// Evicts until enough is free to release. Returns whether any copy was evicted.
    async fn give_up_copies(&self) -> Result<bool, IoError> {
        let mut worked = false;
        let until = self.handle.now_ns() + EVICTING_NS;
        let (wanted, mut in_vain) = (GROUPS as u64 * self.config.group_blocks, 0);
        while self.tiers.are_two() && in_vain < PASSES && self.handle.now_ns() < until {
            let free = {
                let state = self.state.borrow();
                match state.tier_index.has_clean() {
                    true => self.fast_coming_free(&state),
                    false => break,
                }
            };
            if free >= wanted {
                break;
            }
            in_vain = match self.evict(wanted - free).await? {
                0 => in_vain + 1,
                _ => 0,
            };
            worked |= in_vain == 0;
        }
        Ok(worked)
    }
}
