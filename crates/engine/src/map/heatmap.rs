//! Where a volume's content lies, for a picture of it.

use super::page::MapPage;
use crate::control::types::MapCell;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use block::IoError;
use format::{BlockMask, BlockState};
use std::ops::{Range, RangeInclusive};
use units::{BLOCK, CHUNK, EXTENT_BLOCKS};

/// Chunks examined for each part of a map, and for all of it, at least and at most; of a bigger volume, every n-th.
const CELL_CHUNKS: u32 = 4;
const MAP_CHUNKS: RangeInclusive<u32> = 4 * 1024..=16 * 1024;

/// Chunks examined before others of the loop have their turn.
const AT_ONCE: usize = 16;

impl Shard {
    /// Adds this shard's chunks of some bytes of a volume of `size` bytes, as it is seen, to `cells` of equal
    /// length. A chunk counts where it begins.
    ///
    /// # Errors
    /// A drive's error.
    pub async fn map(
        &self,
        volume: u32,
        size: u64,
        bytes: Range<u64>,
        mine: impl Fn(u32) -> bool,
        cells: &mut [MapCell],
    ) -> Result<(), IoError> {
        let bytes = bytes.start..bytes.end.min(size);
        let chunks =
            bytes.start.div_ceil(CHUNK as u64) as u32..bytes.end.div_ceil(CHUNK as u64) as u32;
        let wanted = (cells.len() as u32).saturating_mul(CELL_CHUNKS);
        let most = wanted.clamp(*MAP_CHUNKS.start(), *MAP_CHUNKS.end());
        let step = (chunks.len() as u32).div_ceil(most).max(1);
        let mine = chunks.step_by(step as usize).filter(|chunk| mine(*chunk));
        for (at, chunk) in mine.enumerate() {
            if at % AT_ONCE == AT_ONCE - 1 {
                self.handle.yield_now().await;
            }
            let start = u64::from(chunk) * CHUNK as u64;
            let held = (size - start).min(CHUNK as u64);
            let along = u128::from(start - bytes.start) * cells.len() as u128;
            let cell = (along / u128::from(bytes.end - bytes.start)) as usize;
            let scale = u64::from(step);
            let found = self.map_chunk(volume, chunk).await?;
            let stored = found.ram + found.fast + found.slow;
            cells[cell].add(&MapCell {
                ram: found.ram * scale,
                fast: found.fast * scale,
                slow: found.slow * scale,
                empty: held.saturating_sub(stored) * scale,
                uses: found.uses,
            });
        }
        Ok(())
    }

    /// A chunk's bytes by tier.
    async fn map_chunk(&self, volume: u32, chunk: u32) -> Result<MapCell, IoError> {
        let blocks = BlockMask::ALL;
        self.look(|state| {
            let owned = state.owned(state.live(volume), chunk, blocks);
            Ok(owned.map(|owned| {
                let mut cell = MapCell::default();
                for (layer, map_page, blocks) in &owned.parts {
                    self.add_blocks(state, map_page, *blocks, &mut cell);
                    cell.uses = cell
                        .uses
                        .max(state.access.most_uses((*layer, chunk), blocks));
                }
                cell
            }))
        })
        .await
    }

    fn add_blocks(&self, state: &State, map_page: &MapPage, blocks: BlockMask, cell: &mut MapCell) {
        let in_ram = |block: usize| {
            let slot = map_page.ram[block / EXTENT_BLOCKS].get().checked_sub(1);
            let extent = slot.and_then(|slot| state.ram.get(slot));
            extent.is_some_and(|extent| extent.block(block % EXTENT_BLOCKS).is_some())
        };
        let page = map_page.page.borrow();
        for block in blocks.blocks() {
            let bytes = match page.state(block) {
                BlockState::Zero => continue,
                _ if in_ram(block) => &mut cell.ram,
                BlockState::Home => &mut cell.slow,
                BlockState::Clean => &mut cell.fast,
                BlockState::Dirty if self.class(page.slot(block)) == Class::Fast => &mut cell.fast,
                BlockState::Dirty => &mut cell.slow,
            };
            *bytes += BLOCK as u64;
        }
    }
}
