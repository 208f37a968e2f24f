//! The binary format of Linux blktrace.
//!
//! Origin: `struct blk_io_trace` and the actions in `include/uapi/linux/blktrace_api.h`. A record
//! has 48 bytes and then `pdu_len` more, in the byte order of the machine that made it: u32 magic
//! and version, u32 sequence, u64 time in ns, u64 sector, u32 bytes, u32 action, u32 pid, u32
//! device, u32 cpu, u16 error, u16 pdu_len.
//!
//! A request is recorded at each of its stages. Taken is the one at which it is queued, as the host
//! asked for it; other stages are passed over, and only queued requests that are no reads or writes
//! count as ignored. blktrace writes one file for each CPU: `blkparse -i NAME -d FILE` merges them.

use crate::collector::{Access, Collector};
use crate::fields::{part, sectors};
use crate::input::{Fault, Input, Prefix};

const SIZE: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const NS_PER_US: u64 = 1000;

/// The stage, in an action's lower half, less the bit that says that a cgroup follows.
const STAGE: u32 = 0xffff & !(1 << 8);
const QUEUE: u32 = 1;
// Kinds, in an action's upper half.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const PASS_THROUGH: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;

/// Bits of a device number that are its minor one.
const MINOR_BITS: u32 = 20;

/// Reads numbers in the byte order of a record.
struct Record<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
}

impl<'a> Record<'a> {
    /// A record, if it has the magic number.
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let little = Self {
            bytes,
            is_big_endian: false,
        };
        let big = Self {
            bytes,
            is_big_endian: true,
        };
        let mut orders = [little, big].into_iter();
        orders.find(|record| record.u32(0) & !0xff == MAGIC)
    }

    fn u16(&self, at: usize) -> u16 {
        let bytes = part(self.bytes, at);
        if self.is_big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    fn u32(&self, at: usize) -> u32 {
        let bytes = part(self.bytes, at);
        if self.is_big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn u64(&self, at: usize) -> u64 {
        let bytes = part(self.bytes, at);
        if self.is_big_endian {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }

    fn version(&self) -> u32 {
        self.u32(0) & 0xff
    }

    fn add(&self, out: &mut Collector) -> Result<(), Fault> {
        let action = self.u32(28);
        if action & NOTIFY != 0 || action & STAGE != QUEUE {
            return Ok(());
        }
        // Discards have the bit of writes too.
        if action & (READ | WRITE) == 0 || action & (PASS_THROUGH | DISCARD) != 0 {
            out.ignore();
            return Ok(());
        }
        let device = self.u32(36);
        let (major, minor) = (device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1));
        let device = out.device(&format!("{major},{minor}"))?;
        out.add(&Access {
            time_us: self.u64(8) / NS_PER_US,
            device,
            write: action & WRITE != 0,
            offset: sectors("the sector", self.u64(16))?,
            length: self.u32(24).into(),
        })
    }
}

pub(super) fn is_like(prefix: &Prefix) -> bool {
    let record = prefix.bytes.get(..SIZE);
    record.and_then(Record::new).is_some()
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    while !out.is_full()
        && let Some(bytes) = input.record::<SIZE>()?
    {
        let record = Record::new(&bytes);
        let record = record.ok_or_else(|| Fault::wrong("no record begins here"))?;
        let version = record.version();
        if version != VERSION {
            let why = format!("the record has version {version}, only {VERSION} is known");
            return Err(Fault::Wrong(why));
        }
        input.skip(record.u16(46))?;
        record.add(out)?;
    }
    Ok(())
}
