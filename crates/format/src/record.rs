//! Journal records: each sets the blocks that it names to a state, independent of their previous one,
//! so that replaying a journal again from an earlier point ends in the same state.

use crate::bytes::{get_place, get_u16, get_u32, put, put_place};
use smallvec::SmallVec;
use thiserror::Error;
use units::{CHUNK_BLOCKS, Place};

/// A set of the blocks of one chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockMask([u64; 4]);

impl BlockMask {
    /// Every block.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// `count` blocks from `first` on, as far as a chunk has them.
    pub fn of(first: usize, count: usize) -> Self {
        let end = (first + count).min(CHUNK_BLOCKS);
        let mut mask = Self::default();
        let mut block = first;
        while block < end {
            let take = (64 - block % 64).min(end - block);
            mask.0[block / 64] |= u64::MAX >> (64 - take) << (block % 64);
            block += take;
        }
        mask
    }

    /// Adds a block.
    pub fn set(&mut self, block: usize) {
        self.0[block / 64] |= 1 << (block % 64);
    }

    /// Whether a block is in it.
    pub fn has(&self, block: usize) -> bool {
        self.0[block / 64] >> (block % 64) & 1 == 1
    }

    /// How many blocks are in it.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no block is in it.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Takes a block out.
    pub fn clear(&mut self, block: usize) {
        self.0[block / 64] &= !(1 << (block % 64));
    }

    /// The blocks that are in either.
    pub fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The blocks that are in both.
    pub fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The blocks that are not in the other one.
    pub fn and_not(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// Its blocks, in order.
    pub fn blocks(self) -> impl Iterator<Item = usize> + Clone {
        self.0.into_iter().enumerate().flat_map(|(index, word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                (left != 0).then(|| {
                    let bit = left.trailing_zeros() as usize;
                    left &= left - 1;
                    index * 64 + bit
                })
            })
        })
    }

    /// From 32 bytes, bit `b` of byte `n` being block `8 n + b`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(std::array::from_fn(|index| {
            u64::from_le_bytes(
                bytes[8 * index..8 * index + 8]
                    .try_into()
                    .expect("eight bytes"),
            )
        }))
    }
}

impl FromIterator<usize> for BlockMask {
    fn from_iter<T: IntoIterator<Item = usize>>(blocks: T) -> Self {
        let mut mask = Self::default();
        blocks.into_iter().for_each(|block| mask.set(block));
        mask
    }
}

/// Why bytes are no record. The journal page's checksum was right: a newer or damaged writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a journal page contains bytes that are not a record of this version")]
pub struct RecordError;

/// A record's list per block: usually one entry.
pub type Few<T> = SmallVec<[T; 2]>;

/// One change. Places that a record frees are named in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// Blocks `first..first + crcs.len()` have new content in consecutive slots from `slot` on;
    /// their homes are stale; `old` are the slots that they leave (none where there was none).
    Write {
        /// Volume.
        volume: u32,
        /// Chunk.
        chunk: u32,
        /// First block of the chunk.
        first: u8,
        /// First of the consecutive slots.
        slot: Place,
        /// CRC32C of each block.
        crcs: Few<u32>,
        /// Slots that are free by this, one a block; empty when no block had one.
        old: Few<Place>,
    },
    /// Blocks are zeroes; `old` as in `Write`, one for each of `count` blocks, or empty.
    Trim {
        /// Volume.
        volume: u32,
        /// Chunk.
        chunk: u32,
        /// First block of the chunk.
        first: u8,
        /// Number of blocks, 1 to 256.
        count: u16,
        /// Slots that are free by this.
        old: Few<Place>,
    },
    /// Blocks that are at home have a copy in consecutive slots, too.
    Promote {
        /// Volume.
        volume: u32,
        /// Chunk.
        chunk: u32,
        /// First block of the chunk.
        first: u8,
        /// Number of blocks, 1 to 256.
        count: u16,
        /// First of the consecutive slots.
        slot: Place,
    },
    /// Blocks that are valid at home release their slots.
    Evict {
        /// Volume.
        volume: u32,
        /// Chunk.
        chunk: u32,
        /// Which blocks.
        mask: BlockMask,
        /// Their slots, in the order of the blocks.
        old: Few<Place>,
    },
    /// The chunk's home is `home`, and it holds the present content of the blocks in `mask`, too.
    Home {
        /// Volume.
        volume: u32,
        /// Chunk.
        chunk: u32,
        /// First block of the home.
        home: Place,
        /// Blocks that are valid there from now on, beside those that were.
        mask: BlockMask,
    },
    /// The chunk's home moves: what was valid at `old` is valid at `new`; `old` is free.
    /// With no new place the chunk has no home any more and nothing was valid there.
    MoveHome {
        /// Volume.
        volume: u32,
        /// Chunk.
        chunk: u32,
        /// First block of the new home, or none.
        new: Place,
        /// First block of the old home.
        old: Place,
    },
    /// The chunk's page of layer `volume` goes into the page of the layer that it is based on: what it
    /// has replaces what is there, and what it inherits stays. No checkpoint is between the pages
    /// and this record, so that replaying it again does the same.
    Merge {
        /// The upper layer.
        volume: u32,
        /// Chunk.
        chunk: u32,
        /// The lower layer.
        lower: u32,
    },
}

const WRITE: u8 = 1;
const TRIM: u8 = 2;
const PROMOTE: u8 = 3;
const EVICT: u8 = 4;
const HOME: u8 = 5;
const MOVE_HOME: u8 = 6;
const MERGE: u8 = 7;
const HEAD: usize = 14;
/// Bytes of a place.
const PLACE: usize = 6;

fn head(out: &mut Vec<u8>, kind: u8, first: u8, volume: u32, chunk: u32, counts: (usize, usize)) {
    // In one piece: each append checks the room in `out`.
    let mut head = [0; HEAD];
    (head[0], head[1]) = (kind, first);
    put(&mut head, 2, &volume.to_le_bytes());
    put(&mut head, 6, &chunk.to_le_bytes());
    put(&mut head, 10, &(counts.0 as u16).to_le_bytes());
    put(&mut head, 12, &(counts.1 as u16).to_le_bytes());
    out.extend_from_slice(&head);
}

fn place(out: &mut Vec<u8>, place: Place) {
    let mut bytes = [0; PLACE];
    put_place(&mut bytes, 0, place);
    out.extend_from_slice(&bytes);
}

fn mask_bytes(out: &mut Vec<u8>, mask: &BlockMask) {
    mask.0
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

impl Record {
    /// Volume and chunk that it is about.
    pub fn subject(&self) -> (u32, u32) {
        match self {
            Self::Write { volume, chunk, .. }
            | Self::Trim { volume, chunk, .. }
            | Self::Promote { volume, chunk, .. }
            | Self::Evict { volume, chunk, .. }
            | Self::Home { volume, chunk, .. }
            | Self::MoveHome { volume, chunk, .. }
            | Self::Merge { volume, chunk, .. } => (*volume, *chunk),
        }
    }

    /// The slots that are free by it, one for each of its blocks (or none): of `Write`, `Trim` and `Evict`.
    pub fn old_slots(&self) -> &[Place] {
        match self {
            Self::Write { old, .. } | Self::Trim { old, .. } | Self::Evict { old, .. } => old,
            _ => &[],
        }
    }

    /// Appends its bytes, at most 2,600.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Write {
                volume,
                chunk,
                first,
                slot,
                crcs,
                old,
            } => {
                head(out, WRITE, *first, *volume, *chunk, (crcs.len(), old.len()));
                place(out, *slot);
                crcs.iter()
                    .for_each(|crc| out.extend_from_slice(&crc.to_le_bytes()));
                old.iter().for_each(|old| place(out, *old));
            }
            Self::Trim {
                volume,
                chunk,
                first,
                count,
                old,
            } => {
                head(
                    out,
                    TRIM,
                    *first,
                    *volume,
                    *chunk,
                    (usize::from(*count), old.len()),
                );
                old.iter().for_each(|old| place(out, *old));
            }
            Self::Promote {
                volume,
                chunk,
                first,
                count,
                slot,
            } => {
                head(
                    out,
                    PROMOTE,
                    *first,
                    *volume,
                    *chunk,
                    (usize::from(*count), 0),
                );
                place(out, *slot);
            }
            Self::Evict {
                volume,
                chunk,
                mask,
                old,
            } => {
                head(out, EVICT, 0, *volume, *chunk, (mask.count(), old.len()));
                mask_bytes(out, mask);
                old.iter().for_each(|old| place(out, *old));
            }
            Self::Home {
                volume,
                chunk,
                home,
                mask,
            } => {
                head(out, HOME, 0, *volume, *chunk, (mask.count(), 0));
                place(out, *home);
                mask_bytes(out, mask);
            }
            Self::MoveHome {
                volume,
                chunk,
                new,
                old,
            } => {
                head(out, MOVE_HOME, 0, *volume, *chunk, (0, 0));
                place(out, *new);
                place(out, *old);
            }
            Self::Merge {
                volume,
                chunk,
                lower,
            } => {
                head(out, MERGE, 0, *volume, *chunk, (0, 0));
                out.extend_from_slice(&lower.to_le_bytes());
            }
        }
    }

    /// Reads the record at the start of `bytes`; returns it and its length.
    ///
    /// # Errors
    /// When the bytes are no record.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), RecordError> {
        let mut reader = Reader { bytes, at: 0 };
        let head = reader.take(HEAD)?;
        let (kind, first) = (head[0], head[1]);
        let (volume, chunk) = (get_u32(head, 2), get_u32(head, 6));
        let (count, olds) = (
            usize::from(get_u16(head, 10)),
            usize::from(get_u16(head, 12)),
        );
        let counted = match kind {
            WRITE | TRIM => count > 0 && (olds == 0 || olds == count),
            PROMOTE => count > 0 && olds == 0,
            EVICT => first == 0 && count > 0 && olds == count,
            HOME => first == 0 && olds == 0,
            MOVE_HOME | MERGE => first == 0 && count == 0 && olds == 0,
            _ => false,
        };
        if !counted || usize::from(first) + count > CHUNK_BLOCKS {
            return Err(RecordError);
        }
        let count16 = count as u16;
        let record = match kind {
            WRITE => Self::Write {
                volume,
                chunk,
                first,
                slot: reader.run(count)?,
                crcs: {
                    let crcs = reader.take(4 * count)?.chunks_exact(4);
                    crcs.map(|crc| get_u32(crc, 0)).collect()
                },
                old: reader.places(olds)?,
            },
            TRIM => Self::Trim {
                volume,
                chunk,
                first,
                count: count16,
                old: reader.places(olds)?,
            },
            PROMOTE => Self::Promote {
                volume,
                chunk,
                first,
                count: count16,
                slot: reader.run(count)?,
            },
            EVICT => {
                let mask = BlockMask::from_bytes(reader.take(32)?);
                if mask.count() != count {
                    return Err(RecordError);
                }
                Self::Evict {
                    volume,
                    chunk,
                    mask,
                    old: reader.places(olds)?,
                }
            }
            HOME => {
                let home = reader.run(CHUNK_BLOCKS)?;
                let mask = BlockMask::from_bytes(reader.take(32)?);
                if mask.count() != count {
                    return Err(RecordError);
                }
                Self::Home {
                    volume,
                    chunk,
                    home,
                    mask,
                }
            }
            MOVE_HOME => {
                let new = reader.run_or_none(CHUNK_BLOCKS)?;
                Self::MoveHome {
                    volume,
                    chunk,
                    new,
                    old: reader.run_or_none(CHUNK_BLOCKS)?,
                }
            }
            MERGE => {
                let lower = get_u32(reader.take(4)?, 0);
                if lower == volume {
                    return Err(RecordError);
                }
                Self::Merge {
                    volume,
                    chunk,
                    lower,
                }
            }
            _ => return Err(RecordError),
        };
        Ok((record, reader.at))
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], RecordError> {
        let taken = self.bytes.get(self.at..self.at + len).ok_or(RecordError)?;
        self.at += len;
        Ok(taken)
    }

    fn place(&mut self) -> Result<Place, RecordError> {
        Ok(get_place(self.take(6)?, 0))
    }

    /// A place that `count` blocks may follow.
    fn run_or_none(&mut self, count: usize) -> Result<Place, RecordError> {
        let place = self.place()?;
        if place.block() + count as u64 > 1 << Place::BLOCK_BITS {
            return Err(RecordError);
        }
        Ok(place)
    }

    /// The same, where there has to be a place.
    fn run(&mut self, count: usize) -> Result<Place, RecordError> {
        let place = self.run_or_none(count)?;
        place.is_some().then_some(place).ok_or(RecordError)
    }

    fn places(&mut self, count: usize) -> Result<Few<Place>, RecordError> {
        let places = self.take(6 * count)?.chunks_exact(6);
        Ok(places.map(|place| get_place(place, 0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_blocks_has_these_and_no_other() {
        for first in [0, 1, 63, 64, 100, 128, 255, 256] {
            for count in [0, 1, 2, 63, 64, 65, 128, 156, 256] {
                let some: BlockMask = (first..first + count).take_while(|at| *at < 256).collect();
                assert_eq!(BlockMask::of(first, count), some, "{first}+{count}");
            }
        }
        assert_eq!(BlockMask::of(0, 256), BlockMask::ALL);
        assert_eq!(BlockMask::ALL.count(), CHUNK_BLOCKS);
    }
    use smallvec::smallvec;
    use units::VdriveId;

    #[test]
    fn every_record_survives_and_a_cut_one_is_refused() {
        let at = |block| Place::new(VdriveId(1), block);
        let mask: BlockMask = [0, 63, 64, 255].into_iter().collect();
        let records = [
            Record::Write {
                volume: 1,
                chunk: 2,
                first: 0,
                slot: at(5),
                crcs: smallvec![7; 256],
                old: smallvec![at(9); 256],
            },
            Record::Write {
                volume: 1,
                chunk: 2,
                first: 255,
                slot: at(5),
                crcs: smallvec![7],
                old: smallvec![],
            },
            Record::Trim {
                volume: 1,
                chunk: u32::MAX,
                first: 3,
                count: 2,
                old: smallvec![at(1), Place::NONE],
            },
            Record::Promote {
                volume: 1,
                chunk: 2,
                first: 0,
                count: 256,
                slot: at(1 << 39),
            },
            Record::Evict {
                volume: 1,
                chunk: 2,
                mask,
                old: smallvec![at(3); 4],
            },
            Record::Home {
                volume: 1,
                chunk: 2,
                home: at(256),
                mask,
            },
            Record::MoveHome {
                volume: 1,
                chunk: 2,
                new: Place::NONE,
                old: at(256),
            },
            Record::Merge {
                volume: 9,
                chunk: 2,
                lower: 7,
            },
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert!(bytes.len() <= 2600, "{}", bytes.len());
            assert_eq!(Record::decode(&bytes), Ok((record.clone(), bytes.len())));
            assert_eq!(Record::decode(&bytes[..bytes.len() - 1]), Err(RecordError));
        }
    }

    #[test]
    fn what_no_writer_makes_is_refused() {
        let promote = |first: u8, count: u16, block: u64| {
            let mut bytes = Vec::new();
            Record::Promote {
                volume: 1,
                chunk: 2,
                first,
                count,
                slot: Place::new(VdriveId(1), block),
            }
            .encode(&mut bytes);
            bytes
        };
        let last = (1 << Place::BLOCK_BITS) - 1;
        for (case, bytes, fits) in [
            ("the last blocks", promote(1, 255, 7), true),
            ("past the end of its chunk", promote(1, 256, 7), false),
            ("no block", promote(1, 0, 7), false),
            ("the vdrive's last block", promote(1, 1, last), true),
            ("past the end of any vdrive", promote(1, 2, last), false),
        ] {
            assert_eq!(Record::decode(&bytes).is_ok(), fits, "{case}");
        }
        // A home is a whole chunk, wherever its blocks are valid.
        let home = |block: u64, moves: bool| {
            let (volume, chunk, place) = (1, 2, Place::new(VdriveId(1), block));
            let record = match moves {
                true => Record::MoveHome {
                    volume,
                    chunk,
                    new: place,
                    old: Place::NONE,
                },
                false => Record::Home {
                    volume,
                    chunk,
                    home: place,
                    mask: [0].into_iter().collect(),
                },
            };
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            bytes
        };
        let last = (1 << Place::BLOCK_BITS) - CHUNK_BLOCKS as u64;
        for moves in [false, true] {
            assert!(Record::decode(&home(last, moves)).is_ok());
            assert_eq!(Record::decode(&home(last + 1, moves)), Err(RecordError));
        }
        let mut unknown = promote(1, 1, 7);
        unknown[0] = 99;
        assert_eq!(Record::decode(&unknown), Err(RecordError));
        let mut nowhere = promote(1, 1, 7);
        nowhere[14..20].fill(0);
        assert_eq!(Record::decode(&nowhere), Err(RecordError));
    }
}
