//! Status of a shard.

use super::state::Shard;
use super::stats::ExportTotals;
use crate::control::spread::Spreads;
use crate::control::types::IoCounters;
use format::BlockCounts;
use std::collections::{BTreeMap, BTreeSet};
use units::{CHUNK_BLOCKS, VdriveId};

/// A volume's part in a shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeTotals {
    /// Blocks by where they are.
    pub counts: BlockCounts,
    /// Operations.
    pub counters: IoCounters,
}

/// A shard's state.
#[derive(Clone, Debug, Default)]
pub struct ShardStatus {
    /// Operations and blocks.
    pub counters: IoCounters,
    /// Volumes by number.
    pub volumes: BTreeMap<u32, VolumeTotals>,
    /// Blocks in use by vdrive.
    pub used: BTreeMap<VdriveId, u64>,
    /// Pages that its part of the metadata region has room for.
    pub page_room: u64,
    /// Memory for maps in bytes.
    pub map_bytes: u64,
    /// Memory for cached data in bytes.
    pub ram_bytes: u64,
    /// Its maximum in bytes.
    pub ram_limit: u64,
    /// The time of its loop.
    pub now_ns: u64,
    /// Why it serves no more.
    pub failed: Option<String>,
}

impl Shard {
    /// Distribution of operations by layer.
    pub fn spreads(&self) -> BTreeMap<u32, Spreads> {
        let state = self.state.borrow();
        let known = state.volumes.iter();
        known
            .filter_map(|(id, volume)| Some((*id, *volume.spread.as_deref()?)))
            .collect()
    }

    /// Statistics of exports with these numbers. Those of others are dropped: they no longer exist.
    pub fn exports(&self, known: &BTreeSet<u16>) -> BTreeMap<u16, ExportTotals> {
        self.state.borrow_mut().stats.exports(known)
    }

    /// Its state now.
    pub fn status(&self) -> ShardStatus {
        let state = self.state.borrow();
        let trees: usize = state
            .volumes
            .values()
            .map(|volume| volume.tree.bytes())
            .sum();
        let map_pages =
            state.page_cache.pages() * (size_of::<crate::map::page::MapPage>() + format::PAGE);
        let own = state.root.bytes();
        let volumes = state.volumes.iter().map(|(id, volume)| {
            (
                *id,
                VolumeTotals {
                    counts: volume.counts,
                    counters: volume.counters,
                },
            )
        });
        let mut used = BTreeMap::new();
        self.devices.for_each(|vdrive| {
            let homes = state.alloc.used_homes(vdrive.id) * CHUNK_BLOCKS as u64;
            used.insert(vdrive.id, state.alloc.used_slots(vdrive.id) + homes);
        });
        ShardStatus {
            counters: state.stats.totals(),
            volumes: volumes.collect(),
            used,
            page_room: self.page_room(&state),
            map_bytes: (trees
                + map_pages
                + own
                + state.alloc.bytes()
                + state.page_cache.summary_bytes()) as u64,
            ram_bytes: state.ram.bytes(),
            ram_limit: self.ram_limit(),
            now_ns: self.handle.now_ns(),
            failed: state.failed.as_ref().map(ToString::to_string),
        }
    }
}
