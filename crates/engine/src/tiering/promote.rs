//! Promotion: extents that proved themselves in RAM get a copy on the fast tier.

use super::access_stats::extent_of;
use super::move_log::{Grounds, Move};
use super::promotion_claim::NotNow;
use crate::cache::read_cache::RamExtent;
use crate::control::explain::Cause;
use crate::maintenance::upkeep::Kind;
use crate::map::page::{ChunkLock, MapPage};
use crate::shard::state::Shard;
use crate::space::{Class, Run};
use crate::vdrive::Purpose;
use crate::wal::log::Work;
use block::{DmaBuf, IoError};
use format::{BlockState, crc32c};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, EXTENT_BLOCKS};

/// Promotions in flight at a time.
const PARALLEL: usize = 8;
/// Retries, half a millisecond apart, of a chunk that is in use by other work.
const BUSY_TRIES: usize = 40;
/// Most extents queued for promotion: their memory is in addition to the RAM cache.
const QUEUED_MOST: usize = 512;

/// An extent to promote: its chunk's page, volume and chunk, first block, data, valid blocks, and the reason.
pub(crate) struct Candidate {
    pub map_page: Rc<MapPage>,
    pub chunk: (u32, u32),
    pub first: usize,
    pub data: DmaBuf,
    pub valid: u16,
    pub grounds: Grounds,
    /// It belongs to a dense region, and was not requested.
    pub unasked: bool,
    /// It is pinned to the fast tier.
    pub pinned: bool,
}

/// Queue of extents to promote. They count as promoted until the attempt.
#[derive(Default)]
pub(crate) struct Promotions(VecDeque<Candidate>);

impl Promotions {
    /// Whether the queue is full.
    pub fn are_full(&self) -> bool {
        self.0.len() >= QUEUED_MOST
    }

    /// How many of a layer wait.
    #[cfg(test)]
    pub fn of(&self, layer: u32) -> usize {
        let waiting = self.0.iter();
        waiting.filter(|waiting| waiting.chunk.0 == layer).count()
    }

    /// Adds blocks of an extent evicted from RAM.
    pub fn add(&mut self, extent: RamExtent, blocks: u16, grounds: Grounds) {
        self.0.push_back(Candidate {
            map_page: extent.map_page,
            chunk: extent.chunk,
            first: extent.extent * EXTENT_BLOCKS,
            data: extent.data,
            valid: blocks,
            grounds,
            unasked: extent.dense && extent.touched == 0,
            pinned: false,
        });
    }
}

impl Shard {
    /// Promotes queued extents while the shard runs.
    pub(crate) async fn promote_loop(self: Rc<Self>) {
        let limit = reactor::Limit::new(PARALLEL);
        while !self.lifecycle.is_closing() {
            let wake = self.moves.until_promoter_woken();
            let Some(candidate) = self.next_candidate() else {
                wake.await;
                continue;
            };
            let bytes = u64::from(candidate.valid.count_ones()) * BLOCK as u64;
            self.upkeep.wait(Kind::Promotion, bytes).await;
            let permit = limit.get().await;
            let shard = self.clone();
            self.handle.spawn(async move {
                if let Err(error) = shard.promote(&candidate).await {
                    tracing::debug!(%error, "a promotion was abandoned");
                }
                shard.tell_promoted(&candidate);
                drop(permit);
            });
        }
    }

    pub(super) fn next_candidate(&self) -> Option<Candidate> {
        if self.shared.promotion_held.load(Ordering::Relaxed)
            || self.state.borrow().failed.is_some()
        {
            return None;
        }
        self.state.borrow_mut().promotions.0.pop_front()
    }

    /// Clears the queue.
    pub(crate) fn promote_nothing(&self) {
        let queued = std::mem::take(&mut self.state.borrow_mut().promotions.0);
        for candidate in &queued {
            self.note_promotion(candidate, Cause::LeftCooled.into(), candidate.valid);
            self.tell_promoted(candidate);
        }
    }

    /// Logs the result of promoting blocks of an extent.
    fn note_promotion(&self, candidate: &Candidate, grounds: Grounds, blocks: u16) {
        let extent = extent_of(candidate.chunk, candidate.first / EXTENT_BLOCKS);
        let moved = Move::new(self.handle.now_ns(), grounds, extent, blocks);
        self.state.borrow_mut().ledger.note(moved);
    }

    /// Reports to the policy the result for an extent that counted as promoted.
    fn tell_promoted(&self, candidate: &Candidate) {
        let extent = 1 << (candidate.first / EXTENT_BLOCKS);
        let mut state = self.state.borrow_mut();
        self.tell_placed(&mut state, candidate.chunk, &candidate.map_page, extent);
        if candidate.unasked {
            let extent = candidate.first / EXTENT_BLOCKS;
            let extent = extent_of(candidate.chunk, extent);
            state.access.rose_unasked(extent);
        }
    }

    /// Promotes blocks that have not changed, as far as there is room, and the volume's settings and the pool's budget
    /// permit.
    ///
    /// # Errors
    /// If writing the data or the journal fails.
    pub(crate) async fn promote(&self, candidate: &Candidate) -> Result<(), IoError> {
        let Candidate {
            map_page,
            first,
            data,
            valid,
            chunk,
            pinned,
            ..
        } = candidate;
        let mut busy = ChunkLock::try_new(map_page);
        for _ in 0..BUSY_TRIES {
            if busy.is_some() {
                break;
            }
            self.handle.sleep(500_000).await;
            busy = ChunkLock::try_new(map_page);
        }
        let overtaken = Cause::StayedOvertaken.into();
        let Some(_busy) = busy else {
            self.note_promotion(candidate, overtaken, *valid);
            return Ok(());
        };
        for (start, count) in home_runs(map_page, *first, *valid, data) {
            // For each run: a barrier may end a page after every one.
            let _room = self.journal_room(Work::Mover).await?;
            let claimed = match pinned {
                true => self.claim_pinned(chunk.0, count),
                false => self.claim_fast(*chunk, start / EXTENT_BLOCKS, count),
            };
            let mut claim = match claimed {
                Ok(claim) => claim,
                Err(NotNow(stays)) => {
                    if !pinned {
                        self.note_promotion(candidate, stays.into(), of_extent(start, count));
                    }
                    return Ok(());
                }
            };
            let mut runs = Vec::new();
            if !self.has_spare_fast() || !self.try_slots(Class::Fast, count, &mut runs) {
                self.note_promotion(
                    candidate,
                    Cause::StayedNoRoom.into(),
                    of_extent(start, count),
                );
                self.moves.wake_mover();
                return Ok(());
            }
            let part = data.slice((start - first) * BLOCK, count * BLOCK);
            if let Err(error) = self.write_runs(&runs, &part, Purpose::Promotion).await {
                self.give_back_after(&runs, error);
                return Err(crate::shard::state::drive_error(
                    error,
                    "a promotion failed",
                ));
            }
            claim.wrote();
            self.settle_promotion(candidate, start, &runs, &part)?;
        }
        Ok(())
    }

    /// Records those runs whose blocks are still only at home, with the content that was written:
    /// meanwhile they may have been written again and have been demoted again.
    fn settle_promotion(
        &self,
        candidate: &Candidate,
        start: usize,
        runs: &[Run],
        data: &[u8],
    ) -> Result<(), IoError> {
        let ((volume, chunk), map_page) = (candidate.chunk, &candidate.map_page);
        let mut at = start;
        for run in runs {
            let blocks = at..at + run.count;
            let still = is_on(Mutation::PromotionRace)
                || blocks
                    .zip(data[(at - start) * BLOCK..].chunks_exact(BLOCK))
                    .all(|(block, bytes)| is_at_home(map_page, block, bytes));
            let gone = self
                .state
                .borrow()
                .volumes
                .get(&volume)
                .is_none_or(|volume| volume.gone);
            if still && !gone {
                self.apply_promote(volume, chunk, map_page, at, *run)?;
                self.note_promotion(candidate, candidate.grounds, of_extent(at, run.count));
                let bytes = (run.count * BLOCK) as u64;
                let mut state = self.state.borrow_mut();
                state.count_moved(volume, |counters| counters.promoted_bytes += bytes);
            } else {
                let overtaken = Cause::StayedOvertaken.into();
                self.note_promotion(candidate, overtaken, of_extent(at, run.count));
                self.give_back(&[*run]);
            }
            at += run.count;
        }
        Ok(())
    }

    /// Promotion leaves the last free part of the fast tier to writes.
    pub(super) fn has_spare_fast(&self) -> bool {
        let state = self.state.borrow();
        state.alloc.free_slots(Class::Fast) > self.reserve_slots() / 2
    }
}

/// Blocks of an extent, by the first one's number in the chunk.
fn of_extent(first: usize, count: usize) -> u16 {
    (((1u32 << count) - 1) << (first % EXTENT_BLOCKS)) as u16
}

/// Whether a block is only at home, and these bytes are its content.
fn is_at_home(map_page: &MapPage, block: usize, bytes: &[u8]) -> bool {
    let page = map_page.page.borrow();
    page.state(block) == BlockState::Home
        && (page.crc(block) == crc32c(bytes) || is_on(Mutation::PromotionHome))
}

/// Runs of the valid blocks of an extent in RAM, `data`, that are only at home and the same there.
fn home_runs(map_page: &MapPage, first: usize, valid: u16, data: &[u8]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for index in (0..EXTENT_BLOCKS).filter(|index| valid >> index & 1 == 1) {
        let block = first + index;
        if !is_at_home(map_page, block, &data[index * BLOCK..][..BLOCK]) {
            continue;
        }
        match runs.last_mut() {
            Some((start, count)) if *start + *count == block => *count += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}
