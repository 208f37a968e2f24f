//! Zeroes that are not simply unmapped: parts of blocks, and ranges whose space is to be kept.
//!
//! A block is the unit of the map, so a part of one is zeroed by writing the block again. Two cases need no write:
//! a block that is a hole, and one of which nothing but zeroes would be left, which becomes a hole. A block that is
//! discarded sector by sector is thus freed with its last sector.

use super::slow_path::{MERGE_ROUNDS, Piece, pieces, versions, whole_at_zero};
use crate::shard::state::Shard;
use crate::tiering::access_stats::By;
use crate::wal::log::Work;
use block::{ErrorKind, IoBuf, IoError};
use format::BlockMask;
use std::ops::Range;
use std::rc::Rc;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, CHUNK};

impl Shard {
    /// Stores zeroes as data: a later write to the range needs no more space, unless a
    /// snapshot was taken in between.
    ///
    /// # Errors
    /// As a write's.
    pub(crate) async fn write_zeroes(&self, by: By, offset: u64, len: u64) -> Result<(), IoError> {
        for piece in pieces(offset, len) {
            let zeroes = IoBuf::zeroed(piece.len);
            self.write(by, offset + piece.at as u64, &zeroes).await?;
            // With drives in memory there was no wait.
            self.handle.yield_after_much().await;
        }
        Ok(())
    }

    /// Zeroes `part` (in bytes of its chunk) of one block.
    ///
    /// # Errors
    /// As a write's.
    pub(crate) async fn zero_part(
        &self,
        by: By,
        chunk: u32,
        part: Range<usize>,
    ) -> Result<(), IoError> {
        let block = part.start / BLOCK;
        let whole = Piece::of_block(chunk, block);
        let within = part.start - whole.start..part.end - whole.start;
        for _ in 0..MERGE_ROUNDS {
            let mask = BlockMask::of(block, 1);
            if self
                .owned(by.volume, chunk, mask)
                .await?
                .stored()
                .is_empty()
            {
                return Ok(());
            }
            let room = self.journal_room(Work::Host(by.due)).await?;
            let Some((_, map_page)) = self.trimmable(by.volume, chunk).await? else {
                return Ok(());
            };
            let seen = versions(&map_page, block, 1);
            let mut old = IoBuf::zeroed(BLOCK);
            let read = By::read(by.volume).bypassed(by.bypassed).due(by.due);
            self.read_chunk(read, whole_at_zero(whole), None, &mut old)
                .await?;
            let mut bytes = [0; BLOCK];
            old.read(0, &mut bytes);
            bytes[within.clone()].fill(0);
            let is_zero = bytes.iter().all(|byte| *byte == 0);
            if !is_zero && !is_on(Mutation::PartFreed) {
                drop(room);
                let offset = u64::from(chunk) * CHUNK as u64 + part.start as u64;
                let zeroes = IoBuf::zeroed(part.len());
                // At most 4 KiB: the boxed future ends the recursion of types.
                return Box::pin(self.write(by, offset, &zeroes)).await;
            }
            let Some((layer, now)) = self.trimmable(by.volume, chunk).await? else {
                return Ok(());
            };
            let same = Rc::ptr_eq(&now, &map_page) && versions(&now, block, 1) == seen;
            if same || is_on(Mutation::ZeroRace) {
                self.note_discarded((layer, chunk), &now, (block, 1));
                return self.apply_trim(layer, chunk, &now, block, 1);
            }
        }
        Err(IoError::new(
            ErrorKind::Device,
            "a block changed too often while part of it was zeroed",
        ))
    }
}
