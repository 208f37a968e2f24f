//! Bytes to records.

use crate::fields::{Sum, get_id, get_id_or_none, get_u16, get_u32, get_u64, get_u128};
use crate::record::{
    BEGIN, Begin, DATA_MAX, FAILED_MAX, HEADER, MAGIC, NAME_MAX, PROLOGUE, Record, SIZE_MAX,
    Totals, VERSION, kind,
};
use crate::{StreamError, Token};
use units::{BLOCK, PoolId};

type Result<T> = std::result::Result<T, StreamError>;

/// Reads one stream, in whatever pieces it comes. It holds what was pushed and not yet taken, and
/// after [`Decoder::next_record`] gave none, less than one record.
pub struct Decoder {
    bytes: Vec<u8>,
    /// Bytes of `bytes` that were taken.
    at: usize,
    sum: Sum,
    /// Number of the next record.
    sequence: u64,
    begin: Option<Begin>,
    /// Ranges of records that follow begin here or later, in bytes.
    position: u64,
    totals: Totals,
    ended: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            at: 0,
            sum: Sum::new(),
            sequence: 0,
            begin: None,
            position: 0,
            totals: Totals::default(),
            ended: false,
        }
    }
}

/// The length that a payload of a kind may have.
fn length_of(kind: u32) -> Option<std::ops::RangeInclusive<usize>> {
    match kind {
        kind::BEGIN => Some(BEGIN + 2..=BEGIN + 2 * NAME_MAX),
        kind::DATA => Some(8 + BLOCK..=8 + DATA_MAX),
        kind::ZEROES => Some(16..=16),
        kind::END => Some(24..=24),
        kind::FAILED => Some(0..=FAILED_MAX),
        _ => None,
    }
}

fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(good)
}

fn whole_blocks(bytes: u64) -> bool {
    bytes.is_multiple_of(BLOCK as u64)
}

impl Decoder {
    /// Takes more bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The header of the stream, once it was read.
    pub fn begun(&self) -> Option<&Begin> {
        self.begin.as_ref()
    }

    /// The part of the volume that the records so far cover, in bytes.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Sums over the records that were taken; `read` is there at the end.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// A token to resume sending after the first `done` bytes of the volume.
    pub fn token(&self, done: u64) -> Option<Token> {
        let begin = self.begin.as_ref()?;
        Some(Token {
            to: begin.to,
            from: begin.from,
            done,
        })
    }

    /// Takes the next record, if all of it is there.
    ///
    /// # Errors
    /// When it is damaged or cannot be; nothing of the stream counts from there on.
    pub fn next_record(&mut self) -> Result<Option<Record>> {
        if self.ended {
            return match self.bytes.len() > self.at {
                true => Err(StreamError::Trailing),
                false => Ok(None),
            };
        }
        if self.sequence == 0 && self.begin.is_none() && !self.open()? {
            return Ok(None);
        }
        let prologue = if self.begin.is_none() { PROLOGUE } else { 0 };
        let start = self.at + prologue;
        let Some(header) = self.bytes.get(start..start + HEADER) else {
            return Ok(None);
        };
        let sequence = self.sequence;
        let (kind, length) = (get_u32(header, 0), get_u32(header, 4) as usize);
        let damaged = Err(StreamError::Damaged(sequence));
        let fits = length_of(kind).is_some_and(|lengths| lengths.contains(&length));
        if !fits || get_u64(header, 8) != sequence {
            return damaged;
        }
        let Some(payload) = self.bytes.get(start + HEADER..start + HEADER + length) else {
            return Ok(None);
        };
        let mut sum = self.sum;
        sum.add(&self.bytes[self.at..start + 16]);
        sum.add(payload);
        if sum.value() != get_u32(header, 16) {
            return damaged;
        }
        let record = self.read(kind, payload)?;
        self.note(&record);
        self.sum = sum;
        self.sequence += 1;
        self.at = start + HEADER + length;
        Ok(Some(record))
    }

    /// Checks that a stream of this version begins here; false if more bytes are needed.
    fn open(&self) -> Result<bool> {
        let start = &self.bytes[self.at..];
        let known = start.len().min(MAGIC.len());
        if start[..known] != MAGIC[..known] {
            return Err(StreamError::NoStream);
        }
        if start.len() < PROLOGUE {
            return Ok(false);
        }
        match get_u32(start, 8) {
            VERSION => Ok(true),
            other => Err(StreamError::Version(other)),
        }
    }

    fn read(&self, kind: u32, payload: &[u8]) -> Result<Record> {
        if self.begin.is_none() != (kind == kind::BEGIN) {
            return Err(self.wrong("it is out of order"));
        }
        match kind {
            kind::BEGIN => Ok(Record::Begin(self.read_begin(payload)?)),
            kind::DATA => {
                let (offset, bytes) = (get_u64(payload, 0), &payload[8..]);
                self.check_range(offset, bytes.len() as u64)?;
                Ok(Record::Data {
                    offset,
                    bytes: bytes.to_vec(),
                })
            }
            kind::ZEROES => {
                let (offset, len) = (get_u64(payload, 0), get_u64(payload, 8));
                self.check_range(offset, len)?;
                Ok(Record::Zeroes { offset, len })
            }
            kind::END => {
                let totals = Totals {
                    data: get_u64(payload, 0),
                    zeroes: get_u64(payload, 8),
                    read: get_u64(payload, 16),
                };
                if (totals.data, totals.zeroes) != (self.totals.data, self.totals.zeroes) {
                    return Err(self.wrong("its counts differ from the records received"));
                }
                Ok(Record::End(totals))
            }
            _ => {
                let text = std::str::from_utf8(payload);
                let text = text.map_err(|_| self.wrong("its reason is not text"))?;
                let plain: String = text.chars().filter(|c| !c.is_control()).collect();
                Ok(Record::Failed(plain))
            }
        }
    }

    fn read_begin(&self, payload: &[u8]) -> Result<Begin> {
        match get_u64(payload, 0) {
            0 => {}
            unknown => return Err(StreamError::Features(unknown)),
        }
        let (volume, snapshot) = (get_u16(payload, 104), get_u16(payload, 106));
        let names = &payload[BEGIN..];
        if usize::from(volume) + usize::from(snapshot) != names.len() {
            return Err(self.wrong("its names have the wrong length"));
        }
        let (volume, snapshot) = names.split_at(usize::from(volume));
        let name = |bytes| {
            std::str::from_utf8(bytes)
                .ok()
                .filter(|name| is_name(name))
                .map(str::to_owned)
                .ok_or(self.wrong("it has an invalid name"))
        };
        let begin = Begin {
            pool: PoolId(get_u128(payload, 8)),
            to: get_id(payload, 24),
            from: get_id_or_none(payload, 52),
            size: get_u64(payload, 80),
            start: get_u64(payload, 88),
            lba_size: get_u32(payload, 96),
            volume: name(volume)?,
            snapshot: name(snapshot)?,
        };
        let sizes = units::CHUNK as u64..=SIZE_MAX;
        if !sizes.contains(&begin.size) || !whole_blocks(begin.size) {
            return Err(self.wrong("its volume size is invalid"));
        }
        if begin.start > begin.size || !whole_blocks(begin.start) {
            return Err(self.wrong("it starts beyond the volume, or within a block"));
        }
        if ![512, 4096].contains(&begin.lba_size) || get_u32(payload, 100) != BLOCK as u32 {
            return Err(self.wrong("its block size is invalid"));
        }
        if begin.from == Some(begin.to) {
            return Err(self.wrong("its base is the snapshot itself"));
        }
        Ok(begin)
    }

    fn wrong(&self, why: &'static str) -> StreamError {
        StreamError::Wrong(self.sequence, why)
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<()> {
        let size = self.begin.as_ref().map_or(0, |begin| begin.size);
        if len == 0 || !whole_blocks(offset) || !whole_blocks(len) {
            return Err(self.wrong("its range is not aligned to blocks"));
        }
        if offset < self.position {
            return Err(self.wrong("its range is before the previous one"));
        }
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(self.wrong("its range ends beyond the volume"));
        }
        Ok(())
    }

    fn note(&mut self, record: &Record) {
        match record {
            Record::Begin(begin) => {
                self.position = begin.start;
                self.begin = Some(begin.clone());
            }
            Record::Data { offset, bytes } => {
                self.position = offset + bytes.len() as u64;
                self.totals.data += bytes.len() as u64;
            }
            Record::Zeroes { offset, len } => {
                self.position = offset + len;
                self.totals.zeroes += len;
            }
            Record::End(totals) => {
                self.totals = *totals;
                self.ended = true;
            }
            Record::Failed(_) => self.ended = true,
        }
    }

    /// Says whether the stream may end here.
    ///
    /// # Errors
    /// [`StreamError::Cut`], or what does not belong to the stream.
    pub fn end(&self) -> Result<()> {
        match (self.ended, self.bytes.len() > self.at) {
            (true, false) => Ok(()),
            (true, true) => Err(StreamError::Trailing),
            (false, _) => Err(StreamError::Cut(self.sequence)),
        }
    }
}
