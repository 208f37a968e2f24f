//! Space that one shard has and another needs.
//!
//! Responsible for: asking the pool's other shards for groups when there is none to be had, and giving
//! up groups for others: those that are empty, and those that can be emptied, by giving up what is kept for reads
//! alone and by compaction. Homes of which parts are in use stay as they are.

use super::state::Shard;
use crate::space::{Class, Run};
use block::IoError;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How long a write waits for other shards, in nanoseconds.
const PATIENCE_NS: u64 = 20_000_000_000;
/// And how often it looks, in nanoseconds.
const LOOK_NS: u64 = 2_000_000;
/// After it was in vain no other write asks for so long, in nanoseconds. As often at most a shard asks before one
/// has to.
const IN_VAIN_NS: u64 = 10_000_000_000;
/// How long copies are given up for others, in nanoseconds.
const EVICTING_NS: u64 = 2_000_000_000;
/// Passes of eviction that bring nothing before the rest stays: hot copies cool by half in each.
const PASSES: usize = 8;
/// Groups of each tier that are given up at once.
const GROUPS: usize = 8;
/// Checkpoints after which a group that is empty belongs to nobody.
const CHECKPOINTS: usize = 3;

/// What shards of a pool ask of one another.
#[derive(Default, Debug)]
pub struct Asking {
    /// Times that one found no space while the pool should have some.
    asked: AtomicU64,
    /// How many of those each shard has done something about.
    heeded: Mutex<BTreeMap<u16, u64>>,
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
        let mut heeded = self.heeded.lock().unwrap_or_else(PoisonError::into_inner);
        heeded.insert(shard, asked);
    }

    /// Whether so many shards other than this one have done what they could.
    fn is_heeded(&self, shard: u16, asked: u64, others: usize) -> bool {
        let heeded = self.heeded.lock().unwrap_or_else(PoisonError::into_inner);
        let done = heeded
            .iter()
            .filter(|(other, upto)| **other != shard && **upto >= asked);
        done.count() >= others
    }
}

impl Shard {
    /// Takes slots once other shards have given up what they can, for a write that the pool has space
    /// for. False when that does not bring enough.
    pub(super) async fn slots_from_others(
        &self,
        classes: [Class; 2],
        count: usize,
        runs: &mut Vec<Run>,
    ) -> bool {
        let (own, others) = (
            self.config.shard.0,
            usize::from(self.config.shards).saturating_sub(1),
        );
        let now = self.handle.now_ns();
        if others == 0 || now < self.asked_in_vain_ns.get() {
            return false;
        }
        let asking = &self.shared.asking;
        let asked = asking.ask();
        let _waiting = Waiting::new(asking);
        while self.handle.now_ns() < now + PATIENCE_NS && !self.closing.get() {
            let heeded = asking.is_heeded(own, asked, others);
            for class in classes {
                if self.try_slots(class, count, runs) {
                    return true;
                }
            }
            if heeded {
                break;
            }
            self.handle.sleep(LOOK_NS).await;
        }
        self.asked_in_vain_ns.set(self.handle.now_ns() + IN_VAIN_NS);
        false
    }

    /// Whether some write, of this shard or another, waits for space.
    pub(super) fn is_space_awaited(&self) -> bool {
        self.starving.get() > 0 || self.shared.asking.waiting.load(Ordering::Acquire) > 0
    }

    /// Takes up what other shards have asked for, and asks them before a write has to.
    pub(super) fn look_for_others(&self) {
        let asking = &self.shared.asking;
        let now = self.handle.now_ns();
        let asked_ns = self.asked_early_ns.get();
        if self.config.shards > 1 && self.is_short() && now >= asked_ns + IN_VAIN_NS {
            self.asked_early_ns.set(now);
            asking.ask();
        }
        if asking.asked() != self.heeded.get() {
            self.spare_wake.notify();
        }
    }

    /// Whether less than a group is free for it while the pool has more than that.
    fn is_short(&self) -> bool {
        let own = {
            let state = self.state.borrow();
            state.alloc.free_slots(Class::Fast) + state.alloc.free_slots(Class::Slow)
        };
        let space = &self.shared.space;
        let rest = space.capacity() - space.stored();
        own < self.config.group_blocks && rest > (own + self.config.group_blocks) as i64
    }

    /// Gives up groups for other shards, for as long as the shard runs.
    pub(super) async fn spare_loop(self: Rc<Self>) {
        while !self.closing.get() {
            let wake = self.spare_wake.wait();
            let asked = self.shared.asking.asked();
            if self.heeded.replace(asked) != asked {
                if let Err(error) = self.heed().await {
                    tracing::warn!(shard = self.config.shard.0, %error, "space was not given up");
                }
                self.shared.asking.heed(self.config.shard.0, asked);
                continue;
            }
            wake.await;
        }
    }

    /// Does for other shards what it can: copies for reads go, slots are moved together, and groups that are
    /// empty are everybody's.
    ///
    /// # Errors
    /// What a drive said.
    async fn heed(&self) -> Result<(), IoError> {
        self.check()?;
        self.give_up_copies().await?;
        self.barrier().await?;
        for class in [Class::Fast, Class::Slow] {
            self.compact(class, GROUPS).await?;
        }
        if self.state.borrow().alloc.has_empty_groups() {
            for _ in 0..CHECKPOINTS {
                self.checkpoint().await?;
            }
        }
        Ok(())
    }

    /// Until so much is free that it can give.
    async fn give_up_copies(&self) -> Result<(), IoError> {
        let until = self.handle.now_ns() + EVICTING_NS;
        let (wanted, mut in_vain) = (GROUPS as u64 * self.config.group_blocks, 0);
        while self.is_tiered() && in_vain < PASSES && self.handle.now_ns() < until {
            let free = {
                let state = self.state.borrow();
                match state.shadow_chunks.is_empty() {
                    true => break,
                    false => state.alloc.free_slots(Class::Fast),
                }
            };
            if free >= wanted {
                break;
            }
            in_vain = match self.evict(wanted - free).await? {
                0 => in_vain + 1,
                _ => 0,
            };
        }
        Ok(())
    }
}
