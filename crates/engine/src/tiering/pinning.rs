//! Moving pinned data to its tier: promotion in the background at a bounded rate, demotion soon.

use super::explain::Descent;
use super::mover::SETTLE_NS;
use super::promote::Candidate;
use super::settings::VolumeSettings;
use super::writeback::{Job, Moving, Target, Wanted};
use crate::cache::fill::{extents_of, parts};
use crate::control::explain::Cause;
use crate::map::page::{ChunkLock, MapPage};
use crate::shard::lifecycle::Task;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use crate::vdrive::Purpose;
use crate::wal::log::Work;
use block::IoError;
use format::{BlockMask, BlockState, TierConfig, crc32c};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{BLOCK, CHUNK_EXTENTS, EXTENT_BLOCKS};

/// Rate of promoting pinned data in a pool, in bytes per second.
const RATE: u64 = 64 << 20;
const SECOND_NS: u64 = 1_000_000_000;
/// Retry interval for data that could not be promoted, in nanoseconds: doubled up to the maximum.
const AGAIN_NS: u64 = SECOND_NS;
const LONGEST_NS: u64 = 60 * SECOND_NS;
/// Polling interval of waits for the closing of the shard, in nanoseconds.
const STEP_NS: u64 = 50_000_000;
/// Result of promoting pinned data.
#[derive(Clone, Copy, Default)]
struct Raised {
    /// Promoted blocks.
    blocks: u64,
    /// Blocks without room or budget, or that were in use.
    left: u64,
}

impl Raised {
    fn and(self, other: Self) -> Self {
        Self {
            blocks: self.blocks + other.blocks,
            left: self.left + other.left,
        }
    }
}

impl State {
    /// Some chunks with ranges pinned to the slow tier: those with dirty blocks, and
    /// those with clean copies.
    fn next_to_lower(&mut self) -> [Vec<(u32, u32)>; 2] {
        let mut ranges = Vec::new();
        for (layer, entry) in &self.volumes {
            let pins = entry
                .settings
                .iter()
                .flat_map(|settings| settings.pins(TierConfig::Slow));
            let chunks = pins.map(|pin| chunks_of(&pin.extents));
            ranges.extend(chunks.map(|(first, last)| (*layer, first)..=(*layer, last)));
        }
        self.tier_index.next_to_lower(&ranges)
    }
}

/// The first and the last chunk of extents.
fn chunks_of(extents: &Range<u64>) -> (u32, u32) {
    let chunk = |extent: u64| u32::try_from(extent / CHUNK_EXTENTS as u64).unwrap_or(u32::MAX);
    (chunk(extents.start), chunk(extents.end.saturating_sub(1)))
}

impl Shard {
    /// Searches again for data that is pinned to the fast tier and is not there.
    pub(crate) fn raise_soon(&self) {
        let has_pins = {
            let state = self.state.borrow();
            // Before it serves a shard moves nothing.
            state.access.are_begun() && state.limits.has_fast_pins()
        };
        let Some(shard) = self
            .this()
            .filter(|_| has_pins && !self.lifecycle.is_closing())
        else {
            return;
        };
        if !self.pin_promoter.ask() {
            return;
        }
        let task = Task::begin(shard);
        self.handle.spawn(async move {
            task.raise_loop().await;
            task.pin_promoter.ended();
        });
    }

    /// Blocks of a chunk were moved to the slow tier: the mover has them promoted if they are pinned.
    pub(crate) fn note_lowered(
        &self,
        state: &State,
        (layer, chunk): (u32, u32),
        first: usize,
        count: usize,
    ) {
        let pinned = state
            .settings_of(layer)
            .map_or(0, |settings| settings.pinned(chunk).fast);
        let extents = extents_of(&(first..first + count).collect());
        if pinned & extents != 0 {
            self.pin_promoter.note();
        }
    }

    async fn raise_loop(&self) {
        let mut pause_ns = AGAIN_NS;
        while !self.lifecycle.is_closing() {
            if self.pin_promoter.take() {
                pause_ns = AGAIN_NS;
            }
            let raised = self.raise_all().await;
            if raised.left == 0 && !self.pin_promoter.is_asked() {
                return;
            }
            self.wait_open(pause_ns).await;
            pause_ns = match raised.blocks {
                0 => (pause_ns * 2).min(LONGEST_NS),
                _ => AGAIN_NS,
            };
        }
    }

    /// Waits, unless the shard closes.
    async fn wait_open(&self, time_ns: u64) {
        let until = self.handle.now_ns().saturating_add(time_ns);
        while !self.lifecycle.is_closing() {
            let left = until.saturating_sub(self.handle.now_ns());
            if left == 0 {
                return;
            }
            self.handle.sleep(left.min(STEP_NS)).await;
        }
    }

    /// Promotes data that is pinned to the fast tier: one pass.
    async fn raise_all(&self) -> Raised {
        let mut raised = Raised::default();
        let pinned: Vec<(u32, Arc<VolumeSettings>)> = {
            let state = self.state.borrow();
            let layers = state.volumes.iter();
            layers
                .filter_map(|(layer, entry)| Some((*layer, entry.settings.clone()?)))
                .collect()
        };
        for (layer, settings) in pinned {
            for pin in settings.pins(TierConfig::Fast) {
                let (first, last) = chunks_of(&pin.extents);
                let mut from = Some(first);
                while let Some(start) = from {
                    // Load errors are reported when a host reads the data.
                    let chunks = self.next_chunks(layer, start).await.unwrap_or_default();
                    from = chunks.last().and_then(|last| last.checked_add(1));
                    for chunk in chunks.into_iter().take_while(|chunk| *chunk <= last) {
                        raised = raised.and(self.raise_in_turn((layer, chunk)).await);
                    }
                    from = from.filter(|next| *next <= last && !self.lifecycle.is_closing());
                }
            }
        }
        raised
    }

    async fn raise_in_turn(&self, chunk: (u32, u32)) -> Raised {
        if self.lifecycle.is_closing() {
            return Raised::default();
        }
        let spent = self.state.borrow().limits.is_spent(self.handle.now_ns());
        let held = spent || self.moves.is_cooling() || self.moves.are_paused();
        if held || self.shared.promotion_held.load(Ordering::Relaxed) {
            self.wait_open(STEP_NS).await;
            return Raised { blocks: 0, left: 1 };
        }
        let promoting = self.moves.begin();
        let raised = self.raise_chunk(chunk).await;
        drop(promoting);
        let raised = raised.unwrap_or_else(|error| {
            tracing::debug!(%error, "pinned data could not be promoted");
            Raised::default()
        });
        let rate = RATE / u64::from(self.config.shards);
        let bytes = raised.blocks * BLOCK as u64;
        self.wait_open(bytes * SECOND_NS / rate).await;
        raised
    }

    /// Promotes the pinned blocks of a chunk that are only on the slow tier.
    async fn raise_chunk(&self, (layer, chunk): (u32, u32)) -> Result<Raised, IoError> {
        let Some(map_page) = self.map_page(layer, chunk, false).await? else {
            return Ok(Raised::default());
        };
        let pinned = self.pinned_blocks((layer, chunk)).await;
        let mut raised = self.raise_homes((layer, chunk), &map_page, pinned).await?;
        loop {
            let slots = self.raise_slots((layer, chunk), &map_page, pinned).await?;
            raised = raised.and(slots);
            if slots.blocks == 0 || slots.left > 0 {
                return Ok(raised);
            }
        }
    }

    async fn raise_homes(
        &self,
        chunk: (u32, u32),
        map_page: &Rc<MapPage>,
        pinned: BlockMask,
    ) -> Result<Raised, IoError> {
        let wanted = {
            let page = map_page.page.borrow();
            page.home_mask().and_not(page.slot_mask()).and(pinned)
        };
        for part in parts(extents_of(&wanted)) {
            let first = part.trailing_zeros() as usize * EXTENT_BLOCKS;
            let count = part.count_ones() as usize * EXTENT_BLOCKS;
            let (home, expected) = {
                let page = map_page.page.borrow();
                let crc = |block| wanted.has(block).then(|| page.crc(block));
                let expected: Vec<_> = (first..first + count).map(crc).collect();
                (page.home(), expected)
            };
            let check =
                |index: usize, bytes: &[u8]| expected[index].is_none_or(|crc| crc32c(bytes) == crc);
            let Ok(data) = self
                .read_place(home.plus(first as u64), count, &check)
                .await
            else {
                // It is read again, and repaired or reported, when a host requests it.
                continue;
            };
            for (index, part) in (0..count).step_by(EXTENT_BLOCKS).enumerate() {
                let first = first + index * EXTENT_BLOCKS;
                let valid = super::access_stats::in_extent(&wanted, first / EXTENT_BLOCKS);
                let data = data.slice(part * BLOCK, EXTENT_BLOCKS * BLOCK);
                let candidate = Candidate {
                    map_page: map_page.clone(),
                    chunk,
                    first,
                    data,
                    valid,
                    grounds: Cause::RaisedPinned.into(),
                    unasked: false,
                    pinned: true,
                };
                self.promote(&candidate).await?;
            }
        }
        let still = {
            let page = map_page.page.borrow();
            page.home_mask().and_not(page.slot_mask()).and(wanted)
        };
        let left = still.count() as u64;
        Ok(Raised {
            blocks: wanted.count() as u64 - left,
            left,
        })
    }

    /// The same of some blocks that have slots on the slow tier.
    async fn raise_slots(
        &self,
        (layer, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        pinned: BlockMask,
    ) -> Result<Raised, IoError> {
        let _room = self.journal_room(Work::Mover).await?;
        let Some(busy) = ChunkLock::try_new(map_page) else {
            return Ok(Raised { blocks: 0, left: 1 });
        };
        let blocks: Vec<Moving> = {
            let page = map_page.page.borrow();
            let slow =
                |block: &usize| pinned.has(*block) && self.class(page.slot(*block)) == Class::Slow;
            let dirty = Self::blocks_in(&page, BlockState::Dirty).filter(slow);
            dirty
                .take(EXTENT_BLOCKS)
                .map(|block| Moving::of(&page, block))
                .collect()
        };
        let count = blocks.len();
        let left = Raised {
            blocks: 0,
            left: count as u64,
        };
        let mut runs = Vec::new();
        if count == 0 {
            return Ok(left);
        }
        let Ok(mut claim) = self.claim_pinned(layer, count) else {
            return Ok(left);
        };
        if !self.has_spare_fast() || !self.try_slots(Class::Fast, count, &mut runs) {
            self.moves.wake_mover();
            return Ok(left);
        }
        let target = Target::Slots(runs);
        let mut job = Job::new(self, (layer, chunk), map_page, busy, blocks, target);
        let copied = self.copy_down(&mut job, Purpose::Promotion).await;
        if copied.is_err() || job.blocks.is_empty() {
            self.drop_target(&job);
            return copied.map(|()| Raised::default());
        }
        claim.wrote();
        self.settle_demotion(&job, Descent::RAISED)?;
        let came = job.blocks.len() as u64;
        let bytes = came * BLOCK as u64;
        let mut state = self.state.borrow_mut();
        state.count_moved(layer, |counters| counters.promoted_bytes += bytes);
        drop(state);
        Ok(Raised {
            blocks: came,
            left: 0,
        })
    }

    /// Demotes data that is pinned to the slow tier once it has settled, and evicts its copies; promotes data that is pinned to the
    /// fast one and was moved away. True if something was demoted.
    pub(super) async fn keep_pins(&self) -> Result<bool, IoError> {
        if !self.state.borrow().limits.has_settings() {
            return Ok(false);
        }
        if self.pin_promoter.is_asked() && !self.pin_promoter.is_promoting() {
            self.raise_soon();
        }
        let [chunks, copies] = self.state.borrow_mut().next_to_lower();
        let demoted = self
            .demote(Wanted {
                chunks,
                settle_ns: SETTLE_NS,
                sparse: true,
                pinned: true,
            })
            .await?;
        let mut left = 0;
        for chunk in copies {
            let _room = self.journal_room(Work::Mover).await?;
            let slow = {
                let state = self.state.borrow();
                state
                    .settings_of(chunk.0)
                    .map_or(0, |settings| settings.pinned(chunk.1).slow)
            };
            left += self.evict_from(chunk, slow, Cause::EvictedPinned).await?;
        }
        if left > 0 {
            self.barrier().await?;
        }
        Ok(demoted.blocks + left > 0)
    }
}
