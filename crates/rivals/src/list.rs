//! The lists that every policy is made of: `N` of them over one slab, a key in one of them at a
//! time.
//!
//! A list is ordered from its newest entry to its oldest. Finding a key, moving it and taking the
//! oldest are O(1). The keys are hashed with a fixed hash and never iterated over, so that a run
//! repeats.

use rustc_hash::FxHashMap;

/// Where an entry is. Good until that entry is removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct At(u32);

/// No entry: the end of a list.
const NONE: At = At(u32::MAX);

struct Node {
    key: u64,
    newer: At,
    older: At,
    list: u8,
    mark: u8,
}

#[derive(Clone, Copy)]
struct Ends {
    newest: At,
    oldest: At,
    len: usize,
}

/// `N` lists of keys, known by their numbers from 0.
pub(crate) struct Lists<const N: usize> {
    places: FxHashMap<u64, At>,
    nodes: Vec<Node>,
    free: Vec<At>,
    ends: [Ends; N],
}

impl<const N: usize> Lists<N> {
    pub(crate) fn new() -> Self {
        let empty = Ends {
            newest: NONE,
            oldest: NONE,
            len: 0,
        };
        Self {
            places: FxHashMap::default(),
            nodes: Vec::new(),
            free: Vec::new(),
            ends: [empty; N],
        }
    }

    /// How many are in a list.
    pub(crate) fn len(&self, list: usize) -> usize {
        self.ends[list].len
    }

    pub(crate) fn find(&self, key: u64) -> Option<At> {
        self.places.get(&key).copied()
    }

    /// Which list a key is in.
    pub(crate) fn list_with(&self, key: u64) -> Option<usize> {
        self.find(key).map(|at| self.list(at))
    }

    pub(crate) fn key(&self, at: At) -> u64 {
        self.node(at).key
    }

    /// Which list an entry is in.
    pub(crate) fn list(&self, at: At) -> usize {
        usize::from(self.node(at).list)
    }

    /// What the policy has noted of an entry; 0 at first.
    pub(crate) fn mark(&self, at: At) -> u8 {
        self.node(at).mark
    }

    pub(crate) fn set_mark(&mut self, at: At, mark: u8) {
        self.node_mut(at).mark = mark;
    }

    pub(crate) fn oldest(&self, list: usize) -> Option<At> {
        some(self.ends[list].oldest)
    }

    /// The next newer entry of the same list.
    pub(crate) fn newer(&self, at: At) -> Option<At> {
        some(self.node(at).newer)
    }

    /// Puts a key that is in none of the lists into one, as its newest.
    pub(crate) fn push(&mut self, list: usize, key: u64) {
        let node = Node {
            key,
            newer: NONE,
            older: NONE,
            list: 0,
            mark: 0,
        };
        let at = match self.free.pop() {
            Some(at) => {
                *self.node_mut(at) = node;
                at
            }
            None => {
                let at = u32::try_from(self.nodes.len()).ok().map(At);
                let at = at
                    .filter(|at| *at != NONE)
                    .expect("fewer than 2^32 - 1 entries");
                self.nodes.push(node);
                at
            }
        };
        let before = self.places.insert(key, at);
        assert!(before.is_none(), "key {key} is in a list already");
        self.link(at, list);
    }

    /// Makes an entry the newest of a list, be it the one that it is in or another. Its mark stays.
    pub(crate) fn move_to(&mut self, at: At, list: usize) {
        self.unlink(at);
        self.link(at, list);
    }

    /// Takes an entry out; its key.
    pub(crate) fn remove(&mut self, at: At) -> u64 {
        self.unlink(at);
        self.free.push(at);
        let key = self.key(at);
        self.places.remove(&key);
        key
    }

    /// Takes the oldest of a list out; its key.
    pub(crate) fn pop(&mut self, list: usize) -> Option<u64> {
        self.oldest(list).map(|at| self.remove(at))
    }

    fn link(&mut self, at: At, list: usize) {
        let newest = self.ends[list].newest;
        let node = self.node_mut(at);
        node.newer = NONE;
        node.older = newest;
        node.list = list as u8;
        match some(newest) {
            Some(newest) => self.node_mut(newest).newer = at,
            None => self.ends[list].oldest = at,
        }
        self.ends[list].newest = at;
        self.ends[list].len += 1;
    }

    fn unlink(&mut self, at: At) {
        let Node { newer, older, .. } = *self.node(at);
        let list = self.list(at);
        match some(newer) {
            Some(newer) => self.node_mut(newer).older = older,
            None => self.ends[list].newest = older,
        }
        match some(older) {
            Some(older) => self.node_mut(older).newer = newer,
            None => self.ends[list].oldest = newer,
        }
        self.ends[list].len -= 1;
    }

    fn node(&self, at: At) -> &Node {
        &self.nodes[at.0 as usize]
    }

    fn node_mut(&mut self, at: At) -> &mut Node {
        &mut self.nodes[at.0 as usize]
    }
}

fn some(at: At) -> Option<At> {
    (at != NONE).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<const N: usize>(lists: &Lists<N>, list: usize) -> Vec<u64> {
        let mut at = lists.oldest(list);
        let mut found = Vec::new();
        while let Some(here) = at {
            found.push(lists.key(here));
            at = lists.newer(here);
        }
        assert_eq!(found.len(), lists.len(list));
        found
    }

    fn filled() -> Lists<2> {
        let mut lists = Lists::new();
        for key in 1..=4 {
            lists.push(0, key);
        }
        lists
    }

    fn at<const N: usize>(lists: &Lists<N>, key: u64) -> At {
        lists.find(key).expect("in a list")
    }

    #[test]
    fn the_oldest_leaves_first() {
        let mut lists = filled();
        assert_eq!(lists.pop(0), Some(1));
        assert_eq!(lists.list_with(1), None);
        assert_eq!(keys(&lists, 0), [2, 3, 4]);
    }

    #[test]
    fn first_middle_and_last_move_to_the_newest_end() {
        let mut lists = filled();
        lists.move_to(at(&lists, 1), 0);
        lists.move_to(at(&lists, 3), 0);
        lists.move_to(at(&lists, 3), 0);
        assert_eq!(keys(&lists, 0), [2, 4, 1, 3]);
    }

    #[test]
    fn an_entry_moves_between_lists_and_keeps_its_mark() {
        let mut lists = filled();
        let two = at(&lists, 2);
        lists.set_mark(two, 7);
        lists.move_to(two, 1);
        assert_eq!(keys(&lists, 0), [1, 3, 4]);
        assert_eq!(keys(&lists, 1), [2]);
        assert_eq!((lists.list_with(2), lists.mark(two)), (Some(1), 7));
    }

    #[test]
    fn a_place_is_used_again_without_its_mark() {
        let mut lists = filled();
        let two = at(&lists, 2);
        lists.set_mark(two, 7);
        assert_eq!(lists.remove(two), 2);
        lists.push(1, 5);
        assert_eq!(lists.nodes.len(), 4);
        assert_eq!(lists.mark(at(&lists, 5)), 0);
        assert_eq!(keys(&lists, 0), [1, 3, 4]);
    }

    #[test]
    fn an_emptied_list_takes_entries_again() {
        let mut lists = filled();
        while lists.pop(0).is_some() {}
        lists.push(0, 9);
        assert_eq!(keys(&lists, 0), [9]);
    }

    #[test]
    #[should_panic(expected = "in a list already")]
    fn a_key_is_in_one_list_only() {
        filled().push(1, 3);
    }
}
