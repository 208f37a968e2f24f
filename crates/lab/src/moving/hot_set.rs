//! Which parts of a volume are hot.

use crate::chance::Chance;
use units::{BLOCK, EXTENT, EXTENT_BLOCKS};

/// Extents of 64 KiB, each as hot as the others.
#[derive(Clone, Debug)]
pub struct HotSet {
    extents: Vec<u64>,
}

impl HotSet {
    /// A number of contiguous extents.
    pub fn contiguous(begin: u64, count: u64) -> Self {
        Self {
            extents: (begin..begin + count).collect(),
        }
    }

    /// A number of extents scattered over a volume of `all` extents, each somewhere in an equal part of it,
    /// none of them in `but`.
    pub fn scattered(all: u64, count: u64, but: &Self, chance: &mut Chance) -> Self {
        let mut free = vec![true; all as usize];
        but.extents
            .iter()
            .for_each(|extent| free[*extent as usize] = false);
        let free: Vec<u64> = (0..all).filter(|extent| free[*extent as usize]).collect();
        let bound = |part: u64| part * free.len() as u64 / count;
        let extents = (0..count).map(|part| {
            let (begin, end) = (bound(part), bound(part + 1));
            free[(begin + chance.below(end - begin)) as usize]
        });
        Self {
            extents: extents.collect(),
        }
    }

    /// The offset in bytes of a block of it.
    pub fn offset(&self, chance: &mut Chance) -> u64 {
        let extent = self.extents[chance.below(self.extents.len() as u64) as usize];
        extent * EXTENT as u64 + chance.below(EXTENT_BLOCKS as u64) * BLOCK as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_scattered_set_is_all_over_the_volume_and_nowhere_twice_or_where_it_was() {
        let before = HotSet::contiguous(400, 200);
        let mut chance = Chance::new(1);
        let set = HotSet::scattered(1600, 200, &before, &mut chance);
        let extents: BTreeSet<u64> = set.extents.iter().copied().collect();
        assert_eq!(extents.len(), 200);
        assert!(extents.iter().all(|extent| !(400..600).contains(extent)));
        for part in 0..8 {
            // Of 1,400 that are free, every seventh is taken.
            let inside = extents.range(part * 200..(part + 1) * 200).count();
            let wanted = if part == 2 { 0..=1 } else { 27..=30 };
            assert!(wanted.contains(&inside), "{part}: {inside}");
        }
        let neighbours = extents
            .iter()
            .filter(|extent| extents.contains(&(*extent + 1)));
        assert!(neighbours.count() < 20);
    }

    #[test]
    fn offsets_are_blocks_of_the_set() {
        let set = HotSet::contiguous(3, 2);
        let mut chance = Chance::new(2);
        let seen: BTreeSet<u64> = (0..1000).map(|_| set.offset(&mut chance)).collect();
        let begin = 3 * EXTENT as u64;
        let all = (0..2 * EXTENT_BLOCKS as u64).map(|block| begin + block * BLOCK as u64);
        assert_eq!(seen, all.collect());
    }
}
