//! Chunks with blocks that only the fast tier has, and which of them wait.
//!
//! A chunk that gets a home keeps its copy on the fast tier when it sinks. Of one that holds little, each block
//! has one slot, and sinking takes it from the fast tier: so that waits until room is wanted there.

use std::collections::BTreeSet;
use std::ops::{Bound, RangeInclusive};

/// A chunk: its layer and number.
type Key = (u32, u32);

/// Chunks that can sink, by layer and number.
#[derive(Default)]
pub(super) struct Sinking {
    ready: BTreeSet<Key>,
    aside: BTreeSet<Key>,
}

impl Sinking {
    /// A chunk was written: it is looked at, whatever it was before.
    pub fn written(&mut self, key: Key) {
        self.aside.remove(&key);
        self.ready.insert(key);
    }

    /// A chunk was found to have such blocks.
    pub fn found(&mut self, key: Key) {
        if !self.aside.contains(&key) {
            self.ready.insert(key);
        }
    }

    /// A chunk has none any more.
    pub fn remove(&mut self, key: Key) {
        self.ready.remove(&key);
        self.aside.remove(&key);
    }

    /// Forgets a layer's chunks.
    pub fn forget(&mut self, layer: u32) {
        for set in [&mut self.ready, &mut self.aside] {
            set.retain(|key| key.0 != layer);
        }
    }

    /// A chunk waits until it is recalled or written.
    pub fn set_aside(&mut self, key: Key) {
        if self.ready.remove(&key) {
            self.aside.insert(key);
        }
    }

    /// Room is wanted: none waits any more.
    pub fn recall(&mut self) {
        self.ready.append(&mut self.aside);
    }

    /// Whether a chunk has such blocks.
    pub fn contains(&self, key: &Key) -> bool {
        self.ready.contains(key) || self.aside.contains(key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ready.len() + self.aside.len()
    }

    /// Whether any is to be looked at now.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Chunks of a range, those that wait, too.
    pub fn between(&self, range: RangeInclusive<Key>) -> impl Iterator<Item = Key> + '_ {
        let sets = [&self.ready, &self.aside].into_iter();
        sets.flat_map(move |set| set.range(range.clone()).copied())
    }

    /// Up to `count` chunks that do not wait, those after `hand` first, in the order of addresses.
    pub fn next(&self, hand: Key, count: usize) -> Vec<Key> {
        let after = (Bound::Excluded(hand), Bound::Unbounded);
        let mut found: Vec<Key> = self.ready.range(after).take(count).copied().collect();
        let missing = count - found.len();
        found.extend(self.ready.iter().take(missing));
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_comes_back_when_it_is_recalled_or_written() {
        let mut sinking = Sinking::default();
        (0..4).for_each(|chunk| sinking.written((1, chunk)));
        assert_eq!(sinking.next((1, 1), 3), [(1, 0), (1, 2), (1, 3)]);
        sinking.set_aside((1, 2));
        sinking.set_aside((1, 3));
        sinking.found((1, 3));
        sinking.set_aside((1, 9));
        assert_eq!(sinking.next((0, 0), 9), [(1, 0), (1, 1)]);
        assert_eq!(sinking.len(), 4);
        assert!(sinking.contains(&(1, 3)) && !sinking.contains(&(1, 9)));
        sinking.written((1, 3));
        assert_eq!(sinking.next((0, 0), 9), [(1, 0), (1, 1), (1, 3)]);
        sinking.recall();
        assert_eq!(sinking.next((0, 0), 9).len(), 4);
        sinking.remove((1, 0));
        sinking.set_aside((1, 1));
        sinking.forget(1);
        assert!(sinking.len() == 0 && !sinking.has_ready());
    }
}
