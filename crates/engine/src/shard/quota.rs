//! Quotas: what a layer has counts for its volume, over all shards, before it is in a page.

use super::leaf::Leaf;
use super::state::{Shard, State, Volume};
use crate::space::Allowance;
use block::{ErrorKind, IoError};
use format::BlockState;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Volume {
    /// What it has counts there from now on, and no more where it did.
    pub(super) fn count_for(&mut self, allowance: Option<Arc<Allowance>>) {
        if let Some(before) = &self.allowance {
            before.add(-self.charged);
        }
        self.charged = 0;
        self.allowance = allowance;
        if let Some(now) = &self.allowance {
            self.charged = self.counts.mapped() as i64;
            now.add(self.charged);
        }
    }
}

impl State {
    /// Tells the volume's allowance what the layers have lost (or taken, where that could not be
    /// refused) since it was told last, of all of them at once: what moves from one to the other
    /// leaves no room in between that a write of another shard could take.
    pub(super) fn settle(&mut self, layers: &[u32]) {
        let mut owed: Option<(Arc<Allowance>, i64)> = None;
        for layer in layers {
            let Some(entry) = self.volumes.get_mut(layer) else {
                continue;
            };
            let Some(allowance) = &entry.allowance else {
                continue;
            };
            let has = entry.counts.mapped() as i64;
            let more = has - std::mem::replace(&mut entry.charged, has);
            owed = match owed {
                Some((known, sum)) if Arc::ptr_eq(&known, allowance) => Some((known, sum + more)),
                other => {
                    if let Some((known, sum)) = other {
                        known.add(sum);
                    }
                    Some((allowance.clone(), more))
                }
            };
        }
        if let Some((allowance, sum)) = owed.filter(|(_, sum)| *sum != 0) {
            allowance.add(sum);
        }
    }
}

impl Shard {
    /// Says for which volumes' allowances the layers count; those that are not named count nowhere.
    pub fn set_allowances(&self, of: &BTreeMap<u32, Arc<Allowance>>) {
        let mut state = self.state.borrow_mut();
        for (layer, entry) in &mut state.volumes {
            let now = of.get(layer);
            let same = match (&entry.allowance, now) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                (None, None) => true,
                _ => false,
            };
            if !same {
                entry.count_for(now.cloned());
            }
        }
    }

    /// Counts the blocks that a write to a layer's page takes and that were zeroes, in one step and
    /// if all of them may be stored. The caller applies the write before it waits for anything.
    ///
    /// # Errors
    /// `NoSpace` when the volume's quota is reached.
    pub(super) fn claim(
        &self,
        layer: u32,
        leaf: &Leaf,
        first: usize,
        count: usize,
    ) -> Result<(), IoError> {
        let mut state = self.state.borrow_mut();
        let Some(entry) = state.volumes.get_mut(&layer) else {
            return Ok(());
        };
        let Some(allowance) = &entry.allowance else {
            return Ok(());
        };
        let new = new_blocks(leaf, first, count);
        if new > 0 && !allowance.claim(new) {
            return Err(quota_reached());
        }
        entry.charged += new;
        Ok(())
    }
}

/// Blocks of a page that are zeroes and take space when they are written.
pub(super) fn new_blocks(leaf: &Leaf, first: usize, count: usize) -> i64 {
    let page = leaf.page.borrow();
    let zero = |block: &usize| page.state(*block) == BlockState::Zero;
    (first..first + count).filter(zero).count() as i64
}

/// A write would take more than the volume may have.
pub(super) fn quota_reached() -> IoError {
    IoError::new(
        ErrorKind::NoSpace,
        "the volume's quota is reached: discard data, delete snapshots or raise it",
    )
}
