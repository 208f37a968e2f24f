//! Playing a journal in memory: the chunks that it changes as an opening would leave them.

use crate::fetch::{Copies, Want};
use crate::inspection::Inspection;
use crate::journal::Journal;
use crate::space::Space;
use format::{BlockMask, BlockState, ChunkPage, PoolConfig, Record};
use std::collections::{BTreeMap, BTreeSet};
use units::{CHUNK_BLOCKS, Place};

/// Chunks by volume and number.
pub type Chunks = BTreeMap<(u32, u32), ChunkPage>;

/// Chunks that a journal changes, and those that its changes begin with: of the layers beneath.
pub fn subjects(journal: &Journal, config: &PoolConfig) -> BTreeSet<(u32, u32)> {
    let records = journal.pages.iter().flat_map(|page| &page.records);
    let mut found: BTreeSet<(u32, u32)> = records.map(Record::subject).collect();
    let layers: BTreeSet<u32> = config.layers.iter().map(|layer| layer.id).collect();
    for (layer, chunk) in found.clone() {
        if layers.contains(&layer) {
            found.extend(config.path(layer).into_iter().map(|below| (below, chunk)));
        }
    }
    found
}

/// The page that a chunk without one begins with: what the nearest layer beneath says is inherited.
fn begun(chunks: &Chunks, config: &PoolConfig, layer: u32, chunk: u32) -> ChunkPage {
    let below = config.path(layer).into_iter().skip(1).find_map(|below| {
        let page = chunks.get(&(below, chunk))?;
        let epoch = config.layer(below).map_or(below, |entry| entry.epoch);
        Some(page.fork(layer, chunk, epoch))
    });
    below.unwrap_or_else(|| ChunkPage::new(layer, chunk))
}

/// Replays a merge; one that cannot be is left out.
fn merge(
    inspection: &Inspection<'_>,
    chunks: &mut Chunks,
    missing: &mut Missing,
    (upper, lower, chunk): (u32, u32, u32),
    space: &mut Space,
) {
    let config = inspection.pool.config();
    let begin = |chunks: &Chunks, layer| {
        let known = chunks.get(&(layer, chunk)).cloned();
        known.unwrap_or_else(|| begun(chunks, config, layer, chunk))
    };
    let (above, mut below) = (begin(chunks, upper), begin(chunks, lower));
    let Some((slots, home)) = below.merge(&above) else {
        return;
    };
    for slot in slots {
        space.free_slot(inspection.pool, slot);
    }
    space.free_home(inspection.pool, home);
    chunks.remove(&(upper, chunk));
    chunks.insert((lower, chunk), below);
    let all = (upper, chunk, 0)..(upper, chunk, CHUNK_BLOCKS);
    let moved: Vec<_> = missing.range(all).map(|(key, crc)| (key.2, *crc)).collect();
    for (block, crc) in moved {
        missing.remove(&(upper, chunk, block));
        missing.insert((lower, chunk, block), crc);
    }
}

/// Checksums of blocks' newest writes that are not in their slots, by volume, chunk and block.
pub type Missing = BTreeMap<(u32, u32, usize), u32>;

/// Applies a journal to the chunks that it names. Those that had no page have an empty one made;
/// those in `lost` had one that cannot be read, and stay out. Returns the blocks that keep what
/// they held before, since what was written to them is on no drive: it was not flushed, or is damaged.
pub async fn replay(
    inspection: &Inspection<'_>,
    journal: &Journal,
    chunks: &mut Chunks,
    lost: &BTreeSet<(u32, u32)>,
    space: &mut Space,
) -> Missing {
    let mut missing = Missing::new();
    for page in &journal.pages {
        let sure = journal.is_sure(&page.header);
        for record in &page.records {
            let (volume, chunk) = record.subject();
            if lost.contains(&(volume, chunk)) {
                continue;
            }
            if let Record::Merge { lower, .. } = record {
                if !lost.contains(&(*lower, chunk)) {
                    let which = (volume, *lower, chunk);
                    merge(inspection, chunks, &mut missing, which, space);
                }
                continue;
            }
            let new = match chunks.contains_key(&(volume, chunk)) {
                true => None,
                false => Some(begun(chunks, inspection.pool.config(), volume, chunk)),
            };
            let page = chunks
                .entry((volume, chunk))
                .or_insert_with(|| new.unwrap_or_else(|| ChunkPage::new(volume, chunk)));
            let found = if sure {
                Found::all(record)
            } else {
                Found::look(inspection, record, page, &mut missing).await
            };
            Change {
                inspection,
                space,
                page,
                sure,
            }
            .apply(record, &found);
        }
    }
    missing
}

/// The part of a record that is on the drives.
#[derive(Default)]
struct Found {
    /// Blocks that are where the record says.
    blocks: BlockMask,
    /// Of those that a home holds: blocks and checksums of writes that are not in their slots.
    written: Vec<(usize, u32)>,
}

impl Found {
    /// Everything: the record's word counts.
    fn all(record: &Record) -> Self {
        let blocks = match record {
            Record::Home { mask, .. } => *mask,
            _ => (0..CHUNK_BLOCKS).collect(),
        };
        Self {
            blocks,
            written: Vec::new(),
        }
    }

    async fn look(
        inspection: &Inspection<'_>,
        record: &Record,
        page: &ChunkPage,
        missing: &mut Missing,
    ) -> Self {
        let (volume, chunk) = record.subject();
        match record {
            Record::Write {
                first, slot, crcs, ..
            } => {
                let blocks = usize::from(*first)..usize::from(*first) + crcs.len();
                let wants = blocks.zip(run(*slot, crcs.len()).zip(crcs.iter().copied()));
                let found = present(inspection, wants).await;
                for (block, crc) in (usize::from(*first)..).zip(crcs) {
                    if found.has(block) {
                        missing.remove(&(volume, chunk, block));
                    } else {
                        missing.insert((volume, chunk, block), *crc);
                    }
                }
                Self::of(found)
            }
            Record::Promote {
                first, count, slot, ..
            } => {
                let blocks = usize::from(*first)..usize::from(*first) + usize::from(*count);
                let crcs = blocks.clone().map(|block| page.crc(block));
                let wants = blocks.zip(run(*slot, usize::from(*count)).zip(crcs));
                Self::of(present(inspection, wants).await)
            }
            Record::Trim { first, count, .. } => {
                let first = usize::from(*first);
                for block in first..first + usize::from(*count) {
                    missing.remove(&(volume, chunk, block));
                }
                Self::default()
            }
            Record::Home { home, mask, .. } => {
                if page.home().is_some() && page.home() != *home {
                    return Self::default();
                }
                let key = |block| (volume, chunk, block);
                let written: Vec<_> = mask
                    .blocks()
                    .filter_map(|block| Some((block, *missing.get(&key(block))?)))
                    .collect();
                let at = |(block, crc): (usize, u32)| (block, (home.plus(block as u64), crc));
                let new = present(inspection, written.iter().copied().map(at)).await;
                let kept = mask.blocks().filter(|block| !new.has(*block));
                let kept = kept.filter(|block| page.state(*block) != BlockState::Zero);
                let wants = kept.map(|block| at((block, page.crc(block))));
                let old = present(inspection, wants).await;
                for block in new.blocks() {
                    missing.remove(&key(block));
                }
                Self {
                    blocks: new.blocks().chain(old.blocks()).collect(),
                    written: written
                        .into_iter()
                        .filter(|(block, _)| new.has(*block))
                        .collect(),
                }
            }
            Record::Evict { .. } | Record::MoveHome { .. } | Record::Merge { .. } => {
                Self::default()
            }
        }
    }

    fn of(blocks: BlockMask) -> Self {
        Self {
            blocks,
            written: Vec::new(),
        }
    }
}

/// Which of these blocks are at their places with their checksums.
async fn present(
    inspection: &Inspection<'_>,
    blocks: impl Iterator<Item = (usize, (Place, u32))>,
) -> BlockMask {
    let (blocks, wants): (Vec<usize>, Vec<Want>) = blocks
        .map(|(block, (place, crc))| (block, Want { place, crc }))
        .unzip();
    let got = inspection.pool.fetch(&wants, Copies::First).await;
    let there = blocks
        .into_iter()
        .zip(got)
        .filter(|(_, got)| got.bytes.is_some());
    there.map(|(block, _)| block).collect()
}

/// `count` consecutive places, as far as there are such places.
fn run(first: Place, count: usize) -> impl Iterator<Item = Place> {
    let end = 1u64 << Place::BLOCK_BITS;
    let fits = end.saturating_sub(first.block()).min(count as u64);
    (0..fits).map(move |index| first.plus(index))
}

/// One record being applied.
struct Change<'a> {
    inspection: &'a Inspection<'a>,
    space: &'a mut Space,
    page: &'a mut ChunkPage,
    /// Below the durable mark: the record's word counts, since the page may be newer.
    sure: bool,
}

impl Change<'_> {
    fn apply(&mut self, record: &Record, found: &Found) {
        match record {
            Record::Write {
                first,
                slot,
                crcs,
                old,
                ..
            } => self.write(usize::from(*first), *slot, crcs, old, found.blocks),
            Record::Trim {
                first, count, old, ..
            } => self.trim(usize::from(*first), usize::from(*count), old),
            Record::Promote {
                first, count, slot, ..
            } => self.promote(
                usize::from(*first),
                usize::from(*count),
                *slot,
                found.blocks,
            ),
            Record::Evict { mask, old, .. } => self.evict(*mask, old),
            Record::Home { home, .. } => self.home(*home, found),
            Record::MoveHome { new, old, .. } => self.move_home(*new, *old),
            Record::Merge { .. } => {}
        }
    }

    fn free(&mut self, blocks: impl Iterator<Item = usize>, old: &[Place]) {
        let slots: Vec<Place> = if self.sure {
            old.to_vec()
        } else {
            blocks.map(|block| self.page.slot(block)).collect()
        };
        for slot in slots.into_iter().filter(|slot| slot.is_some()) {
            self.space.free_slot(self.inspection.pool, slot);
        }
    }

    fn write(&mut self, first: usize, slot: Place, crcs: &[u32], old: &[Place], there: BlockMask) {
        let blocks = first..first + crcs.len();
        self.free(blocks.clone().filter(|block| there.has(*block)), old);
        let written = blocks.zip(run(slot, crcs.len()).zip(crcs));
        for (block, (place, crc)) in written.filter(|(block, _)| there.has(*block)) {
            self.space.claim_slot(self.inspection.pool, place);
            self.page.set_slot(block, place);
            self.page.set_crc(block, *crc);
            self.page.set_from(block, 0);
            self.page.set_home_valid(block, false);
        }
    }

    fn trim(&mut self, first: usize, count: usize, old: &[Place]) {
        self.free(first..first + count, old);
        for block in first..first + count {
            self.page.set_slot(block, Place::NONE);
            self.page.set_crc(block, 0);
            self.page.set_from(block, 0);
            self.page.set_home_valid(block, false);
        }
    }

    fn promote(&mut self, first: usize, count: usize, slot: Place, there: BlockMask) {
        let blocks = (first..first + count).zip(run(slot, count));
        for (block, place) in blocks.filter(|(block, _)| there.has(*block)) {
            if self.sure || self.page.state(block) == BlockState::Home {
                self.space.claim_slot(self.inspection.pool, place);
                self.page.set_slot(block, place);
            }
        }
    }

    fn evict(&mut self, mask: BlockMask, old: &[Place]) {
        let valid = self.page.home_mask();
        let mask: BlockMask = mask
            .blocks()
            .filter(|block| self.sure || valid.has(*block))
            .collect();
        self.free(mask.blocks(), old);
        mask.blocks()
            .for_each(|block| self.page.set_slot(block, Place::NONE));
    }

    fn home(&mut self, home: Place, found: &Found) {
        if found.blocks.is_empty() && !self.sure {
            return;
        }
        self.free(found.written.iter().map(|(block, _)| *block), &[]);
        for (block, crc) in &found.written {
            self.page.set_slot(*block, Place::NONE);
            self.page.set_crc(*block, *crc);
        }
        self.space.claim_home(self.inspection.pool, home);
        self.page.set_home(home);
        let blocks = found.blocks.blocks();
        blocks.for_each(|block| self.page.set_home_valid(block, true));
    }

    fn move_home(&mut self, new: Place, old: Place) {
        let empty = self.page.home_mask().is_empty();
        if !self.sure && (self.page.home() != old || new.is_none() && !empty) {
            return;
        }
        self.space.free_home(self.inspection.pool, old);
        if new.is_some() {
            self.space.claim_home(self.inspection.pool, new);
        }
        self.page.set_home(new);
        if new.is_none() {
            (0..CHUNK_BLOCKS).for_each(|block| self.page.set_home_valid(block, false));
        }
    }
}
