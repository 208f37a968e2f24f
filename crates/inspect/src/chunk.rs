//! The blocks of one chunk: where each may be read, and whether it can be.

use crate::fetch::{Copies, Got, Want};
use crate::inspection::Inspection;
use crate::pool::Pool;
use block::DmaBuf;
use format::{BlockState, ChunkPage};
use units::{CHUNK_BLOCKS, Place};

/// The place `blocks` further on, if there is such a place.
pub fn beyond(place: Place, blocks: usize) -> Option<Place> {
    let fits = place.block() + (blocks as u64) < 1 << Place::BLOCK_BITS;
    fits.then(|| place.plus(blocks as u64))
}

/// The places that hold a block: its slot, then its home, as far as it has them.
pub fn places(page: &ChunkPage, block: usize) -> impl Iterator<Item = Place> {
    let slot = Some(page.slot(block)).filter(|slot| slot.is_some());
    let home = page.home_valid(block).then(|| page.home());
    let home = home.filter(|home| home.is_some());
    slot.into_iter()
        .chain(home.and_then(|home| beyond(home, block)))
}

/// Blocks that hold something.
pub fn stored(page: &ChunkPage) -> impl Iterator<Item = usize> {
    (0..CHUNK_BLOCKS).filter(|block| page.state(*block) != BlockState::Zero)
}

/// Whether any drive that has a place is here.
pub fn is_here(pool: &Pool, place: Place) -> bool {
    let Some(vdrive) = pool.vdrive_of(place) else {
        return false;
    };
    let here = |(part, byte): (usize, u64)| pool.disk_with(&vdrive.parts[part], byte).is_some();
    vdrive.copies(place.block()).any(here)
}

/// Reads every copy of every block of a chunk and repairs those that are wrong where one is right.
/// Returns the blocks without an intact copy.
pub async fn verify(inspection: &Inspection<'_>, page: &ChunkPage) -> Vec<usize> {
    let mut wants = Vec::new();
    let mut blocks = Vec::new();
    for block in stored(page) {
        let first = wants.len();
        let crc = page.crc(block);
        wants.extend(places(page, block).map(|place| Want { place, crc }));
        blocks.push((block, first..wants.len()));
    }
    let mut got = inspection.pool.fetch(&wants, Copies::Every).await;
    let mut lost = Vec::new();
    for (block, range) in blocks {
        let right = range.clone().find_map(|index| got[index].bytes.clone());
        let Some(right) = right else {
            lost.push(block);
            continue;
        };
        for index in range {
            let place = wants[index].place;
            settle(inspection, place, std::mem::take(&mut got[index]), &right).await;
        }
    }
    inspection.report.borrow_mut().data_blocks += wants.len() as u64;
    lost
}

/// A slot and a home stand in for each other, as members of a mirror do.
async fn settle(inspection: &Inspection<'_>, place: Place, got: Got, right: &DmaBuf) {
    let bytes = got.bytes.unwrap_or_else(|| right.clone());
    let got = Got {
        bytes: Some(bytes),
        ..got
    };
    inspection.mend("data block", place, &got).await;
}
/// The content of the blocks of a chunk that hold something; none for those that no drive has
/// right.
pub async fn read(pool: &Pool, page: &ChunkPage) -> Vec<(usize, Option<DmaBuf>)> {
    let mut found: Vec<(usize, Option<DmaBuf>)> = Vec::new();
    let mut tries: Vec<(usize, Vec<Place>)> = Vec::new();
    for block in stored(page) {
        tries.push((found.len(), places(page, block).collect()));
        found.push((block, None));
    }
    for round in 0..2 {
        let mut wants = Vec::new();
        let mut whose = Vec::new();
        for (index, places) in &tries {
            if let (None, Some(place)) = (&found[*index].1, places.get(round)) {
                let crc = page.crc(found[*index].0);
                wants.push(Want { place: *place, crc });
                whose.push(*index);
            }
        }
        let got = pool.fetch(&wants, Copies::First).await;
        for (index, got) in whose.into_iter().zip(got) {
            found[index].1 = got.bytes;
        }
    }
    found
}
