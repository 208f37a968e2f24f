//! A single busy volume: its operations are admitted without a decision, and only counted.

use super::entries::Entry;
use super::{Gate, Request};
use crate::costs::class;

/// Completed operations of one kind and size that bypassed the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AloneEnded {
    /// The request of each.
    pub of: Request,
    /// How many.
    pub count: u64,
    /// Their total time, in nanoseconds.
    pub took_ns: u64,
    /// Those that took longer than their maximum latency.
    pub late: u64,
}

impl AloneEnded {
    /// None yet.
    pub fn new(of: Request) -> Self {
        Self {
            of,
            count: 0,
            took_ns: 0,
            late: 0,
        }
    }
}

impl<T> Gate<T> {
    /// Whether one volume alone is busy, and nothing limits it.
    #[inline]
    pub fn is_one_alone(&self) -> bool {
        let is_free = |entry: &Entry<T>| !entry.is_capped();
        self.held == 0
            && self.entries.len() == 1
            && !self.window.is_limited()
            && self.entries.iter().next().is_some_and(is_free)
    }

    /// How many of a row of operations pass without being requested one by one: those of the one volume that is busy, while
    /// nothing limits it. `asks` returns the request of one, `None` if it is never held: the others then count as in flight.
    /// `is_like` tells sooner that two ask for the same.
    #[inline]
    pub fn pass_alone<O: Copy>(
        &mut self,
        row: impl Iterator<Item = O>,
        is_like: impl Fn(O, O) -> bool,
        asks: impl Fn(O) -> Option<Request>,
    ) -> usize {
        if !self.is_one_alone() {
            return 0;
        }
        let (mut passed, mut before, mut like, mut count) = (0, None, None, 0);
        for of in row {
            if before.is_some_and(|before| is_like(before, of)) {
                passed += 1;
                count += 1;
                continue;
            }
            let request = asks(of);
            if request.is_some_and(|request| self.entries.find(request.volume).is_none()) {
                break;
            }
            passed += 1;
            self.begin(like, count);
            (before, like, count) = (Some(of), request, 1);
        }
        if passed > 0 {
            self.begin(like, count);
            if let Some(entry) = self.entries.iter_mut().next() {
                (entry.last_hold_ns, entry.idle) = (0, 0);
            }
        }
        passed
    }

    /// Counts operations that bypassed the gate as in flight, until [`Gate::end_alone`].
    pub fn begin_alone(&mut self, count: usize) {
        self.window.enter(count);
    }

    /// Accounts for completed ones: they count as attained service, and no cost is learned from them.
    pub fn end_alone(&mut self, ended: AloneEnded) {
        let AloneEnded {
            of,
            count,
            took_ns,
            late,
        } = ended;
        self.window.leave(count as usize);
        let cost_ns = self.costs.of(class(of.kind, of.bytes)) * count;
        let slot = self.entries.find(of.volume);
        if let Some(entry) = slot.and_then(|slot| self.entries.at(slot)) {
            entry.seen.cost_ns += cost_ns;
            entry.seen.operations += count;
            entry.seen.bytes += count * of.bytes;
            entry.seen.late += late;
            entry.took_ns = entry.took_ns.saturating_add(took_ns);
        }
    }

    /// All operations pass the gate again: earlier completions give no cost for the next ones.
    pub fn resume(&mut self, now_ns: u64) {
        self.moments.resume(&self.costs, now_ns);
    }
}
