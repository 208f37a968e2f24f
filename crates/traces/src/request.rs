//! One request of a trace.

/// Bytes of a sector: traces count in these, whatever the drive's own were.
pub const SECTOR: u64 = 512;

/// What a host requested, once. In a trace requests keep the order in which they were recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Microseconds since the first request of the trace, never less than the request before has;
    /// zero in formats without time.
    pub at_us: u64,
    /// First sector of 512 bytes, below 2^55.
    pub sector: u64,
    /// Sectors, at least one, at most 1 GiB and what widening to whole sectors adds.
    pub sectors: u32,
    /// Which of the trace's devices: numbered from zero as they appear.
    pub device: u16,
    /// A write; formats without direction have reads alone.
    pub write: bool,
}
