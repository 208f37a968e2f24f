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

/// How long a write waits for other shards, in nanoseconds.
const PATIENCE_NS: u64 = 20_000_000_000;
/// And how often it looks, in nanoseconds.
const LOOK_NS: u64 = 2_000_000;
/// How often shards are asked in a row while nothing comes of it, and the time between, in nanoseconds.
const TRIES: u64 = 3;
const AGAIN_NS: u64 = 100_000_000;
/// How long copies are given up for others, in nanoseconds.
const EVICTING_NS: u64 = 2_000_000_000;
/// Passes of eviction that bring nothing before the rest stays: hot copies cool by half in each.
const PASSES: usize = 8;
/// Groups of each kind that are given up at once.
const GROUPS: usize = 8;
/// Homes with at most so many blocks that are valid are dissolved; the next number counts when nothing could be given
/// up by then.
const SPARSE: [usize; 4] = [
    CHUNK_BLOCKS / 2,
    CHUNK_BLOCKS * 3 / 4,
    CHUNK_BLOCKS * 15 / 16,
    CHUNK_BLOCKS - 1,
];
/// Checkpoints after which a group that is empty belongs to nobody.
const CHECKPOINTS: usize = 3;

/// What shards of a pool ask of one another.
#[derive(Default, Debug)]
pub struct Asking {
    /// Times that one found no space while the pool should have some.
    asked: AtomicU64,
    /// How many of those each shard has done something about.
    acked_requests: Mutex<BTreeMap<u16, u64>>,
    /// Times that something came of it.
    worked: AtomicU64,
    /// Writes that wait for it.
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

    /// Whether so many shards have done what they could.
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
    /// Takes slots once all shards have given up what they can, for a write that the pool has space
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
            // Others may have been quicker, and what came of it may be enough for more; what is demoted may be on its way.
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

    /// Takes up what other shards have asked for, and asks them before a write has to.
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

    /// Gives up groups for other shards, for as long as the shard runs.
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

    /// Does for other shards what it can: copies for reads go, slots are moved together, and groups that are
    /// empty are everybody's. Whether anything came of it.
    ///
    /// # Errors
    /// What a drive said.
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

    /// Empties groups and gives them up, with homes dissolved where nothing else helps. Whether anything came of it.
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

    /// Until so much is free that it can give. Whether any went.
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
