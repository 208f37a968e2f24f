//! Repairing a block with a bad copy at one place from an intact copy at another.

use crate::control::explain::Cause;
use crate::map::page::MapPage;
use crate::shard::state::Shard;
use crate::space::{Class, Run};
use crate::vdrive::Purpose;
use crate::wal::log::Work;
use block::DmaBuf;
use format::{BlockState, crc32c};
use std::rc::Rc;
use units::{BLOCK, EXTENT_BLOCKS, Place};

impl Shard {
    /// Rewrites a block with a bad copy at one place into a new slot, from RAM or from its
    /// other place. False if no copy is intact.
    pub(crate) async fn rescue(&self, (volume, chunk): (u32, u32), block: usize) -> bool {
        let Ok(_room) = self.journal_room(Work::Mover).await else {
            return false;
        };
        let Ok(Some(map_page)) = self.map_page(volume, chunk, false).await else {
            return false;
        };
        let before = block_of(&map_page, block);
        let Some(good) = self.good_copy(&map_page, block).await else {
            return false;
        };
        let mut runs: Vec<Run> = Vec::new();
        if !self.try_slots(self.tiers.for_writes(), 1, &mut runs)
            && !self.try_slots(Class::Slow, 1, &mut runs)
        {
            return false;
        }
        if let Err(error) = self.write_runs(&runs, &good, Purpose::Upkeep).await {
            self.give_back_after(&runs, error);
            return false;
        }
        if block_of(&map_page, block) != before {
            // It was written, or moved, meanwhile: the bad copy is no longer in use.
            self.give_back(&runs);
            return true;
        }
        let mended = [Cause::MendedFast, Cause::MendedSlow];
        self.note_block(mended, (volume, chunk), block, runs[0].place);
        let crc = [before.1];
        self.apply_write(volume, chunk, &map_page, block, runs[0], &crc)
            .is_ok()
    }

    async fn good_copy(&self, map_page: &Rc<MapPage>, block: usize) -> Option<DmaBuf> {
        let (slot, crc, state) = block_of(map_page, block);
        if let Some(slot) = map_page.ram[block / EXTENT_BLOCKS].get().checked_sub(1) {
            let mut copy = self.handle.dma().get(BLOCK);
            let state = self.state.borrow();
            let extent = state.ram.get(slot);
            let bytes = extent.and_then(|extent| extent.block(block % EXTENT_BLOCKS));
            if let Some(bytes) = bytes.filter(|bytes| crc32c(bytes) == crc) {
                copy.copy_from_slice(bytes);
                return Some(copy);
            }
        }
        if state != BlockState::Clean {
            return None;
        }
        let home = map_page.page.borrow().home().plus(block as u64);
        let check = |_: usize, bytes: &[u8]| crc32c(bytes) == crc;
        for place in [slot, home] {
            if let Ok(good) = self.read_place(place, 1, &check).await {
                return Some(good);
            }
        }
        None
    }
}

fn block_of(map_page: &MapPage, block: usize) -> (Place, u32, BlockState) {
    let page = map_page.page.borrow();
    (page.slot(block), page.crc(block), page.state(block))
}
