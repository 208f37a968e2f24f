//! Which chunks have something on the fast tier, and the hands that go through them in order.
//!
//! Two sets of chunks: **dirty** ones have blocks that only the fast tier has ([`DirtyIndex`]; demotion takes those), and
//! **clean** ones have copies of what is at home as well (eviction takes those). A chunk may be in both. They are what the
//! pages say, or said when they were last in memory: each change of a page is reported with [`TierIndex::set`] in the same
//! borrow of the state (an audit holds pages against it). A chunk that is known too long is examined in vain; one that is
//! missing would never be demoted, so after an opening the nodes of all maps are searched for it.
//!
//! Each kind of work goes through its set like the hand of a clock, so that none of it comes twice before all others came
//! once. The hands are moved here alone.

use super::dirty_index::{DirtyIndex, Key};
use std::collections::BTreeSet;
use std::ops::{Bound, RangeInclusive};

/// Chunks that are demoted or evicted in one round because they are pinned to the slow tier.
const LOWERED: usize = 16;

/// Chunks with blocks on the fast tier.
#[derive(Default)]
pub(crate) struct TierIndex {
    dirty: DirtyIndex,
    clean: BTreeSet<Key>,
    demote_hand: Key,
    evict_hand: Key,
    /// Where eviction of volumes above their ceilings continues.
    over_hand: Key,
    /// The same for data pinned to the slow tier: its demotion, and the eviction of its copies.
    lower_hands: [Key; 2],
}

impl TierIndex {
    /// Blocks of a chunk were written to the fast tier; `known`: all of them were dirty there before.
    #[inline]
    pub fn written(&mut self, key: Key, known: bool) {
        if !known || self.dirty.has_aside() {
            self.dirty.written(key);
        }
    }

    /// Blocks of a chunk got copies on the fast tier.
    pub fn copied(&mut self, key: Key) {
        self.clean.insert(key);
    }

    /// Whether a chunk has dirty blocks, and clean ones.
    pub fn set(&mut self, key: Key, dirty: bool, clean: bool) {
        match dirty {
            true => self.dirty.found(key),
            false => self.dirty.remove(key),
        }
        match clean {
            true => self.clean.insert(key),
            false => self.clean.remove(&key),
        };
    }

    /// A chunk was found to have dirty blocks, or clean ones.
    pub fn found(&mut self, key: Key, dirty: bool, clean: bool) {
        if dirty {
            self.dirty.found(key);
        }
        if clean {
            self.clean.insert(key);
        }
    }

    /// A chunk's page cannot be loaded, or no longer exists: the chunk is not demoted.
    pub(super) fn forget_dirty(&mut self, key: Key) {
        self.dirty.remove(key);
    }

    /// The same, and its copies are not evicted.
    pub(super) fn forget_clean(&mut self, key: Key) {
        self.clean.remove(&key);
    }

    /// Forgets a layer's chunks.
    pub fn forget_layer(&mut self, layer: u32) {
        self.dirty.forget(layer);
        self.clean.retain(|key| key.0 != layer);
    }

    /// Whether a chunk is dirty.
    pub fn is_dirty(&self, key: &Key) -> bool {
        self.dirty.contains(key)
    }

    /// Whether a chunk has anything on the fast tier.
    pub fn contains(&self, key: &Key) -> bool {
        self.dirty.contains(key) || self.clean.contains(key)
    }

    /// How many chunks are dirty, and how many have copies.
    pub(super) fn counts(&self) -> [usize; 2] {
        [self.dirty.len(), self.clean.len()]
    }

    /// Whether any chunk has copies.
    pub fn has_clean(&self) -> bool {
        !self.clean.is_empty()
    }

    /// Whether any of the first `count` chunks with copies is one that may be evicted.
    pub(super) fn any_clean(&self, count: usize, may_leave: impl FnMut(&Key) -> bool) -> bool {
        self.clean.iter().take(count).any(may_leave)
    }

    /// A dirty chunk waits until it is recalled or written.
    pub(super) fn set_aside(&mut self, key: Key) {
        self.dirty.set_aside(key);
    }

    /// Space is needed: no dirty chunk waits any longer.
    pub(super) fn recall(&mut self) {
        self.dirty.recall();
    }

    /// Whether any dirty chunk does not wait.
    pub(super) fn has_ready(&self) -> bool {
        self.dirty.has_ready()
    }

    /// Up to `count` dirty chunks that do not wait, in the order of addresses; those after the last ones first.
    pub(super) fn next_dirty(&mut self, count: usize) -> Vec<Key> {
        let found = self.dirty.next(self.demote_hand, count);
        if let Some(last) = found.last() {
            self.demote_hand = *last;
        }
        found
    }

    /// Only the chunks up to this one were demoted: the rest is next.
    pub(super) fn demoted_to(&mut self, last: Key) {
        self.demote_hand = last;
    }

    /// The next chunk with copies, and whether the hand has wrapped around.
    pub(super) fn next_clean(&mut self) -> (Option<Key>, bool) {
        let after = (Bound::Excluded(self.evict_hand), Bound::Unbounded);
        let next = self.clean.range(after).next().copied();
        let found = next.or_else(|| self.clean.first().copied());
        if let Some(found) = found {
            self.evict_hand = found;
        }
        (found, next.is_none())
    }

    /// The next chunk of a layer with copies that may leave, and in which extents: those that `may_leave` says of a chunk.
    pub(super) fn next_clean_of(
        &mut self,
        layer: u32,
        may_leave: impl Fn(u32) -> u16,
    ) -> Option<(Key, u16)> {
        let from = match self.over_hand.0 == layer {
            true => self.over_hand.1.saturating_add(1),
            false => 0,
        };
        let after = self.clean.range((layer, from)..=(layer, u32::MAX));
        let mut chunks = after.chain(self.clean.range((layer, 0)..(layer, from)));
        let found = chunks.find_map(|chunk| {
            let free = may_leave(chunk.1);
            (free != 0).then_some((*chunk, free))
        })?;
        self.over_hand = found.0;
        Some(found)
    }

    /// Some chunks in these ranges, which are in order: dirty ones, and ones with copies.
    pub(super) fn next_to_lower(&mut self, ranges: &[RangeInclusive<Key>]) -> [Vec<Key>; 2] {
        let (dirty, clean) = (&self.dirty, &self.clean);
        let [demoted, evicted] = &mut self.lower_hands;
        [
            next_of(ranges, demoted, |range| dirty.between(range)),
            next_of(ranges, evicted, |range| clean.range(range).copied()),
        ]
    }
}

/// Some of the chunks that `find` finds in these ranges, which are in order: those after the hand, or where there
/// are none, from the first on.
fn next_of<I: Iterator<Item = Key>>(
    ranges: &[RangeInclusive<Key>],
    hand: &mut Key,
    find: impl Fn(RangeInclusive<Key>) -> I,
) -> Vec<Key> {
    let after = (hand.0, hand.1.saturating_add(1));
    let ahead = ranges.iter().filter(|range| *range.end() >= after);
    let ahead = ahead.map(|range| *range.start().max(&after)..=*range.end());
    let mut found: Vec<Key> = ahead.flat_map(&find).take(LOWERED).collect();
    if found.is_empty() {
        found = ranges
            .iter()
            .cloned()
            .flat_map(&find)
            .take(LOWERED)
            .collect();
    }
    found.sort_unstable();
    found.dedup();
    *hand = found.last().copied().unwrap_or_default();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(chunks: impl Iterator<Item = u32>) -> TierIndex {
        let mut index = TierIndex::default();
        chunks.for_each(|chunk| index.found((1, chunk), true, true));
        index
    }

    #[test]
    fn hands_come_to_every_chunk_before_they_come_to_one_again() {
        let mut index = index(1..4);
        let clean: Vec<_> = (0..5).map(|_| index.next_clean()).collect();
        let chunks = [1, 2, 3, 1, 2].map(|chunk| Some((1, chunk)));
        assert!(clean.iter().map(|(found, _)| *found).eq(chunks));
        let again: Vec<bool> = clean.iter().map(|(_, again)| *again).collect();
        assert_eq!(again, [false, false, false, true, false]);
        assert_eq!(index.next_dirty(2), [(1, 1), (1, 2)]);
        index.demoted_to((1, 1));
        assert_eq!(index.next_dirty(2), [(1, 2), (1, 3)]);
        assert_eq!(index.next_dirty(2), [(1, 1), (1, 2)]);
        let mut next = || index.next_clean_of(1, |chunk| u16::from(chunk != 2));
        let found = [next(), next(), next()];
        assert_eq!(found, [1, 3, 1].map(|chunk| Some(((1, chunk), 1))));
    }

    #[test]
    fn what_is_lowered_goes_on_after_what_was() {
        let mut index = index(0..40);
        let ranges = [(1, 0)..=(1, 9), (1, 20)..=(1, 39)];
        let [first, _] = index.next_to_lower(&ranges);
        assert_eq!((first[0], first[15], first.len()), ((1, 0), (1, 25), 16));
        let [second, copies] = index.next_to_lower(&ranges);
        assert_eq!((second[0], second.len()), ((1, 26), 14));
        assert_eq!(copies, second);
        let [again, _] = index.next_to_lower(&ranges);
        assert_eq!(again, first);
    }

    #[test]
    fn a_chunk_is_in_the_sets_that_its_page_says() {
        let mut index = index(5..6);
        index.set((1, 5), false, true);
        assert!(!index.is_dirty(&(1, 5)) && index.contains(&(1, 5)));
        index.set((1, 5), true, false);
        assert!(index.is_dirty(&(1, 5)) && !index.has_clean());
        index.set_aside((1, 5));
        index.written((1, 5), true);
        assert!(index.has_ready(), "what is written does not wait");
        index.copied((1, 6));
        index.forget_layer(1);
        assert_eq!(index.counts(), [0, 0]);
    }
}
