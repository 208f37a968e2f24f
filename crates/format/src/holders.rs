//! The volume that each layer counts towards: a volume owns its active layer and those of its snapshots.

use crate::{LayerConfig, PoolConfig};
use std::collections::BTreeMap;

impl PoolConfig {
    /// The volumes (by number) that layers count for. A layer that a volume or its snapshot names
    /// counts for that volume. An unreferenced one counts towards the volume of the layer based on it,
    /// into which it is merged; of several, of the one that was made first. One that nothing stands
    /// on is being freed, and counts for the volume of what it is based on until then.
    pub fn holders(&self) -> BTreeMap<u32, u32> {
        let names = self.snapshots.iter();
        let mut holders: BTreeMap<u32, u32> = names.map(|name| (name.layer, name.volume)).collect();
        for volume in &self.volumes {
            holders.insert(volume.live(), volume.id);
            if volume.next != 0 {
                holders.insert(volume.next, volume.id);
            }
        }
        // A layer's number is above that of the one that it is based on.
        let mut layers: Vec<&LayerConfig> = self.layers.iter().collect();
        layers.sort_unstable_by_key(|layer| layer.id);
        let mut above: BTreeMap<u32, u32> = BTreeMap::new();
        for layer in layers.iter().rev() {
            let holder = holders.get(&layer.id).or_else(|| above.get(&layer.id));
            if let Some(holder) = holder.copied() {
                holders.insert(layer.id, holder);
                above.insert(layer.parent, holder);
            }
        }
        for layer in layers {
            let beneath = holders.get(&layer.parent).copied();
            if let Some(holder) = beneath {
                holders.entry(layer.id).or_insert(holder);
            }
        }
        holders
    }
}

#[cfg(test)]
mod tests {
    use crate::label::tests::{label, volume};
    use crate::{PoolConfig, Reap, SnapshotConfig};

    fn snapshot(layer: u32) -> SnapshotConfig {
        SnapshotConfig {
            name: format!("s{layer}"),
            volume: 1,
            layer,
            size: 1 << 20,
            created_s: 7,
            held: false,
            schedule: String::new(),
            origin: String::new(),
        }
    }

    fn all(config: &PoolConfig) -> Vec<(u32, u32)> {
        config.holders().into_iter().collect()
    }

    #[test]
    fn a_layer_counts_for_who_names_it_or_for_what_it_goes_into() {
        let mut config = label().config;
        config.next_volume = 2;
        config.volumes.push(volume(1));
        // Two snapshots; on the later one the volume, a clone, and what the volume was before it was
        // rolled back.
        let late = config.add_layer(1);
        let live = config.add_layer(late);
        let clone = config.add_layer(late);
        let left = config.add_layer(late);
        config.volumes[0].live = live;
        config.volumes.push(volume(clone));
        config.snapshots.extend([snapshot(1), snapshot(late)]);
        let own = [(1, 1), (late, 1), (live, 1), (clone, clone), (left, 1)];
        assert_eq!(all(&config), own);
        // An unreferenced layer is merged into the layer based on it, the oldest of several.
        config.snapshots.clear();
        assert_eq!(all(&config), own);
        config.volumes[0].live = 0;
        let others = [
            (1, 1),
            (late, clone),
            (live, clone),
            (clone, clone),
            (left, clone),
        ];
        assert_eq!(all(&config), others);
        config.reaped(Reap::Free(left));
        assert_eq!(all(&config), others[..4]);
        // A layer that may have taken writes of the volume.
        config.volumes[0].next = live;
        assert_eq!(config.holders()[&live], 1);
    }
}
