//! Steps of a shard that benchmarks execute separately.

use super::dispatch::Counted;
use super::state::{Shard, drive_error};
use crate::map::page::MapPage;
use crate::space::{Class, Run};
use crate::tiering::access_stats::By;
use crate::vdrive::Purpose;
use block::{DmaBuf, IoError, OpKind};
use format::crc32c;
use std::rc::Rc;
use units::{BLOCK, CHUNK, CHUNK_BLOCKS, Place};

impl Shard {
    /// Maps every block of a chunk to slots, as writes would, without data.
    ///
    /// # Errors
    /// When the journal or the space is full.
    pub async fn map_for_benchmark(&self, volume: u32, chunk: u32) -> Result<(), IoError> {
        let map_page = self
            .map_page(volume, chunk, true)
            .await?
            .ok_or_else(|| self.no_space())?;
        let mut runs = Vec::new();
        if !self.try_slots(Class::Fast, CHUNK_BLOCKS, &mut runs) {
            return Err(self.no_space());
        }
        let mut first = 0;
        for Run { place, count } in runs {
            let crcs = vec![7; count];
            self.apply_write(volume, chunk, &map_page, first, Run { place, count }, &crcs)?;
            first += count;
        }
        self.settle_all();
        // No drive holds this data: the barrier has only the metadata region to flush.
        self.state.borrow_mut().journal.forget_touched();
        Ok(())
    }

    /// Maps one block of a chunk to another slot, as a write would, with `data` or without.
    ///
    /// # Errors
    /// When the journal or the space is full, or the chunk's page cannot be loaded.
    pub(crate) async fn remap_for_benchmark(
        &self,
        volume: u32,
        chunk: u32,
        block: usize,
        data: Option<&DmaBuf>,
    ) -> Result<(), IoError> {
        let map_page = self
            .map_page(volume, chunk, true)
            .await?
            .ok_or_else(|| self.no_space())?;
        let mut runs = Vec::new();
        if !self.try_slots(Class::Fast, 1, &mut runs) {
            return Err(self.no_space());
        }
        if let Some(data) = data {
            let written = self.write_runs(&runs, data, Purpose::Hosts).await;
            written.map_err(|error| drive_error(error, "a benchmark's data"))?;
        }
        let crc = data.map_or(7, |data| crc32c(data));
        self.apply_write(volume, chunk, &map_page, block, runs[0], &[crc])
    }

    /// Pages of the journal that recovery would read.
    pub(crate) fn journal_length(&self) -> u64 {
        self.state.borrow().journal.length()
    }

    /// Pages of it at which hosts wait for a checkpoint.
    pub(crate) fn journal_host_limit(&self) -> u64 {
        self.state.borrow().journal.host_limit()
    }

    /// Records made since the opening.
    pub(crate) fn journal_made(&self) -> u64 {
        self.state.borrow().journal.made()
    }

    /// Keeps no more pages in memory than the shard may.
    pub fn forget_pages_for_benchmark(&self) {
        let rounds = self.state.borrow().page_cache.pages() / 16 + 1;
        (0..rounds).for_each(|_| self.trim_pages());
    }

    /// The part of a 4 KiB read at `offset` (bytes) before drive I/O: finds the page, the
    /// state and the place of its block, and counts the use. True when the block is stored.
    ///
    /// # Errors
    /// When the page cannot be loaded.
    pub async fn look_up_for_benchmark(&self, volume: u32, offset: u64) -> Result<bool, IoError> {
        let chunk = (offset / CHUNK as u64) as u32;
        let block = (offset % CHUNK as u64) as usize / BLOCK;
        let Some(map_page) = self.map_page(volume, chunk, false).await? else {
            return Ok(false);
        };
        map_page.touched.set(true);
        let blocks = std::iter::once(block).collect();
        let mut state = self.state.borrow_mut();
        state
            .access
            .note_use(By::read(volume), (volume, chunk), &blocks);
        drop(state);
        let place = self.place_of(&map_page, block);
        self.trim_pages();
        Ok(place.is_some())
    }

    /// Counts a read or a write of 4 KiB of a volume, which came by an export and took so long (ns): for the pool, the
    /// volume and the export, by times and sizes.
    pub fn record_for_benchmark(&self, volume: u32, is_read: bool, export: u16, took: u64) {
        let kind = match is_read {
            true => OpKind::Read,
            false => OpKind::Write,
        };
        let len = BLOCK as u64;
        let ended = Counted {
            volume,
            kind,
            export,
            len,
        };
        self.upkeep.note(took, 1);
        self.state.borrow_mut().count_ops(ended, 1, took);
    }

    fn place_of(&self, map_page: &Rc<MapPage>, block: usize) -> Place {
        let page = map_page.page.borrow();
        if page.slot(block).is_some() {
            return page.slot(block);
        }
        if page.home_valid(block) {
            page.home().plus(block as u64)
        } else {
            Place::NONE
        }
    }
}
