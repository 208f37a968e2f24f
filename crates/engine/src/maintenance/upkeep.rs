//! Background work: one scheduler for all that a shard does without a host waiting for it.
//!
//! Each kind has its own way to determine how much hosts leave to it: write-back takes a share of what they request
//! ([`WritebackRate`]), scrubs and deletions measure hosts' latency ([`Throttle`]), the others run as fast as the drives allow.
//! Guarantees of volumes take precedence. Background work is a tenant of the lowest level: while a volume of the pool
//! misses its guarantee ([`Upkeep::hurt`], reported by the gates), each kind is reduced to its floor, so that it
//! ends nevertheless, and runs at its usual rate again once no promise has been missed for a while.
//!
//! Leaves out: what a kind does. Work that frees space for waiting hosts is not background work: nothing here delays it.

mod throttle;
mod writeback_rate;

pub(crate) use throttle::Throttle;
pub(crate) use writeback_rate::{CHUNKS, Demote, WritebackRate};

use reactor::Handle;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use throttle::Meters;
use units::mutation::{Mutation, is_on};

const SECOND_NS: u64 = 1_000_000_000;
/// Time for which a missed guarantee is in effect: five ticks of a gate.
const HURT_NS: u64 = 100_000_000;
/// Polling interval of waiters for its end, in nanoseconds.
const STEP_NS: u64 = 20_000_000;
const MIB: u64 = 1 << 20;

/// Kinds of background work. Scrubs, deletions and merges have floors in units of their own ([`Throttle`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Write-back that no host waits for.
    Demotion,
    /// Promotion.
    Promotion,
    /// Resync of a mirror's member.
    Resync,
}

/// Minimum rate of each kind in bytes per second and shard: resync, which restores redundancy, is fastest.
const FLOORS: [(Kind, u64); 3] = [
    (Kind::Demotion, 4 * MIB),
    (Kind::Promotion, MIB),
    (Kind::Resync, 8 * MIB),
];

/// End of the effect of a missed guarantee, in all shards of a pool.
#[derive(Default, Debug)]
pub struct HurtUntil(AtomicU64);

/// The scheduler of one shard.
pub(crate) struct Upkeep {
    handle: Handle,
    meters: Meters,
    hurt_until: Arc<HurtUntil>,
    /// When each kind may continue, at its floor.
    next_ns: [Cell<u64>; FLOORS.len()],
}

impl Upkeep {
    /// Of a shard on this loop; all shards of its pool share the rest.
    pub fn new(handle: &Handle, hurt_until: Arc<HurtUntil>) -> Self {
        Self {
            handle: handle.clone(),
            meters: Meters::default(),
            hurt_until,
            next_ns: Default::default(),
        }
    }

    /// Records `count` host operations of the same latency.
    pub fn note(&self, took_ns: u64, count: usize) {
        self.meters.note(took_ns, count);
    }

    /// A volume has missed its guarantee.
    pub fn hurt(&self, now_ns: u64) {
        if !is_on(Mutation::UpkeepUndue) {
            let until_ns = now_ns + HURT_NS;
            self.hurt_until.0.fetch_max(until_ns, Ordering::Relaxed);
        }
    }

    /// Whether a guarantee was missed recently.
    pub fn is_hurt(&self) -> bool {
        // Most pools have no policies, and the clock is not read for them.
        let until_ns = self.hurt_until.0.load(Ordering::Relaxed);
        until_ns != 0 && self.handle.now_ns() < until_ns
    }

    fn row(kind: Kind) -> (usize, u64) {
        let mut rows = FLOORS.iter().enumerate();
        let found = rows.find(|(_, (known, _))| *known == kind);
        found.map_or((0, MIB), |(at, (_, floor))| (at, *floor))
    }

    /// Whether work of a kind may be done now.
    pub fn may(&self, kind: Kind) -> bool {
        !self.is_hurt() || self.next_ns[Self::row(kind).0].get() <= self.handle.now_ns()
    }

    /// Counts work of a kind that was done, or is about to be.
    pub fn did(&self, kind: Kind, bytes: u64) {
        if !self.is_hurt() {
            return;
        }
        let ((at, floor), now_ns) = (Self::row(kind), self.handle.now_ns());
        let takes = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(floor);
        let begins = self.next_ns[at].get().max(now_ns);
        self.next_ns[at].set(begins.saturating_add(takes as u64));
    }

    /// Waits until work of a kind may be done, and counts its bytes. Immediate while no guarantee is missed.
    pub async fn wait(&self, kind: Kind, bytes: u64) {
        while !self.may(kind) {
            self.handle.sleep(STEP_NS).await;
        }
        self.did(kind, bytes);
    }
}

#[cfg(test)]
mod tests;
