//! The mover: keeps space free on the fast tier, and has written data demoted.

use super::unreadable::UnreadableBlocks;
use super::writeback;
use crate::control::explain::Cause;
use crate::control::types::SpacePolicy;
use crate::maintenance::upkeep;
use crate::maintenance::upkeep::{Demote, Kind, WritebackRate};
use crate::map::page::ChunkLock;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use crate::wal::log::Work;
use block::{ErrorKind, IoError};
use format::{BlockMask, BlockState};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use units::{BLOCK, CHUNK_BLOCKS, EXTENT};

/// Chunks examined by one round of eviction in address order.
const EVICT_CHUNKS: usize = 512;
/// Extents evicted from RAM in one turn of the loop, when its size is reduced.
const RAM_AT_ONCE: usize = 64;
/// Extents examined by one round of eviction by worth.
const EVICT_EXTENTS: usize = 1024;
/// Minimum time between rounds, in nanoseconds, unless hosts wait for more space.
const LEAST_NS: u64 = 1_000_000;
/// Time between rounds without urgent work, in nanoseconds.
const IDLE_NS: u64 = 100_000_000;
/// And the maximum, while drives fail.
const HELD_UP_NS: u64 = 5_000_000_000;
/// A chunk is demoted once it has not been written for this long, in nanoseconds.
pub(super) const SETTLE_NS: u64 = 2_000_000_000;
/// Rounds for which the slow tier has to be full before cooling fails.
const FULL_ROUNDS: u32 = 200;
/// Time without demotion, since hosts have all remaining chunks in use, before cooling fails, in
/// nanoseconds.
const BUSY_NS: u64 = 60_000_000_000;

/// Result of demoting everything.
#[derive(Clone, Debug)]
pub enum Cooled {
    /// All of it is there.
    Cold,
    /// A number of chunks was in use all the time.
    Busy(usize),
    /// Blocks cannot be read; the rest is there.
    Unreadable(UnreadableBlocks),
}

impl Shard {
    /// Target of free slots on the fast tier: a sixteenth.
    pub(crate) fn reserve_slots(&self) -> u64 {
        self.fast_slots() / 16
    }

    /// Target of blocks of the fast tier for this shard's data.
    pub(super) fn fast_share(&self) -> u64 {
        (self.fast_slots() - self.reserve_slots()) / u64::from(self.config.shards)
    }

    /// Slots of the fast tier that are free, or will be once a barrier and reads that are in progress have ended. Without
    /// them, hot data would be evicted while they wait.
    pub(crate) fn fast_coming_free(&self, state: &State) -> u64 {
        let is_fast = |vdrive| self.tiers.of(vdrive) == Class::Fast;
        let kept = state.deferred_frees.slots_kept();
        let kept = kept
            .filter(|(vdrive, _)| is_fast(*vdrive))
            .map(|(_, count)| count);
        state.alloc.free_slots(Class::Fast) + kept.sum::<u64>()
    }

    fn fast_slots(&self) -> u64 {
        let mut slots = 0;
        self.devices.for_each(|vdrive| {
            if self.tiers.of(vdrive.id) == Class::Fast {
                slots += vdrive.blocks();
            }
        });
        slots
    }

    /// Whether waiting for the mover can bring space.
    pub(crate) fn can_make_space(&self) -> bool {
        let state = self.state.borrow();
        if state.failed.is_some() || self.lifecycle.is_closing() {
            return false;
        }
        let may_demote = state.alloc.free_slots(Class::Slow) > 0 && self.may_demote(&state);
        self.moves.is_surveying()
            || !state.deferred_frees.is_empty()
            || (self.tiers.are_two() && (state.has_victims() || may_demote))
    }

    /// Frees space and demotes data while the shard runs.
    pub(crate) async fn mover_loop(self: Rc<Self>) {
        let mut held_up: Option<IoError> = None;
        let mut idle_ns = IDLE_NS;
        let mut writeback_rate = WritebackRate::default();
        while !self.lifecycle.is_closing() {
            let wake = self.moves.until_mover_woken();
            let began = self.handle.now_ns();
            if self.moves.are_paused() {
                self.handle.sleep(LEAST_NS).await;
                continue;
            }
            let moving = self.moves.begin();
            let round = self.mover_round(&mut writeback_rate).await;
            drop(moving);
            let worked = match round {
                Ok(worked) => {
                    if worked {
                        held_up = None;
                    }
                    idle_ns = IDLE_NS;
                    worked
                }
                Err(error) => {
                    // Reported once: it is retried again and again.
                    if held_up.as_ref() != Some(&error) {
                        tracing::warn!(shard = self.config.shard.0, %error, "the mover was delayed");
                    }
                    held_up = Some(error);
                    idle_ns = (idle_ns * 2).min(HELD_UP_NS);
                    false
                }
            };
            self.space_waiters.wake();
            if self.space_waiters.are_any() && worked {
                self.handle.yield_now().await;
                continue;
            }
            // Half of the time is left to the hosts' own reads of the slow tier.
            let took = self.handle.now_ns() - began;
            let pause = match (worked, self.space_waiters.are_any()) {
                (true, _) => took.min(IDLE_NS),
                // Space freed by ending reads and checkpoints is available soon.
                (false, true) => LEAST_NS,
                (false, false) => idle_ns,
            };
            futures_util::future::select(wake, self.handle.sleep(pause.max(LEAST_NS))).await;
        }
    }

    /// The present size of the RAM cache in bytes.
    pub(crate) fn ram_limit(&self) -> u64 {
        match self.shared.ram_bytes.load(Ordering::Relaxed) {
            u64::MAX => self.config.ram_bytes,
            bytes => bytes,
        }
    }

    /// Shrinks the RAM cache to its size, a few extents per turn of the loop. Evicted extents are at home, and are not
    /// promoted.
    async fn fit_ram(&self) {
        let limit = self.ram_limit();
        if self.state.borrow().ram.limit_bytes() / EXTENT as u64 == limit / EXTENT as u64 {
            return;
        }
        while self.state.borrow_mut().ram.fit(limit, RAM_AT_ONCE) {
            self.handle.yield_now().await;
        }
        let mut state = self.state.borrow_mut();
        state.access.resize_ram(limit / BLOCK as u64);
    }

    /// One round; true when something was done.
    pub(super) async fn mover_round(
        &self,
        writeback_rate: &mut WritebackRate,
    ) -> Result<bool, IoError> {
        self.check()?;
        self.trim_pages();
        let space_waiters = self.space_waiters.are_any();
        if space_waiters && !self.state.borrow().deferred_frees.is_empty() {
            self.barrier().await?;
        }
        self.look_for_others();
        if !self.tiers.are_two() {
            return Ok(false);
        }
        self.fit_ram().await;
        self.look_at_sizes();
        let (reserve, share) = (self.reserve_slots(), self.fast_share());
        let (free, has_clean) = {
            let mut state = self.state.borrow_mut();
            state.pacing.reserve = reserve;
            state.access.resize(share);
            (self.fast_coming_free(&state), state.tier_index.has_clean())
        };
        let short = free < reserve || space_waiters;
        let mut worked = self.keep_pins().await?;
        if free < reserve && has_clean {
            // A little more, so that not every round has to; each shard its part, since all see the same shortage.
            let wanted = (reserve + reserve / 4 - free).div_ceil(u64::from(self.config.shards));
            worked |= self.evict(wanted).await? > 0;
        }
        let (not_demoted, all) = self.not_demoted();
        // What holds little is demoted last: it has no copy on the fast tier then.
        let sparse = short || self.moves.is_cooling() || not_demoted.saturating_mul(2) > all;
        if sparse {
            self.state.borrow_mut().tier_index.recall();
        }
        let has_dirty = self.state.borrow().tier_index.has_ready();
        let eager = self.shared.policy() == SpacePolicy::SlowFirst || self.moves.is_cooling();
        if has_dirty && (short || eager) {
            let force = short || self.moves.is_cooling();
            let (settle_ns, chunks) = match (force, self.leave(writeback_rate, not_demoted, all)) {
                (true, _) => (0, writeback::BATCH),
                (false, Demote::All) => (SETTLE_NS, writeback::BATCH),
                (false, Demote::Some) => (SETTLE_NS, upkeep::CHUNKS),
                (false, Demote::Nothing) => return Ok(worked),
            };
            let demoted = self.demote_batch(settle_ns, chunks, sparse).await?.blocks;
            writeback_rate.demoted(demoted);
            self.upkeep.did(Kind::Demotion, demoted * BLOCK as u64);
            worked |= demoted > 0;
        }
        Ok(worked)
    }

    /// The amount that may be demoted now, beside hosts' requests.
    fn leave(&self, writeback_rate: &mut WritebackRate, not_demoted: u64, all: u64) -> Demote {
        let counters = self.state.borrow().stats.totals();
        let asked = (counters.read_bytes + counters.write_bytes) / BLOCK as u64;
        let leave = writeback_rate.look(self.handle.now_ns(), asked, not_demoted, all);
        // Before room is short it runs at its usual rate: otherwise writes of volumes that miss their guarantee would wait for space.
        let yields = not_demoted.saturating_mul(4) < all.saturating_mul(3) && self.upkeep.is_hurt();
        match (yields, leave) {
            (true, Demote::Nothing) => Demote::Nothing,
            (true, _) if !self.upkeep.may(Kind::Demotion) => Demote::Nothing,
            (true, _) => Demote::Some,
            (false, leave) => leave,
        }
    }

    /// Blocks that only the fast tier has, and its total of blocks: this shard's part.
    fn not_demoted(&self) -> (u64, u64) {
        let state = self.state.borrow();
        let not_demoted = state.volumes.values().map(|volume| volume.counts.fast);
        let all = self.fast_slots() / u64::from(self.config.shards);
        (not_demoted.sum(), all)
    }

    /// Evicts clean copies, least valuable first, until `wanted` slots are freed or none is left.
    /// Returns how many.
    pub(crate) async fn evict(&self, wanted: u64) -> Result<u64, IoError> {
        let mut freed = 0;
        // Copies from before the pool was opened that have not been used since are not known yet.
        if !self.moves.is_looked_over() || self.moves.is_cooling() {
            freed = self
                .evict_in_order(wanted, (Cause::EvictedUnused, false), |chunk| {
                    self.unused(chunk)
                })
                .await?;
        }
        freed = self.evict_by_worth(wanted, freed, false).await?;
        // Spared copies are evicted if there is nothing else.
        if freed == 0 && self.state.borrow().limits.has_settings() {
            freed = self.evict_by_worth(wanted, freed, true).await?;
        }
        if freed > 0 {
            self.barrier().await?;
        }
        Ok(freed)
    }

    /// Evicts clean copies until `wanted` are freed, `freed` of which already are, or the limit of a round is reached; `all`: of
    /// volumes below their floors, too. Without a least valuable one, in address order. Returns how many.
    async fn evict_by_worth(&self, wanted: u64, mut freed: u64, all: bool) -> Result<u64, IoError> {
        for _ in 0..EVICT_EXTENTS {
            if freed >= wanted || self.moves.is_cooling() {
                break;
            }
            let _room = self.journal_room(Work::Mover).await?;
            let victim = self.state.borrow_mut().victim(all);
            let Some((chunk, extents, cause)) = victim else {
                break;
            };
            freed += self.evict_from(chunk, extents, cause).await?;
        }
        match freed {
            0 => {
                let next = (Cause::EvictedNext, all);
                self.evict_in_order(wanted, next, |_| u16::MAX).await
            }
            freed => Ok(freed),
        }
    }

    /// Evicts clean copies in the extents that `which` selects, chunk by chunk; `all`: of volumes below their
    /// floors, too.
    async fn evict_in_order(
        &self,
        wanted: u64,
        (cause, all): (Cause, bool),
        which: impl Fn((u32, u32)) -> u16,
    ) -> Result<u64, IoError> {
        let mut freed = 0;
        for _ in 0..EVICT_CHUNKS {
            if freed >= wanted {
                break;
            }
            let _room = self.journal_room(Work::Mover).await?;
            let Some(chunk) = self.next_clean_chunk() else {
                break;
            };
            let (extents, cause) = match self.moves.is_cooling() {
                true => (u16::MAX, Cause::EvictedCooled),
                false => match self.state.borrow().may_leave(chunk, all) {
                    0 => continue,
                    may => (which(chunk) & may, cause),
                },
            };
            freed += self.evict_from(chunk, extents, cause).await?;
        }
        Ok(freed)
    }

    /// Evicts the clean copies in these extents of a chunk, unless other work has it. Returns how many.
    pub(super) async fn evict_from(
        &self,
        (volume, chunk): (u32, u32),
        extents: u16,
        cause: Cause,
    ) -> Result<u64, IoError> {
        let Ok(Some(map_page)) = self.map_page(volume, chunk, false).await else {
            let mut state = self.state.borrow_mut();
            state.tier_index.forget_clean((volume, chunk));
            state.access.forget_placed((volume, chunk));
            return Ok(0);
        };
        let pinned = match self.moves.is_cooling() {
            true => BlockMask::default(),
            false => self.pinned_blocks((volume, chunk)).await,
        };
        let Some(_busy) = ChunkLock::try_new(&map_page) else {
            return Ok(0);
        };
        let mask = Self::clean_copies(&map_page, extents).and_not(pinned);
        if mask.is_empty() {
            // The policy may not know the chunk yet, or have an outdated state of it.
            self.note_chunk(&mut self.state.borrow_mut(), volume, chunk, &map_page);
        }
        self.note_evicted(cause, (volume, chunk), &mask);
        self.apply_evict(volume, chunk, &map_page, mask)?;
        Ok(mask.count() as u64)
    }

    fn next_clean_chunk(&self) -> Option<(u32, u32)> {
        let (next, all_seen) = self.state.borrow_mut().tier_index.next_clean();
        if all_seen {
            self.moves.note_looked_over();
        }
        next
    }

    /// Writes everything back and evicts all copies. Hosts may continue, but data that they use
    /// is warm again.
    ///
    /// # Errors
    /// A drive's error; `NoSpace` when the slow tier has no room for what is to be demoted.
    pub async fn cool(&self) -> Result<Cooled, IoError> {
        self.moves.set_cooling(true);
        let result = self.cool_down().await;
        self.moves.set_cooling(false);
        self.raise_soon();
        result
    }

    async fn cool_down(&self) -> Result<Cooled, IoError> {
        if !self.tiers.are_two() {
            self.clear_ram();
            return Ok(Cooled::Cold);
        }
        while self.moves.is_surveying() {
            self.check()?;
            self.handle.sleep(IDLE_NS / 10).await;
        }
        self.state.borrow_mut().unreadable.hurry();
        let (mut full_rounds, mut moved_ns) = (0, self.handle.now_ns());
        loop {
            self.check()?;
            self.state.borrow_mut().tier_index.recall();
            let demoted = self.demote_batch(0, writeback::BATCH, true).await?;
            let worked = demoted.blocks + self.evict(u64::MAX).await? > 0;
            let (left, clean_copies, may_demote) = {
                let state = self.state.borrow();
                let [dirty, clean_copies] = state.tier_index.counts();
                (dirty + clean_copies, clean_copies, self.may_demote(&state))
            };
            if left == 0 {
                break;
            }
            if clean_copies == 0 && !may_demote {
                return Ok(Cooled::Unreadable(self.unread()));
            }
            if worked {
                (full_rounds, moved_ns) = (0, self.handle.now_ns());
                continue;
            }
            full_rounds += u32::from(demoted.full);
            if full_rounds > FULL_ROUNDS {
                let text = format!(
                    "the slow tier has no room for {left} chunks that are still on the fast tier: \
                     add a slow vdrive or delete data"
                );
                return Err(IoError::new(ErrorKind::NoSpace, text));
            }
            if self.handle.now_ns() > moved_ns + BUSY_NS {
                return Ok(Cooled::Busy(left));
            }
            self.handle.sleep(IDLE_NS / 10).await;
        }
        self.clear_ram();
        self.promote_nothing();
        Ok(Cooled::Cold)
    }

    /// Blocks of a page in a state.
    pub(super) fn blocks_in(
        page: &format::ChunkPage,
        wanted: BlockState,
    ) -> impl Iterator<Item = usize> + '_ {
        (0..CHUNK_BLOCKS).filter(move |block| page.state(*block) == wanted)
    }
}

#[cfg(test)]
mod tests;
