//! Reads from RAM, slots or homes; every block is verified.

use super::target::{Target, overlap};
use super::tier_choice::TierChoice;
use crate::cache::fill::FillOrigin;
use crate::control::types::IoCounters;
use crate::io::cpu_prefetch::Seen;
use crate::io::fast_path::Block;
use crate::io::write::slow_path::{Piece, pieces};
use crate::map::layer_table::{AllPlaced, Placed};
use crate::map::page::{MapPage, live};
use crate::shard::state::{Shard, State, Volume, drive_error};
use crate::space::Class;
use crate::tiering::access_stats::By;
use crate::tiering::unreadable::is_of_blocks;
use crate::vdrive::Turn;
use block::{DmaBuf, DriveError, IoBuf, IoError};
use format::{BlockMask, BlockState};
use futures_util::future::join_all;
use qos::Due;
use smallvec::{SmallVec, smallvec};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, EXTENT_BLOCKS, Place};

/// Failures after which a read stops retrying: the data may have been moved meanwhile, so that a block that it
/// found bad is intact elsewhere.
const ATTEMPTS: usize = 8;

/// The state of a read that may have to take turns at a drive.
pub(crate) enum InLine<'a> {
    /// It has its turn.
    Has(Turn<'a>),
    /// It still has to get one, with this priority.
    For(Due),
}

/// Contiguous blocks.
pub(crate) struct Run {
    pub first: usize,
    pub count: usize,
    pub place: Place,
    crcs: Vec<u32>,
    class: Class,
    /// At home (or in a slow slot): a candidate for RAM.
    cold: bool,
    /// At home, which is expected to respond sooner than the fast tier, which also has it.
    clean: bool,
}

/// Pages that have blocks of a chunk: layer, page, blocks.
type Parts = SmallVec<[(u32, Rc<MapPage>, BlockMask); 2]>;

/// Uses of blocks of chunks (layer and number), recorded once all of a read is verified.
type Uses = SmallVec<[((u32, u32), BlockMask); 1]>;

/// Blocks that were read without waiting, by tier.
#[derive(Clone, Copy, Default)]
pub(crate) struct Served {
    pub ram: u32,
    /// In a fast drive's memory.
    pub fast: u32,
    pub zero: u32,
}

impl Served {
    pub(crate) fn add_to(self, counters: &mut IoCounters) {
        counters.blocks_ram += u64::from(self.ram);
        counters.blocks_fast += u64::from(self.fast);
        counters.blocks_zero += u64::from(self.zero);
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.ram += more.ram;
        self.fast += more.fast;
        self.zero += more.zero;
    }
}

/// The result of a lookup: the pages that have blocks of a chunk, places from summaries, and the uses to record
/// once they were read.
#[derive(Default)]
pub(crate) struct Known {
    parts: Parts,
    placed: AllPlaced,
    uses: Uses,
}

impl Known {
    /// One block of a page that is in memory.
    fn block(seen: Seen) -> Self {
        let block = BlockMask::of(seen.block, 1);
        Self {
            uses: smallvec![(seen.chunk, block)],
            parts: smallvec![(seen.chunk.0, seen.map_page, block)],
            ..Self::default()
        }
    }
}

/// What remains of a read after the synchronous fast path.
pub(crate) enum Looked {
    /// One block, which a fast drive has.
    Block(Seen),
    /// All is in one chunk, and these blocks of it are still to be read.
    Left(Known),
    /// All of it has to be looked up.
    Unknown,
}

impl Shard {
    /// Reads into `buf` from `offset` (bytes) of `by`'s volume, after [`Shard::try_read`] left it there.
    ///
    /// # Errors
    /// `Medium` if a block has no intact copy on any drive, or a drive's
    /// error.
    pub(crate) async fn read(
        &self,
        by: By,
        offset: u64,
        buf: &mut IoBuf,
        looked: Looked,
    ) -> Result<(), IoError> {
        let mut known = match looked {
            Looked::Block(seen) => Some(Known::block(seen)),
            Looked::Left(known) => Some(known),
            Looked::Unknown => None,
        };
        for piece in pieces(offset, buf.len() as u64) {
            self.read_chunk(by, piece, known.take(), buf).await?;
        }
        Ok(())
    }

    /// Reads a piece of a chunk of `by`'s volume, from whichever layers have it; `known`: where those blocks of it lie that
    /// are still to be read. Blocks that are no longer where they were looked up are looked up again.
    ///
    /// # Errors
    /// As [`Shard::read`].
    pub(crate) async fn read_chunk(
        &self,
        by: By,
        piece: Piece,
        mut known: Option<Known>,
        buf: &mut IoBuf,
    ) -> Result<(), IoError> {
        let (first, count) = piece.blocks();
        let mut todo = BlockMask::of(first, count);
        while !todo.is_empty() {
            let known = match known.take() {
                Some(known) => known,
                None => self.look_up(by, piece, todo, buf).await?,
            };
            let mut left = BlockMask::default();
            if !known.placed.is_empty() {
                left = self.read_placed(by, piece, &known.placed, buf).await;
            }
            for (layer, map_page, blocks) in known.parts {
                let part = self.read_part((by, layer), &map_page, piece, blocks, buf);
                left = left.or(part.await?);
            }
            self.note_uses(by, &known.uses, left);
            todo = left;
        }
        Ok(())
    }

    /// Where blocks of a piece lie; those that are zeroes are in `buf` then.
    async fn look_up(
        &self,
        by: By,
        piece: Piece,
        blocks: BlockMask,
        buf: &mut IoBuf,
    ) -> Result<Known, IoError> {
        let find = |state: &State| {
            let layer = state.live(by.volume);
            live(state.volumes.get(&layer))?;
            Ok(state.sources(layer, piece.chunk, blocks))
        };
        let owned = self.look(find).await?;
        let zeroes = serve_zeroes(piece, &owned.zero, buf);
        let more = |counters: &mut IoCounters| counters.blocks_zero += zeroes;
        self.state.borrow_mut().count_of(by.volume, more);
        let of_part = |(layer, map_page, blocks): &(u32, Rc<MapPage>, BlockMask)| {
            ((*layer, piece.chunk), stored(map_page, *blocks))
        };
        Ok(Known {
            uses: owned.parts.iter().map(of_part).collect(),
            parts: owned.parts,
            placed: owned.placed,
        })
    }

    /// Records uses of blocks, except those still to be read.
    fn note_uses(&self, by: By, uses: &[((u32, u32), BlockMask)], left: BlockMask) {
        let mut state = self.state.borrow_mut();
        for (chunk, blocks) in uses {
            state.access.note_use(by, *chunk, &blocks.and_not(left));
        }
    }

    /// Reads blocks at the locations in page summaries. Returns those that could not be read: their pages have to
    /// be examined.
    async fn read_placed(
        &self,
        by: By,
        piece: Piece,
        placed: &[Placed],
        buf: &mut IoBuf,
    ) -> BlockMask {
        let target = Target::new(piece, buf);
        // Usually one block: nothing is allocated for that.
        if placed.len() == 1 {
            let read = self.read_placed_run(by, placed, &target).await;
            return self.count_placed((by, piece), placed, read);
        }
        let follows = |one: &Placed, next: &Placed| {
            (one.layer, one.block + 1, one.slot.plus(1)) == (next.layer, next.block, next.slot)
        };
        let runs: SmallVec<[&[Placed]; 4]> = placed.chunk_by(follows).collect();
        let reads = runs
            .iter()
            .map(|run| self.read_placed_run(by, run, &target));
        let ended = runs.iter().zip(join_all(reads).await);
        ended.fold(BlockMask::default(), |left, (run, read)| {
            left.or(self.count_placed((by, piece), run, read))
        })
    }

    /// Reads contiguous blocks at the locations in summaries.
    async fn read_placed_run(
        &self,
        by: By,
        run: &[Placed],
        target: &Target<'_>,
    ) -> Result<(), DriveError> {
        let began = self.handle.now_ns();
        let first = run[0];
        let crc = |index: usize| run[index].crc;
        self.read_to(by.due, (first.slot, run.len()), (first.block, crc), target)
            .await?;
        let took = self.handle.now_ns() - began;
        let class = self.class(first.slot);
        self.state.borrow_mut().count_source(by.volume, class, took);
        Ok(())
    }

    /// Counts such a read. Returns the blocks if they could not be read.
    fn count_placed(
        &self,
        (by, piece): (By, Piece),
        run: &[Placed],
        read: Result<(), DriveError>,
    ) -> BlockMask {
        let key = (run[0].layer, piece.chunk);
        let mut state = self.state.borrow_mut();
        if read.is_err() {
            state.page_cache.summary_failed(key);
            return run.iter().map(|known| known.block).collect();
        }
        state.page_cache.summary_used(key);
        state.access.note_summarized(by, piece.chunk, run);
        state.count_of(by.volume, |counters| {
            counters.blocks_fast += run.len() as u64
        });
        BlockMask::default()
    }

    /// Reads on behalf of `by`.
    ///
    /// # Errors
    /// As [`Shard::read`].
    pub(crate) async fn look_and_read(
        &self,
        by: By,
        offset: u64,
        buf: &mut IoBuf,
    ) -> Result<(), IoError> {
        let seen = self.state.borrow().see(by.volume, offset, true);
        match self.read_seen(by, offset, buf, seen) {
            Ok(served) => {
                let mut state = self.state.borrow_mut();
                state.count_of(by.volume, |counters| served.add_to(counters));
                Ok(())
            }
            Err(looked) => self.read(by, offset, buf, looked).await,
        }
    }

    /// Reads all that needs no wait, using the lookup of its first block. Complete reads are counted by the
    /// caller.
    ///
    /// # Errors
    /// The remaining work.
    #[inline]
    pub(crate) fn read_seen(
        &self,
        by: By,
        offset: u64,
        buf: &mut IoBuf,
        seen: Option<Seen>,
    ) -> Result<Served, Looked> {
        let is_block = buf.len() == BLOCK && offset.is_multiple_of(BLOCK as u64);
        if let Some(seen) = seen.filter(|seen| is_block && seen.is_alone) {
            match self.try_read_block(by, &seen, buf) {
                Block::Served(served) => return Ok(served),
                Block::Left => return Err(Looked::Block(seen)),
                Block::Elsewhere => {}
            }
        }
        self.try_read(by, offset, buf)
    }

    /// The same without an earlier lookup.
    ///
    /// # Errors
    /// The remaining work.
    pub(crate) fn try_read(&self, by: By, offset: u64, buf: &mut IoBuf) -> Result<Served, Looked> {
        let mut state = self.state.borrow_mut();
        let layer = state.live(by.volume);
        let mut pieces = pieces(offset, buf.len() as u64).peekable();
        let (mut is_only, mut served) = (true, Served::default());
        let mut uses = Uses::new();
        while let Some(piece) = pieces.next() {
            is_only &= pieces.peek().is_none();
            let (first, count) = piece.blocks();
            state.access.prefetch_use((layer, piece.chunk), first);
            let all = BlockMask::of(first, count);
            let Ok(owned) = state.sources(layer, piece.chunk, all) else {
                return Err(Looked::Unknown);
            };
            // Of a volume that is gone, or a chunk that was never written, a task reads, except in the layers of clones.
            let is_lowest = |entry: &Volume| entry.parent == 0;
            if owned.zero == all && state.volumes.get(&layer).is_none_or(is_lowest) {
                return Err(Looked::Unknown);
            }
            served.zero += serve_zeroes(piece, &owned.zero, buf) as u32;
            let (mut left, mut placed) = (Parts::new(), owned.placed);
            for (layer, map_page, mut blocks) in owned.parts {
                let asked = blocks;
                let by = (by, false);
                let present =
                    self.serve_present(&mut state, by, (&map_page, piece), &mut blocks, buf);
                served.add(present);
                let used = match present.zero {
                    0 => asked,
                    _ => stored(&map_page, asked),
                };
                uses.push(((layer, piece.chunk), used));
                served.fast += self.serve_in_place((&map_page, piece), &mut blocks, buf);
                if !blocks.is_empty() {
                    left.push((layer, map_page, blocks));
                }
            }
            if is_only && !placed.is_empty() {
                let found = placed.clone();
                served.fast += self.serve_placed(&mut state, piece, &mut placed, buf);
                let is_left = |known: &Placed| placed.iter().any(|left| left.block == known.block);
                let given = found.iter().filter(|known| !is_left(known));
                uses.extend(given.map(|known| {
                    let chunk = (known.layer, piece.chunk);
                    (chunk, BlockMask::of(known.block, 1))
                }));
            }
            match left.is_empty() && placed.is_empty() {
                true => {}
                false if is_only => {
                    state.count_of(by.volume, |counters| served.add_to(counters));
                    return Err(Looked::Left(Known {
                        parts: left,
                        placed,
                        uses,
                    }));
                }
                // All of it is read once more, and counted then.
                false => return Err(Looked::Unknown),
            }
        }
        for (chunk, blocks) in &uses {
            state.access.note_use(by, *chunk, blocks);
        }
        Ok(served)
    }

    /// Reads blocks of a piece that are the page's own. Returns those that it no longer had when it
    /// read them.
    pub(super) async fn read_part(
        &self,
        (by, layer): (By, u32),
        map_page: &Rc<MapPage>,
        piece: Piece,
        blocks: BlockMask,
        buf: &mut IoBuf,
    ) -> Result<BlockMask, IoError> {
        let mut todo = blocks;
        map_page.touched.set(true);
        let (mut failures, mut waited) = (0, false);
        let mut choice = TierChoice::default();
        loop {
            if map_page.freed.get() && !is_on(Mutation::ReadDissolved) {
                return Ok(todo);
            }
            let fetched = self.fills.until_filled();
            let (runs, wait) = {
                let mut state = self.state.borrow_mut();
                let served =
                    self.serve_present(&mut state, (by, waited), (map_page, piece), &mut todo, buf);
                state.count_of(by.volume, |counters| served.add_to(counters));
                if todo.is_empty() {
                    return Ok(todo);
                }
                choice.renew();
                self.plan(map_page, &todo, &mut choice)
            };
            if wait {
                self.hurry(map_page, by.due);
            }
            if runs.is_empty() && wait {
                fetched.await;
                self.check()?;
                waited = true;
                continue;
            }
            let target = Target::new(piece, buf);
            let reads = runs
                .iter()
                .map(|run| self.read_run_timed(by, (layer, piece.chunk), map_page, run, &target));
            let results = join_all(reads).await;
            let mut failed = None;
            for (run, result) in runs.iter().zip(results) {
                match result {
                    Ok(false) => waited = true,
                    Ok(true) => {
                        self.count_read(by, run);
                        todo = without(todo, run.first, run.count);
                    }
                    Err(error) => {
                        let (chunk, blocks) = ((layer, piece.chunk), (run.first, run.count));
                        if run.clean {
                            choice.home_failed();
                            self.mend_homes_soon(chunk, map_page, blocks);
                            continue;
                        }
                        if is_of_blocks(error) {
                            // The whole run falls back to its home, and some of it may be bad there.
                            self.mend_homes(chunk, map_page, blocks).await;
                        }
                        if self
                            .evict_clean_copies(chunk, map_page, blocks, run.place)
                            .await
                        {
                            continue;
                        }
                        failed = failed.or(Some((run, error)));
                    }
                }
            }
            // Counted by rounds: of many pieces some may fail in each, and none of them twice.
            if let Some((run, error)) = failed {
                failures += 1;
                if failures >= ATTEMPTS {
                    let chunk = (layer, piece.chunk);
                    self.tell_lost(chunk, run.first, run.place, &run.crcs).await;
                    return Err(drive_error(error, "reading failed"));
                }
            }
            if todo.is_empty() {
                return Ok(todo);
            }
        }
    }

    /// Copies zeroes and blocks in RAM, and takes them off `todo`. Reads by bypassed initiators do not make blocks
    /// younger there. `waited`: since before the fill.
    fn serve_present(
        &self,
        state: &mut State,
        (by, waited): (By, bool),
        (map_page, piece): (&Rc<MapPage>, Piece),
        todo: &mut BlockMask,
        buf: &mut IoBuf,
    ) -> Served {
        let (first, count) = piece.blocks();
        let page = map_page.page.borrow();
        let mut served = Served::default();
        for block in todo
            .blocks()
            .filter(|block| (first..first + count).contains(block))
        {
            if page.state(block) == BlockState::Zero {
                let (skip, at, len) = overlap(piece, block);
                debug_assert!(skip + len <= BLOCK);
                buf.zero(at, len);
                *todo = without(*todo, block, 1);
                served.zero += 1;
                continue;
            }
            let extent = block / EXTENT_BLOCKS;
            let Some(slot) = map_page.ram[extent].get().checked_sub(1) else {
                continue;
            };
            let present = state.ram.get(slot);
            let Some(bytes) = present.and_then(|extent| extent.block(block % EXTENT_BLOCKS)) else {
                continue;
            };
            let (skip, at, len) = overlap(piece, block);
            buf.write(at, &bytes[skip..skip + len]);
            if !by.bypassed {
                self.note_touch(state, slot, block, waited);
            }
            served.ram += 1;
            *todo = without(*todo, block, 1);
        }
        served
    }

    /// Groups the blocks that are still to be read; the flag says that some are being fetched
    /// by another read.
    fn plan(
        &self,
        map_page: &MapPage,
        todo: &BlockMask,
        choice: &mut TierChoice,
    ) -> (Vec<Run>, bool) {
        let page = map_page.page.borrow();
        let mut runs: Vec<Run> = Vec::new();
        let mut wait = false;
        for block in todo.blocks() {
            let cold = page.slot(block).is_none();
            if cold && map_page.fetching.get() >> (block / EXTENT_BLOCKS) & 1 == 1 {
                wait = true;
                continue;
            }
            let clean = !cold && self.reads_at_home(&page, block, todo.count(), choice);
            let place = if cold || clean {
                page.home().plus(block as u64)
            } else {
                page.slot(block)
            };
            let class = self.class(place);
            let cold = class == Class::Slow && !clean;
            match runs.last_mut() {
                Some(run)
                    if run.first + run.count == block
                        && run.place.plus(run.count as u64) == place
                        && (run.cold, run.clean) == (cold, clean) =>
                {
                    run.count += 1;
                    run.crcs.push(page.crc(block));
                }
                _ => runs.push(Run {
                    first: block,
                    count: 1,
                    place,
                    crcs: vec![page.crc(block)],
                    class,
                    cold,
                    clean,
                }),
            }
        }
        (runs, wait)
    }

    /// The same as [`Shard::read_run`]; it also records how long a host waits for each tier, for forecasts.
    async fn read_run_timed(
        &self,
        by: By,
        chunk: (u32, u32),
        map_page: &Rc<MapPage>,
        run: &Run,
        target: &Target<'_>,
    ) -> Result<bool, DriveError> {
        let began = self.handle.now_ns();
        let is_read = self.read_run(by, chunk, map_page, run, target).await?;
        if is_read {
            let took = self.handle.now_ns() - began;
            let mut state = self.state.borrow_mut();
            state.count_source(by.volume, run.class, took);
            if !by.bypassed {
                state.access.forecast().took(run.class, took);
            }
        }
        Ok(is_read)
    }

    /// Reads contiguous blocks into `target`. False if another read has brought them to RAM, or is about to: they have to
    /// be looked up again.
    async fn read_run(
        &self,
        by: By,
        (layer, chunk): (u32, u32),
        map_page: &Rc<MapPage>,
        run: &Run,
        target: &Target<'_>,
    ) -> Result<bool, DriveError> {
        let hold = by.bypassed
            || self.shared.promotion_held.load(Ordering::Relaxed)
            || !self.tiers.are_two();
        let at_home = map_page.page.borrow().slot(run.first).is_none();
        if run.cold && at_home && !hold {
            let fetched = self.fetch(by, (layer, chunk), map_page, run).await;
            // The lost block may be one of its surroundings: the requested blocks may be intact.
            if let Ok(fetched) = fetched {
                let fetched = fetched.map(|data| target.put(run.first, &data));
                return Ok(fetched.is_some());
            }
        }
        let crc = |index: usize| run.crcs[index];
        let data = self
            .read_to(by.due, (run.place, run.count), (run.first, crc), target)
            .await?;
        if run.cold && !hold {
            self.keep_in_ram(
                map_page,
                (layer, chunk),
                run.first,
                &data,
                FillOrigin::asked(u16::MAX),
            );
        }
        Ok(true)
    }

    /// Reads `count` blocks at a place, which are those of the chunk from `first` on, into `target`.
    pub(super) async fn read_to(
        &self,
        due: Due,
        (place, count): (Place, usize),
        (first, crc): (usize, impl Fn(usize) -> u32),
        target: &Target<'_>,
    ) -> Result<DmaBuf, DriveError> {
        let arriving = target.arriving(first, crc);
        let check = |index: usize, bytes: &[u8]| arriving.take(index, bytes);
        let data = self
            .read_place_in(InLine::For(due), place, count, &check)
            .await?;
        arriving.end(&data);
        Ok(data)
    }

    /// Reads blocks at a place, which is not reused meanwhile.
    pub(crate) async fn read_place(
        &self,
        place: Place,
        count: usize,
        check: crate::vdrive::Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        self.read_place_in(InLine::For(Due::NONE), place, count, check)
            .await
    }

    /// The same; a read that already has its turn uses it.
    pub(crate) async fn read_place_in(
        &self,
        turn: InLine<'_>,
        place: Place,
        count: usize,
        check: crate::vdrive::Check<'_>,
    ) -> Result<DmaBuf, DriveError> {
        let vdrive = self.vdrive(place.vdrive()).map_err(|_| DriveError::Gone)?;
        let read_epoch = self.state.borrow_mut().deferred_frees.begin_read();
        let data = match (turn, self.class(place)) {
            (InLine::Has(turn), _) => turn.read(place.block(), count, check).await,
            (InLine::For(due), Class::Slow) => {
                let read = vdrive.read_in_turn(place.block(), count, due, check);
                read.await
            }
            (InLine::For(_), _) => vdrive.read(place.block(), count, check).await,
        };
        self.end_read(read_epoch);
        data
    }

    fn count_read(&self, by: By, run: &Run) {
        let mut state = self.state.borrow_mut();
        let blocks = run.count as u64;
        if run.class != Class::Slow {
            state.count_of(by.volume, |counters| counters.blocks_fast += blocks);
            return;
        }
        state.count_of(by.volume, |counters| counters.blocks_slow += blocks);
        if !by.bypassed {
            state.access.forecast().waited(blocks);
        }
    }
}

/// Those of these blocks that are not zeroes, by what a page says.
fn stored(map_page: &MapPage, blocks: BlockMask) -> BlockMask {
    let page = map_page.page.borrow();
    let is_stored = |block: &usize| page.state(*block) != BlockState::Zero;
    blocks.blocks().filter(is_stored).collect()
}

/// Puts zeroes where blocks have some; returns how many.
fn serve_zeroes(piece: Piece, blocks: &BlockMask, buf: &mut IoBuf) -> u64 {
    for block in blocks.blocks() {
        let (_, at, len) = overlap(piece, block);
        buf.zero(at, len);
    }
    blocks.count() as u64
}

/// First block of a mask that has some, and the number from there to the last.
pub(crate) fn span_of(mask: &BlockMask) -> (usize, usize) {
    let first = mask.blocks().next().unwrap_or(0);
    let last = mask.blocks().last().unwrap_or(first);
    (first, last + 1 - first)
}

fn without(mut mask: BlockMask, first: usize, count: usize) -> BlockMask {
    (first..first + count).for_each(|block| mask.clear(block));
    mask
}

#[cfg(test)]
mod tests;
