//! oracleGeneral of libCacheSim: accesses to objects, with when each is next accessed.
//!
//! Origin: libCacheSim, `traceReader/customizedReader/oracle/oracleGeneralBin.h`. Records of 24
//! bytes, little endian, without gaps: u32 time in seconds, u64 object id, u32 size of the object
//! in bytes, i64 number of the record which next accesses it (-1 or the largest: none does).
//!
//! The format is for caches of any kind, and does not say where an object lies. In what libCacheSim
//! makes out of block traces the object id is the logical block of the request (its reader of VSCSI
//! takes `lbn`), so here an id is a sector of 512 bytes. Traces whose ids are hashes or numbers of
//! larger blocks have no such place, and their addresses mean nothing. There is no direction: all
//! are reads.

use crate::collector::{Access, Collector};
use crate::fields::{part, sectors};
use crate::input::{Fault, Input, Prefix};

const SIZE: usize = 24;
/// Records by which the format is recognised.
const TELLING: usize = 16;
/// The largest that is plausible for an object's size in bytes, and for the next access.
const OBJECT_MAX: u32 = 1 << 30;
const NEXT_MAX: i64 = 1 << 48;
const US_PER_S: u64 = 1_000_000;

/// Whether the numbers could be those of one record: the format has no mark.
fn is_plausible(record: &[u8]) -> bool {
    let size = u32::from_le_bytes(part(record, 12));
    let next = i64::from_le_bytes(part(record, 16));
    (1..=OBJECT_MAX).contains(&size)
        && (next == -1 || next == i64::MAX || (1..=NEXT_MAX).contains(&next))
}

pub(super) fn is_like(prefix: &Prefix) -> bool {
    let bytes = &prefix.bytes;
    if bytes.len() < SIZE || (prefix.is_whole && !bytes.len().is_multiple_of(SIZE)) {
        return false;
    }
    let times = bytes.chunks_exact(SIZE).take(TELLING);
    let times = times.map(|record| u32::from_le_bytes(part(record, 0)));
    times.is_sorted() && bytes.chunks_exact(SIZE).take(TELLING).all(is_plausible)
}

pub(super) fn take(input: &mut Input, out: &mut Collector) -> Result<(), Fault> {
    while !out.is_full()
        && let Some(record) = input.record::<SIZE>()?
    {
        let seconds = u32::from_le_bytes(part(&record, 0));
        let id = u64::from_le_bytes(part(&record, 4));
        out.add(&Access {
            time_us: u64::from(seconds) * US_PER_S,
            device: 0,
            write: false,
            offset: sectors(
                "the object id, which should be a sector and not a hash,",
                id,
            )?,
            length: u32::from_le_bytes(part(&record, 12)).into(),
        })?;
    }
    Ok(())
}
