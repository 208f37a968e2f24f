//! Requests for space between the shards of a pool, as one shard keeps count of them.
//!
//! What shards share is [`super::rebalance::Asking`]: a number that each request raises. This is a shard's own half: which
//! requests it has done what it could for ([`SpaceRequests::take_up`]), and when it may ask again itself. Asking is
//! rate-limited twice: a write that asked in vain keeps others from it for a while ([`SpaceRequests::back_off`]), and
//! before a write has to the mover asks no more often than that ([`SpaceRequests::may_ask_early`]).
//!
//! While groups are emptied for others demotion takes no group of homes ([`SpaceRequests::is_compacting`]), and for a while
//! after a request no home that it would leave empty in large part ([`SpaceRequests::is_sparing`]). Only the task that
//! serves requests (`rebalance.rs`) changes those.

use reactor::Event;
use std::cell::Cell;

/// Time without requests by writes after an unsuccessful one, in nanoseconds. Early requests of a shard are no more
/// frequent either.
const BACKOFF_NS: u64 = 10_000_000_000;
/// Time for which space counts as short after a request, in nanoseconds.
const SPARING_NS: u64 = 60_000_000_000;

/// A shard's requests for space, and its work for those of others.
#[derive(Default)]
pub(crate) struct SpaceRequests {
    /// Requests of other shards that this one has taken up.
    taken_up: Cell<u64>,
    came: Event,
    /// No write asks other shards for space before this moment.
    backoff_until_ns: Cell<u64>,
    /// Time of this shard's last early request.
    asked_early_ns: Cell<u64>,
    is_compacting: Cell<bool>,
    sparing_until_ns: Cell<u64>,
}

impl SpaceRequests {
    /// The last request that this shard has taken up.
    pub fn taken_up(&self) -> u64 {
        self.taken_up.get()
    }

    /// Takes up all requests up to `asked`; false if it had taken them up before.
    pub(super) fn take_up(&self, asked: u64) -> bool {
        self.taken_up.replace(asked) != asked
    }

    /// There may be a request: wakes the task that serves them.
    pub fn wake(&self) {
        self.came.notify();
    }

    /// Waits until there may be one, from this call on.
    pub(super) fn until_asked(&self) -> impl Future<Output = ()> + use<> {
        self.came.wait()
    }

    /// Whether a write may ask now.
    pub(super) fn may_ask(&self, now_ns: u64) -> bool {
        now_ns >= self.backoff_until_ns.get()
    }

    /// A write's request was unsuccessful.
    pub(super) fn back_off(&self, now_ns: u64) {
        self.backoff_until_ns.set(now_ns + BACKOFF_NS);
    }

    /// Whether the shard, which is short of groups, may send an early request.
    pub(super) fn may_ask_early(&self, now_ns: u64) -> bool {
        now_ns >= self.asked_early_ns.get() + BACKOFF_NS
    }

    /// It has sent one.
    pub(super) fn asked_early(&self, now_ns: u64) {
        self.asked_early_ns.set(now_ns);
    }

    /// Whether groups of homes are being emptied: demotion takes none.
    pub fn is_compacting(&self) -> bool {
        self.is_compacting.get()
    }

    /// Sets that state.
    pub(super) fn set_compacting(&self, is_compacting: bool) {
        self.is_compacting.set(is_compacting);
    }

    /// Whether space is short: demotion takes no homes that would be mostly empty.
    pub fn is_sparing(&self, now_ns: u64) -> bool {
        now_ns < self.sparing_until_ns.get()
    }

    /// Space counts as short for some time.
    pub(super) fn spare(&self, now_ns: u64) {
        self.sparing_until_ns.set(now_ns + SPARING_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_up_once() {
        let requests = SpaceRequests::default();
        assert!(!requests.take_up(0));
        assert!(requests.take_up(2) && !requests.take_up(2));
        assert_eq!(requests.taken_up(), 2);
    }

    #[test]
    fn who_asked_in_vain_keeps_others_from_it_for_a_while() {
        let requests = SpaceRequests::default();
        assert!(requests.may_ask(0) && !requests.is_sparing(0));
        requests.back_off(5);
        assert!(!requests.may_ask(4 + BACKOFF_NS) && requests.may_ask(5 + BACKOFF_NS));
        requests.asked_early(5);
        assert!(!requests.may_ask_early(4 + BACKOFF_NS));
        assert!(requests.may_ask_early(5 + BACKOFF_NS));
        requests.spare(5);
        assert!(requests.is_sparing(4 + SPARING_NS) && !requests.is_sparing(5 + SPARING_NS));
    }
}
