//! Comparing a shard's bitmaps with everything that its maps refer to.

use super::allocator::{Allocator, WORDS};
use super::{Class, DeferredFrees, GroupKey};
use std::collections::BTreeMap;
use units::{CHUNK_BLOCKS, Place, VdriveId};

/// Differences that are kept; more are only counted.
const KEPT: usize = 20;

/// References of maps, and errors found.
#[derive(Default)]
pub struct Books {
    slots: BTreeMap<GroupKey, Box<[u64; WORDS]>>,
    homes: BTreeMap<GroupKey, u64>,
    wrong: Vec<String>,
    count: usize,
}

impl Books {
    /// Notes a difference.
    pub fn note(&mut self, wrong: impl FnOnce() -> String) {
        self.count += 1;
        if self.wrong.len() < KEPT {
            self.wrong.push(wrong());
        }
    }

    /// Something refers to this block.
    pub fn slot(&mut self, space: &Allocator, place: Place, who: &dyn Fn() -> String) {
        let Some((key, bit)) = space.key(place) else {
            return self.note(|| format!("{} is at {place:?}, outside of all groups", who()));
        };
        let bits = self
            .slots
            .entry(key)
            .or_insert_with(|| Box::new([0; WORDS]));
        let (word, mask) = (&mut bits[bit as usize / 64], 1u64 << (bit % 64));
        if *word & mask != 0 {
            return self.note(|| format!("{place:?} has a second owner, {}", who()));
        }
        *word |= mask;
    }

    /// Something refers to this home.
    pub fn home(&mut self, space: &Allocator, place: Place, who: &dyn Fn() -> String) {
        let aligned = space.key(place).filter(|(_, block)| block % 256 == 0);
        let Some((key, block)) = aligned else {
            return self.note(|| {
                format!(
                    "{} has its home at {place:?}, which is not a home location",
                    who()
                )
            });
        };
        let bits = self.homes.entry(key).or_default();
        let mask = 1u64 << (block / CHUNK_BLOCKS as u32);
        if *bits & mask != 0 {
            return self.note(|| format!("the home {place:?} has a second owner, {}", who()));
        }
        *bits |= mask;
    }

    /// Compares with the bitmaps and what is kept back, of a shard that is at rest: every block is
    /// exactly one of referred to, kept back, or free. Returns what differs, and how many.
    pub fn compare(
        mut self,
        space: &Allocator,
        deferred_frees: &DeferredFrees,
    ) -> (Vec<String>, usize) {
        let referred = self.slots.clone();
        for batch in deferred_frees.batches() {
            for (place, count) in &batch.slots {
                for index in 0..u64::from(*count) {
                    self.slot(space, place.plus(index), &|| "space kept back".into());
                }
            }
            for place in &batch.homes {
                self.home(space, *place, &|| "space kept back".into());
            }
        }
        let mut used = [0u64; 3];
        let mut total = [0u64; 3];
        for (key, group) in space.slots.iter() {
            let wanted = self
                .slots
                .remove(&key)
                .unwrap_or_else(|| Box::new([0; WORDS]));
            let class = space.class(key.vdrive()).unwrap_or(Class::Slow) as usize;
            used[class] += u64::from(group.used);
            total[class] += space.group_blocks;
            for (word, (has, wants)) in group.bits.iter().zip(wanted.iter()).enumerate() {
                if has != wants {
                    let live = referred.get(&key).map_or(0, |bits| bits[word]);
                    self.note(|| difference(key, word, *has, *wants, live));
                }
            }
            let count: u32 = group.bits.iter().map(|word| word.count_ones()).sum();
            if count != group.used {
                self.note(|| format!("group {key:?} counts {} used of {count}", group.used));
            }
        }
        for (key, bits) in std::mem::take(&mut self.slots) {
            if bits.iter().any(|word| *word != 0) {
                self.note(|| {
                    format!("group {key:?} is referred to and does not belong to the shard")
                });
            }
        }
        for (key, group) in &space.homes {
            let wanted = self.homes.remove(key).unwrap_or(0);
            if wanted != group.bits {
                self.note(|| {
                    format!(
                        "homes of {key:?} are {:x} and should be {wanted:x}",
                        group.bits
                    )
                });
            }
        }
        for key in std::mem::take(&mut self.homes).into_keys() {
            self.note(|| {
                format!("homes of {key:?} are referred to and do not belong to the shard")
            });
        }
        for class in 0..3 {
            if space.free[class] != total[class] - used[class] {
                let (has, wants) = (space.free[class], total[class] - used[class]);
                self.note(|| format!("class {class} counts {has} free of {wants}"));
            }
        }
        let meta_groups = space.slots.of(VdriveId(0)).count() as u64;
        if space.meta_groups != meta_groups {
            let has = space.meta_groups;
            self.note(|| format!("{has} groups of {meta_groups} of the metadata region count"));
        }
        if let Some((place, pending)) = space.pending.iter().next() {
            self.note(|| {
                format!(
                    "{place:?}+{} was handed out and never recorded",
                    pending.count
                )
            });
        }
        (self.wrong, self.count)
    }
}

fn difference(key: GroupKey, word: usize, has: u64, wants: u64, live: u64) -> String {
    let (lost, free) = (has & !wants, wants & !has);
    let what = if free & live != 0 {
        "blocks in use count as free"
    } else if free != 0 {
        "blocks kept back count as free"
    } else {
        "blocks that nothing refers to count as used"
    };
    format!("group {key:?}, word {word}: {what} (used {lost:x}, free {free:x})")
}
