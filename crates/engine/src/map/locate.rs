//! Locations of a volume's blocks, for callers that access the drives directly.

use super::layer_table::Owned;
use super::page::live;
use crate::shard::state::Shard;
use block::IoError;
use format::BlockMask;
use units::Place;

/// A block: its number in the chunk, where it lies (nowhere: it is zeroes) and its checksum.
pub type Located = (usize, Place, u32);

impl Shard {
    /// Where blocks of a volume's chunk lie, in any order.
    ///
    /// # Errors
    /// `Gone` when the volume is, or the drive's error.
    pub(crate) async fn locate(
        &self,
        volume: u32,
        chunk: u32,
        blocks: BlockMask,
        found: &mut Vec<Located>,
    ) -> Result<(), IoError> {
        let owned = self
            .look(|state| {
                let layer = state.live(volume);
                live(state.volumes.get(&layer))?;
                Ok(state.places(layer, chunk, blocks))
            })
            .await?;
        let Owned {
            parts,
            zero,
            placed,
            ..
        } = owned;
        found.extend(zero.blocks().map(|block| (block, Place::NONE, 0)));
        found.extend(placed.iter().map(|at| (at.block, at.slot, at.crc)));
        for (_, map_page, blocks) in parts {
            let page = map_page.page.borrow();
            found.extend(blocks.blocks().map(|block| {
                let place = match page.slot(block) {
                    slot if slot.is_some() => slot,
                    _ if page.home_valid(block) => page.home().plus(block as u64),
                    _ => Place::NONE,
                };
                (block, place, page.crc(block))
            }));
        }
        Ok(())
    }
}
