//! Read-ahead: the surroundings of a miss are read into RAM before a host requests them.

use super::fill::{FillReason, parts};
use crate::map::page::MapPage;
use crate::shard::state::Shard;
use format::BlockMask;
use futures_util::future::join_all;
use units::EXTENT_BLOCKS;

impl Shard {
    /// Fetches extents of a chunk into RAM in the background, in its turn, unless much waits already.
    pub(crate) fn prefetch(&self, volume: u32, chunk: u32, extents: u16) {
        let Some(shard) = self.this() else { return };
        if !self.fills.begin_ahead() {
            return;
        }
        self.handle.spawn(async move {
            if let Ok(Some(map_page)) = shard.map_page(volume, chunk, false).await {
                let fetches = parts(shard.fetchable(&map_page, extents)).map(|part| {
                    let wanted = at_home(&map_page, part);
                    let (shard, map_page) = (&shard, &map_page);
                    async move {
                        let chunk = (volume, chunk);
                        shard
                            .fetch_extents(chunk, map_page, part, &wanted, FillReason::ReadAhead)
                            .await
                    }
                });
                // Failed blocks are read again, and their errors reported, when a host requests them.
                drop(join_all(fetches).await);
            }
            shard.fills.end_ahead();
        });
    }
}

/// Blocks of these extents that are only at home.
pub(crate) fn at_home(map_page: &MapPage, extents: u16) -> BlockMask {
    let page = map_page.page.borrow();
    let at_home = page.home_mask().and_not(page.slot_mask());
    let wanted = |block: &usize| extents >> (block / EXTENT_BLOCKS) & 1 == 1;
    at_home.blocks().filter(wanted).collect()
}
