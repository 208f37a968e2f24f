//! Which layer takes each volume's writes, and which volumes are quiesced.
//!
//! A volume's writes go to the layer with its number until a snapshot switches them to another one; only those that were
//! switched are here. Group snapshots go in three steps (docs/snapshots.md): volumes are **quiesced** (their pages do not
//! change), **switched**, and **resumed**. A write that finds its volume quiesced waits for [`ActiveLayers::until_resumed`],
//! requested in the same borrow, and checks again. Invariant: from quiesce to resume a volume's active layer changes by the
//! switch alone, and a layer that was merged into the one beneath belongs to no volume.

use reactor::Event;
use std::collections::{BTreeMap, BTreeSet};

/// Active layers by volume.
#[derive(Default)]
pub(crate) struct ActiveLayers {
    /// Where they are not those with the volumes' numbers. The numbers of snapshots that are read are here, too.
    switched: BTreeMap<u32, u32>,
    /// Volumes whose pages do not change until they are resumed.
    quiesced: BTreeSet<u32>,
    resumed: Event,
}

impl ActiveLayers {
    /// The layer that takes a volume's writes.
    #[inline]
    pub fn of(&self, volume: u32) -> u32 {
        // Most pools have none: no lookup then.
        self.switched.get(&volume).copied().unwrap_or(volume)
    }

    /// A volume's writes go to a layer from now on.
    pub(super) fn switch(&mut self, volume: u32, layer: u32) {
        self.switched.insert(volume, layer);
    }

    /// They go to the layer with the volume's number again, or a snapshot is not read any longer.
    pub(super) fn forget(&mut self, volume: u32) {
        self.switched.remove(&volume);
    }

    /// A layer is no more, and the one beneath has its place; `is_volume`: a volume has its number, and was never switched
    /// from it or back to it.
    pub(super) fn merge(&mut self, upper: u32, lower: u32, is_volume: bool) {
        if is_volume {
            self.switched.entry(upper).or_insert(upper);
        }
        for layer in self.switched.values_mut().filter(|layer| **layer == upper) {
            *layer = lower;
        }
    }

    /// Whether a volume's pages do not change now.
    #[inline]
    pub fn is_quiesced(&self, volume: u32) -> bool {
        self.quiesced.contains(&volume)
    }

    /// Pages of these volumes do not change from now on.
    pub(super) fn quiesce(&mut self, volumes: &[u32]) {
        self.quiesced.extend(volumes);
    }

    /// They may change again.
    pub(super) fn resume(&mut self, volumes: impl Iterator<Item = u32>) {
        for volume in volumes {
            self.quiesced.remove(&volume);
        }
        self.wake();
    }

    /// Waits until volumes are resumed, from this call on.
    pub(super) fn until_resumed(&self) -> impl Future<Output = ()> + use<> {
        self.resumed.wait()
    }

    /// Waiters check again.
    pub fn wake(&self) {
        self.resumed.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn writes_go_to_the_layer_that_was_switched_to() {
        let mut active = ActiveLayers::default();
        assert_eq!(active.of(1), 1);
        active.quiesce(&[1, 2]);
        let resumed = active.until_resumed();
        active.switch(1, 8);
        active.resume([1].into_iter());
        assert!(resumed.now_or_never().is_some());
        assert_eq!(
            [active.is_quiesced(1), active.is_quiesced(2)],
            [false, true]
        );
        assert_eq!([active.of(1), active.of(2)], [8, 2]);
    }

    #[test]
    fn the_layer_beneath_takes_what_a_merged_one_took() {
        let mut active = ActiveLayers::default();
        active.switch(1, 8);
        active.merge(8, 7, false);
        assert_eq!(active.of(1), 7);
        active.merge(2, 6, true);
        assert_eq!([active.of(2), active.of(8)], [6, 8]);
        active.forget(2);
        assert_eq!(active.of(2), 2);
    }
}
