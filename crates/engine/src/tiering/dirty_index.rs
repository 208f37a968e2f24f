//! Chunks with blocks that only the fast tier has, and which of them wait.
//!
//! A chunk that gets a home keeps its copy on the fast tier when it is demoted. Of one that holds little, each block
//! has one slot, and demotion takes it from the fast tier: so that waits until room is wanted there.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds, RangeInclusive};

/// A chunk: its layer and number.
pub(super) type Key = (u32, u32);

/// Chunks of a word.
const WORD: u32 = u64::BITS;

/// Consecutive chunks of a layer, a bit each; none is in both.
#[derive(Clone, Copy, Default)]
struct Word {
    ready: u64,
    aside: u64,
}

/// Chunks that can be demoted, by layer and number. Every write looks here: with a bit a chunk the tree that it goes through
/// has a few nodes for a volume of 1 TiB.
#[derive(Default)]
pub(crate) struct DirtyIndex {
    /// By layer and number divided by [`WORD`]; no word is empty.
    words: BTreeMap<Key, Word>,
    ready: usize,
    aside: usize,
}

fn place((layer, chunk): Key) -> (Key, u64) {
    ((layer, chunk / WORD), 1 << (chunk % WORD))
}

fn chunks((layer, word): Key, mut bits: u64) -> impl Iterator<Item = Key> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        (bit < WORD).then(|| {
            bits &= bits - 1;
            (layer, word * WORD + bit)
        })
    })
}

impl DirtyIndex {
    /// A chunk was written: it is examined, whatever it was before.
    pub fn written(&mut self, key: Key) {
        let (at, bit) = place(key);
        let word = self.words.entry(at).or_default();
        if word.aside & bit != 0 {
            word.aside &= !bit;
            self.aside -= 1;
        }
        if word.ready & bit == 0 {
            word.ready |= bit;
            self.ready += 1;
        }
    }

    /// A chunk was found to have such blocks.
    pub fn found(&mut self, key: Key) {
        let (at, bit) = place(key);
        let word = self.words.entry(at).or_default();
        if (word.ready | word.aside) & bit == 0 {
            word.ready |= bit;
            self.ready += 1;
        }
    }

    /// A chunk has none any longer.
    pub fn remove(&mut self, key: Key) {
        let (at, bit) = place(key);
        let Some(word) = self.words.get_mut(&at) else {
            return;
        };
        self.ready -= usize::from(word.ready & bit != 0);
        self.aside -= usize::from(word.aside & bit != 0);
        word.ready &= !bit;
        word.aside &= !bit;
        if word.ready | word.aside == 0 {
            self.words.remove(&at);
        }
    }

    /// Forgets a layer's chunks.
    pub fn forget(&mut self, layer: u32) {
        let (ready, aside) = (&mut self.ready, &mut self.aside);
        self.words.retain(|at, word| {
            let stays = at.0 != layer;
            if !stays {
                *ready -= word.ready.count_ones() as usize;
                *aside -= word.aside.count_ones() as usize;
            }
            stays
        });
    }

    /// A chunk waits until it is recalled or written.
    pub fn set_aside(&mut self, key: Key) {
        let (at, bit) = place(key);
        if let Some(word) = self.words.get_mut(&at)
            && word.ready & bit != 0
        {
            word.ready &= !bit;
            word.aside |= bit;
            self.ready -= 1;
            self.aside += 1;
        }
    }

    /// Space is needed: all waiting chunks become ready.
    pub fn recall(&mut self) {
        if self.aside == 0 {
            return;
        }
        for word in self.words.values_mut() {
            word.ready |= std::mem::take(&mut word.aside);
        }
        self.ready += std::mem::take(&mut self.aside);
    }

    /// Whether a chunk has such blocks.
    pub fn contains(&self, key: &Key) -> bool {
        let (at, bit) = place(*key);
        let word = self.words.get(&at);
        word.is_some_and(|word| (word.ready | word.aside) & bit != 0)
    }

    /// Number of such chunks.
    pub fn len(&self) -> usize {
        self.ready + self.aside
    }

    /// Whether any chunk waits.
    pub fn has_aside(&self) -> bool {
        self.aside > 0
    }

    /// Whether any chunk is ready.
    pub fn has_ready(&self) -> bool {
        self.ready > 0
    }

    /// Chunks of a range that are in one of the two, in order.
    fn within(
        &self,
        range: impl RangeBounds<Key>,
        part: fn(&Word) -> u64,
    ) -> impl Iterator<Item = Key> {
        let first = match range.start_bound() {
            Bound::Included(key) | Bound::Excluded(key) => Bound::Included(place(*key).0),
            Bound::Unbounded => Bound::Unbounded,
        };
        let last = match range.end_bound() {
            Bound::Included(key) | Bound::Excluded(key) => Bound::Included(place(*key).0),
            Bound::Unbounded => Bound::Unbounded,
        };
        let words = self.words.range((first, last));
        words
            .flat_map(move |(at, word)| chunks(*at, part(word)))
            .filter(move |key| range.contains(key))
    }

    /// Chunks of a range, those that wait, too.
    pub fn between(&self, range: RangeInclusive<Key>) -> impl Iterator<Item = Key> + '_ {
        let ready = self.within(range.clone(), |word| word.ready);
        ready.chain(self.within(range, |word| word.aside))
    }

    /// Up to `count` chunks that do not wait, those after `hand` first, in the order of addresses.
    pub fn next(&self, hand: Key, count: usize) -> Vec<Key> {
        let ready = |word: &Word| word.ready;
        let after = (Bound::Excluded(hand), Bound::Unbounded);
        let mut found: Vec<Key> = self.within(after, ready).take(count).collect();
        let missing = count - found.len();
        found.extend(self.within(.., ready).take(missing));
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_waits_comes_back_when_it_is_recalled_or_written() {
        let mut index = DirtyIndex::default();
        (0..4).for_each(|chunk| index.written((1, chunk)));
        assert_eq!(index.next((1, 1), 3), [(1, 0), (1, 2), (1, 3)]);
        index.set_aside((1, 2));
        index.set_aside((1, 3));
        index.found((1, 3));
        index.set_aside((1, 9));
        assert_eq!(index.next((0, 0), 9), [(1, 0), (1, 1)]);
        assert_eq!(index.len(), 4);
        assert!(index.contains(&(1, 3)) && !index.contains(&(1, 9)));
        index.written((1, 3));
        assert_eq!(index.next((0, 0), 9), [(1, 0), (1, 1), (1, 3)]);
        index.recall();
        assert_eq!(index.next((0, 0), 9).len(), 4);
        index.remove((1, 0));
        index.set_aside((1, 1));
        index.forget(1);
        assert!(index.len() == 0 && !index.has_ready());
    }

    /// As two sets of chunks would have it.
    #[derive(Default)]
    struct Sets {
        ready: BTreeSet<Key>,
        aside: BTreeSet<Key>,
    }

    impl Sets {
        fn change(&mut self, what: u32, key: Key) {
            let (ready, aside) = (&mut self.ready, &mut self.aside);
            match what {
                0 => {
                    aside.remove(&key);
                    ready.insert(key);
                }
                1 if aside.contains(&key) => {}
                1 => {
                    ready.insert(key);
                }
                2 => {
                    ready.remove(&key);
                    aside.remove(&key);
                }
                3 if ready.remove(&key) => {
                    aside.insert(key);
                }
                3 => {}
                4 => ready.append(aside),
                _ => {
                    ready.retain(|one| one.0 != key.0);
                    aside.retain(|one| one.0 != key.0);
                }
            }
        }
    }

    #[test]
    fn it_is_two_sets_of_chunks_whatever_happens() {
        let (mut index, mut sets) = (DirtyIndex::default(), Sets::default());
        let mut number = 1u64;
        let mut below = |limit: u32| {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (number >> 33) as u32 % limit
        };
        for _ in 0..4_000 {
            // Few, so that words become empty; the second group is in two words.
            let key = (below(3), below(5) * 62 + below(4));
            // Operations on many chunks are rarer than those on one.
            let what = [0, 0, 0, 1, 1, 2, 3, 3, 3, 4 + below(24).min(2)][below(10) as usize];
            match what {
                0 => index.written(key),
                1 => index.found(key),
                2 => index.remove(key),
                3 => index.set_aside(key),
                4 => index.recall(),
                5 => index.forget(key.0),
                _ => continue,
            }
            sets.change(what, key);
            let all = sets.ready.len() + sets.aside.len();
            assert_eq!(
                (index.len(), index.has_ready()),
                (all, !sets.ready.is_empty())
            );
            let mut words = index.words.values();
            assert!(words.all(|word| word.ready | word.aside != 0));
            let range = key..=(below(3).max(key.0), u32::MAX);
            let wanted = sets
                .ready
                .range(range.clone())
                .chain(sets.aside.range(range.clone()));
            assert!(index.between(range).eq(wanted.copied()));
            assert_eq!(
                index.contains(&key),
                sets.ready.contains(&key) || sets.aside.contains(&key)
            );
            let count = below(70) as usize;
            let after = sets.ready.iter().filter(|one| **one > key);
            let mut next: Vec<Key> = after.chain(&sets.ready).take(count).copied().collect();
            next.sort_unstable();
            next.dedup();
            assert_eq!(index.next(key, count), next);
        }
        assert!(index.len() > 0);
    }
}
