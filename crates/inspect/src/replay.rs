//! Playing a journal in memory: the chunks that it changes as an opening would leave them.

use crate::fetch::{Copies, Want};
use crate::inspection::Inspection;
use crate::journal::Journal;
use crate::space::Space;
use format::{BlockMask, BlockState, ChunkPage, Record};
use std::collections::{BTreeMap, BTreeSet};
use units::{CHUNK_BLOCKS, Place};

/// Chunks by volume and number.
pub type Chunks = BTreeMap<(u32, u32), ChunkPage>;

/// Chunks that a journal changes.
pub fn subjects(journal: &Journal) -> BTreeSet<(u32, u32)> {
    let records = journal.pages.iter().flat_map(|page| &page.records);
    records.map(Record::subject).collect()
}

/// Applies a journal to the chunks that it names. Those that had no page have an empty one made;
/// those in `lost` had one that cannot be read, and stay out. Returns how many records of writes
/// were left out since their data never came to a drive.
pub async fn replay(
    inspection: &Inspection<'_>,
    journal: &Journal,
    chunks: &mut Chunks,
    lost: &BTreeSet<(u32, u32)>,
    space: &mut Space,
) -> u64 {
    let mut unfinished = 0;
    for page in &journal.pages {
        let sure = page.header.sequence < journal.durable;
        for record in &page.records {
            let (volume, chunk) = record.subject();
            if lost.contains(&(volume, chunk)) {
                continue;
            }
            let page = chunks
                .entry((volume, chunk))
                .or_insert_with(|| ChunkPage::new(volume, chunk));
            if !sure && !is_there(inspection, record, page).await {
                unfinished += 1;
                continue;
            }
            Change {
                inspection,
                space,
                page,
                sure,
            }
            .apply(record);
        }
    }
    unfinished
}

/// Whether the data that a record tells of is on a drive.
async fn is_there(inspection: &Inspection<'_>, record: &Record, page: &ChunkPage) -> bool {
    let (slot, crcs) = match record {
        Record::Write { slot, crcs, .. } => (*slot, crcs.clone()),
        Record::Promote {
            first, count, slot, ..
        } => {
            let first = usize::from(*first);
            let blocks = first..first + usize::from(*count);
            (*slot, blocks.map(|block| page.crc(block)).collect())
        }
        _ => return true,
    };
    let wants: Vec<Want> = run(slot, crcs.len())
        .zip(crcs)
        .map(|(place, crc)| Want { place, crc })
        .collect();
    let got = inspection.pool.fetch(&wants, Copies::First).await;
    got.iter().all(|got| got.bytes.is_some())
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
    fn apply(&mut self, record: &Record) {
        match record {
            Record::Write {
                first,
                slot,
                crcs,
                old,
                ..
            } => self.write(usize::from(*first), *slot, crcs, old),
            Record::Trim {
                first, count, old, ..
            } => self.trim(usize::from(*first), usize::from(*count), old),
            Record::Promote {
                first, count, slot, ..
            } => self.promote(usize::from(*first), usize::from(*count), *slot),
            Record::Evict { mask, old, .. } => self.evict(*mask, old),
            Record::Home { home, mask, .. } => self.home(*home, *mask),
            Record::MoveHome { new, old, .. } => self.move_home(*new, *old),
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

    fn take(&mut self, first: Place, count: usize) {
        for place in run(first, count) {
            self.space.claim_slot(self.inspection.pool, place);
        }
    }

    fn write(&mut self, first: usize, slot: Place, crcs: &[u32], old: &[Place]) {
        self.free(first..first + crcs.len(), old);
        self.take(slot, crcs.len());
        for (index, (place, crc)) in run(slot, crcs.len()).zip(crcs).enumerate() {
            self.page.set_slot(first + index, place);
            self.page.set_crc(first + index, *crc);
            self.page.set_home_valid(first + index, false);
        }
    }

    fn trim(&mut self, first: usize, count: usize, old: &[Place]) {
        self.free(first..first + count, old);
        for block in first..first + count {
            self.page.set_slot(block, Place::NONE);
            self.page.set_crc(block, 0);
            self.page.set_home_valid(block, false);
        }
    }

    fn promote(&mut self, first: usize, count: usize, slot: Place) {
        let blocks = first..first + count;
        let at_home = blocks
            .clone()
            .all(|block| self.page.state(block) == BlockState::Home);
        if !self.sure && !at_home {
            return;
        }
        self.take(slot, count);
        for (block, place) in blocks.zip(run(slot, count)) {
            self.page.set_slot(block, place);
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

    fn home(&mut self, home: Place, mask: BlockMask) {
        self.space.claim_home(self.inspection.pool, home);
        self.page.set_home(home);
        mask.blocks()
            .for_each(|block| self.page.set_home_valid(block, true));
    }

    fn move_home(&mut self, new: Place, old: Place) {
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
