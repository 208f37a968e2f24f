//! Groups of a pool's vdrives, and which are taken: shared by all shards.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use units::VdriveId;

/// The use of a vdrive's space.
pub use format::SpaceClass as Class;

/// A vdrive's space in groups.
pub use format::GroupSpace as VdriveSpace;

struct Entry {
    space: VdriveSpace,
    taken: Vec<u64>,
    free: u32,
    /// Where the search for a free group continues.
    hint: usize,
    /// New groups may be taken.
    open: bool,
}

/// Groups that are free, of all vdrives of a pool.
#[derive(Default)]
pub struct GroupTable {
    entries: Mutex<BTreeMap<VdriveId, Entry>>,
    sums: Sums,
}

/// Totals of `entries` by class, for vdrives with allocation enabled. Every write reads it, and it changes once in many
/// thousands: it has a cache line of its own, so that taking the lock does not evict it from the others' caches.
#[derive(Default)]
#[repr(align(128))]
struct Sums {
    free: [AtomicU32; 3],
    vdrives: [AtomicU32; 3],
}

impl GroupTable {
    fn with<T>(&self, ask: impl FnOnce(&BTreeMap<VdriveId, Entry>) -> T) -> T {
        ask(&self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, act: impl FnOnce(&mut BTreeMap<VdriveId, Entry>) -> T) -> T {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut entries);
        for class in [Class::Meta, Class::Fast, Class::Slow] {
            let of_class = |entry: &&Entry| entry.space.class == class && entry.open;
            let free = entries.values().filter(of_class).map(|entry| entry.free);
            self.sums.free[class as usize].store(free.sum(), Ordering::Relaxed);
            let vdrives = entries.values().filter(of_class).count() as u32;
            self.sums.vdrives[class as usize].store(vdrives, Ordering::Relaxed);
        }
        done
    }

    /// Adds a vdrive, all of its groups free.
    pub fn add(&self, vdrive: VdriveId, space: VdriveSpace) {
        let words = (space.groups as usize).div_ceil(64);
        let entry = Entry {
            space,
            taken: vec![0; words],
            free: space.groups,
            hint: 0,
            open: true,
        };
        self.change(|entries| entries.insert(vdrive, entry));
    }

    /// Removes a vdrive.
    pub fn remove(&self, vdrive: VdriveId) {
        self.change(|entries| entries.remove(&vdrive));
    }

    /// Whether new groups of the vdrive may be taken.
    pub fn set_open(&self, vdrive: VdriveId, open: bool) {
        self.change(|entries| {
            if let Some(entry) = entries.get_mut(&vdrive) {
                entry.open = open;
            }
        });
    }

    /// The vdrive's space, if it is one of the pool's.
    pub fn space(&self, vdrive: VdriveId) -> Option<VdriveSpace> {
        self.with(|entries| entries.get(&vdrive).map(|entry| entry.space))
    }

    /// Whether the vdrive is being emptied.
    pub fn is_open(&self, vdrive: VdriveId) -> bool {
        self.with(|entries| entries.get(&vdrive).is_some_and(|entry| entry.open))
    }

    /// Whether there is a vdrive of the class that may be taken from.
    pub fn has_class(&self, class: Class) -> bool {
        self.sums.vdrives[class as usize].load(Ordering::Relaxed) > 0
    }

    /// Free groups of a class on vdrives that may be taken from: a count, which others may have changed by the time when
    /// one is taken.
    pub fn free_groups(&self, class: Class) -> u32 {
        self.sums.free[class as usize].load(Ordering::Relaxed)
    }

    /// Groups of the vdrive that some shard has.
    pub fn taken(&self, vdrive: VdriveId) -> u32 {
        self.with(|entries| {
            entries
                .get(&vdrive)
                .map_or(0, |entry| entry.space.groups - entry.free)
        })
    }

    /// Takes a free group of the class, from the vdrive with the largest free part.
    pub fn take(&self, class: Class) -> Option<(VdriveId, u32)> {
        self.change(|entries| {
            let (vdrive, entry) = entries
                .iter_mut()
                .filter(|(_, entry)| entry.space.class == class && entry.open && entry.free > 0)
                .max_by_key(|(vdrive, entry)| {
                    let share = u64::from(entry.free) * 1000 / u64::from(entry.space.groups);
                    (share, std::cmp::Reverse(**vdrive))
                })?;
            let words = entry.taken.len();
            let word = (0..words)
                .map(|step| (entry.hint + step) % words)
                .find(|word| free_bits(entry, *word) != 0)?;
            let bit = free_bits(entry, word).trailing_zeros();
            entry.taken[word] |= 1 << bit;
            entry.free -= 1;
            entry.hint = word;
            Some((*vdrive, word as u32 * 64 + bit))
        })
    }

    /// Takes a certain group; false when it is taken or does not exist.
    pub fn claim(&self, vdrive: VdriveId, group: u32) -> bool {
        self.change(|entries| {
            let Some(entry) = entries.get_mut(&vdrive) else {
                return false;
            };
            if group >= entry.space.groups {
                return false;
            }
            let (word, bit) = (group as usize / 64, 1u64 << (group % 64));
            let free = entry.taken[word] & bit == 0;
            if free {
                entry.taken[word] |= bit;
                entry.free -= 1;
            }
            free
        })
    }

    /// Gives a group back.
    pub fn give(&self, vdrive: VdriveId, group: u32) {
        self.change(|entries| {
            let Some(entry) = entries.get_mut(&vdrive) else {
                return;
            };
            let (word, bit) = (group as usize / 64, 1u64 << (group % 64));
            assert!(entry.taken[word] & bit != 0, "a group is given back once");
            entry.taken[word] &= !bit;
            entry.free += 1;
        });
    }
}

/// A shard's copy of what never changes of vdrives: it is needed for every run of blocks, and the table has a lock.
pub struct Spaces {
    table: Arc<GroupTable>,
    known: Box<[Cell<Option<VdriveSpace>>; 256]>,
}

impl Spaces {
    /// Of these groups; nothing was requested yet.
    pub fn new(table: Arc<GroupTable>) -> Self {
        Self {
            table,
            known: Box::new([const { Cell::new(None) }; 256]),
        }
    }

    /// The vdrive's space, if it is one of the pool's.
    #[inline]
    pub fn get(&self, vdrive: VdriveId) -> Option<VdriveSpace> {
        let known = &self.known[usize::from(vdrive.0)];
        known.get().or_else(|| {
            known.set(self.table.space(vdrive));
            known.get()
        })
    }

    /// The vdrive left the pool: its number may be another one's next.
    pub fn forget(&self, vdrive: VdriveId) {
        self.known[usize::from(vdrive.0)].set(None);
    }
}

fn free_bits(entry: &Entry, word: usize) -> u64 {
    let left = entry.space.groups as usize - word * 64;
    let exists = if left >= 64 {
        u64::MAX
    } else {
        (1 << left) - 1
    };
    !entry.taken[word] & exists
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_taken_once_and_can_be_given_back() {
        let table = GroupTable::default();
        table.add(
            VdriveId(1),
            VdriveSpace {
                class: Class::Fast,
                base: 0,
                groups: 70,
            },
        );
        table.add(
            VdriveId(2),
            VdriveSpace {
                class: Class::Slow,
                base: 0,
                groups: 3,
            },
        );
        assert!(table.claim(VdriveId(1), 69));
        assert!(!table.claim(VdriveId(1), 69) && !table.claim(VdriveId(1), 70));
        let mut taken: Vec<_> = std::iter::from_fn(|| table.take(Class::Fast)).collect();
        taken.sort();
        assert_eq!(
            taken,
            (0..69)
                .map(|group| (VdriveId(1), group))
                .collect::<Vec<_>>()
        );
        table.give(VdriveId(1), 5);
        assert_eq!(table.take(Class::Fast), Some((VdriveId(1), 5)));
        assert_eq!(
            (table.free_groups(Class::Slow), table.taken(VdriveId(1))),
            (3, 70)
        );
    }

    #[test]
    fn a_number_that_was_forgotten_may_be_another_vdrives() {
        let table = Arc::new(GroupTable::default());
        let space = |groups| VdriveSpace {
            class: Class::Fast,
            base: 0,
            groups,
        };
        let spaces = Spaces::new(table.clone());
        assert_eq!(spaces.get(VdriveId(7)), None);
        table.add(VdriveId(7), space(1));
        assert_eq!(spaces.get(VdriveId(7)), Some(space(1)));
        table.remove(VdriveId(7));
        table.add(VdriveId(7), space(2));
        spaces.forget(VdriveId(7));
        assert_eq!(spaces.get(VdriveId(7)), Some(space(2)));
    }

    #[test]
    fn a_closed_vdrive_gives_no_group() {
        let table = GroupTable::default();
        table.add(
            VdriveId(1),
            VdriveSpace {
                class: Class::Slow,
                base: 0,
                groups: 8,
            },
        );
        table.set_open(VdriveId(1), false);
        assert_eq!(
            (table.take(Class::Slow), table.has_class(Class::Slow)),
            (None, false)
        );
    }
}
