//! The host's memory that a read fills. A block from a drive is verified while it is copied there: a pass over it to
//! verify it and another one to copy it would each fetch all of a long read from memory.

use crate::io::write::slow_path::Piece;
use block::{IoBuf, Shown};
use format::BlockMask;
use std::cell::{Cell, RefCell};
use units::BLOCK;
use units::mutation::{Mutation, is_on};

/// The part of an operation's memory that belongs to a piece, shared by the reads that fill it.
pub(super) struct Target<'a> {
    piece: Piece,
    buf: RefCell<&'a mut IoBuf>,
}

impl<'a> Target<'a> {
    pub fn new(piece: Piece, buf: &'a mut IoBuf) -> Self {
        let buf = RefCell::new(buf);
        Self { piece, buf }
    }

    /// Copies what the piece has of a block of its chunk, and returns the checksum of all of the block.
    fn copy(&self, block: usize, bytes: &[u8]) -> u32 {
        let (skip, at, len) = overlap(self.piece, block);
        debug_assert!(skip + len <= BLOCK, "part of one block");
        let mut buf = self.buf.borrow_mut();
        Shown::from(bytes).read_into(skip..skip + len, &mut buf, at)
    }

    /// Copies blocks that are known to be right, from `first` of the chunk on.
    pub fn put(&self, first: usize, data: &[u8]) {
        let mut buf = self.buf.borrow_mut();
        for (index, bytes) in data.chunks_exact(BLOCK).enumerate() {
            let (skip, at, len) = overlap(self.piece, first + index);
            buf.write(at, &bytes[skip..skip + len]);
        }
    }

    /// Takes blocks of the chunk from `first` on, whose checksums are known.
    pub fn arriving<C: Fn(usize) -> u32>(&self, first: usize, crc: C) -> Arriving<'_, 'a, C> {
        Arriving {
            target: self,
            first,
            crc,
            wrong: Cell::default(),
        }
    }
}

/// Contiguous blocks that a drive reads for a target.
pub(super) struct Arriving<'t, 'a, C> {
    target: &'t Target<'a>,
    first: usize,
    /// The right checksum of a block, by its number from the first one.
    crc: C,
    /// Blocks of which the copy that came last is wrong.
    wrong: Cell<BlockMask>,
}

impl<C: Fn(usize) -> u32> Arriving<'_, '_, C> {
    /// Copies a block, and says whether it is right; one that is not is read from another member of a mirror.
    pub fn take(&self, index: usize, bytes: &[u8]) -> bool {
        let block = self.first + index;
        let is_right = is_right(self.target.copy(block, bytes), (self.crc)(index));
        let mut wrong = self.wrong.get();
        match is_right {
            true => wrong.clear(block),
            false => wrong.set(block),
        }
        self.wrong.set(wrong);
        is_right
    }

    /// The read has succeeded, with this data. A repair reads every member of a mirror: the copy that came last may be
    /// a wrong one.
    pub fn end(self, data: &[u8]) {
        if is_on(Mutation::LegLast) {
            return;
        }
        for block in self.wrong.get().blocks() {
            let at = (block - self.first) * BLOCK;
            self.target.put(block, &data[at..at + BLOCK]);
        }
    }
}

/// Verifies a block that a host reads.
pub(crate) fn is_right(found: u32, crc: u32) -> bool {
    found == crc || is_on(Mutation::ReuseRead) || is_on(Mutation::ReadUnchecked)
}

/// Which part of a block a piece has: first byte within the block, first byte within the buffer,
/// length.
pub(crate) fn overlap(piece: Piece, block: usize) -> (usize, usize, usize) {
    let from = piece.start.max(block * BLOCK);
    let to = (piece.start + piece.len).min((block + 1) * BLOCK);
    (
        from - block * BLOCK,
        piece.at + from - piece.start,
        to - from,
    )
}
