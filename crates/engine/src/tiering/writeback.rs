//! Demotion: dirty data is written back to the slow tier, in the order of addresses.
//!
//! A chunk that is mostly stored gets a home of 1 MiB; one that holds little is packed into slots
//! of the slow tier, so that a few blocks do not take a megabyte.

use super::explain::Descent;
use super::settings::blocks_of;
use super::unreadable::UnreadableBlock;
use crate::map::page::{ChunkLock, MapPage};
use crate::shard::state::{Shard, drive_error};
use crate::space::{Class, Run};
use crate::vdrive::{Purpose, all_ended};
use crate::wal::log::Work;
use block::{DmaBuf, DriveError, IoError};
use format::{BlockMask, BlockState, ChunkPage, crc32c};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK_BLOCKS, Place, VdriveId};

/// Chunks demoted together: sorted writes, one flush.
pub(crate) const BATCH: usize = 48;
/// A chunk with this many blocks gets a home.
const DENSE: usize = CHUNK_BLOCKS / 4;
/// And with this many while space is short.
const NEARLY_ALL: usize = CHUNK_BLOCKS * 7 / 8;

/// A block being demoted: its identity and its location when it was read.
#[derive(Clone, Copy)]
pub(crate) struct Moving {
    block: usize,
    slot: Place,
    crc: u32,
}

impl Moving {
    /// A block that has a slot.
    pub fn of(page: &ChunkPage, block: usize) -> Self {
        Self {
            block,
            slot: page.slot(block),
            crc: page.crc(block),
        }
    }
}

/// Decision about a candidate.
enum Plan {
    Move(Job),
    /// The slow tier has no room for it.
    NoRoom,
    /// It has no blocks left to demote.
    Nothing,
}

/// Destination of a job's blocks.
pub(crate) enum Target {
    Home(Place),
    Slots(Vec<Run>),
}

/// A chunk that may move, and the blocks whose home, if any, was stale before the barrier.
struct Candidate {
    volume: u32,
    chunk: u32,
    map_page: Rc<MapPage>,
    stale: BlockMask,
    /// Blocks that are not demoted unless the fast tier keeps a copy.
    stays: BlockMask,
    busy: ChunkLock,
}

/// Chunks that are to be demoted.
pub(crate) struct Wanted {
    pub chunks: Vec<(u32, u32)>,
    /// Only blocks that were not written for this time, in nanoseconds.
    pub settle_ns: u64,
    /// Including those that lose their copies on the fast tier.
    pub sparse: bool,
    /// Of these only those pinned to the slow tier.
    pub pinned: bool,
}

/// Blocks of a chunk that move together.
pub(crate) struct Job {
    volume: u32,
    chunk: u32,
    map_page: Rc<MapPage>,
    pub blocks: Vec<Moving>,
    target: Target,
    /// The read epoch in which the slots were looked up: they are not reused before it ends.
    read_epoch: u64,
    /// Blocks that cannot be read: they stay where they are.
    unreadable: Vec<UnreadableBlock>,
    /// A write of it timed out and may still reach the drive.
    late: bool,
    /// The written data is durable.
    flushed: bool,
    _busy: ChunkLock,
}

impl Job {
    /// For blocks with the slots that they have now.
    pub fn new(
        shard: &Shard,
        (volume, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        busy: ChunkLock,
        blocks: Vec<Moving>,
        target: Target,
    ) -> Self {
        Self {
            volume,
            chunk,
            map_page: map_page.clone(),
            blocks,
            target,
            read_epoch: shard.state.borrow_mut().deferred_frees.begin_read(),
            unreadable: Vec::new(),
            late: false,
            flushed: false,
            _busy: busy,
        }
    }
}

/// Result of a batch.
#[derive(Clone, Copy, Default)]
pub(crate) struct DemotedBatch {
    /// Demoted blocks.
    pub blocks: u64,
    /// The slow tier had no room for a chunk.
    pub full: bool,
}

impl Shard {
    /// Demotes up to `count` chunks that were not written for `settle_ns`; `sparse`: those that lose
    /// their copies on the fast tier, too.
    pub(crate) async fn demote_batch(
        &self,
        settle_ns: u64,
        count: usize,
        sparse: bool,
    ) -> Result<DemotedBatch, IoError> {
        let chunks = self.state.borrow_mut().tier_index.next_dirty(count);
        self.demote(Wanted {
            chunks,
            settle_ns,
            sparse,
            pinned: false,
        })
        .await
    }

    /// Demotes these chunks.
    pub(crate) async fn demote(&self, wanted: Wanted) -> Result<DemotedBatch, IoError> {
        let descent = match (wanted.pinned, self.moves.is_cooling(), wanted.settle_ns) {
            (true, ..) => Descent::PINNED,
            (_, true, _) => Descent::COOLED,
            (_, false, 0) => Descent::SHORT,
            (_, false, _) => Descent::SETTLED,
        };
        let mut candidates = Vec::new();
        let mut rooms = Vec::new();
        let mut last = (0, 0);
        for &(volume, chunk) in &wanted.chunks {
            if rooms.is_empty() || is_on(Mutation::DemotionHoards) {
                rooms.push(self.journal_room(Work::Mover).await?);
            } else if let Some(room) = self.try_journal_room(Work::Mover)? {
                rooms.push(room);
            } else {
                // Collected chunks are demoted first, since that frees space. The rest is next.
                self.state.borrow_mut().tier_index.demoted_to(last);
                break;
            }
            last = (volume, chunk);
            match self.map_page(volume, chunk, false).await {
                Ok(Some(map_page)) => {
                    let stays = self.stays_fast((volume, chunk)).await;
                    candidates.extend(self.candidate((volume, chunk), map_page, stays, &wanted));
                }
                _ => {
                    let mut state = self.state.borrow_mut();
                    state.tier_index.forget_dirty((volume, chunk));
                }
            }
        }
        let mut demoted = DemotedBatch::default();
        if candidates.is_empty() {
            return Ok(demoted);
        }
        self.quiesce().await?;
        let mut jobs: Vec<Job> = Vec::new();
        for candidate in candidates {
            match self.plan_demotion(candidate, wanted.sparse) {
                Plan::Move(job) => jobs.push(job),
                Plan::NoRoom => demoted.full = true,
                Plan::Nothing => {}
            }
        }
        let copies = jobs.iter_mut();
        let copies = copies.map(|job| self.copy_down(job, Purpose::Upkeep));
        let results = join_all(copies).await;
        let mut done = Vec::new();
        let mut failure = None;
        for (mut job, result) in jobs.into_iter().zip(results) {
            if !job.unreadable.is_empty() {
                self.note_unreadable((job.volume, job.chunk), std::mem::take(&mut job.unreadable));
            }
            match result {
                Ok(()) if !job.blocks.is_empty() => done.push(job),
                Ok(()) => self.drop_target(&job),
                Err(error) => {
                    self.drop_target(&job);
                    failure = Some(error);
                }
            }
        }
        let flushed = self.flush_targets(&done).await;
        for mut job in done {
            if flushed.is_err() {
                self.drop_target(&job);
                continue;
            }
            job.flushed = true;
            let blocks = self.settle_demotion(&job, descent)?;
            demoted.blocks += blocks;
            let mut state = self.state.borrow_mut();
            state.count_moved(job.volume, |counters| {
                counters.demoted_bytes += blocks * BLOCK as u64;
            });
            drop(state);
            self.refresh_unreadable((job.volume, job.chunk), &job.map_page);
        }
        drop(rooms);
        flushed?;
        match failure {
            Some(error) if demoted.blocks == 0 => Err(error),
            _ => Ok(demoted),
        }
    }

    /// A chunk that is neither busy nor was written recently, nor only has unreadable blocks.
    fn candidate(
        &self,
        (volume, chunk): (u32, u32),
        map_page: Rc<MapPage>,
        stays: BlockMask,
        wanted: &Wanted,
    ) -> Option<Candidate> {
        if self.handle.now_ns() < map_page.written_ns.get().saturating_add(wanted.settle_ns) {
            return None;
        }
        let busy = ChunkLock::try_new(&map_page)?;
        let state = self.state.borrow();
        let waiting = state
            .unreadable
            .waiting((volume, chunk), &map_page, self.handle.now_ns());
        if !waiting.is_empty() && !self.has_more_to_demote(&state, (volume, chunk), &map_page) {
            return None;
        }
        let stale: BlockMask =
            Self::blocks_in(&map_page.page.borrow(), BlockState::Dirty).collect();
        let mut stale = stale.and_not(waiting);
        if wanted.pinned {
            let pinned = state
                .settings_of(volume)
                .map_or(0, |settings| settings.pinned(chunk).slow);
            stale = stale.and(blocks_of(pinned));
            let is_fast = |block| self.class(map_page.page.borrow().slot(block)) == Class::Fast;
            if !stale.blocks().any(is_fast) {
                return None;
            }
        }
        drop(state);
        Some(Candidate {
            volume,
            chunk,
            map_page,
            stale,
            stays,
            busy,
        })
    }

    /// Chooses blocks to move and allocates space for them.
    fn plan_demotion(&self, candidate: Candidate, sparse: bool) -> Plan {
        let Candidate {
            volume,
            chunk,
            map_page,
            stale,
            stays,
            busy,
        } = candidate;
        let (home, stored, mut fast, slow) = {
            let page = map_page.page.borrow();
            let (mut fast, mut slow) = (Vec::new(), Vec::new());
            let stored = (0..CHUNK_BLOCKS).filter(|block| page.state(*block) != BlockState::Zero);
            let stored = stored.count();
            let is_stale = |block: &usize| stale.has(*block) || is_on(Mutation::HomeValid);
            for block in Self::blocks_in(&page, BlockState::Dirty).filter(is_stale) {
                let moving = Moving::of(&page, block);
                match self.class(moving.slot) {
                    Class::Fast => fast.push(moving),
                    _ => slow.push(moving),
                }
            }
            (page.home(), stored, fast, slow)
        };
        if fast.is_empty() {
            self.note_chunk(&mut self.state.borrow_mut(), volume, chunk, &map_page);
            return Plan::Nothing;
        }
        if !sparse && home.is_none() && stored < DENSE {
            let mut state = self.state.borrow_mut();
            state.tier_index.set_aside((volume, chunk));
            return Plan::Nothing;
        }
        let job = |blocks, target| {
            Plan::Move(Job::new(
                self,
                (volume, chunk),
                &map_page,
                busy,
                blocks,
                target,
            ))
        };
        let mut all = fast.clone();
        all.extend(slow);
        all.sort_by_key(|moving| moving.block);
        if home.is_some() {
            return job(all, Target::Home(home));
        }
        if stored >= self.dense() && !self.requests.is_compacting() {
            let new = self.state.borrow_mut().alloc.take_home();
            if let Some(home) = new {
                return job(all, Target::Home(home));
            }
        }
        fast.retain(|moving| !stays.has(moving.block));
        if fast.is_empty() {
            let mut state = self.state.borrow_mut();
            state.tier_index.set_aside((volume, chunk));
            return Plan::Nothing;
        }
        let mut runs = Vec::new();
        if !self.try_slots(Class::Slow, fast.len(), &mut runs) {
            return Plan::NoRoom;
        }
        job(fast, Target::Slots(runs))
    }

    /// Minimum blocks of a chunk for a home: unused blocks of a home are only for its chunk.
    fn dense(&self) -> usize {
        match self.requests.is_sparing(self.handle.now_ns()) {
            true => NEARLY_ALL,
            false => DENSE,
        }
    }

    /// A home is written where its content is stale: the record of that must be durable, and no task may
    /// be reading formerly valid data there.
    pub(super) async fn quiesce(&self) -> Result<(), IoError> {
        if is_on(Mutation::HomeUnquiet) {
            return Ok(());
        }
        self.barrier().await?;
        let read_epoch = {
            let mut state = self.state.borrow_mut();
            let read_epoch = state.deferred_frees.read_epoch();
            let sequence = state.journal.target();
            state.deferred_frees.seal(sequence);
            read_epoch
        };
        while !self.state.borrow().deferred_frees.reads_ended(read_epoch) {
            self.check()?;
            self.handle.sleep(200_000).await;
        }
        Ok(())
    }

    /// Reads the blocks and writes the readable ones to their destination, for some purpose. Every write is
    /// waited for.
    pub(crate) async fn copy_down(&self, job: &mut Job, purpose: Purpose) -> Result<(), IoError> {
        let data = self.gather(job).await;
        self.end_read(job.read_epoch);
        if job.blocks.is_empty() {
            return Ok(());
        }
        let result = match &job.target {
            Target::Home(home) => {
                let home_place = |moving: &Moving| home.plus(moving.block as u64);
                self.write_home(job, &data, home_place).await
            }
            Target::Slots(runs) => {
                let runs: Vec<Run> = first_of(runs, job.blocks.len()).collect();
                self.write_runs(&runs, &data, purpose).await
            }
        };
        result.map_err(|error| {
            job.late = error == DriveError::Timeout;
            drive_error(error, "demoted data cannot be written")
        })
    }

    /// Reads the blocks; unreadable ones are removed from the job.
    async fn gather(&self, job: &mut Job) -> DmaBuf {
        let mut data = self.handle.dma().get(job.blocks.len() * BLOCK);
        let mut there: Vec<Moving> = Vec::with_capacity(job.blocks.len());
        for run in runs_of(&job.blocks, |moving| moving.slot) {
            let check = |index: usize, bytes: &[u8]| crc32c(bytes) == run[index].crc;
            match self.read_place(run[0].slot, run.len(), &check).await {
                Ok(part) => {
                    data[there.len() * BLOCK..][..part.len()].copy_from_slice(&part);
                    there.extend_from_slice(run);
                }
                Err(error) => {
                    let wanted: Vec<_> = run.iter().map(|it| (it.slot, it.crc)).collect();
                    let take = |index: usize, read: Result<DmaBuf, DriveError>| match read {
                        Ok(part) => {
                            data[there.len() * BLOCK..][..BLOCK].copy_from_slice(&part);
                            there.push(run[index]);
                        }
                        Err(error) => job.unreadable.push(UnreadableBlock {
                            block: run[index].block,
                            place: run[index].slot,
                            error,
                        }),
                    };
                    self.read_singly(&wanted, error, take).await;
                }
            }
        }
        let data = data.slice(0, there.len() * BLOCK);
        job.blocks = there;
        data
    }

    async fn write_home(
        &self,
        job: &Job,
        data: &DmaBuf,
        place: impl Fn(&Moving) -> Place,
    ) -> Result<(), DriveError> {
        let mut done = 0;
        let mut writes = Vec::new();
        for run in runs_of(&job.blocks, &place) {
            let at = place(&run[0]);
            let vdrive = self.vdrive(at.vdrive()).map_err(|_| DriveError::Gone)?;
            let part = data.slice(done * BLOCK, run.len() * BLOCK);
            done += run.len();
            writes.push(async move { vdrive.write(at.block(), part, Purpose::Upkeep).await });
        }
        all_ended(join_all(writes).await)
    }

    async fn flush_targets(&self, jobs: &[Job]) -> Result<(), IoError> {
        if is_on(Mutation::DemotionFlush) {
            return Ok(());
        }
        let mut ids: BTreeSet<VdriveId> = BTreeSet::new();
        for job in jobs {
            match &job.target {
                Target::Home(home) => ids.extend([home.vdrive()]),
                Target::Slots(runs) => ids.extend(runs.iter().map(|run| run.place.vdrive())),
            }
        }
        let vdrives: Vec<_> = ids
            .into_iter()
            .map(|id| self.vdrive(id))
            .collect::<Result<_, _>>()?;
        for result in join_all(vdrives.iter().map(|vdrive| vdrive.flush())).await {
            result.map_err(|error| drive_error(error, "the slow tier cannot be flushed"))?;
        }
        Ok(())
    }

    /// Frees space that was allocated for a chunk that was not demoted, unless a write that
    /// timed out may still reach it.
    pub(crate) fn drop_target(&self, job: &Job) {
        if job.late {
            return;
        }
        match &job.target {
            Target::Home(home) if job.map_page.page.borrow().home() != *home => {
                self.state.borrow_mut().alloc.give_home(*home);
            }
            Target::Home(_) => {}
            Target::Slots(runs) => self.give_back(runs),
        }
    }

    /// Records the blocks that were not written meanwhile: the slot alone does not show that, since
    /// it was free once the block had been read, and the block may have come to be there again.
    /// Returns how many were demoted.
    pub(crate) fn settle_demotion(&self, job: &Job, descent: Descent) -> Result<u64, IoError> {
        let gone = self
            .state
            .borrow()
            .volumes
            .get(&job.volume)
            .is_none_or(|volume| volume.gone);
        let unchanged = |moving: &Moving| {
            let page = job.map_page.page.borrow();
            is_on(Mutation::DemotionRace)
                || page.slot(moving.block) == moving.slot
                    && (page.crc(moving.block) == moving.crc || is_on(Mutation::DemotionSlot))
                    && page.state(moving.block) == BlockState::Dirty
        };
        let still: Vec<Moving> = job.blocks.iter().copied().filter(unchanged).collect();
        if gone || still.is_empty() {
            self.drop_target(job);
            return Ok(0);
        }
        let of = |class| -> BlockMask {
            let of = still
                .iter()
                .filter(|moving| self.class(moving.slot) == class);
            of.map(|moving| moving.block).collect()
        };
        let (fast, slow) = (of(Class::Fast), of(Class::Slow));
        let cause = match &job.target {
            Target::Home(home) => {
                self.apply_home(job.volume, job.chunk, &job.map_page, *home, fast.or(slow))?;
                self.apply_evict(job.volume, job.chunk, &job.map_page, slow)?;
                descent.home
            }
            Target::Slots(runs) => {
                self.settle_slots(job, runs, unchanged)?;
                descent.slots
            }
        };
        let (key, state) = ((job.volume, job.chunk), &mut self.state.borrow_mut());
        self.note_moves(state, cause, key, &fast);
        self.note_moves(state, descent.packed, key, &slow);
        Ok(fast.count() as u64)
    }

    /// Iterates over blocks and runs in parallel; a run that is unchanged and contiguous on both sides
    /// is one record, the slots of changed blocks are freed.
    fn settle_slots(
        &self,
        job: &Job,
        runs: &[Run],
        unchanged: impl Fn(&Moving) -> bool,
    ) -> Result<(), IoError> {
        let mut blocks = job.blocks.iter();
        for run in runs {
            self.state.borrow_mut().alloc.recorded(run.place);
            let part: Vec<Moving> = blocks.by_ref().take(run.count).copied().collect();
            for (index, moving) in part.iter().enumerate() {
                let slot = Run {
                    place: run.place.plus(index as u64),
                    count: 1,
                };
                if unchanged(moving) {
                    let crcs = [moving.crc];
                    let (block, map_page) = (moving.block, &job.map_page);
                    // Hosts' barriers do not wait for the slow tier because of demoted data.
                    match job.flushed {
                        true => {
                            self.apply_flushed(job.volume, job.chunk, map_page, block, slot, &crcs)
                        }
                        false => {
                            self.apply_write(job.volume, job.chunk, map_page, block, slot, &crcs)
                        }
                    }?;
                } else {
                    self.give_back(&[slot]);
                }
            }
            // Unreadable blocks leave space unused.
            if part.len() < run.count {
                self.give_back(&[Run {
                    place: run.place.plus(part.len() as u64),
                    count: run.count - part.len(),
                }]);
            }
        }
        Ok(())
    }
}

/// The first `count` slots of these.
fn first_of(runs: &[Run], count: usize) -> impl Iterator<Item = Run> + '_ {
    let mut left = count;
    runs.iter().map_while(move |run| {
        let count = run.count.min(left);
        left -= count;
        (count > 0).then_some(Run { count, ..*run })
    })
}

/// Runs of blocks with contiguous places.
fn runs_of<'a>(
    blocks: &'a [Moving],
    place: impl Fn(&Moving) -> Place + 'a,
) -> impl Iterator<Item = &'a [Moving]> {
    blocks.chunk_by(move |left, right| {
        place(left).vdrive() == place(right).vdrive()
            && place(left).block() + 1 == place(right).block()
    })
}

#[cfg(test)]
mod tests;
