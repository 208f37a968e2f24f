//! Requests of a driver and their answers.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads so many bytes from a sector on into the slot's data.
    Read {
        /// First sector of 512 bytes.
        sector: u64,
        /// Bytes.
        len: usize,
    },
    /// Writes so many bytes of the slot's data from a sector on.
    Write {
        /// First sector of 512 bytes.
        sector: u64,
        /// Bytes.
        len: usize,
    },
    /// Makes what was written durable.
    Flush,
    /// Reads the serial number (20 bytes) into the slot's data.
    Identify,
    /// Discards a range.
    Discard {
        /// First sector of 512 bytes.
        sector: u64,
        /// Sectors.
        sectors: u32,
    },
    /// Zeroes a range.
    WriteZeroes {
        /// First sector of 512 bytes.
        sector: u64,
        /// Sectors.
        sectors: u32,
        /// Its space may be given back.
        unmap: bool,
    },
    /// A request of any type, with so many bytes of the slot's data for the device to read.
    Other {
        /// The type in the header.
        kind: u32,
        /// Bytes.
        len: usize,
    },
}

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The slot that it was in, which is free again.
    pub slot: u16,
    /// The virtio-blk status; 255 when the device wrote none.
    pub status: u8,
    /// Bytes that the device says it wrote.
    pub written: u32,
}
