//! Commands that move or examine data (SBC-3 5.8 to 5.44, SBC-4 for WRITE ATOMIC).

use crate::blocks::{Blocks, Flags};
use crate::execute::{Answer, Call};
use crate::io::Step;
use crate::sense::Sense;
use block::{IoBuf, OpKind};
use std::ops::Range;

/// Data that is read only to be examined comes in pieces of this size, in bytes.
pub(crate) const PIECE: u64 = 1 << 20;
/// Unit of the engine's regions, in bytes: a piece within one waits for no other.
pub(crate) const TOGETHER: u64 = 256 << 20;
/// The engine's block size, in bytes: a write within one is never torn.
pub(crate) const ATOMIC: u64 = 4096;

fn len(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// The pieces of a range.
pub(crate) fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    let starts = range.step_by(PIECE as usize);
    starts.map(move |start| start..end.min(start + PIECE))
}

/// The pieces of a range that no data comes or goes for: they end at multiples of `size`, so that where `size` is what
/// the engine keeps together ([`TOGETHER`]) each is for one part of it.
pub(crate) fn aligned(range: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let (mut at, end) = (range.start, range.end);
    std::iter::from_fn(move || {
        let start = at;
        at = end.min((start / size + 1) * size);
        (start < end).then_some(start..at)
    })
}

/// Where two texts of the same length differ first.
pub(crate) fn mismatch(left: &[u8], right: &[u8]) -> Option<u64> {
    if left == right {
        return None;
    }
    let differ = left
        .iter()
        .zip(right)
        .position(|(left, right)| left != right);
    differ.map(|at| at as u64)
}

impl Call<'_> {
    /// The data-out of the command, which must be `len` bytes; what is more is left alone.
    pub(crate) fn data(&self, len: u64) -> Result<&[u8], Sense> {
        let bytes = self.data.as_bytes().unwrap_or(&[]);
        bytes.get(..len as usize).ok_or(Sense::INVALID_FIELD_IN_CDB)
    }

    /// Reads `range` whole.
    pub(crate) async fn fetch(&self, range: Range<u64>) -> Result<IoBuf, Sense> {
        let step = Step::new(OpKind::Read, range.start, len(&range));
        // A read that succeeds has filled all of it.
        let buf = IoBuf::spare(len(&range) as usize);
        Ok(self.run(step, buf).await?.0)
    }

    pub(crate) async fn flush(&self) -> Result<(), Sense> {
        self.run(Step::new(OpKind::Flush, 0, 0), IoBuf::empty())
            .await?;
        Ok(())
    }

    pub(crate) async fn read(self) -> Answer {
        let flags = Flags::parse(self.cdb)?;
        let range = self.nexus.transfer(Blocks::parse(self.cdb))?;
        if range.is_empty() {
            return Ok(self.empty());
        }
        if flags.fua {
            // What is returned has to be on the medium (SBC-3 5.8): the engine's cache is volatile.
            self.flush().await?;
        }
        Ok(self.give(self.fetch(range).await?))
    }

    pub(crate) async fn write(self) -> Answer {
        let flags = Flags::parse(self.cdb)?;
        let range = self.nexus.transfer(Blocks::parse(self.cdb))?;
        self.store(range, flags.fua).await
    }

    pub(crate) async fn write_atomic(self) -> Answer {
        let flags = Flags::parse(self.cdb)?;
        let range = self.nexus.transfer(Blocks::parse_atomic(self.cdb))?;
        let boundary = self.cdb[10] != 0 || self.cdb[11] != 0;
        let fits = range.start.is_multiple_of(ATOMIC) && len(&range).is_multiple_of(ATOMIC);
        if boundary || !fits || len(&range) > ATOMIC {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        self.store(range, flags.fua).await
    }

    /// Writes the data-out. Initiators may announce less than the CDB says: then whole blocks of
    /// that are written and the residual count covers the rest (RFC 7143 11.4.5.1).
    async fn store(mut self, range: Range<u64>, fua: bool) -> Answer {
        let wanted = len(&range);
        let block = self.nexus.block_size();
        let given = self.data.len() as u64;
        let take = wanted.min(given / block * block);
        if take > 0 {
            let range = range.start..range.start + take;
            let _held = self.hold(range.clone(), false).await;
            let mut buf = std::mem::replace(&mut self.data, IoBuf::empty());
            if buf.len() as u64 != take {
                let bytes = buf.as_bytes().unwrap_or(&[])[..take as usize].into();
                buf = IoBuf::from_bytes(bytes);
            }
            let step = Step::new(OpKind::Write, range.start, take).fua(fua);
            self.run(step, buf).await?.0.give_back();
        }
        Ok(self.took(wanted))
    }

    /// Writes `bytes` at `at`, under a lock that the caller holds.
    pub(crate) async fn put(&self, at: u64, bytes: Box<[u8]>, fua: bool) -> Result<(), Sense> {
        let step = Step::new(OpKind::Write, at, bytes.len() as u64).fua(fua);
        self.run(step, IoBuf::from_bytes(bytes)).await?;
        Ok(())
    }

    pub(crate) async fn write_verify(self) -> Answer {
        let flags = Flags::parse(self.cdb)?;
        let range = self.nexus.transfer(Blocks::parse(self.cdb))?;
        if flags.compare > 1 {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        let wanted = len(&range);
        let block = self.nexus.block_size();
        let take = wanted.min(self.data.len() as u64 / block * block);
        if take > 0 {
            let range = range.start..range.start + take;
            let _held = self.hold(range.clone(), true).await;
            let bytes = self.data(take)?;
            // "Written to the medium" is what verifying is about.
            self.put(range.start, bytes.into(), true).await?;
            self.compare(range, flags.compare == 1, Some(bytes)).await?;
        }
        Ok(self.took(wanted))
    }

    pub(crate) async fn verify(self) -> Answer {
        let flags = Flags::parse(self.cdb)?;
        let blocks = Blocks::parse(self.cdb);
        let block = self.nexus.block_size();
        let (range, wanted) = match flags.compare {
            0 => (self.nexus.looked_at(blocks)?, 0),
            1 => {
                let range = self.nexus.transfer(blocks)?;
                let wanted = len(&range);
                (range, wanted)
            }
            3 => (self.nexus.looked_at(blocks)?, block),
            _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
        };
        if !range.is_empty() {
            let expected = match wanted {
                0 => None,
                wanted => Some(self.data(wanted)?),
            };
            self.compare(range, flags.compare != 0, expected).await?;
        }
        Ok(self.took(wanted))
    }

    /// Reads a range, and compares it where `compares` with what is expected: as long as the range,
    /// or one block for all of it.
    async fn compare(
        &self,
        range: Range<u64>,
        compares: bool,
        expected: Option<&[u8]>,
    ) -> Result<(), Sense> {
        let begin = range.start;
        for piece in pieces(range) {
            self.goes_on()?;
            let at = (piece.start - begin) as usize;
            let found = self.fetch(piece).await?;
            let found = found.as_bytes().unwrap_or(&[]);
            let (true, Some(expected)) = (compares, expected) else {
                continue;
            };
            let differ = match expected.get(at..at + found.len()) {
                Some(expected) => mismatch(found, expected).map(|offset| at as u64 + offset),
                None => found
                    .chunks(expected.len())
                    .find_map(|block| mismatch(block, expected)),
            };
            if let Some(differ) = differ {
                return Err(Sense::MISCOMPARE.at(differ));
            }
        }
        Ok(())
    }

    /// The blocks come into the engine's memory as far as it sees fit; nothing is promised but that
    /// they are there (SBC-3 5.7). GOOD and not CONDITION MET: they may have gone again.
    pub(crate) async fn prefetch(self) -> Answer {
        let mut blocks = Blocks::parse(self.cdb);
        if blocks.count == 0 {
            let all = self.nexus.unit.size() / self.nexus.block_size();
            blocks.count = all.saturating_sub(blocks.lba);
        }
        let range = self.nexus.range(blocks)?;
        let first = range.start..range.end.min(range.start + PIECE);
        self.fetch(first).await?;
        Ok(self.empty())
    }

    /// SYNCHRONIZE CACHE: all of it, whatever the range (SBC-3 5.22).
    pub(crate) async fn synchronize(self) -> Answer {
        let blocks = Blocks::parse(self.cdb);
        if blocks.lba != 0 || blocks.count != 0 {
            self.nexus.range(blocks)?;
        }
        self.flush().await?;
        Ok(self.empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_into_pieces() {
        let cut = |range| pieces(range).collect::<Vec<_>>();
        assert_eq!(cut(0..0), []);
        assert_eq!(cut(5..10).first(), Some(&(5..10)));
        assert_eq!(cut(1..PIECE + 2), [1..PIECE + 1, PIECE + 1..PIECE + 2]);
        let cut = |range| aligned(range, 8).collect::<Vec<_>>();
        assert_eq!(cut(3..3), []);
        assert_eq!(cut(3..20), [3..8, 8..16, 16..20]);
        assert_eq!(cut(8..17), [8..16, 16..17]);
    }

    #[test]
    fn the_first_difference_is_told() {
        assert_eq!(mismatch(b"abc", b"abc"), None);
        assert_eq!(mismatch(b"abc", b"axx"), Some(1));
    }
}
