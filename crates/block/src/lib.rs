//! The interfaces between front ends, the engine and drives: operations, buffers, errors, traits.
//!
//! Responsible for: the two boundaries of the engine. Above it a front end passes an [`Op`] to a
//! [`BlockDevice`] and finds its [`Completion`] in the [`CompletionSink`] that came with it. Below
//! it the engine passes a [`DriveIo`] to a [`DriveQueue`].
//! Leaves out: how any of them works.

mod device;
mod dma;
mod drive;
mod error;
mod host_memory;
mod iobuf;
mod lasting;
mod lent;
mod oneshot;
mod op;
mod spare;

pub use checksum::settle;
pub use device::{
    AllocationState, BlockDevice, Completion, CompletionQueue, CompletionSink, Geometry,
    StatusExtent,
};
pub use dma::{DmaBuf, DmaPool};
pub use drive::{
    Drive, DriveInfo, DriveIo, DriveIoKind, DriveOutcome, DriveQueue, DriveQueueExt, Rotation,
};
pub use error::{DriveError, ErrorKind, IoError};
pub use host_memory::HostMemory;
pub use iobuf::{CutBuf, IoBuf, Segment};
pub use lasting::{Lasting, LastingMemory, LastingSource, Left, OwnMemory};
pub use lent::{Lent, Shown};
pub use oneshot::{Receiver, Sender, oneshot};
pub use op::{Op, OpFlags, OpKind};
