//! Space bitmaps: as a shard's trees record them, or as its maps imply them.

use crate::pool::Pool;
use format::GroupKey;
use std::collections::BTreeMap;
use units::{CHUNK_BLOCKS, Place};

/// Words of a group's bitmap.
pub const WORDS: usize = 256;

/// Groups of a shard: a bit a block, or a bit a chunk.
#[derive(Clone, Default)]
pub struct Space {
    /// Groups handed out in blocks.
    pub slots: BTreeMap<GroupKey, Box<[u64; WORDS]>>,
    /// Groups handed out in chunks.
    pub homes: BTreeMap<GroupKey, u64>,
}

/// Result of setting a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// It was free.
    New,
    /// Something has it already.
    Taken,
    /// It is outside of every group.
    Nowhere,
}

impl Space {
    /// Marks a block as in use.
    pub fn claim_slot(&mut self, pool: &Pool, place: Place) -> Claim {
        let Some((key, bit)) = pool.group_of(place) else {
            return Claim::Nowhere;
        };
        let bits = self
            .slots
            .entry(key)
            .or_insert_with(|| Box::new([0; WORDS]));
        let (word, mask) = (&mut bits[bit / 64], 1u64 << (bit % 64));
        let taken = *word & mask != 0;
        *word |= mask;
        if taken { Claim::Taken } else { Claim::New }
    }

    /// Marks a block as free.
    pub fn free_slot(&mut self, pool: &Pool, place: Place) {
        if let Some((key, bit)) = pool.group_of(place)
            && let Some(bits) = self.slots.get_mut(&key)
        {
            bits[bit / 64] &= !(1 << (bit % 64));
        }
    }

    /// Marks a home as in use.
    pub fn claim_home(&mut self, pool: &Pool, place: Place) -> Claim {
        let aligned = pool
            .group_of(place)
            .filter(|(_, bit)| bit % CHUNK_BLOCKS == 0);
        let Some((key, block)) = aligned else {
            return Claim::Nowhere;
        };
        let bits = self.homes.entry(key).or_default();
        let mask = 1u64 << (block / CHUNK_BLOCKS);
        let taken = *bits & mask != 0;
        *bits |= mask;
        if taken { Claim::Taken } else { Claim::New }
    }

    /// Marks a home as free.
    pub fn free_home(&mut self, pool: &Pool, place: Place) {
        if let Some((key, block)) = pool.group_of(place)
            && let Some(bits) = self.homes.get_mut(&key)
        {
            *bits &= !(1 << (block / CHUNK_BLOCKS));
        }
    }

    /// Whether a block is marked as in use.
    pub fn has_slot(&self, pool: &Pool, place: Place) -> bool {
        pool.group_of(place).is_some_and(|(key, bit)| {
            let bits = self.slots.get(&key);
            bits.is_some_and(|bits| bits[bit / 64] >> (bit % 64) & 1 == 1)
        })
    }

    /// Blocks marked here and not in `other`, and chunks likewise.
    pub fn beyond(&self, other: &Self) -> (u64, u64) {
        let mut blocks = 0;
        for (key, bits) in &self.slots {
            let theirs = other.slots.get(key);
            for (word, mine) in bits.iter().enumerate() {
                let theirs = theirs.map_or(0, |bits| bits[word]);
                blocks += u64::from((mine & !theirs).count_ones());
            }
        }
        let mut chunks = 0;
        for (key, mine) in &self.homes {
            let theirs = other.homes.get(key).copied().unwrap_or(0);
            chunks += u64::from((mine & !theirs).count_ones());
        }
        (blocks, chunks)
    }
}
