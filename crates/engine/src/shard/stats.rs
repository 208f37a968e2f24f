//! Statistics of a shard's host operations, for the shard and by export.
//!
//! Counters only grow while the shard runs; callers compute rates from two readings. Counters by volume are with the
//! volumes, and is counted in the same step ([`State`](super::state::State)'s `count_*` methods, which are the only
//! callers), so that sums of volumes and these differ by deleted volumes alone.

use super::dispatch::Counted;
use crate::control::spread::{Cell, IoSpread};
use crate::control::types::IoCounters;
use std::collections::{BTreeMap, BTreeSet};

/// Statistics of an export in a shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportTotals {
    /// Operations.
    pub counters: IoCounters,
    /// Reads and writes by times and sizes.
    pub spread: IoSpread,
}

/// The exports by their numbers, of which the pool gives few (`pool/exported.rs`): every operation looks one up.
#[derive(Default)]
struct ByExport(Vec<Option<Box<ExportTotals>>>);

impl ByExport {
    /// Statistics of an export. Its first operation allocates it.
    fn of(&mut self, number: u16) -> &mut ExportTotals {
        let index = usize::from(number);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index].get_or_insert_default()
    }

    /// Forgets others than these.
    fn retain(&mut self, known: &BTreeSet<u16>) {
        let each = (0..).zip(&mut self.0);
        let gone = each.filter(|(number, _)| !known.contains(number));
        gone.for_each(|(_, totals)| *totals = None);
    }

    /// Statistics by export.
    fn all(&self) -> impl Iterator<Item = (u16, ExportTotals)> + '_ {
        let each = (0..).zip(&self.0);
        each.filter_map(|(number, totals)| Some((number, **totals.as_ref()?)))
    }
}

/// Counters of a shard.
#[derive(Default)]
pub(crate) struct Stats {
    all: IoCounters,
    exports: ByExport,
}

impl Stats {
    /// Present counts.
    pub fn totals(&self) -> IoCounters {
        self.all
    }

    /// Counts something that came by no export, or was counted for that already.
    #[inline]
    pub(super) fn count(&mut self, more: impl FnOnce(&mut IoCounters)) {
        more(&mut self.all);
    }

    /// `count` operations that are like `op` have ended, each after so long, which is counted at `at`.
    // In both of its callers, one of which knows that it is a read.
    #[inline(always)]
    pub(super) fn ended(&mut self, op: Counted, count: u64, took: u64, at: Cell) {
        op.add_to(&mut self.all, count, took);
        if op.export != 0 {
            let export = self.exports.of(op.export);
            op.add_to(&mut export.counters, count, took);
            op.spread_to(&mut export.spread, count, at);
        }
    }

    /// Statistics of exports with these numbers. Those of others are dropped: they no longer exist.
    pub(super) fn exports(&mut self, known: &BTreeSet<u16>) -> BTreeMap<u16, ExportTotals> {
        self.exports.retain(known);
        self.exports.all().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::OpKind;

    #[test]
    fn operations_are_counted_once_for_all_and_once_for_their_export() {
        let mut stats = Stats::default();
        let op = |export, len| Counted {
            volume: 1,
            kind: OpKind::Write,
            export,
            len,
        };
        for (export, count) in [(0, 1), (3, 2), (5, 4)] {
            stats.ended(op(export, 4096), count, 10, Cell::of(10, 4096));
        }
        assert_eq!((stats.totals().writes, stats.totals().write_ns), (7, 70));
        let known = BTreeSet::from([3]);
        let exports = stats.exports(&known);
        assert_eq!((exports.len(), exports[&3].counters.writes), (1, 2));
        assert!(stats.exports(&BTreeSet::from([5])).is_empty(), "forgotten");
    }
}
