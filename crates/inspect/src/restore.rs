//! Copying a volume out of a pool that is not in use, as far as it can be reached.

use crate::error::{InspectError, Result};
use crate::fetch::Copies;
use crate::inspection::Inspection;
use crate::replay::{self, Chunks};
use crate::report::{Range, VolumeReport};
use crate::shard::ShardView;
use crate::walk::{Found, Walk, keys_beneath};
use crate::{chunk, older, scan};
use format::{BlockState, ChunkPage, PageKind, shard_of_chunk};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use units::{BLOCK, CHUNK, CHUNK_BLOCKS};

/// Where a volume's bytes go: offset in bytes, and what is there. Called for what is stored alone,
/// in no certain order.
pub type Sink<'a> = &'a mut dyn FnMut(u64, &[u8]) -> io::Result<()>;

/// Result of copying a volume.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Restored {
    /// The volume, with the ranges that cannot be read.
    pub volume: VolumeReport,
    /// Bytes that were copied.
    pub copied: u64,
    /// Ranges that may be older than the last writes: chunks whose part of the map is lost and was
    /// found by a search, blocks whose newest write the journal names and no drive has, and blocks of which nothing is
    /// told after a page of the journal that is lost.
    pub perhaps_older: Vec<Range>,
    /// Shards of which the journal's last page is not whole: what was written there last may be
    /// missing, and nothing tells which blocks that would be.
    pub journals_cut: Vec<u16>,
    /// Drives, and shards' metadata, that were restored to an earlier state: anything may be older than the last writes.
    pub put_back: Vec<String>,
}

/// The state of a volume in one shard.
struct Part {
    chunks: Chunks,
    lost: Vec<RangeInclusive<u32>>,
    /// Chunks, by layer, of which only what the journal says is known.
    blank: BTreeSet<(u32, u32)>,
}

struct Restore<'a> {
    inspection: &'a Inspection<'a>,
    /// The layers that the volume is seen through, from the lowest up: what is higher covers what
    /// is lower.
    layers: Vec<u32>,
    root: u32,
    restored: Restored,
}

/// Copies the volume called `name` to `sink`.
///
/// # Errors
/// When the pool names no such volume, or the sink fails.
pub async fn restore_volume(
    inspection: &Inspection<'_>,
    name: &str,
    sink: Sink<'_>,
) -> Result<Restored> {
    let config = inspection.pool.config();
    let volumes = &config.volumes;
    let (volume, snapshot) = name
        .split_once('@')
        .map_or((name, None), |(name, snapshot)| (name, Some(snapshot)));
    let Some(volume) = volumes.iter().find(|known| known.name == volume) else {
        let names: Vec<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
        return Err(InspectError::new(format!(
            "the pool has no volume '{name}': its volumes are {}",
            names.join(", ")
        )));
    };
    let live = if volume.next == 0 {
        volume.live()
    } else {
        volume.next
    };
    let (top, size) = match snapshot {
        None => (live, volume.size),
        Some(snapshot) => {
            let mut of = config
                .snapshots
                .iter()
                .filter(|known| known.volume == volume.id);
            let Some(found) = of.find(|known| known.name == snapshot) else {
                let text = format!("volume {} has no snapshot '{snapshot}'", volume.name);
                return Err(InspectError::new(text));
            };
            (found.layer, found.size)
        }
    };
    let mut layers = config.path(top);
    layers.reverse();
    let mut restore = Restore {
        inspection,
        root: layers[0],
        layers,
        restored: Restored {
            volume: VolumeReport {
                id: volume.id,
                name: name.to_owned(),
                size,
                ..VolumeReport::default()
            },
            ..Restored::default()
        },
    };
    let lost = inspection.pool.evidence.lost();
    let put_back = lost.map(|old| old.spec.clone());
    restore.restored.put_back.extend(put_back);
    for shard in 0..inspection.pool.config().shards {
        let done = restore.shard(shard, sink).await;
        done.map_err(|error| {
            InspectError::new(format!("writing the restored data failed: {error}"))
        })?;
    }
    restore.restored.volume.settle();
    join(&mut restore.restored.perhaps_older);
    Ok(restore.restored)
}

/// Sorts ranges, and makes one of those that touch.
fn join(ranges: &mut Vec<Range>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, known| {
        let touches = next.offset <= known.offset + known.len;
        if touches {
            known.len = known.len.max(next.offset + next.len - known.offset);
        }
        touches
    });
}

impl Restore<'_> {
    async fn shard(&mut self, shard: u16, sink: Sink<'_>) -> io::Result<()> {
        let mut part = Part {
            chunks: Chunks::new(),
            lost: Vec::new(),
            blank: BTreeSet::new(),
        };
        let mut view = ShardView::read(self.inspection, shard).await;
        let older = view.as_ref().and_then(|view| view.older(self.inspection));
        self.restored.put_back.extend(older);
        let Some(view) = &mut view else {
            part.lost.push(0..=u32::MAX);
            for layer in self.layers.clone() {
                self.search((shard, layer), &mut part, None).await;
            }
            return self.write_all(part, sink).await;
        };
        for layer in self.layers.clone() {
            self.walk(layer, view, &mut part, sink).await?;
            if !part.lost.is_empty() {
                self.search((shard, layer), &mut part, Some(view)).await;
                part.lost.clear();
            }
        }
        let mine = |subject: &(u32, u32)| self.layers.contains(&subject.0);
        let others: BTreeSet<(u32, u32)> = view
            .subjects
            .iter()
            .copied()
            .filter(|subject| !mine(subject))
            .collect();
        let missing = replay::replay(
            self.inspection,
            &view.journal,
            &mut part.chunks,
            &others,
            &mut view.space,
        )
        .await;
        if view.journal.cut {
            self.restored.journals_cut.push(shard);
        }
        let shards = self.inspection.pool.config().shards;
        let size = self.restored.volume.size;
        let seen = self.layers.last().map(|layer| (*layer, self.root));
        let older = seen.map(|seen| older::ranges(&view.journal, seen, (shard, shards), size));
        self.restored
            .perhaps_older
            .extend(older.into_iter().flatten());
        for (_, chunk, block) in missing.into_keys() {
            self.restored.perhaps_older.push(Range {
                offset: u64::from(chunk) * CHUNK as u64 + (block * BLOCK) as u64,
                len: BLOCK as u64,
            });
        }
        self.write_all(part, sink).await
    }

    /// Writes what a layer's map says that the journal does not change; the rest is kept.
    async fn walk(
        &mut self,
        layer: u32,
        view: &ShardView,
        part: &mut Part,
        sink: Sink<'_>,
    ) -> io::Result<()> {
        let root = view.volumes.get(&layer).copied();
        let mut lost = view.lost_volumes.iter();
        if lost.any(|range| range.contains(&layer)) {
            part.lost.push(0..=u32::MAX);
        }
        let mut walk = Walk::new(layer, PageKind::Chunk, root.unwrap_or_default());
        while let Some(found) = walk.next(self.inspection).await {
            for found in found {
                match found {
                    Found::Page { page, header, .. } if header.kind == PageKind::Chunk => {
                        let page = ChunkPage::from_page(page);
                        // What is above may be written now only if what is below is.
                        let mut layers = self.layers.iter();
                        if layers.any(|layer| view.subjects.contains(&(*layer, header.key))) {
                            part.chunks.insert((layer, header.key), page);
                        } else {
                            self.write(layer, header.key, &page, sink).await?;
                        }
                    }
                    Found::Page { .. } => {}
                    Found::Lost { level, key, .. } => part.lost.push(keys_beneath(level, key)),
                }
            }
        }
        Ok(())
    }

    /// Looks for pages of the lost part of the map. What is not found is lost, but for blocks that
    /// the journal names.
    async fn search(
        &mut self,
        (shard, layer): (u16, u32),
        part: &mut Part,
        view: Option<&ShardView>,
    ) {
        let space = view.filter(|view| view.space_whole).map(|view| &view.space);
        let found = scan::chunks(self.inspection, layer, &part.lost, space).await;
        for (number, candidate) in found {
            if !self.is_of(shard, number) {
                continue;
            }
            let got = self
                .inspection
                .pool
                .fetch(&[candidate.want], Copies::First)
                .await;
            let bytes = got.into_iter().next().and_then(|got| got.bytes);
            let Some(page) = bytes.and_then(|bytes| format::Page::found(&bytes)) else {
                continue;
            };
            if !candidate.certain {
                self.restored.perhaps_older.push(Range {
                    offset: u64::from(number) * CHUNK as u64,
                    len: CHUNK as u64,
                });
            }
            part.chunks
                .insert((layer, number), ChunkPage::from_page(page));
        }
        let chunks = self.restored.volume.size.div_ceil(CHUNK as u64);
        let last = u32::try_from(chunks).unwrap_or(u32::MAX);
        for range in &part.lost {
            for number in *range.start()..last.min(range.end().saturating_add(1)) {
                let known = part.chunks.contains_key(&(layer, number));
                if !known && self.is_of(shard, number) {
                    part.blank.insert((layer, number));
                }
            }
        }
    }

    fn is_of(&self, shard: u16, chunk: u32) -> bool {
        let shards = usize::from(self.inspection.pool.config().shards);
        shard_of_chunk(self.root, chunk, shards) == usize::from(shard)
    }

    async fn write_all(&mut self, mut part: Part, sink: Sink<'_>) -> io::Result<()> {
        for (layer, number) in &part.blank {
            let offset = u64::from(*number) * CHUNK as u64;
            let Some(page) = part.chunks.get(&(*layer, *number)) else {
                self.restored.volume.lose(offset, CHUNK as u64);
                continue;
            };
            for block in 0..CHUNK_BLOCKS {
                if page.state(block) == BlockState::Zero && page.from(block) == 0 {
                    let byte = offset + (block * BLOCK) as u64;
                    self.restored.volume.lose(byte, BLOCK as u64);
                }
            }
        }
        for ((layer, number), page) in std::mem::take(&mut part.chunks) {
            self.write(layer, number, &page, sink).await?;
        }
        Ok(())
    }

    async fn write(
        &mut self,
        layer: u32,
        number: u32,
        page: &ChunkPage,
        sink: Sink<'_>,
    ) -> io::Result<()> {
        let base = u64::from(number) * CHUNK as u64;
        if layer != self.root {
            self.write_zeroes(base, page, sink)?;
        }
        let blocks = chunk::read(self.inspection.pool, page).await;
        self.inspection.passed(blocks.len() as u64);
        for (block, bytes) in blocks {
            let offset = base + (block * BLOCK) as u64;
            self.restored.volume.blocks += 1;
            let Some(bytes) = bytes else {
                self.restored.volume.lose(offset, BLOCK as u64);
                continue;
            };
            let left = self.restored.volume.size.saturating_sub(offset);
            let len = left.min(BLOCK as u64) as usize;
            if len > 0 {
                sink(offset, &bytes[..len])?;
                self.restored.copied += len as u64;
            }
        }
        Ok(())
    }

    /// Zeroes of a layer hide what is beneath.
    fn write_zeroes(&self, base: u64, page: &ChunkPage, sink: Sink<'_>) -> io::Result<()> {
        for block in 0..CHUNK_BLOCKS {
            if page.state(block) == BlockState::Zero && page.from(block) == 0 {
                let offset = base + (block * BLOCK) as u64;
                let left = self.restored.volume.size.saturating_sub(offset);
                let len = left.min(BLOCK as u64) as usize;
                if len > 0 {
                    sink(offset, &[0; BLOCK][..len])?;
                }
            }
        }
        Ok(())
    }
}
