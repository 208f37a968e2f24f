//! Layers of volumes in a pool's description: their parents, and what is to be done with those
//! that are no longer referenced (docs/snapshots.md).

use crate::{LAYERS, LayerConfig, PoolConfig, SnapshotConfig, VolumeConfig};
use std::collections::{BTreeMap, BTreeSet};

/// What to do with an unreferenced layer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reap {
    /// Nothing is based on it: all that it has is freed.
    Free(u32),
    /// One layer, `upper`, is based on it: that one's pages go into its own.
    Merge {
        /// The layer whose pages go.
        upper: u32,
        /// The layer that takes them.
        lower: u32,
    },
}

/// A layer that may have blocks that a snapshot alone sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Its number.
    pub layer: u32,
    /// It is the snapshot's own.
    pub is_own: bool,
    /// The layers based on it, each before those based on that.
    pub viewers: Vec<Viewer>,
}

/// A layer that is based on another, and sees what that has as far as it does not hide it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Viewer {
    /// Its number.
    pub layer: u32,
    /// Its readers.
    pub reader: Reader,
    /// Layers between it and the owner. Those that stand on it follow, one deeper, unless all that they see is seen here.
    pub depth: usize,
}

/// The readers of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// The snapshot that is asked about.
    Own,
    /// Another snapshot, or a volume.
    Other,
    /// None: it is unreferenced.
    Nobody,
}

/// The readers of layer `of`, through the layers based on it. There may be tens of thousands of unreferenced ones in a row:
/// names any longer: nothing here goes deeper with each.
fn viewers(
    children: &BTreeMap<u32, Vec<u32>>,
    named: &BTreeSet<u32>,
    own: u32,
    of: u32,
) -> Vec<Viewer> {
    let on = |layer: u32, depth: usize| {
        let on = children.get(&layer).into_iter().flatten().rev();
        on.map(move |child| (*child, depth))
    };
    let mut found = Vec::new();
    let mut todo: Vec<(u32, usize)> = on(of, 0).collect();
    while let Some((layer, depth)) = todo.pop() {
        let reader = match named.contains(&layer) {
            _ if layer == own => Reader::Own,
            true => Reader::Other,
            false => Reader::Nobody,
        };
        if reader != Reader::Other {
            todo.extend(on(layer, depth + 1));
        }
        found.push(Viewer {
            layer,
            reader,
            depth,
        });
    }
    found
}

impl PoolConfig {
    /// A layer's entry; volumes without snapshots have none.
    pub fn layer(&self, id: u32) -> Option<&LayerConfig> {
        self.layers.iter().find(|layer| layer.id == id)
    }

    /// The name of a layer: the volume whose active layer it is, or `volume@snapshot`; for an
    /// unreferenced one its number.
    pub fn layer_name(&self, id: u32) -> String {
        if let Some(volume) = self.volumes.iter().find(|volume| volume.live() == id) {
            return volume.name.clone();
        }
        let snapshot = self.snapshots.iter().find(|snapshot| snapshot.layer == id);
        let named = snapshot.and_then(|snapshot| {
            let volume = self
                .volumes
                .iter()
                .find(|volume| volume.id == snapshot.volume)?;
            Some(format!("{}@{}", volume.name, snapshot.name))
        });
        named.unwrap_or_else(|| format!("#{id}"))
    }

    /// The number by which a layer's chunks are divided among shards.
    pub fn root(&self, layer: u32) -> u32 {
        self.layer(layer).map_or(layer, |entry| entry.root)
    }

    /// A layer and those that it is based on, from the top down.
    pub fn path(&self, layer: u32) -> Vec<u32> {
        let parents = self.layers.iter().filter(|entry| entry.parent != 0);
        let parents: BTreeMap<u32, u32> = parents.map(|entry| (entry.id, entry.parent)).collect();
        let below = |at: &u32| parents.get(at).copied();
        std::iter::successors(Some(layer), below).collect()
    }

    /// The snapshots that a layer of `volume` is based on, and its own, the latest one first: their
    /// names, with other volumes' as `volume@snapshot`, and their layers' epochs. No epoch comes
    /// twice: what it names never changes, and is not found any more once the snapshot is deleted.
    pub fn beneath(&self, volume: u32, layer: u32) -> Vec<(String, u32)> {
        let layers: BTreeMap<u32, &LayerConfig> =
            self.layers.iter().map(|entry| (entry.id, entry)).collect();
        let named: BTreeMap<u32, &SnapshotConfig> = self
            .snapshots
            .iter()
            .map(|snapshot| (snapshot.layer, snapshot))
            .collect();
        let mut found = Vec::new();
        let mut at = layer;
        while let Some(entry) = layers.get(&at) {
            if let Some(snapshot) = named.get(&at) {
                let of = self.volumes.iter().find(|of| of.id == snapshot.volume);
                let name = match of {
                    Some(of) if of.id != volume => format!("{}@{}", of.name, snapshot.name),
                    _ => snapshot.name.clone(),
                };
                found.push((name, entry.epoch));
            }
            at = entry.parent;
        }
        found
    }

    /// The snapshots that a clone takes over when it is promoted, the latest one first: the one that
    /// it was made from, and those before it of the same volume, up to the first one of yet another.
    /// None: it is no clone.
    pub fn to_promote(&self, volume: &VolumeConfig) -> Vec<&SnapshotConfig> {
        let parents: BTreeMap<u32, u32> = self
            .layers
            .iter()
            .map(|entry| (entry.id, entry.parent))
            .collect();
        let named: BTreeMap<u32, &SnapshotConfig> = self
            .snapshots
            .iter()
            .map(|snapshot| (snapshot.layer, snapshot))
            .collect();
        let mut found: Vec<&SnapshotConfig> = Vec::new();
        let mut at = volume.live();
        while let Some(parent) = parents.get(&at) {
            if let Some(snapshot) = named.get(&at) {
                match found.first() {
                    Some(first) if first.volume != snapshot.volume => break,
                    None if snapshot.volume == volume.id => {}
                    _ => found.push(snapshot),
                }
            }
            at = *parent;
        }
        found
    }

    /// Adds a layer on `parent`, whose entry is made when it had none; returns its number.
    pub fn add_layer(&mut self, parent: u32) -> u32 {
        let root = self.root(parent);
        if self.layer(parent).is_none() {
            // Not its number: what snapshots that are deleted by now were known by does not come again.
            let epoch = self.take_number();
            self.layers.push(LayerConfig {
                id: parent,
                parent: 0,
                root,
                epoch,
            });
        }
        let id = self.take_number();
        self.layers.push(LayerConfig {
            id,
            parent,
            root,
            epoch: id,
        });
        id
    }

    /// The layer that takes a volume's writes after its next snapshot; announced now when none was.
    /// None: there is no such volume.
    pub fn announce(&mut self, volume: u32) -> Option<u32> {
        let found = self.volumes.iter().position(|known| known.id == volume)?;
        if self.volumes[found].next == 0 {
            self.volumes[found].next = self.add_layer(self.volumes[found].live());
        }
        Some(self.volumes[found].next)
    }

    /// The layer that was announced for a volume takes its writes; returns the one that did.
    pub fn advance(&mut self, volume: u32) -> Option<u32> {
        let known = self.volumes.iter_mut().find(|known| known.id == volume)?;
        let before = known.live();
        if known.next != 0 {
            (known.live, known.next) = (known.next, 0);
        }
        Some(before)
    }

    /// Withdraws the layer that was announced for a volume and returns it; nothing
    /// has been written to it.
    pub fn withdraw(&mut self, volume: u32) -> Option<u32> {
        let known = self.volumes.iter_mut().find(|known| known.id == volume)?;
        let next = std::mem::take(&mut known.next);
        self.layers.retain(|layer| layer.id != next);
        self.forget_lone_layers();
        (next != 0).then_some(next)
    }

    fn take_number(&mut self) -> u32 {
        self.next_volume += 1;
        self.next_volume - 1
    }

    /// The layers that volumes or snapshots name.
    fn named(&self) -> BTreeSet<u32> {
        let live = self
            .volumes
            .iter()
            .flat_map(|volume| [volume.live(), volume.next]);
        live.chain(self.snapshots.iter().map(|snapshot| snapshot.layer))
            .collect()
    }

    /// The layers whose pages may have blocks that only `layer`, a referenced one, sees: itself, and those
    /// directly beneath it that are unreferenced; each with those that may see the same.
    pub fn owners(&self, layer: u32) -> Vec<Owner> {
        let named = self.named();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for entry in &self.layers {
            children.entry(entry.parent).or_default().push(entry.id);
        }
        let mut owners = Vec::new();
        let mut at = layer;
        while at != 0 && (at == layer || !named.contains(&at)) {
            owners.push(Owner {
                layer: at,
                is_own: at == layer,
                viewers: viewers(&children, &named, layer, at),
            });
            at = self.layer(at).map_or(0, |entry| entry.parent);
        }
        owners
    }

    /// Work on unreferenced layers, in no particular order: some of it may
    /// become unneeded by the rest.
    pub fn reap(&self) -> Vec<Reap> {
        let named = self.named();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for layer in &self.layers {
            children.entry(layer.parent).or_default().push(layer.id);
        }
        let unnamed = self
            .layers
            .iter()
            .filter(|layer| !named.contains(&layer.id));
        let reap = |layer: &LayerConfig| match children.get(&layer.id).map(Vec::as_slice) {
            None => Some(Reap::Free(layer.id)),
            Some([upper]) => Some(Reap::Merge {
                upper: *upper,
                lower: layer.id,
            }),
            Some(_) => None,
        };
        unnamed.filter_map(reap).collect()
    }

    /// The layer is no more; of a merged one, `lower` has its place.
    pub fn reaped(&mut self, reap: Reap) {
        match reap {
            Reap::Free(id) => self.layers.retain(|layer| layer.id != id),
            Reap::Merge { upper, lower } => {
                let epoch = self.layer(upper).map(|layer| layer.epoch);
                self.layers.retain(|layer| layer.id != upper);
                for layer in &mut self.layers {
                    if layer.parent == upper {
                        layer.parent = lower;
                    }
                    if layer.id == lower {
                        layer.epoch = epoch.unwrap_or(layer.epoch);
                    }
                }
                for volume in self
                    .volumes
                    .iter_mut()
                    .filter(|volume| volume.live() == upper)
                {
                    volume.live = lower;
                }
                let names = self.snapshots.iter_mut().filter(|name| name.layer == upper);
                names.for_each(|name| name.layer = lower);
            }
        }
        self.forget_lone_layers();
    }

    /// A layer that is based on nothing, with nothing on it, is as any volume's.
    fn forget_lone_layers(&mut self) {
        let parents: BTreeSet<u32> = self.layers.iter().map(|layer| layer.parent).collect();
        let snapshots: BTreeSet<u32> = self.snapshots.iter().map(|name| name.layer).collect();
        let named = self.named();
        self.layers.retain(|layer| {
            layer.parent != 0
                || parents.contains(&layer.id)
                || snapshots.contains(&layer.id)
                || !named.contains(&layer.id)
                || layer.root != layer.id
        });
    }

    /// Takes a volume out of its schedules, or only out of the one of this name. A schedule without a
    /// volume is no more.
    pub fn unschedule(&mut self, volume: u32, name: Option<&str>) {
        for schedule in &mut self.schedules {
            if name.is_none_or(|name| schedule.name == name) {
                schedule.volumes.retain(|known| *known != volume);
            }
        }
        self.schedules
            .retain(|schedule| !schedule.volumes.is_empty());
    }

    /// Says in the features whether a reader has to know of layers.
    pub fn note_layers(&mut self) {
        let needed = !self.layers.is_empty() || self.volumes.iter().any(|volume| volume.live != 0);
        self.features.incompatible &= !LAYERS;
        if needed {
            self.features.incompatible |= LAYERS;
        }
    }

    /// Refuses layers that no pool has: the engine goes from one to the one beneath.
    pub(crate) fn check_layers(&self) -> Result<(), String> {
        let mut known: BTreeMap<u32, &LayerConfig> = BTreeMap::new();
        for layer in &self.layers {
            let id = layer.id;
            if id == 0
                || id >= self.next_volume
                || layer.epoch < id
                || layer.epoch >= self.next_volume
            {
                return Err(format!("layer {id} of epoch {}", layer.epoch));
            }
            if known.insert(id, layer).is_some() {
                return Err(format!("two layers with number {id}"));
            }
        }
        for layer in self.layers.iter().filter(|layer| layer.parent != 0) {
            let fits = known.get(&layer.parent).is_some_and(|parent| {
                parent.id < layer.id && parent.epoch < layer.epoch && parent.root == layer.root
            });
            if !fits {
                return Err(format!("layer {} on {}", layer.id, layer.parent));
            }
        }
        let mut live = BTreeSet::new();
        for volume in &self.volumes {
            let own = known.contains_key(&volume.live()) || volume.live() < self.next_volume;
            let next = volume.next == 0
                || known
                    .get(&volume.next)
                    .is_some_and(|next| next.parent == volume.live());
            if !own || !next || !live.insert(volume.live()) {
                return Err(format!("volume {} in layer {}", volume.name, volume.live()));
            }
        }
        for snapshot in &self.snapshots {
            if !known.contains_key(&snapshot.layer) || live.contains(&snapshot.layer) {
                return Err(format!(
                    "snapshot {:.32} of layer {}",
                    snapshot.name, snapshot.layer
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
