//! Records of a stream.

use units::{PoolId, SnapshotId};

/// The version that is written and read.
pub const VERSION: u32 = 1;
/// Most bytes of data in a record.
pub const DATA_MAX: usize = 1 << 20;
/// Longest reason of a failure, in bytes.
pub const FAILED_MAX: usize = 4096;
/// Longest name of a volume or snapshot, in bytes.
pub const NAME_MAX: usize = 64;
/// Largest volume, in bytes.
pub const SIZE_MAX: u64 = 256 << 40;

pub(crate) const MAGIC: &[u8; 8] = b"CVSTREAM";
/// Bytes before the first record: the magic and the version.
pub(crate) const PROLOGUE: usize = 12;
/// Bytes of a record before its payload.
pub(crate) const HEADER: usize = 20;
/// Bytes of a [`Begin`] before its names.
pub(crate) const BEGIN: usize = 108;
/// Bytes of a snapshot's identity.
pub(crate) const ID: usize = 28;

pub(crate) mod kind {
    pub const BEGIN: u32 = 1;
    pub const DATA: u32 = 2;
    pub const ZEROES: u32 = 3;
    pub const END: u32 = 4;
    pub const FAILED: u32 = 5;
}

/// The subject of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begin {
    /// The pool that sends it; of no concern to a receiver.
    pub pool: PoolId,
    /// The snapshot.
    pub to: SnapshotId,
    /// The snapshot that the receiver has to have; none: everything is in the stream.
    pub from: Option<SnapshotId>,
    /// Size of the volume, in bytes: whole blocks of 4 KiB.
    pub size: u64,
    /// Where it begins, in bytes: what is before was received earlier.
    pub start: u64,
    /// 512 or 4,096.
    pub lba_size: u32,
    /// Name of the volume that was sent; of no concern to a receiver.
    pub volume: String,
    /// Name of the snapshot.
    pub snapshot: String,
}

/// Sums of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Bytes of data in it.
    pub data: u64,
    /// Bytes of zeroes that it covers.
    pub zeroes: u64,
    /// Bytes that the sender read from the volume for it.
    pub read: u64,
}

/// A record of a stream. Offsets are bytes of the volume; ranges are whole blocks of 4 KiB within its
/// size and come in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// The header; always the first record.
    Begin(Begin),
    /// Data of a range, at most [`DATA_MAX`] bytes.
    Data {
        /// First byte.
        offset: u64,
        /// The data.
        bytes: Vec<u8>,
    },
    /// A range that reads as zeroes.
    Zeroes {
        /// First byte.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// The stream is whole.
    End(Totals),
    /// The sender could not continue, and why. The stream ends here and is not whole.
    Failed(String),
}
