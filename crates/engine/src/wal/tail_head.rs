//! The header of a tail: which opening of which pool made it, with which drives, and how far the drives
//! are sure to be.
//!
//! A tail belongs to one opening. Its header guides a later opening: a tail of other drives, as of those that the
//! present ones were copied from, is neither applied nor removed.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use units::{DriveId, PoolId, ShardId};

/// Says that a head is there, and how it is laid out: "CVTAIL" and a version.
const MAGIC: u64 = 0x4c49_4154_5643_0002;
/// Words before the lists: magic, pool (two), opening (two), shard, epoch, durable mark, which list counts.
const FIELDS: usize = 16;
const EPOCH: usize = 6;
const DURABLE: usize = 7;
const LIST: usize = 8;
/// Drives that are listed; of a pool with more, the first ones.
const DRIVES: usize = 256;
/// Words of a drive: its id (two) and what it is (four).
const DRIVE: usize = 6;
/// Words of a list: its length, and drives.
const LIST_WORDS: usize = 1 + DRIVES * DRIVE;

/// Words of a head.
pub(super) const HEAD_WORDS: usize = FIELDS + 2 * LIST_WORDS;

/// A drive of the pool that has the tail, with what it is (`drives::DriveIdentity::words`, or zeroes).
pub(crate) type TailDrive = (DriveId, [u64; 4]);

/// A head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TailHead {
    pub pool: PoolId,
    pub shard: ShardId,
    /// The opening's id.
    pub opening: u128,
    /// Epoch of the journal's pages.
    pub epoch: u64,
    /// Pages below this number were durable, with their data.
    pub durable: u64,
    /// In use since the opening, or since they joined.
    pub drives: Vec<TailDrive>,
}

impl TailHead {
    /// The header in a memory of [`super::nvram_tail::TAIL_WORDS`]. `None` if it was not written completely.
    pub fn read(words: &[AtomicU64]) -> Option<Self> {
        let get = |at: usize| words.get(at).map_or(0, |word| word.load(Relaxed));
        if words.len() < HEAD_WORDS || words[0].load(Acquire) != MAGIC {
            return None;
        }
        let wide = |at: usize| u128::from(get(at)) | u128::from(get(at + 1)) << 64;
        let list = list_at(words[LIST].load(Acquire));
        let length = (get(list) as usize).min(DRIVES);
        let drives = (0..length).map(|index| {
            let at = list + 1 + index * DRIVE;
            let is = [get(at + 2), get(at + 3), get(at + 4), get(at + 5)];
            (DriveId(wide(at)), is)
        });
        Some(Self {
            pool: PoolId(wide(1)),
            opening: wide(3),
            shard: ShardId(u16::try_from(get(5)).ok()?),
            epoch: get(EPOCH),
            durable: get(DURABLE),
            drives: drives.collect(),
        })
    }

    /// Writes it into memory that has none yet: it counts from the last word on.
    pub fn write(&self, words: &[AtomicU64]) {
        put_wide(&words[1..], self.pool.0);
        put_wide(&words[3..], self.opening);
        words[5].store(self.shard.0.into(), Relaxed);
        words[EPOCH].store(self.epoch, Relaxed);
        words[DURABLE].store(self.durable, Relaxed);
        put_drives(words, &self.drives);
        words[0].store(MAGIC, Release);
    }

    /// Whether it is of these drives: of those that it lists none is another one by now, and one at least is here.
    pub fn is_of(&self, here: &[TailDrive]) -> bool {
        let mut listed = here.iter().filter_map(|(id, is)| {
            let known = self.drives.iter().find(|known| known.0 == *id);
            known.map(|known| drives::is_same_drive(known.1, *is))
        });
        listed
            .next()
            .is_some_and(|first| first && listed.all(|same| same))
    }
}

/// The drives are these from now on: one list is written while the other one counts.
pub(crate) fn put_drives(words: &[AtomicU64], drives: &[TailDrive]) {
    let other = words[LIST].load(Relaxed) ^ 1;
    let list = list_at(other);
    let drives = &drives[..drives.len().min(DRIVES)];
    words[list].store(drives.len() as u64, Relaxed);
    for (index, (id, is)) in drives.iter().enumerate() {
        let at = list + 1 + index * DRIVE;
        put_wide(&words[at..], id.0);
        for (word, value) in words[at + 2..].iter().zip(is) {
            word.store(*value, Relaxed);
        }
    }
    words[LIST].store(other, Release);
}

/// Pages below this number are durable.
pub(super) fn put_durable(words: &[AtomicU64], durable: u64) {
    words[DURABLE].store(durable, Release);
}

fn list_at(which: u64) -> usize {
    FIELDS + (which & 1) as usize * LIST_WORDS
}

fn put_wide(words: &[AtomicU64], value: u128) {
    words[0].store(value as u64, Relaxed);
    words[1].store((value >> 64) as u64, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Vec<AtomicU64> {
        (0..HEAD_WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    fn head(drives: &[TailDrive]) -> TailHead {
        TailHead {
            pool: PoolId(7 << 64 | 9),
            shard: ShardId(3),
            opening: 1 << 100 | 5,
            epoch: 8,
            durable: 40,
            drives: drives.to_vec(),
        }
    }

    const A: TailDrive = (DriveId(1 << 70), [1, 20, 30, 0]);
    const B: TailDrive = (DriveId(2), [2, 7, 0, 99]);
    const ELSEWHERE: [u64; 4] = [1, 20, 31, 0];

    #[test]
    fn a_head_is_read_as_it_was_written_and_none_before_it_is_whole() {
        let words = memory();
        assert_eq!(TailHead::read(&words), None);
        let written = head(&[A, B]);
        written.write(&words);
        assert_eq!(TailHead::read(&words), Some(written));
        assert_eq!(TailHead::read(&words[1..]), None);
        words[0].store(MAGIC - 1, Relaxed);
        assert_eq!(TailHead::read(&words), None, "another layout");
    }

    #[test]
    fn drives_and_the_durable_mark_can_be_changed() {
        let words = memory();
        head(&[A]).write(&words);
        put_durable(&words, 41);
        put_drives(&words, &[B, A]);
        let found = TailHead::read(&words).unwrap();
        assert_eq!((found.durable, found.drives), (41, vec![B, A]));
        put_drives(&words, &vec![A; DRIVES + 9]);
        assert_eq!(TailHead::read(&words).unwrap().drives.len(), DRIVES);
    }

    #[test]
    fn a_tail_is_of_the_drives_that_it_lists_as_far_as_they_are_here() {
        let both = head(&[A, B]);
        assert!(both.is_of(&[A, B]));
        assert!(both.is_of(&[B]), "one is missing");
        let joined = (DriveId(3), [1, 1, 1, 0]);
        assert!(both.is_of(&[A, joined]));
        assert!(!both.is_of(&[joined]), "none of them is here");
        assert!(!both.is_of(&[(A.0, ELSEWHERE), B]), "one is a copy");
        assert!(!both.is_of(&[]));
        // The same disk under another number, and another disk under the same.
        assert!(both.is_of(&[(B.0, [2, 8, 0, 99])]));
        assert!(!both.is_of(&[(B.0, [2, 7, 0, 98])]));
    }
}
