//! Background work: one scheduler for all that a shard does without a host waiting for it.
//!
//! Each kind has its own way to determine how much hosts leave to it: write-back takes a share of what they request
//! ([`WritebackRate`]), scrubs and deletions measure hosts' latency ([`Throttle`]), the others run as fast as the drives allow.
//! Guarantees of volumes take precedence. Background work is a tenant of the lowest level: while a volume of the pool
//! misses its guarantee ([`Upkeep::hurt`], reported by the gates), each kind is reduced to its floor, so that it
//! ends all the same, and runs at its usual rate again once no promise has been missed for a while.
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
/// For how long somebody counts as hurt after that was seen: five ticks of a gate.
const HURT_NS: u64 = 100_000_000;
/// How soon who waits sees that nobody is hurt any longer, in nanoseconds.
const STEP_NS: u64 = 20_000_000;
const MIB: u64 = 1 << 20;

/// Kinds of background work. Scrubs, and what is deleted or merged, have floors in units of their own ([`Throttle`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Write-back that nobody waits for.
    Demotion,
    /// Copies for the fast tier.
    Promotion,
    /// Bringing a mirror's member up to date.
    Resync,
}

/// Bytes a second, in one shard, below which a kind does not go: what keeps a volume safe goes fastest.
const FLOORS: [(Kind, u64); 3] = [
    (Kind::Demotion, 4 * MIB),
    (Kind::Promotion, MIB),
    (Kind::Resync, 8 * MIB),
];

/// Until when somebody counts as hurt, in all shards of a pool.
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

    /// `count` operations of hosts took so long each.
    pub fn note(&self, took_ns: u64, count: usize) {
        self.meters.note(took_ns, count);
    }

    /// Somebody with a policy missed what that promises.
    pub fn hurt(&self, now_ns: u64) {
        if !is_on(Mutation::UpkeepUndue) {
            let until_ns = now_ns + HURT_NS;
            self.hurt_until.0.fetch_max(until_ns, Ordering::Relaxed);
        }
    }

    /// Whether a promise was missed recently.
    pub fn is_hurt(&self) -> bool {
        // Most pools have no policies, and the clock is not asked for them.
        let until_ns = self.hurt_until.0.load(Ordering::Relaxed);
        until_ns != 0 && self.handle.now_ns() < until_ns
    }

    fn row(kind: Kind) -> (usize, u64) {
        let mut rows = FLOORS.iter().enumerate();
        let found = rows.find(|(_, (known, _))| *known == kind);
        found.map_or((0, MIB), |(at, (_, floor))| (at, *floor))
    }

    /// Whether some of a kind may be done now.
    pub fn may(&self, kind: Kind) -> bool {
        !self.is_hurt() || self.next_ns[Self::row(kind).0].get() <= self.handle.now_ns()
    }

    /// So much of a kind was done, or is about to be.
    pub fn did(&self, kind: Kind, bytes: u64) {
        if !self.is_hurt() {
            return;
        }
        let ((at, floor), now_ns) = (Self::row(kind), self.handle.now_ns());
        let takes = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(floor);
        let begins = self.next_ns[at].get().max(now_ns);
        self.next_ns[at].set(begins.saturating_add(takes as u64));
    }

    /// Waits until some of a kind may be done, and counts so many bytes of it. At once while nobody is hurt.
    pub async fn wait(&self, kind: Kind, bytes: u64) {
        while !self.may(kind) {
            self.handle.sleep(STEP_NS).await;
        }
        self.did(kind, bytes);
    }
}

#[cfg(test)]
mod tests;
