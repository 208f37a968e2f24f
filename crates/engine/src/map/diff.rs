//! Differences between a volume or a snapshot and a snapshot that it is based on (docs/snapshots.md).
//!
//! Layers are merged meanwhile, chunk by chunk. So what is inherited from where is looked up for a
//! chunk without waiting in between, and a snapshot is known by its epoch, which stays with what it
//! names whatever layer has that.

use super::layer_table::{Missing, Pages};
use super::page::live;
use crate::shard::state::{Shard, State};
use block::{ErrorKind, IoError};
use format::BlockMask;
use std::collections::BTreeSet;
use std::ops::Range;

/// Chunks that are examined for one answer.
const CHUNKS: usize = 64;

/// The changed blocks of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangedChunk {
    /// Chunk.
    pub chunk: u32,
    /// Blocks that were written or discarded.
    pub changed: BlockMask,
    /// Those of them that are not zeroes at present.
    pub data: BlockMask,
}

/// Chunks that may differ, and what they were found by.
struct Candidates {
    /// The layer that was examined, and the one that it is compared with.
    layers: (u32, u32),
    chunks: Vec<u32>,
    /// Where the next ones are looked for.
    next: Option<u32>,
}

impl State {
    /// The layer of epoch `since` that `layer` is based on, or itself; 0 when `since` is.
    fn base(&self, layer: u32, since: u32) -> Result<u32, IoError> {
        if since == 0 {
            return Ok(0);
        }
        let mut at = layer;
        while let Some(entry) = self.volumes.get(&at)
            && entry.epoch >= since
        {
            if entry.epoch == since && !entry.mixed {
                return Ok(at);
            }
            at = entry.parent;
        }
        let text =
            "it does not descend from the snapshot that it is compared with, which may be deleted";
        Err(IoError::new(ErrorKind::Invalid, text))
    }

    /// The layers that take part in comparing a volume with a snapshot's epoch.
    pub(crate) fn compared(&self, volume: u32, since: u32) -> Result<(u32, u32), IoError> {
        let layer = self.live(volume);
        live(self.volumes.get(&layer))?;
        Ok((layer, self.base(layer, since)?))
    }

    /// The differences between a layer and the lower one that it is compared with; 0: an empty one.
    fn changed(&self, (layer, base): (u32, u32), chunk: u32) -> Result<ChangedChunk, Missing> {
        let all = BlockMask::ALL;
        let floor = self.volumes.get(&base).map_or(0, |entry| entry.epoch);
        let owned = self.owned_above(layer, chunk, all, floor, Pages::All)?;
        let data = owned.stored();
        // A page says zero of what was discarded and of what never was there alike.
        let zero = all.and_not(data).and_not(owned.beneath);
        let discarded = match base {
            0 => BlockMask::default(),
            _ if zero.is_empty() => zero,
            _ => self.owned(base, chunk, zero)?.stored(),
        };
        Ok(ChangedChunk {
            chunk,
            changed: data.or(discarded),
            data,
        })
    }

    /// The next chunks from `from` on of which a layer above `base` has a page.
    fn candidates(&self, (layer, base): (u32, u32), from: u32) -> Result<Candidates, Missing> {
        let mut found = BTreeSet::new();
        let mut known_to = u32::MAX;
        let mut at = layer;
        while at != base
            && let Some(entry) = self.volumes.get(&at)
        {
            let (keys, need) = entry.tree.scan(from, CHUNKS);
            match (keys.last(), need) {
                (None, Some((level, key, ptr))) => return Err((at, level, key, ptr)),
                (Some(last), need) if need.is_some() || keys.len() == CHUNKS => {
                    known_to = known_to.min(*last);
                }
                _ => {}
            }
            found.extend(keys);
            at = entry.parent;
        }
        let chunks: Vec<u32> = found.range(..=known_to).copied().take(CHUNKS).collect();
        let is_all = chunks.len() == found.len() && known_to == u32::MAX;
        let next = chunks.last().filter(|_| !is_all);
        Ok(Candidates {
            layers: (layer, base),
            next: next.and_then(|last| last.checked_add(1)),
            chunks,
        })
    }
}

impl Shard {
    /// The differences between a chunk of a volume, or of an open snapshot, and the snapshot of
    /// epoch `since`; 0: than nothing.
    ///
    /// # Errors
    /// `Gone` when the volume is, `Invalid` when it does not stand on a snapshot of that epoch (any
    /// more), or the drive's error.
    pub(crate) async fn changed_chunk(
        &self,
        volume: u32,
        since: u32,
        chunk: u32,
    ) -> Result<ChangedChunk, IoError> {
        self.look(|state| Ok(state.changed(state.compared(volume, since)?, chunk)))
            .await
    }

    /// The first of this shard's chunks among `chunks` that are not as in the snapshot of epoch
    /// `since`, and where to look for more.
    ///
    /// # Errors
    /// As [`Shard::changed_chunk`].
    pub async fn changed_chunks(
        &self,
        volume: u32,
        since: u32,
        chunks: Range<u32>,
    ) -> Result<(Vec<ChangedChunk>, Option<u32>), IoError> {
        let candidates = self
            .look(|state| Ok(state.candidates(state.compared(volume, since)?, chunks.start)))
            .await?;
        let mut found = Vec::new();
        for chunk in candidates.chunks {
            if chunk >= chunks.end {
                return Ok((found, None));
            }
            let changed = self.changed_chunk(volume, since, chunk).await?;
            // Another layer may have pages of other chunks.
            let layer = self.state.borrow().live(volume);
            if layer != candidates.layers.0 {
                return Ok((found, Some(chunk)));
            }
            found.extend((!changed.changed.is_empty()).then_some(changed));
        }
        self.trim_pages();
        let next = candidates.next.filter(|next| *next < chunks.end);
        Ok((found, next))
    }
}
