//! Bad blocks that a read finds: bad clean copies are dropped in favour of their
//! source; blocks without an intact copy are reported with their location.

use crate::control::explain::Cause;
use crate::map::page::MapPage;
use crate::shard::state::Shard;
use crate::wal::log::Work;
use format::{BlockMask, BlockState, crc32c};
use qos::Due;
use std::rc::Rc;
use units::{BLOCK, CHUNK, Place};

/// Blocks named in one line of the log; the rest is counted.
const NAMED: usize = 8;

impl Shard {
    /// Its opening found that this many blocks are lost.
    pub(crate) fn note_opening_lost(&self, blocks: usize) {
        self.opening_lost
            .set(self.opening_lost.get() + blocks as u64);
    }

    /// Blocks that its opening found lost.
    pub fn opening_lost(&self) -> u64 {
        self.opening_lost.get()
    }

    /// Forgets copies on the fast tier that could not be read, `count` blocks of a chunk from `first`
    /// on, at `place`; what they were made from is at home. False when they are no such copies.
    pub(super) async fn evict_clean_copies(
        &self,
        (volume, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        (first, count): (usize, usize),
        place: Place,
    ) -> bool {
        let clean_copies = || -> BlockMask {
            let page = map_page.page.borrow();
            let is_clean = |block: &usize| {
                page.state(*block) == BlockState::Clean
                    && page.slot(*block) == place.plus((*block - first) as u64)
            };
            (first..first + count).filter(is_clean).collect()
        };
        if clean_copies().is_empty() {
            return false;
        }
        let Ok(_room) = self.journal_room(Work::Host(Due::NONE)).await else {
            return false;
        };
        let mask = clean_copies();
        tracing::warn!(
            volume,
            chunk,
            blocks = mask.count(),
            "copies on the fast tier cannot be read: they are read from their home location"
        );
        self.note_evicted(Cause::EvictedWrong, (volume, chunk), &mask);
        self.apply_evict(volume, chunk, map_page, mask).is_ok()
    }

    /// Says which blocks of a volume that should lie from `place` on cannot be read: `first` is the
    /// first one's number within the chunk, `crcs` are what they should have.
    pub(super) async fn tell_lost(
        &self,
        (volume, chunk): (u32, u32),
        first: usize,
        place: Place,
        crcs: &[u32],
    ) {
        let Ok(vdrive) = self.vdrive(place.vdrive()) else {
            return;
        };
        let mut lost = 0;
        let mut named = Vec::new();
        for (index, crc) in crcs.iter().enumerate() {
            let check = |_: usize, bytes: &[u8]| crc32c(bytes) == *crc;
            let at = place.plus(index as u64);
            let Err(error) = self.read_place(at, 1, &check).await else {
                continue;
            };
            lost += 1;
            if named.len() < NAMED {
                let offset = u64::from(chunk) * CHUNK as u64 + ((first + index) * BLOCK) as u64;
                let places = vdrive.places_of(at.block()).join(", ");
                named.push(format!("byte {offset} ({places}: {error})"));
            }
        }
        if lost > 0 {
            let blocks = named.join("; ");
            tracing::error!(
                volume,
                vdrive = place.vdrive().0,
                lost,
                blocks,
                "blocks of {BLOCK} bytes are lost: no drive has an intact copy; rewrite or restore them"
            );
        }
    }
}
