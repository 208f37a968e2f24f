//! Memory that the operations of a batch will need, fetched by the processor while those before them are
//! carried out: the page that says where a block lies, what the policy knows of it, and the block itself, where
//! a drive or the engine has it in memory. Without that an operation mostly waits for
//! memory. A block is too large to be prefetched in one go: wherever an operation is on its way and a little time
//! has passed, it has some of the next one's prefetched (`fetching.some()`).

use crate::map::page::MapPage;
use crate::shard::dispatch::ShardOp;
use crate::shard::state::{Shard, State};
use block::OpKind;
use std::collections::VecDeque;
use std::rc::Rc;
use units::{BLOCK, CHUNK, Coming, EXTENT_BLOCKS, Place, prefetch};

/// How many operations ahead of the present one pages are looked up.
const STEPS: usize = 4;

/// The page of an operation's first block. No layer changes before the batch is carried out.
pub(crate) struct Seen {
    pub map_page: Rc<MapPage>,
    /// The layer and the chunk in it.
    pub chunk: (u32, u32),
    /// The block's number in the chunk.
    pub block: usize,
    /// No layer beneath has blocks of the chunk, and the volume is there.
    pub is_alone: bool,
    reads: bool,
}

/// How far ahead lookups are, in operations.
#[derive(Default)]
pub(crate) struct Ahead {
    /// The first operation of the batch that is left.
    front: usize,
    found: usize,
    asked: usize,
    read: usize,
    seen: [Option<Seen>; STEPS],
}

impl Ahead {
    /// The first operation was taken out of the batch: returns its lookup.
    pub fn taken(&mut self) -> Option<Seen> {
        let seen = self.seen[self.front % STEPS].take();
        self.front += 1;
        seen
    }
}

impl Shard {
    /// Prefetches memory that the first operations of `batch` need, each one step further than at the last call.
    pub(crate) fn look_ahead(&self, ahead: &mut Ahead, batch: &VecDeque<ShardOp>) {
        let upto = |steps: usize| ahead.front + steps.min(batch.len());
        let (found, asked, read) = (upto(STEPS), upto(STEPS - 1), upto(STEPS - 2));
        self.fetching.some();
        let state = self.state.borrow();
        for number in ahead.found.max(ahead.front)..found {
            let seen = find(&state, &batch[number - ahead.front]);
            if let Some(seen) = &seen {
                seen.map_page.prefetch();
                state.access.prefetch_use(seen.chunk, seen.block);
            }
            ahead.seen[number % STEPS] = seen;
        }
        self.fetching.some();
        // The first one is carried out at once: nothing would come any sooner for being asked for here.
        let next = ahead.front + 1;
        for number in ahead.asked.max(next)..asked {
            if let Some(seen) = &ahead.seen[number % STEPS] {
                seen.map_page.page.borrow().prefetch(seen.block);
            }
        }
        self.fetching.some();
        for number in ahead.read.max(next)..read {
            let Some(seen) = &ahead.seen[number % STEPS] else {
                continue;
            };
            if seen.reads {
                let coming = match state.coming_in_ram(seen) {
                    Some(coming) => coming,
                    None => self.coming_at(seen.map_page.page.borrow().slot(seen.block)),
                };
                self.fetching.begin(coming);
                continue;
            }
            // The destination is written with non-temporal stores.
            state.access.prefetch_entry(seen.chunk, seen.block);
        }
        (ahead.found, ahead.asked, ahead.read) = (found, asked, read);
    }

    /// Where a block at a place is in a drive's memory.
    pub(super) fn coming_at(&self, place: Place) -> Coming {
        match self.vdrive(place.vdrive()) {
            Ok(vdrive) if place.is_some() => vdrive.coming(place.block()),
            _ => Coming::NOTHING,
        }
    }
}

fn find(state: &State, op: &ShardOp) -> Option<Seen> {
    let reads = op.op.kind == OpKind::Read;
    if !reads && op.op.kind != OpKind::Write {
        return None;
    }
    state.see(op.volume, op.op.offset, reads)
}

impl State {
    /// Where the engine's own memory has a block.
    fn coming_in_ram(&self, seen: &Seen) -> Option<Coming> {
        let slot = seen.map_page.ram[seen.block / EXTENT_BLOCKS].get();
        let extent = self.ram.get(slot.checked_sub(1)?)?;
        let bytes = extent.block(seen.block % EXTENT_BLOCKS)?;
        Some(Coming::new(bytes.as_ptr(), bytes.len()))
    }

    /// The page of the block at `offset` (bytes) of a volume, if it is in memory.
    pub(crate) fn see(&self, volume: u32, offset: u64, reads: bool) -> Option<Seen> {
        let layer = self.live(volume);
        let chunk = (offset / CHUNK as u64) as u32;
        let entry = self.volumes.get(&layer)?;
        Some(Seen {
            map_page: entry.tree.leaf(chunk)?.clone(),
            is_alone: entry.parent == 0 && !entry.gone,
            chunk: (layer, chunk),
            block: (offset % CHUNK as u64) as usize / BLOCK,
            reads,
        })
    }
}

impl MapPage {
    fn prefetch(&self) {
        prefetch(&self.page);
        prefetch(&self.ram);
    }
}
