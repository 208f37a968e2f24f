//! A layer's blocks count towards its pool and its volume's quota and reservation, over all shards,
//! before it is in a page.

use crate::map::page::MapPage;
use crate::shard::state::{Shard, State, Volume};
use crate::space::{Allowance, Refusal, SpaceShared};
use block::{ErrorKind, IoError};
use format::BlockState;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Volume {
    /// Moves its blocks to another counter. The pool allocates nothing in
    /// between.
    pub(crate) fn count_for(&mut self, allowance: Option<Arc<Allowance>>, space: &SpaceShared) {
        let has = self.counts.mapped() as i64;
        let before = std::mem::replace(&mut self.charged, has);
        let more = allowance.as_ref().map_or(has, |now| now.add(has));
        let less = match &self.allowance {
            Some(known) => known.add(-before),
            None => -before,
        };
        self.allowance = allowance;
        space.count(has - before);
        space.take(more + less);
    }
}

impl State {
    /// Tells the pool and the volume's allowance what the layers have lost (or taken, where that could
    /// not be refused) since the last report, of all of them together: what moves from one to the
    /// other leaves no room in between that a write of another shard could take.
    pub(crate) fn settle(&mut self, layers: &[u32], space: &SpaceShared) {
        let mut owed: Option<(Option<Arc<Allowance>>, i64)> = None;
        let (mut stored, mut taken) = (0, 0);
        let mut add = |allowance: Option<Arc<Allowance>>, sum: i64| {
            stored += sum;
            taken += allowance.map_or(sum, |known| known.add(sum));
        };
        for layer in layers {
            let Some(entry) = self.volumes.get_mut(layer) else {
                continue;
            };
            let has = entry.counts.mapped() as i64;
            let more = has - std::mem::replace(&mut entry.charged, has);
            owed = match owed {
                Some((known, sum)) if same(known.as_ref(), entry.allowance.as_ref()) => {
                    Some((known, sum + more))
                }
                other => {
                    if let Some((known, sum)) = other {
                        add(known, sum);
                    }
                    Some((entry.allowance.clone(), more))
                }
            };
        }
        if let Some((allowance, sum)) = owed.filter(|(_, sum)| *sum != 0) {
            add(allowance, sum);
        }
        if (stored, taken) != (0, 0) {
            space.count(stored);
            space.take(taken);
        }
    }
}

fn same(one: Option<&Arc<Allowance>>, other: Option<&Arc<Allowance>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

impl Shard {
    /// Says for which volumes' allowances the layers count; those that are not named count for the
    /// pool alone.
    pub fn set_allowances(&self, of: &BTreeMap<u32, Arc<Allowance>>) {
        let mut state = self.state.borrow_mut();
        for (layer, entry) in &mut state.volumes {
            let now = of.get(layer);
            if !same(entry.allowance.as_ref(), now) {
                entry.count_for(now.cloned(), &self.shared.space);
            }
        }
    }

    /// Tells the pool what all layers have.
    pub(crate) fn settle_all(&self) {
        let mut state = self.state.borrow_mut();
        let layers: Vec<u32> = state.volumes.keys().copied().collect();
        layers
            .into_iter()
            .for_each(|layer| state.settle(&[layer], &self.shared.space));
    }

    /// Counts the blocks that a write to a layer's page takes and that were zeroes, in one step and
    /// if all of them may be stored. The caller applies the write before it waits for anything.
    ///
    /// # Errors
    /// `NoSpace` when the volume's quota is reached, or the pool has no space that others were not
    /// promised.
    pub(crate) fn claim(
        &self,
        layer: u32,
        map_page: &MapPage,
        first: usize,
        count: usize,
    ) -> Result<(), IoError> {
        let new = new_blocks(map_page, first, count);
        let mut state = self.state.borrow_mut();
        let Some(entry) = state.volumes.get_mut(&layer).filter(|_| new > 0) else {
            return Ok(());
        };
        let space = &self.shared.space;
        let claimed = match &entry.allowance {
            Some(allowance) => allowance.claim(new, space),
            None if space.claim(new) => Ok(()),
            None => Err(Refusal::Space),
        };
        claimed.map_err(|refusal| self.refused(refusal))?;
        space.count(new);
        entry.charged += new;
        Ok(())
    }

    /// A write would take more than the volume or the pool has for it.
    pub(crate) fn refused(&self, refusal: Refusal) -> IoError {
        match refusal {
            Refusal::Space => self.no_space(),
            Refusal::Quota => IoError::new(
                ErrorKind::NoSpace,
                "the volume's quota is reached: discard data, delete snapshots or raise it",
            ),
        }
    }
}

/// Blocks of a page that are zeroes and take space when they are written.
#[inline]
pub(crate) fn new_blocks(map_page: &MapPage, first: usize, count: usize) -> i64 {
    let page = map_page.page.borrow();
    let zero = |block: &usize| page.state(*block) == BlockState::Zero;
    (first..first + count).filter(zero).count() as i64
}
