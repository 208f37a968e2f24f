//! Discard, write-zeroes and the allocation status.

use super::write::slow_path::{Piece, pieces};
use crate::maintenance::layer_gc::Turns;
use crate::map::page::MapPage;
use crate::map::page::live;
use crate::map::radix::Lookup;
use crate::shard::state::Shard;
use crate::tiering::access_stats::By;
use crate::wal::log::Work;
use block::{AllocationState, ErrorKind, IoError, StatusExtent};
use format::BlockMask;
use qos::Due;
use std::ops::Range;
use std::rc::Rc;
use units::invariant::check;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK};

/// Most runs in one response to a status query.
const STATUS_EXTENTS: usize = 1024;
/// Chunks examined for one response.
const STATUS_CHUNKS: u32 = 4096;
/// Chunks examined without a pause.
const STATUS_TURN: usize = 64;

/// What to do with a part of a block when zeroing it needs space and the pool is full, as with one that a
/// snapshot also has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// Leave it as it is: a discard is a hint.
    Skip,
    /// Fail the operation.
    Refuse,
}

impl Shard {
    /// The range reads as zeroes afterwards, and whole blocks of it take no space. Of a block that is covered
    /// in part, that part is zeroed; a block of which nothing else is left takes no space either.
    ///
    /// # Errors
    /// As a write's; `NoSpace` for whole blocks only where a page of the map would have to be made and the
    /// metadata region is full.
    pub(crate) async fn trim(
        &self,
        by: By,
        offset: u64,
        len: u64,
        when_full: WhenFull,
    ) -> Result<(), IoError> {
        let mut mapped = Some(0);
        for piece in pieces(offset, len) {
            // Chunks without a page in any layer are zeroes: most chunks of a large volume.
            if mapped.is_some_and(|mapped| mapped < piece.chunk) {
                mapped = self.next_mapped(by.volume, piece.chunk).await?;
            }
            match mapped {
                None => break,
                Some(mapped) if mapped > piece.chunk => continue,
                Some(_) => {}
            }
            self.trim_piece(by, piece, when_full).await?;
            // Work that waits for no drive would starve others.
            self.handle.yield_now().await;
        }
        Ok(())
    }

    async fn trim_piece(&self, by: By, piece: Piece, when_full: WhenFull) -> Result<(), IoError> {
        let room = self.journal_room(Work::Host(by.due)).await?;
        let Some((layer, map_page)) = self.trimmable(by.volume, piece.chunk).await? else {
            return Ok(());
        };
        let head = piece.start.next_multiple_of(BLOCK);
        let tail = (piece.start + piece.len) / BLOCK * BLOCK;
        if head < tail {
            let (first, count) = (head / BLOCK, (tail - head) / BLOCK);
            self.note_discarded((layer, piece.chunk), &map_page, (first, count));
            self.apply_trim(layer, piece.chunk, &map_page, first, count)?;
        }
        drop(room);
        let end = piece.start + piece.len;
        for (from, to) in [(piece.start, head.min(end)), (tail.max(head), end)] {
            if from >= to {
                continue;
            }
            match self.zero_part(by, piece.chunk, from..to).await {
                Err(error) if error.kind == ErrorKind::NoSpace && when_full == WhenFull::Skip => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Discards a range (in bytes) of a volume that front ends cannot reach any longer.
    ///
    /// # Errors
    /// As a write's.
    pub async fn trim_range(&self, volume: u32, offset: u64, len: u64) -> Result<(), IoError> {
        let by = By::write(volume);
        self.trim(by, offset, len, WhenFull::Refuse).await
    }

    /// The layer and page that a discard changes now, or nothing when nothing of the chunk can be
    /// seen.
    pub(super) async fn trimmable(
        &self,
        volume: u32,
        chunk: u32,
    ) -> Result<Option<(u32, Rc<MapPage>)>, IoError> {
        loop {
            if let Some(found) = self.live_page(volume, chunk, false).await? {
                return Ok(Some(found));
            }
            let layer = self.state.borrow().live(volume);
            let seen = self.state.borrow().view(layer, chunk);
            match seen {
                Ok(None) => return Ok(None),
                Ok(Some(_)) => return self.live_page(volume, chunk, true).await,
                Err((layer, level, key, ptr)) => self.load(layer, level, key, ptr).await?,
            }
        }
    }

    /// Which parts of a range (in bytes) are allocated, or with `since` which are not as in the
    /// snapshot of that epoch, from its start on, perhaps not to its end.
    ///
    /// # Errors
    /// As a read's, and as [`Shard::changed_chunk`]'s.
    pub(crate) async fn status_of(
        &self,
        volume: u32,
        offset: u64,
        len: u64,
        since: Option<u32>,
    ) -> Result<Vec<StatusExtent>, IoError> {
        let (yes, no) = match since {
            None => (AllocationState::Data, AllocationState::Hole),
            Some(_) => (AllocationState::Changed, AllocationState::Same),
        };
        if let Some(since) = since {
            self.state.borrow().compared(volume, since)?;
        }
        let mut extents: Vec<StatusExtent> = Vec::new();
        let mut mapped = Some(0);
        for (looked, piece) in pieces(offset, len).enumerate() {
            if looked as u32 >= STATUS_CHUNKS || extents.len() >= STATUS_EXTENTS {
                break;
            }
            // Pages may all be in memory: others want their turn.
            if looked % STATUS_TURN == STATUS_TURN - 1 {
                self.handle.yield_now().await;
            }
            // A chunk without a page in any layer is a hole, and was one then.
            if mapped.is_some_and(|mapped| mapped < piece.chunk) {
                mapped = self.next_mapped(volume, piece.chunk).await?;
            }
            if mapped != Some(piece.chunk) {
                add(&mut extents, piece.len as u64, no);
                continue;
            }
            let (first, count) = piece.blocks();
            let blocks = BlockMask::of(first, count);
            let found = match since {
                None => self.owned(volume, piece.chunk, blocks).await?.stored(),
                Some(since) => {
                    self.changed_chunk(volume, since, piece.chunk)
                        .await?
                        .changed
                }
            };
            for block in first..first + count {
                let from = piece.start.max(block * BLOCK);
                let to = (piece.start + piece.len).min((block + 1) * BLOCK);
                let state = if found.has(block) { yes } else { no };
                add(&mut extents, (to - from) as u64, state);
            }
        }
        Ok(extents)
    }

    /// Discards what a volume has in `chunks` of this shard, whichever layers have it.
    ///
    /// # Errors
    /// As a write's.
    pub async fn trim_chunks(&self, volume: u32, chunks: Range<u32>) -> Result<(), IoError> {
        let mut layer = self.state.borrow().live(volume);
        while layer != 0 {
            let mut from = chunks.start;
            loop {
                let found = self.next_chunks(layer, from).await?;
                for chunk in found.iter().filter(|chunk| **chunk < chunks.end) {
                    // A discard does not free a home that is in use by other work.
                    while let Some((_, map_page)) = self.trimmable(volume, *chunk).await?
                        && map_page.busy.get()
                    {
                        self.handle.sleep(1_000_000).await;
                    }
                    self.trim_range(volume, u64::from(*chunk) * CHUNK as u64, CHUNK as u64)
                        .await?;
                }
                match found.last().and_then(|last| last.checked_add(1)) {
                    Some(next) if next < chunks.end => from = next,
                    _ => break,
                }
            }
            let state = self.state.borrow();
            layer = state.volumes.get(&layer).map_or(0, |entry| entry.parent);
        }
        Ok(())
    }

    /// Frees everything of a layer.
    ///
    /// # Errors
    /// A drive's error, or `Gone` when the shard is closing. The volume stays marked; calling again continues.
    pub(crate) async fn free_chunks(
        &self,
        volume: u32,
        turns: &mut Turns<'_>,
    ) -> Result<(), IoError> {
        let mut from = Some(0);
        while let Some(start) = from {
            let keys = self.next_chunks(volume, start).await?;
            for key in keys.iter().copied() {
                let room = self.journal_room(Work::Host(Due::NONE)).await?;
                if let Some(map_page) = self.page_even_if_gone(volume, key).await? {
                    while map_page.busy.get() && !is_on(Mutation::FreeBusy) {
                        self.handle.sleep(1_000_000).await;
                    }
                    self.apply_trim(volume, key, &map_page, 0, units::CHUNK_BLOCKS)?;
                    self.free_page_if_gone(volume, key, &map_page);
                }
                drop(room);
                turns.next(self).await?;
            }
            from = keys.last().and_then(|last| last.checked_add(1));
        }
        Ok(())
    }

    pub(crate) async fn page_even_if_gone(
        &self,
        volume: u32,
        chunk: u32,
    ) -> Result<Option<Rc<MapPage>>, IoError> {
        loop {
            let (level, key, ptr) = {
                let state = self.state.borrow();
                let Some(entry) = state.volumes.get(&volume) else {
                    return Ok(None);
                };
                match entry.tree.lookup(chunk) {
                    Lookup::Loaded(map_page) => return Ok(Some(map_page.clone())),
                    Lookup::Absent => return Ok(None),
                    Lookup::OnDisk(ptr) => (0, chunk, ptr),
                    Lookup::NeedNode(level, key, ptr) => (level, key, ptr),
                }
            };
            self.load(volume, level, key, ptr).await?;
        }
    }

    /// No further operation of the layer is admitted.
    pub fn end_volume(&self, volume: u32) {
        if let Some(entry) = self.state.borrow_mut().volumes.get_mut(&volume) {
            entry.gone = true;
        }
    }

    /// Forgets a volume whose space was freed; its directory entry goes with the next checkpoint.
    ///
    /// # Errors
    /// `Invalid` if blocks of it are still stored.
    pub fn forget_volume(&self, volume: u32) -> Result<(), IoError> {
        let mut state = self.state.borrow_mut();
        let Some(entry) = state.volumes.get(&volume) else {
            return Ok(());
        };
        if entry.counts.mapped() != 0 || live(Some(entry)).is_ok() {
            let blocks = entry.counts.mapped();
            return Err(IoError::new(
                ErrorKind::Invalid,
                format!("{blocks} blocks are still stored"),
            ));
        }
        check(|| {
            let tree = &state.volumes.get(&volume)?.tree;
            let pages = tree.scan(0, usize::MAX).0.into_iter();
            let mut pages = pages.filter_map(|chunk| Some((chunk, tree.leaf(chunk)?)));
            let (chunk, _) = pages.find(|(_, map_page)| map_page.page.borrow().home().is_some())?;
            Some(format!(
                "layer {volume} is forgotten while its chunk {chunk} has a home"
            ))
        });
        state.tier_index.forget_layer(volume);
        state.access.forget_layer(volume);
        Ok(())
    }
}

fn add(extents: &mut Vec<StatusExtent>, len: u64, state: AllocationState) {
    match extents.last_mut() {
        Some(last) if last.state == state => last.len += len,
        _ => extents.push(StatusExtent { len, state }),
    }
}

#[cfg(test)]
mod tests;
