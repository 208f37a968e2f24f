//! The chain of layers that a layer is based on: where blocks inherited from an epoch are is found in a
//! few steps then, and not by walking through a thousand snapshots.

use crate::shard::state::Volume;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Rows that are remembered: of volumes and snapshots that are read at the same time.
const MANY: usize = 64;

/// Rows of layers by the uppermost, each with the layers' epochs, from the top down.
#[derive(Default)]
pub(crate) struct Paths(RefCell<BTreeMap<u32, Vec<(u32, u32)>>>);

impl Paths {
    /// The lowest layer, from `top` down, whose epoch is not less than `epoch`, if it is beneath `found`,
    /// which is on that way.
    pub fn owner(
        &self,
        volumes: &BTreeMap<u32, Volume>,
        (top, found): (u32, u32),
        epoch: u32,
    ) -> Option<u32> {
        let mut known = self.0.borrow_mut();
        if known.len() >= MANY && !known.contains_key(&top) {
            known.clear();
        }
        let path = known.entry(top).or_insert_with(|| walk(volumes, top));
        let covering = path.partition_point(|(_, covered)| *covered >= epoch);
        let (owner, covered) = path[covering.saturating_sub(1)];
        (covered < epoch_of(volumes, found)).then_some(owner)
    }

    /// The parents of layers have changed.
    pub fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

/// Never empty. Epochs only become smaller: labels say nothing else (`PoolConfig::check`).
fn walk(volumes: &BTreeMap<u32, Volume>, top: u32) -> Vec<(u32, u32)> {
    let mut path = vec![(top, epoch_of(volumes, top))];
    let mut at = top;
    while let Some(parent) = volumes.get(&at).map(|entry| entry.parent)
        && volumes.contains_key(&parent)
        && path.len() < volumes.len()
    {
        path.push((parent, epoch_of(volumes, parent)));
        at = parent;
    }
    path
}

fn epoch_of(volumes: &BTreeMap<u32, Volume>, layer: u32) -> u32 {
    volumes.get(&layer).map_or(layer, |entry| entry.epoch)
}
