//! A map from group keys to groups: every write looks some up, and a tree would have to be traversed for each.

use format::GroupKey;
use units::VdriveId;

/// Groups of a page.
const PAGE: usize = 64;

type Page<T> = [Option<T>; PAGE];

/// Something of each of some groups, in the order of their keys.
pub(super) struct ByGroup<T> {
    /// By vdrive, and by group divided by [`PAGE`]: nothing where none of them is known.
    pages: Vec<Vec<Option<Box<Page<T>>>>>,
    len: usize,
}

impl<T> Default for ByGroup<T> {
    fn default() -> Self {
        let (pages, len) = (Vec::new(), 0);
        Self { pages, len }
    }
}

/// Where a group is: its vdrive, its page, and its number there.
fn place(key: GroupKey) -> (usize, usize, usize) {
    let group = key.group() as usize;
    (usize::from(key.vdrive().0), group / PAGE, group % PAGE)
}

impl<T> ByGroup<T> {
    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The state of a group.
    #[inline]
    pub fn get(&self, key: GroupKey) -> Option<&T> {
        let (vdrive, page, at) = place(key);
        self.pages.get(vdrive)?.get(page)?.as_ref()?[at].as_ref()
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: GroupKey) -> Option<&mut T> {
        let (vdrive, page, at) = place(key);
        let page = self.pages.get_mut(vdrive)?.get_mut(page)?;
        page.as_mut()?[at].as_mut()
    }

    /// From now on this is known of a group; returns what was.
    pub fn insert(&mut self, key: GroupKey, known: T) -> Option<T> {
        let (vdrive, page, at) = place(key);
        if self.pages.len() <= vdrive {
            self.pages.resize_with(vdrive + 1, Vec::new);
        }
        let pages = &mut self.pages[vdrive];
        if pages.len() <= page {
            pages.resize_with(page + 1, || None);
        }
        let none = || Box::new([const { None }; PAGE]);
        let replaced = pages[page].get_or_insert_with(none)[at].replace(known);
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// Removes a group's state and returns it.
    pub fn remove(&mut self, key: GroupKey) -> Option<T> {
        let (vdrive, page, at) = place(key);
        let page = self.pages.get_mut(vdrive)?.get_mut(page)?;
        let groups = page.as_mut()?;
        let removed = groups[at].take()?;
        self.len -= 1;
        if groups.iter().all(Option::is_none) {
            *page = None;
        }
        Some(removed)
    }

    /// All groups, by key.
    pub fn iter(&self) -> impl Iterator<Item = (GroupKey, &T)> {
        let vdrives = 0..self.pages.len();
        vdrives.flat_map(|vdrive| self.of(VdriveId(vdrive as u8)))
    }

    /// The groups of a vdrive, by key.
    pub fn of(&self, vdrive: VdriveId) -> impl Iterator<Item = (GroupKey, &T)> {
        let pages = self.pages.get(usize::from(vdrive.0)).into_iter().flatten();
        let pages = pages.enumerate();
        pages.flat_map(move |(page, groups)| {
            let groups = groups.iter().flat_map(|groups| groups.iter()).enumerate();
            groups.filter_map(move |(at, known)| {
                let key = GroupKey::new(vdrive, (page * PAGE + at) as u32);
                known.as_ref().map(|known| (key, known))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::mix;
    use std::collections::BTreeMap;

    #[test]
    fn groups_are_found_and_gone_through_as_in_a_tree() {
        let (mut groups, mut tree) = (ByGroup::default(), BTreeMap::new());
        for step in 0..20_000_u64 {
            let random = mix(step);
            // Few pages, some of which become empty now and then.
            let group = [0, 63, 64, 65, 1_000_000, 0x00ff_ffff][random as usize % 6];
            let key = GroupKey::new(VdriveId([0, 1, 7, 255][random as usize >> 8 & 3]), group);
            match random >> 16 & 1 {
                0 => assert_eq!(groups.insert(key, step), tree.insert(key, step)),
                _ => assert_eq!(groups.remove(key), tree.remove(&key)),
            }
            assert_eq!(groups.get(key), tree.get(&key));
            assert_eq!(groups.get_mut(key), tree.get_mut(&key));
            assert_eq!(groups.len(), tree.len());
            // Passing over a quarter of a million empty pages is what takes the time.
            if step % 256 != 0 {
                continue;
            }
            assert!(
                groups
                    .iter()
                    .eq(tree.iter().map(|(key, step)| (*key, step)))
            );
            let of_one = groups.of(VdriveId(7)).map(|(key, _)| key);
            let all = tree.keys().copied();
            assert!(of_one.eq(all.filter(|key| key.vdrive() == VdriveId(7))));
        }
        let other = GroupKey::new(VdriveId(200), 5);
        assert_eq!(groups.get(other), None);
        assert_eq!(groups.remove(other), None);
    }
}
