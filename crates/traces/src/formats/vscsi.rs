//! VMware vscsiStats: SCSI commands of a virtual disk, as in the CloudPhysics traces.
//!
//! Origin: the records of CloudPhysics as libCacheSim's `traceReader/vscsi` has them. All is little
//! endian and without gaps; version 1 has 32 bytes, version 2 has 40:
//!
//! | field | version 1 at | version 2 at |
//! | --- | --- | --- |
//! | u32 serial number | 0 | 4 |
//! | u32 length in bytes | 4 | 8 |
//! | u32 scatter-gather elements | 8 | 12 |
//! | u16 SCSI operation code | 12 | 0 |
//! | u16 version, in its upper byte | 14 | 2 |
//! | u64 logical block, of 512 bytes | 16 | 16 |
//! | u64 time in microseconds | 24 | 24 |
//! | u64 response time | | 32 |

use crate::collector::{Access, Collector};
use crate::fields::{part, sectors};
use crate::input::{Fault, Input, Prefix};

const V1_SIZE: usize = 32;
const V2_SIZE: usize = 40;
/// Records by which the format is recognised.
const TELLING: usize = 2;

struct Layout {
    version: u8,
    size: usize,
    command: usize,
    length: usize,
}

const V1: Layout = Layout {
    version: 1,
    size: V1_SIZE,
    command: 12,
    length: 4,
};
const V2: Layout = Layout {
    version: 2,
    size: V2_SIZE,
    command: 0,
    length: 8,
};
const BLOCK_AT: usize = 16;
const TIME_AT: usize = 24;

impl Layout {
    /// The operation code, if the record is of this version.
    fn command(&self, record: &[u8]) -> Option<u8> {
        let [command, zero, _, version] = part(record, self.command);
        (zero == 0 && version == self.version).then_some(command)
    }

    fn matches(&self, bytes: &[u8], records: usize) -> bool {
        let mut records = bytes.chunks_exact(self.size).take(records).peekable();
        records.peek().is_some() && records.all(|record| self.command(record).is_some())
    }

    fn add(&self, record: &[u8], out: &mut Collector) -> Result<(), Fault> {
        let Some(command) = self.command(record) else {
            let why = format!("the record has not the mark of version {}", self.version);
            return Err(Fault::Wrong(why));
        };
        let Some(write) = direction(command) else {
            out.ignore();
            return Ok(());
        };
        let block = u64::from_le_bytes(part(record, BLOCK_AT));
        out.add(&Access {
            time_us: u64::from_le_bytes(part(record, TIME_AT)),
            device: 0,
            write,
            offset: sectors("the logical block", block)?,
            length: u32::from_le_bytes(part(record, self.length)).into(),
        })
    }
}

/// Whether a SCSI operation code (SBC-3) is a write, or none for other commands.
fn direction(command: u8) -> Option<bool> {
    match command {
        // READ (6), (10), (12), (16).
        0x08 | 0x28 | 0xa8 | 0x88 => Some(false),
        // WRITE (6), (10), (12), (16).
        0x0a | 0x2a | 0xaa | 0x8a => Some(true),
        _ => None,
    }
}

pub(super) fn is_like(prefix: &Prefix) -> bool {
    let matches = |layout: &Layout| layout.matches(&prefix.bytes, TELLING);
    matches(&V1) || matches(&V2)
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    // A record of version 2 has no mark of version 1: that would be 2^24 scatter-gather elements.
    let begins = |layout: &Layout| layout.matches(&input.prefix.bytes, 1);
    if begins(&V1) {
        return take_records::<V1_SIZE>(&V1, input, out);
    }
    if begins(&V2) {
        return take_records::<V2_SIZE>(&V2, input, out);
    }
    Err(Fault::wrong("no record of version 1 or 2 begins here"))
}

fn take_records<const SIZE: usize>(
    layout: &Layout,
    input: &mut Input,
    out: &mut Collector,
) -> Result<(), Fault> {
    while !out.is_full()
        && let Some(record) = input.record::<SIZE>()?
    {
        layout.add(&record, out)?;
    }
    Ok(())
}
