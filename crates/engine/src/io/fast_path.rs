//! Operations that complete without waiting: data in memory, the engine's or a drive's, is read and written as
//! they arrive, straight from and to the host's memory, without a task. Operations that cannot be done so are left as
//! they were, for a task (`dispatch.rs`).

use super::cpu_prefetch::Seen;
use super::read::slow_path::Served;
use super::read::target::{is_right, overlap};
use super::write::slow_path::{Piece, pieces};
use crate::map::layer_table::{AllPlaced, writer};
use crate::map::page::MapPage;
use crate::map::radix::Lookup;
use crate::shard::state::{Shard, State};
use crate::space::{Class, Run};
use crate::tiering::access_stats::By;
use crate::vdrive::Purpose;
use crate::wal::log::Work;
use block::{IoBuf, Lent};
use format::{BlockMask, BlockState};
use qos::Due;
use smallvec::SmallVec;
use std::rc::Rc;
use units::{BLOCK, CHUNK, EXTENT_BLOCKS, Place};

/// While a block of a longer read is copied, the one this many blocks later is prefetched. Prefetching only the next one was no better
/// than nothing (docs/benchmarks-log.md).
const AHEAD: usize = 2;

/// Result of a lookup of one block. It is small, since each read returns one.
pub(crate) enum Block {
    /// The block is in the buffer.
    Served(Served),
    /// A fast drive has it, but not in memory, or with a wrong checksum.
    Left,
    /// The slow path has to look it up: nothing has changed.
    Elsewhere,
}

impl Shard {
    /// Reads one whole block whose page is in memory, the most frequent kind of read: the same as [`Shard::try_read`] for
    /// any range, in half of the instructions.
    pub(super) fn try_read_block(&self, by: By, seen: &Seen, buf: &mut IoBuf) -> Block {
        let (map_page, block) = (&seen.map_page, seen.block);
        if map_page.freed.get() {
            return Block::Elsewhere;
        }
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let page = map_page.page.borrow();
        let (mut served, mut in_ram) = (Served::default(), None);
        let is_right = if page.state(block) == BlockState::Zero {
            buf.zero(0, BLOCK);
            served.zero = 1;
            true
        } else if let Some(slot) = map_page.ram[block / EXTENT_BLOCKS].get().checked_sub(1)
            && let Some(extent) = state.ram.get(slot)
            && let Some(bytes) = extent.block(block % EXTENT_BLOCKS)
        {
            buf.write(0, bytes);
            (served.ram, in_ram) = (1, Some(slot));
            true
        } else {
            let place = page.slot(block);
            if place.is_none() || self.class(place) != Class::Fast {
                return Block::Elsewhere;
            }
            let Ok(vdrive) = self.vdrive(place.vdrive()) else {
                return Block::Elsewhere;
            };
            let mut is_there = None;
            vdrive.read_in_place(place.block(), 1, &mut |shown| {
                self.fetching.some();
                let sum = shown.read_into(0..BLOCK, buf, 0);
                self.fetching.some();
                *is_there.insert(is_right(sum, page.crc(block)))
            });
            self.fetching.some();
            map_page.touched.set(true);
            served.fast = 1;
            is_there == Some(true)
        };
        if !is_right {
            return Block::Left;
        }
        // Unwritten blocks have no location: there is nothing to place.
        if served.zero == 0 {
            state.access.note_use_of(by, seen.chunk, block);
        }
        self.fetching.some();
        if let Some(slot) = in_ram.filter(|_| !by.bypassed) {
            self.note_touch(state, slot, block, false);
        }
        Block::Served(served)
    }

    /// Copies blocks that a fast drive has in memory, and removes those with correct checksums from `todo`. Returns how many
    /// were copied.
    pub(super) fn serve_in_place(
        &self,
        (map_page, piece): (&Rc<MapPage>, Piece),
        todo: &mut BlockMask,
        buf: &mut IoBuf,
    ) -> u32 {
        if todo.is_empty() || map_page.freed.get() {
            return 0;
        }
        let page = map_page.page.borrow();
        let (start, count) = piece.blocks();
        let end = start + count;
        let mut served = BlockMask::default();
        let mut next = start;
        while next < end {
            let first = next;
            next += 1;
            if !todo.has(first) {
                continue;
            }
            let place = page.slot(first);
            if place.is_none() || self.class(place) != Class::Fast {
                continue;
            }
            let follows = |block: usize| page.slot(block) == place.plus((block - first) as u64);
            while next < end && todo.has(next) && follows(next) {
                next += 1;
            }
            let count = next - first;
            let crc = |index: usize| {
                let coming = first + index + AHEAD;
                if coming < end {
                    self.coming_at(page.slot(coming)).begin();
                }
                page.crc(first + index)
            };
            self.copy_in_place(piece, (first, count), place, crc, buf, &mut served);
        }
        map_page.touched.set(true);
        *todo = todo.and_not(served);
        served.count() as u32
    }

    /// The same for blocks whose locations are in page summaries.
    pub(super) fn serve_placed(
        &self,
        state: &mut State,
        piece: Piece,
        placed: &mut AllPlaced,
        buf: &mut IoBuf,
    ) -> u32 {
        let before = placed.len();
        placed.retain(|known| {
            let mut served = BlockMask::default();
            if self.class(known.slot) == Class::Fast {
                let crc = |_: usize| known.crc;
                self.copy_in_place(piece, (known.block, 1), known.slot, crc, buf, &mut served);
            }
            if !served.is_empty() {
                state.page_cache.summary_used((known.layer, piece.chunk));
            }
            served.is_empty()
        });
        (before - placed.len()) as u32
    }

    /// Copies `count` blocks of a chunk from `first` on out of a place in a drive's memory, and adds those that
    /// are right to `served`. `crc` returns a block's checksum just before it is copied.
    fn copy_in_place(
        &self,
        piece: Piece,
        (first, count): (usize, usize),
        place: Place,
        crc: impl Fn(usize) -> u32,
        buf: &mut IoBuf,
        served: &mut BlockMask,
    ) {
        let Ok(vdrive) = self.vdrive(place.vdrive()) else {
            return;
        };
        vdrive.read_in_place(place.block(), count, &mut |shown| {
            let mut all = true;
            for (index, shown) in shown.blocks().enumerate() {
                let (skip, at, len) = overlap(piece, first + index);
                let crc = crc(index);
                let sum = shown.read_into(skip..skip + len, buf, at);
                match is_right(sum, crc) {
                    true => served.set(first + index),
                    false => all = false,
                }
            }
            all
        });
    }

    /// Writes whole blocks to a drive's memory, if that needs no wait and they are not so many that others would
    /// have to wait. False if not all of it is written: the written part is then written again. The caller calls [`Shard::written`].
    pub(crate) fn write_now(
        &self,
        by: By,
        (offset, buf): (u64, &IoBuf),
        mut seen: Option<Seen>,
    ) -> bool {
        buf.len() <= CHUNK
            && pieces(offset, buf.len() as u64)
                .all(|piece| self.try_write_piece(by, piece, buf, seen.take()))
    }

    /// The same for one chunk; false if nothing has changed.
    fn try_write_piece(&self, by: By, piece: Piece, buf: &IoBuf, seen: Option<Seen>) -> bool {
        let Some((layer, map_page)) = self.try_writable(by.volume, piece.chunk, seen) else {
            return false;
        };
        let (first, count) = piece.blocks();
        if !piece.is_whole() || self.admit(layer, &map_page, first, count).is_err() {
            return false;
        }
        let mut runs = self.scratch.take();
        let wrote = self.try_take_slots(count, &mut runs) && {
            match self.copy_to_slots(&runs, piece, buf) {
                Some(crcs) => {
                    let by = (by, layer);
                    self.record_write(by, &map_page, piece, &runs, &crcs)
                        .is_ok()
                }
                None => {
                    self.give_back(&runs);
                    false
                }
            }
        };
        runs.clear();
        self.scratch.replace(runs);
        wrote
    }

    /// Slots for a host's write, if it need not wait for its turn.
    fn try_take_slots(&self, count: usize, runs: &mut Vec<Run>) -> bool {
        let class = self.tiers.for_writes();
        let State { alloc, pacing, .. } = &mut *self.state.borrow_mut();
        let in_memory = |on| self.vdrive(on).is_ok_and(|vdrive| vdrive.is_in_memory());
        let may_take = alloc.next_slots_on(class).is_some_and(in_memory)
            && !pacing.is_short(alloc.free_slots_or(class, pacing.reserve))
            && !self.space_waiters.are_any()
            && alloc.leaves_a_group(count as u64);
        if may_take && alloc.take_slots_at_once(class, count, runs) == count {
            return true;
        }
        runs.drain(..).for_each(|run| alloc.give_back(run));
        false
    }

    /// Copies a host's data to slots in a drive's memory; returns the checksums of the copied blocks.
    fn copy_to_slots(
        &self,
        runs: &[Run],
        piece: Piece,
        buf: &IoBuf,
    ) -> Option<SmallVec<[u32; 16]>> {
        let mut crcs: SmallVec<[u32; 16]> = SmallVec::new();
        for run in runs {
            let vdrive = self.vdrive(run.place.vdrive()).ok()?;
            let mut take_in = |mut lent: Lent<'_>| {
                for mut block in lent.blocks() {
                    let at = piece.at + crcs.len() * BLOCK;
                    crcs.push(block.fill_from(buf, at));
                    self.fetching.some();
                }
            };
            let (place, count) = (run.place.block(), run.count);
            if !vdrive.write_in_place(place, count, Purpose::Hosts, &mut take_in) {
                return None;
            }
        }
        Some(crcs)
    }

    /// The layer and page that take a write to a chunk, if the page is in memory, nothing holds the volume and the journal has
    /// room.
    fn try_writable(
        &self,
        volume: u32,
        chunk: u32,
        seen: Option<Seen>,
    ) -> Option<(u32, Rc<MapPage>)> {
        let state = self.state.borrow();
        if state.failed.is_some()
            || state.active.is_quiesced(volume)
            || !self.has_journal_room(&state, Work::Host(Due::NONE))
        {
            return None;
        }
        // A layer that is based on no other is not being merged with it: it takes its writes itself.
        if let Some(seen) = seen.filter(|seen| seen.is_alone && !seen.map_page.freed.get()) {
            return Some((seen.chunk.0, seen.map_page));
        }
        let layer = writer(&state, state.live(volume), chunk).ok()?;
        let entry = state.volumes.get(&layer).filter(|entry| !entry.gone)?;
        match entry.tree.lookup(chunk) {
            Lookup::Loaded(map_page) if !map_page.freed.get() => Some((layer, map_page.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shard::probe::{Probe, run};
    use crate::tiering::access_stats::By;
    use block::IoBuf;
    use units::{BLOCK, CHUNK};

    #[test]
    fn what_lies_in_two_chunks_is_written_at_once_and_what_is_longer_is_not() {
        run(|handle| async move {
            let probe = Probe::open_in_place(&handle, "at-once").await;
            let (shard, by) = (&probe.shard, By::write(probe.volume));
            let buf = |fill, blocks: usize| {
                IoBuf::from_bytes(vec![fill; blocks * BLOCK].into_boxed_slice())
            };
            // The chunks' pages are in memory afterwards.
            shard.write(by, 0, &buf(1, 600)).await.unwrap();
            let at = (CHUNK - 3 * BLOCK) as u64;
            assert!(shard.write_now(by, (at, &buf(2, 8)), None));
            assert!(!shard.write_now(by, (at, &buf(3, CHUNK / BLOCK + 1)), None));
            shard.written().await.unwrap();
            let mut read = IoBuf::zeroed(10 * BLOCK);
            let by = By::read(probe.volume);
            let first = at - BLOCK as u64;
            shard.look_and_read(by, first, &mut read).await.unwrap();
            let read = read.into_bytes().unwrap();
            let blocks: Vec<u8> = read.chunks(BLOCK).map(|block| block[BLOCK / 2]).collect();
            assert_eq!(blocks, [1, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
        });
    }
}
