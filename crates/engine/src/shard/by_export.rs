//! What came to a shard by each export.

use super::state::Shard;
use crate::control::spread::IoSpread;
use crate::control::types::IoCounters;
use std::collections::{BTreeMap, BTreeSet};

/// What came to a shard by an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportTotals {
    /// Operations.
    pub counters: IoCounters,
    /// Reads and writes by times and sizes.
    pub spread: IoSpread,
}

/// The exports by their numbers, of which the pool gives few (`pool/exported.rs`): every operation looks one up.
#[derive(Default)]
pub(crate) struct ByExport(Vec<Option<Box<ExportTotals>>>);

impl ByExport {
    /// What came by an export. Its first operation allocates it.
    pub fn of(&mut self, number: u16) -> &mut ExportTotals {
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
}

impl Shard {
    /// What came by exports with these numbers. What came by others is forgotten: they are gone.
    pub fn exports(&self, known: &BTreeSet<u16>) -> BTreeMap<u16, ExportTotals> {
        let mut state = self.state.borrow_mut();
        state.exports.retain(known);
        let each = (0..).zip(&state.exports.0);
        each.filter_map(|(number, totals)| Some((number, **totals.as_ref()?)))
            .collect()
    }
}
