//! Reads of one block from a fast drive that needs I/O, as most host reads are where drives are not memory: what
//! [`Shard::read`] does for any, without the lists of pieces and runs that those need.

use super::slow_path::{Looked, Served};
use super::target::Target;
use super::tier_choice::TierChoice;
use crate::io::cpu_prefetch::Seen;
use crate::io::write::slow_path::Piece;
use crate::shard::dispatch::{Counted, ShardOp};
use crate::shard::state::Shard;
use crate::space::Class;
use crate::tiering::access_stats::By;
use block::IoBuf;
use qos::Due;
use std::rc::Rc;

impl Shard {
    /// Executes a read of one block that [`Shard::read_seen`] left.
    pub(crate) async fn read_one(self: Rc<Self>, mut op: ShardOp, seen: Seen) {
        let began = self.handle.now_ns();
        if !self.read_from_drive(&seen, &mut op.op.buf).await {
            // The general path determines what is wrong, and repairs it.
            return Box::pin(self.execute(op, Looked::Block(seen))).await;
        }
        self.count_read_from_drive(&op, &seen, self.handle.now_ns() - began);
        self.end(op, Ok(()), Vec::new());
    }

    /// A read of one block took so long, and the fast drive gave it.
    fn count_read_from_drive(&self, op: &ShardOp, seen: &Seen, took: u64) {
        let (by, counted) = (
            By::read(op.volume).bypassed(op.by.bypassed),
            Counted::of(op),
        );
        self.upkeep.note(took, 1);
        self.note_ended(counted, 1, took, self.handle.seen_ns());
        let mut state = self.state.borrow_mut();
        state.access.note_use_of(by, seen.chunk, seen.block);
        if !by.bypassed {
            state.access.forecast().took(Class::Fast, took);
        }
        let served = Served {
            fast: 1,
            ..Served::default()
        };
        state.count_reads((counted, 1), [1, 0], took, served);
    }

    /// Reads a block from the fast drive that has it; false when it is to be read in another way.
    async fn read_from_drive(&self, seen: &Seen, buf: &mut IoBuf) -> bool {
        let (map_page, block) = (&seen.map_page, seen.block);
        let (place, crc, at_home) = {
            let page = map_page.page.borrow();
            let at_home = self.reads_at_home(&page, block, 1, &mut TierChoice::default());
            (page.slot(block), page.crc(block), at_home)
        };
        if at_home || place.is_none() || self.class(place) != Class::Fast {
            return false;
        }
        // A bad block is read once more, to the same memory.
        let target = Target::new(Piece::of_block(seen.chunk.1, block), buf);
        let read = self.read_to(Due::NONE, (place, 1), (block, |_| crc), &target);
        read.await.is_ok()
    }
}
