//! Unreadable blocks: they cannot be demoted or moved. They stay where they are
//! while everything else is moved, are reported once, and are retried at growing intervals.

use crate::map::page::MapPage;
use crate::map::radix::Lookup;
use crate::shard::state::{Shard, State};
use crate::space::Class;
use block::{DmaBuf, DriveError};
use format::{BlockMask, BlockState, crc32c};
use std::collections::BTreeMap;
use units::{BLOCK, CHUNK, Place};

/// Initial retry interval of such a block, in nanoseconds; doubled each time.
const FIRST_NS: u64 = 1_000_000_000;
/// Its maximum.
const LONGEST_NS: u64 = 600_000_000_000;
/// Most blocks that are remembered: beyond that the first chunk is forgotten, and retried and reported again.
const MOST: usize = 64 * 1024;
/// Most blocks that are named; the rest is counted.
const NAMED: usize = 8;

/// A block of a chunk that cannot be read in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnreadableBlock {
    /// Its number within the chunk.
    pub block: usize,
    /// Where it should be.
    pub place: Place,
    /// Errors of the drives.
    pub error: DriveError,
}

struct UnreadableChunk {
    blocks: Vec<UnreadableBlock>,
    again_ns: u64,
    delay_ns: u64,
}

/// Blocks that cannot be demoted, by chunk.
#[derive(Default)]
pub(crate) struct UnreadableIndex {
    chunks: BTreeMap<(u32, u32), UnreadableChunk>,
    blocks: usize,
}

impl UnreadableIndex {
    /// Blocks of a chunk that are not tried again yet.
    pub fn waiting(&self, chunk: (u32, u32), map_page: &MapPage, now_ns: u64) -> BlockMask {
        let known = self.chunks.get(&chunk);
        let known = known.filter(|known| now_ns < known.again_ns);
        let page = map_page.page.borrow();
        let blocks = known.into_iter().flat_map(|known| &known.blocks);
        let same = blocks.filter(|unreadable| page.slot(unreadable.block) == unreadable.place);
        same.map(|unreadable| unreadable.block).collect()
    }

    /// These blocks were tried and cannot be read. True if that was not known.
    fn note(&mut self, chunk: (u32, u32), blocks: Vec<UnreadableBlock>, now_ns: u64) -> bool {
        let before = self.remove(chunk);
        let key = |unreadable: &UnreadableBlock| (unreadable.block, unreadable.place);
        let same = before.filter(|before| before.blocks.iter().map(key).eq(blocks.iter().map(key)));
        let delay_ns = same
            .as_ref()
            .map_or(FIRST_NS, |before| (before.delay_ns * 2).min(LONGEST_NS));
        self.blocks += blocks.len();
        let noted = UnreadableChunk {
            blocks,
            again_ns: now_ns + delay_ns,
            delay_ns,
        };
        self.chunks.insert(chunk, noted);
        while self.blocks > MOST && self.chunks.len() > 1 {
            let first = *self.chunks.keys().next().expect("more than one");
            self.remove(first);
        }
        same.is_none()
    }

    fn remove(&mut self, chunk: (u32, u32)) -> Option<UnreadableChunk> {
        let removed = self.chunks.remove(&chunk)?;
        self.blocks -= removed.blocks.len();
        Some(removed)
    }

    /// Retries all of them immediately.
    pub fn hurry(&mut self) {
        for known in self.chunks.values_mut() {
            known.again_ns = 0;
        }
    }
}

/// Unreadable blocks, for messages.
#[derive(Clone, Default, Debug)]
pub struct UnreadableBlocks {
    /// How many there are.
    pub count: u64,
    /// The first of them: volume, byte in it, location and errors of the drives.
    pub named: Vec<(u32, u64, String)>,
}

impl UnreadableBlocks {
    /// Adds findings of others.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.named.extend(other.named);
        self.named.truncate(NAMED);
    }

    /// The blocks in words, volumes by their names.
    pub fn sentence(&self, name: impl Fn(u32) -> String) -> String {
        let named = self.named.iter();
        let named: Vec<_> = named
            .map(|(volume, byte, place)| format!("{} byte {byte} ({place})", name(*volume)))
            .collect();
        let more = self.count - self.named.len() as u64;
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "{} blocks of {BLOCK} bytes cannot be read: {}{more}; rewrite them, discard them or \
             restore them, and try again",
            self.count,
            named.join("; ")
        )
    }
}

/// Whether an error concerns the requested blocks, and not the whole drive.
pub(crate) fn is_of_blocks(error: DriveError) -> bool {
    !matches!(error, DriveError::Timeout | DriveError::Gone)
}

impl Shard {
    /// Records an unreadable block.
    pub(crate) fn note_unread(
        &self,
        unread: &mut UnreadableBlocks,
        (volume, chunk): (u32, u32),
        unreadable: &UnreadableBlock,
    ) {
        unread.count += 1;
        if unread.named.len() < NAMED {
            let places = self.vdrive(unreadable.place.vdrive());
            let places =
                places.map_or_else(|_| Vec::new(), |it| it.places_of(unreadable.place.block()));
            let byte = u64::from(chunk) * CHUNK as u64 + (unreadable.block * BLOCK) as u64;
            let place = format!("{}: {}", places.join(", "), unreadable.error);
            unread.named.push((volume, byte, place));
        }
    }

    /// Blocks of a chunk could not be demoted, since they are unreadable: logs that if it was not known.
    pub(super) fn note_unreadable(
        &self,
        (volume, chunk): (u32, u32),
        blocks: Vec<UnreadableBlock>,
    ) {
        let mut unread = UnreadableBlocks::default();
        for unreadable in &blocks {
            self.note_unread(&mut unread, (volume, chunk), unreadable);
        }
        let now_ns = self.handle.now_ns();
        let mut state = self.state.borrow_mut();
        if state.unreadable.note((volume, chunk), blocks, now_ns) {
            let text = unread.sentence(|volume| format!("volume {volume}"));
            tracing::warn!("data cannot be demoted: {text}");
        }
    }

    /// A chunk's blocks were demoted, or were tried: forgets those that are readable again.
    pub(super) fn refresh_unreadable(&self, chunk: (u32, u32), map_page: &MapPage) {
        let mut state = self.state.borrow_mut();
        let Some(known) = state.unreadable.chunks.get(&chunk) else {
            return;
        };
        let page = map_page.page.borrow();
        let is_unreadable = |unreadable: &UnreadableBlock| {
            page.slot(unreadable.block) == unreadable.place
                && page.state(unreadable.block) == BlockState::Dirty
        };
        if !known.blocks.iter().any(is_unreadable) {
            state.unreadable.remove(chunk);
        }
    }

    /// Whether some chunk may be demoted, other than those that wait for a retry.
    pub(super) fn may_demote(&self, state: &State) -> bool {
        let known = state.unreadable.chunks.keys();
        let known = known.filter(|chunk| state.tier_index.is_dirty(chunk));
        let only_waits = |chunk: &&(u32, u32)| match state.volumes.get(&chunk.0) {
            Some(entry) => match entry.tree.lookup(chunk.1) {
                Lookup::Loaded(map_page) => !self.has_more_to_demote(state, **chunk, map_page),
                _ => true,
            },
            None => true,
        };
        let [dirty, _] = state.tier_index.counts();
        dirty > known.filter(only_waits).count()
    }

    /// Whether a chunk has blocks on the fast tier alone that do not wait for being read again.
    pub(super) fn has_more_to_demote(
        &self,
        state: &State,
        chunk: (u32, u32),
        map_page: &MapPage,
    ) -> bool {
        let waiting = state
            .unreadable
            .waiting(chunk, map_page, self.handle.now_ns());
        let page = map_page.page.borrow();
        let fast = |block: usize| self.class(page.slot(block)) == Class::Fast;
        let mut dirty = Self::blocks_in(&page, BlockState::Dirty);
        dirty.any(|block| !waiting.has(block) && fast(block))
    }

    /// Blocks that could not be demoted at the last attempt.
    pub(crate) fn unread(&self) -> UnreadableBlocks {
        let mut unread = UnreadableBlocks::default();
        for (chunk, known) in &self.state.borrow().unreadable.chunks {
            for unreadable in &known.blocks {
                self.note_unread(&mut unread, *chunk, unreadable);
            }
        }
        unread
    }

    /// Reads one by one what could not be read together, by `error`; `take` gets each block's number
    /// in `blocks` and its result. A drive that does not respond is not asked again.
    pub(super) async fn read_singly(
        &self,
        blocks: &[(Place, u32)],
        error: DriveError,
        mut take: impl FnMut(usize, Result<DmaBuf, DriveError>),
    ) {
        let mut silent = (blocks.len() == 1 || !is_of_blocks(error)).then_some(error);
        for (index, (place, crc)) in blocks.iter().enumerate() {
            let read = match silent {
                Some(error) => Err(error),
                None => {
                    let check = |_: usize, bytes: &[u8]| crc32c(bytes) == *crc;
                    self.read_place(*place, 1, &check).await
                }
            };
            if silent.is_none() {
                silent = read
                    .as_ref()
                    .err()
                    .copied()
                    .filter(|error| !is_of_blocks(*error));
            }
            take(index, read);
        }
    }
}
