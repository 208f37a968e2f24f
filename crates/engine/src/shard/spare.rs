//! Space that one shard has and another needs.
//!
//! Responsible for: asking the pool's other shards for groups when there is none to be had, and giving
//! up for others what is kept for reads alone. Groups of which parts are in use stay where they are.

use super::state::Shard;
use crate::space::{Class, Run};
use block::IoError;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How long a write waits for other shards, in nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;
/// And how often it looks, in nanoseconds.
const LOOK_NS: u64 = 2_000_000;
/// After it was in vain no other write asks for so long, in nanoseconds.
const IN_VAIN_NS: u64 = 10_000_000_000;
/// How long copies are given up for others, in nanoseconds.
const EVICTING_NS: u64 = 2_000_000_000;
/// Passes of eviction that bring nothing before the rest stays: hot copies cool by half in each.
const PASSES: usize = 8;
/// Checkpoints after which a group that is empty belongs to nobody.
const CHECKPOINTS: usize = 3;

/// What shards of a pool ask of one another.
#[derive(Default, Debug)]
pub struct Asking {
    /// Times that one found no space while the pool should have some.
    asked: AtomicU64,
    /// How many of those each shard has done something about.
    heeded: Mutex<BTreeMap<u16, u64>>,
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

    /// Does for other shards what it can, when one has asked: copies for reads go, and groups that are
    /// empty are everybody's.
    ///
    /// # Errors
    /// What a drive said.
    pub(super) async fn heed(&self) -> Result<(), IoError> {
        let asked = self.shared.asking.asked();
        if asked == self.heeded.replace(asked) {
            return Ok(());
        }
        let (until, mut in_vain) = (self.handle.now_ns() + EVICTING_NS, 0);
        let has_copies = || self.is_tiered() && !self.state.borrow().shadow_chunks.is_empty();
        while has_copies() && in_vain < PASSES && self.handle.now_ns() < until {
            in_vain = match self.evict(u64::MAX).await? {
                0 => in_vain + 1,
                _ => 0,
            };
        }
        self.barrier().await?;
        if self.state.borrow().alloc.has_empty_groups() {
            for _ in 0..CHECKPOINTS {
                self.checkpoint().await?;
            }
        }
        self.shared.asking.heed(self.config.shard.0, asked);
        Ok(())
    }
}
