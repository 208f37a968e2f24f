//! Pages of a shard's journal ring.

use crate::bytes::{get_u16, get_u32, get_u64, get_u128, put};
use crate::checkpoint::COUNT_MAX;
use crate::{PAGE, Record, RecordError};
use checksum::crc32c;
use units::mutation::{Mutation, is_on};
use units::{PoolId, ShardId};

pub(crate) const MAGIC: u32 = 0x4c4a_5643; // "CVJL"
const VERSION: u16 = 1;
/// First byte of a journal page's records.
pub const JOURNAL_HEADER: usize = 64;

/// The header of a journal page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalHeader {
    /// Pool.
    pub pool: PoolId,
    /// Shard.
    pub shard: ShardId,
    /// Opening that wrote it.
    pub epoch: u64,
    /// Its number since the pool was made; it is at this number modulo the ring's length.
    pub sequence: u64,
    /// When it was written, every page below this number was durable and so was its data.
    pub durable_below: u64,
}

/// A journal page that is being filled.
pub struct JournalPage {
    bytes: Vec<u8>,
}

impl Default for JournalPage {
    fn default() -> Self {
        Self::new()
    }
}

impl JournalPage {
    /// An empty page.
    pub fn new() -> Self {
        let mut bytes = Vec::with_capacity(PAGE);
        bytes.resize(JOURNAL_HEADER, 0);
        Self { bytes }
    }

    /// A page with what [`JournalPage::bytes`] gave of another.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Its content so far, from its first byte on; its header is empty.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// It is empty again, and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(JOURNAL_HEADER);
    }

    /// Whether no record is in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == JOURNAL_HEADER
    }

    /// Adds a record; false, and nothing changes, when it does not fit any longer.
    pub fn push(&mut self, record: &Record) -> bool {
        let before = self.bytes.len();
        record.encode(&mut self.bytes);
        if self.bytes.len() > PAGE {
            self.bytes.truncate(before);
            return false;
        }
        true
    }

    /// Ends the page: its 4,096 bytes with header and checksum.
    pub fn seal(&self, header: JournalHeader, out: &mut [u8]) {
        // The header's place is empty in it.
        let (used, rest) = out.split_at_mut(self.bytes.len());
        used.copy_from_slice(&self.bytes);
        rest.fill(0);
        put(out, 0, &MAGIC.to_le_bytes());
        put(out, 8, &header.shard.0.to_le_bytes());
        put(out, 10, &(self.bytes.len() as u16).to_le_bytes());
        put(out, 12, &VERSION.to_le_bytes());
        put(out, 16, &header.pool.0.to_le_bytes());
        put(out, 32, &header.epoch.to_le_bytes());
        put(out, 40, &header.sequence.to_le_bytes());
        put(out, 48, &header.durable_below.to_le_bytes());
        let crc = crc32c(&out[8..PAGE]);
        put(out, 4, &crc.to_le_bytes());
    }
}

impl JournalHeader {
    /// The header of a page read from the ring.
    ///
    /// `None` when it is not a whole page of this pool and shard, as after a crash. Its records
    /// are not examined: a page of an earlier lap may hold what a newer version wrote.
    pub fn read(bytes: &[u8], pool: PoolId, shard: ShardId) -> Option<Self> {
        let header = Self::claimed(bytes, pool, shard)?;
        let whole = get_u32(bytes, 4) == crc32c(&bytes[8..]) || is_on(Mutation::JournalChecksum);
        whole.then_some(header)
    }

    /// As [`JournalHeader::read`], without the checksum: what a block says of itself, to see
    /// quickly that it is of no interest. It may be torn, and is never to be relied on.
    pub fn claimed(bytes: &[u8], pool: PoolId, shard: ShardId) -> Option<Self> {
        if bytes.len() != PAGE || get_u32(bytes, 0) != MAGIC {
            return None;
        }
        let header = Self {
            pool: PoolId(get_u128(bytes, 16)),
            shard: ShardId(get_u16(bytes, 8)),
            epoch: get_u64(bytes, 32),
            sequence: get_u64(bytes, 40),
            durable_below: get_u64(bytes, 48),
        };
        let counted = header.epoch.max(header.sequence).max(header.durable_below);
        let is_own = header.pool == pool && header.shard == shard;
        (is_own && counted < COUNT_MAX).then_some(header)
    }
}

/// The records of a page read from the ring, as they are there.
///
/// `None` when it is not a whole page of this pool and shard, as after a crash or an earlier lap.
///
/// # Errors
/// When the page is whole and of another version, or ends where none does.
pub fn page_body(
    bytes: &[u8],
    pool: PoolId,
    shard: ShardId,
) -> Result<Option<(JournalHeader, &[u8])>, RecordError> {
    let Some(header) = JournalHeader::read(bytes, pool, shard) else {
        return Ok(None);
    };
    let end = usize::from(get_u16(bytes, 10));
    if get_u16(bytes, 12) != VERSION {
        return Err(RecordError);
    }
    let body = bytes.get(JOURNAL_HEADER..end).ok_or(RecordError)?;
    Ok(Some((header, body)))
}

/// The records that [`page_body`] gave.
///
/// # Errors
/// When it holds something that is no record.
pub fn records_of(mut body: &[u8]) -> Result<Vec<Record>, RecordError> {
    let mut records = Vec::new();
    while !body.is_empty() {
        let (record, length) = Record::decode(body)?;
        records.push(record);
        body = &body[length..];
    }
    Ok(records)
}

/// Opens a page read from the ring: its header and records.
///
/// # Errors
/// As [`page_body`] and [`records_of`].
pub fn open_page(
    bytes: &[u8],
    pool: PoolId,
    shard: ShardId,
) -> Result<Option<(JournalHeader, Vec<Record>)>, RecordError> {
    match page_body(bytes, pool, shard)? {
        Some((header, body)) => Ok(Some((header, records_of(body)?))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Place, VdriveId};

    #[test]
    fn a_page_takes_records_until_it_is_full_and_gives_them_back() {
        let mut page = JournalPage::new();
        let record = Record::Promote {
            volume: 1,
            chunk: 2,
            first: 3,
            count: 4,
            slot: Place::new(VdriveId(1), 5),
        };
        let mut count = 0;
        while page.push(&record) {
            count += 1;
        }
        assert_eq!(count, (PAGE - JOURNAL_HEADER) / 20);
        let header = JournalHeader {
            pool: PoolId(5),
            shard: ShardId(6),
            epoch: 7,
            sequence: 8,
            durable_below: 4,
        };
        let mut bytes = vec![0; PAGE];
        page.seal(header, &mut bytes);
        let (found, records) = open_page(&bytes, PoolId(5), ShardId(6)).unwrap().unwrap();
        assert_eq!((found, records), (header, vec![record; count]));
        assert_eq!(open_page(&bytes, PoolId(5), ShardId(7)), Ok(None));
        bytes[100] ^= 1;
        assert_eq!(open_page(&bytes, PoolId(5), ShardId(6)), Ok(None));
        bytes[100] ^= 1;
        bytes[12] = 2;
        let crc = crc32c(&bytes[8..]);
        put(&mut bytes, 4, &crc.to_le_bytes());
        assert_eq!(open_page(&bytes, PoolId(5), ShardId(6)), Err(RecordError));
        let known = JournalHeader::read(&bytes, PoolId(5), ShardId(6));
        assert_eq!(known, Some(header), "its number is known all the same");
    }

    #[test]
    fn a_page_that_was_cleared_is_as_a_new_one_whatever_was_in_the_buffer() {
        let (header, trim) = (
            JournalHeader {
                pool: PoolId(5),
                shard: ShardId(6),
                epoch: 7,
                sequence: 8,
                durable_below: 4,
            },
            |chunk| Record::Trim {
                volume: 1,
                chunk,
                first: 0,
                count: 1,
                old: crate::Few::default(),
            },
        );
        let mut used = JournalPage::new();
        (0..100).for_each(|chunk| assert!(used.push(&trim(chunk))));
        used.clear();
        assert!(used.is_empty());
        let images = [used, JournalPage::new()].map(|mut page| {
            assert!(page.push(&trim(7)));
            let mut bytes = vec![0xff; PAGE];
            page.seal(header, &mut bytes);
            bytes
        });
        assert_eq!(images[0], images[1]);
        let is_empty = images[0][200..].iter().all(|byte| *byte == 0);
        assert!(is_empty, "nothing of the buffer is left behind its records");
        let (_, records) = open_page(&images[0], PoolId(5), ShardId(6))
            .unwrap()
            .unwrap();
        assert_eq!(records, [trim(7)]);
    }
}
