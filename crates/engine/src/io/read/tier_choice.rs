//! Reads of clean copies, which both tiers have: each goes to the tier that is expected to respond sooner
//! (`vdrive/latency.rs`), with fast and slow solid-state drives to both, with a disk to the fast tier. A copy
//! at home that is wrong is written again from the one on the fast tier.

use crate::map::page::{ChunkLock, MapPage};
use crate::shard::lifecycle::Task;
use crate::shard::state::Shard;
use crate::space::Class;
use crate::tiering::unreadable::is_of_blocks;
use format::{BlockState, ChunkPage, crc32c};
use std::rc::Rc;
use units::{Place, VdriveId};

/// Where a request's clean copies of a chunk are read.
#[derive(Default)]
pub(crate) struct TierChoice {
    /// The fast vdrive that was last asked about, and whether home answers sooner.
    chosen: Option<(VdriveId, bool)>,
    /// One was wrong at home.
    home_failed: bool,
}

impl TierChoice {
    /// A further round of the same request: loads have changed.
    pub fn renew(&mut self) {
        self.chosen = None;
    }

    /// No more is read at home that the fast tier has.
    pub fn home_failed(&mut self) {
        self.home_failed = true;
    }
}

impl Shard {
    /// Whether a block, of `count` that a host waits for, is a clean copy whose home answers sooner.
    pub(super) fn reads_at_home(
        &self,
        page: &ChunkPage,
        block: usize,
        count: usize,
        choice: &mut TierChoice,
    ) -> bool {
        if choice.home_failed || page.state(block) != BlockState::Clean {
            return false;
        }
        let (slot, home) = (page.slot(block), page.home().plus(block as u64));
        match choice.chosen {
            Some((vdrive, at_home)) if vdrive == slot.vdrive() => at_home,
            _ => {
                let at_home = self.home_is_sooner(slot, home, count);
                choice.chosen = Some((slot.vdrive(), at_home));
                at_home
            }
        }
    }

    fn home_is_sooner(&self, slot: Place, home: Place, count: usize) -> bool {
        if self.class(slot) != Class::Fast || self.class(home) != Class::Slow {
            return false;
        }
        let vdrives = (self.vdrive(slot.vdrive()), self.vdrive(home.vdrive()));
        let (Ok(fast), Ok(slow)) = vdrives else {
            return false;
        };
        let choice = fast.choose(&slow, count);
        if choice.probe {
            self.probe(if choice.other { slot } else { home });
        }
        choice.other
    }

    /// Reads a block for what that takes alone.
    fn probe(&self, place: Place) {
        self.start_beside(async move |shard| {
            let any = |_: usize, _: &[u8]| true;
            drop(shard.read_place(place, 1, &any).await);
        });
    }

    /// Starts a task that the shard's end waits for.
    fn start_beside(&self, work: impl AsyncFnOnce(&Self) + 'static) {
        let Some(shard) = self.this().filter(|shard| !shard.lifecycle.is_closing()) else {
            return;
        };
        let task = Task::begin(shard);
        self.handle.spawn(async move { work(&task).await });
    }

    /// Clean copies could not be read at home: those that are wrong there are written again in the
    /// background, unless other work has the chunk.
    pub(super) fn mend_homes_soon(
        &self,
        chunk: (u32, u32),
        map_page: &Rc<MapPage>,
        blocks: (usize, usize),
    ) {
        let Some(busy) = ChunkLock::try_new(map_page) else {
            return;
        };
        let map_page = map_page.clone();
        self.start_beside(async move |shard| {
            shard.mend_homes(chunk, &map_page, blocks).await;
            drop(busy);
        });
    }

    /// Finds which of `count` blocks from `first` on the fast tier has as well and are wrong at
    /// home, and writes those into new slots, from where they are demoted again.
    pub(super) async fn mend_homes(
        &self,
        (volume, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        (first, count): (usize, usize),
    ) {
        let clean = |block: usize| {
            let page = map_page.page.borrow();
            let known = (page.home().plus(block as u64), page.crc(block));
            (page.state(block) == BlockState::Clean).then_some(known)
        };
        let (mut wrong, mut mended) = (0, 0);
        let seen: Vec<_> = (first..first + count).map(clean).collect();
        for (block, seen) in (first..).zip(seen) {
            let Some((place, crc)) = seen else { continue };
            if self.lifecycle.is_closing() {
                break;
            }
            let check = |_: usize, bytes: &[u8]| crc32c(bytes) == crc;
            match self.read_place(place, 1, &check).await {
                Err(error) if !is_of_blocks(error) => break,
                Err(_) if clean(block) == seen => {
                    wrong += 1;
                    mended += usize::from(self.rescue((volume, chunk), block).await);
                }
                _ => {}
            }
        }
        if wrong > 0 {
            tracing::warn!(
                volume,
                chunk,
                wrong,
                mended,
                "blocks cannot be read at their home location: they are read from the fast tier and rewritten"
            );
        }
    }
}
