//! An operation on a volume, as a front end passes it to the engine.

use crate::{CompletionSink, IoBuf};
use std::sync::Arc;

/// The function of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum OpKind {
    /// Fill the buffer from the volume.
    Read,
    /// Write the buffer to the volume.
    Write,
    /// Make every write acknowledged before this durable; range and buffer are not used.
    Flush,
    /// Forget the range: whole blocks (4 KiB) read as zeroes afterwards and their space is free. Part of a block is
    /// zeroed, too, but stays as it is where that would need space and the pool is full: a discard is a hint and never
    /// fails for it. A block whose last part is discarded takes no space.
    Discard,
    /// The range reads as zeroes afterwards. Its space is given back as by a discard; with [`OpFlags::no_unmap`] it
    /// is stored like data instead, so that later writes to it find space. `NoSpace` when part of a block, or what is
    /// to be stored, needs more space than there is.
    WriteZeroes,
    /// Tell which parts of the range are allocated: [`crate::Completion::extents`], which may end before the range
    /// does, but tell of one logical block at least.
    Status,
    /// Tell which parts of the range are not as in a snapshot, by its number in
    /// [`crate::BlockDevice::bases`]; the answer ends as that of [`OpKind::Status`].
    Changed(u32),
}

/// Additional flags of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpFlags {
    /// The write is durable when it completes (force unit access).
    pub fua: bool,
    /// Write-zeroes stores its zeroes: space is allocated for the whole range.
    pub no_unmap: bool,
}

/// One operation. It owns its buffer until it comes back in a [`crate::Completion`].
pub struct Op {
    /// The front end's own number for it; comes back in the completion.
    pub tag: u64,
    /// The function.
    pub kind: OpKind,
    /// Additional flags.
    pub flags: OpFlags,
    /// First byte within the volume; a multiple of the volume's LBA size.
    pub offset: u64,
    /// Length in bytes; a multiple of the volume's LBA size. For reads and writes the buffer's.
    pub len: u64,
    /// Memory to read into or write from; empty for the other kinds.
    pub buf: IoBuf,
    /// Where its completion goes.
    pub done: Arc<dyn CompletionSink>,
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Op")
            .field("tag", &self.tag)
            .field("kind", &self.kind)
            .field("offset", &self.offset)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
