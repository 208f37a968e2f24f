//! Whether places are where a pool can have them: the second step after decoding.
//!
//! A checksum shows that a structure is as it was written, not that it is valid. Every place that comes from a
//! drive is held against the pool's vdrives here, once, before anything is computed from it or read there. Leaves
//! out: whether a place is in use, or used twice.

use crate::chunk::ChunkPage;
use crate::groups::{GroupKey, HOME_GROUPS};
use crate::page::PagePtr;
use crate::record::Record;
use std::fmt;
use units::{CHUNK_BLOCKS, Place, VdriveId};

/// Words of a bitmap of slots.
const WORDS: usize = 256;

/// The use of a vdrive's space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SpaceClass {
    /// Pages of maps: the metadata region.
    Meta,
    /// Data on the fast tier.
    Fast,
    /// Data on the slow tier.
    Slow,
}

impl SpaceClass {
    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "metadata",
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }
}

/// The part of a vdrive that is handed out in groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupSpace {
    /// Its use.
    pub class: SpaceClass,
    /// First block of the first group.
    pub base: u64,
    /// Number of groups.
    pub groups: u32,
}

/// A place, or a bitmap, that no pool with these vdrives has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfBounds {
    /// The structure at the place.
    what: &'static str,
    place: Place,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (vdrive, block) = (self.place.vdrive(), self.place.block());
        let what = self.what;
        write!(
            f,
            "{what} at block {block} of vdrive {vdrive}, where the pool has none"
        )
    }
}

impl std::error::Error for OutOfBounds {}

/// The result of a check.
pub type Bounded = Result<(), OutOfBounds>;

/// The sizes of a pool's vdrives.
pub trait Bounds {
    /// The groups of a vdrive, if it is one of the pool's.
    fn space_of(&self, vdrive: VdriveId) -> Option<GroupSpace>;

    /// Blocks of a group: a power of two.
    fn blocks_of_group(&self) -> u64;

    /// Where the groups of a vdrive of some class lie: first block, and the one after the last.
    fn range_of(&self, vdrive: VdriveId, fits: impl Fn(SpaceClass) -> bool) -> Option<(u64, u64)> {
        let space = self.space_of(vdrive).filter(|space| fits(space.class))?;
        let blocks = u64::from(space.groups).checked_mul(self.blocks_of_group())?;
        Some((space.base, space.base.checked_add(blocks)?))
    }

    /// Whether `count` blocks from `place` on are in groups of a vdrive of such a class.
    fn has_run(&self, place: Place, count: usize, fits: impl Fn(SpaceClass) -> bool) -> bool {
        let end = place.block().checked_add(count as u64);
        self.range_of(place.vdrive(), fits)
            .is_some_and(|(first, last)| {
                place.block() >= first && end.is_some_and(|end| end <= last)
            })
    }

    /// Whether `count` blocks from `place` on can be slots of data.
    fn has_slots(&self, place: Place, count: usize) -> bool {
        self.has_run(place, count, |class| class != SpaceClass::Meta)
    }

    /// Whether a chunk's home can be at `place`.
    fn has_home(&self, place: Place) -> bool {
        let slow = |class| class == SpaceClass::Slow;
        let first = self.range_of(place.vdrive(), slow).map(|range| range.0);
        let within = first.and_then(|first| place.block().checked_sub(first));
        within.is_some_and(|within| within.is_multiple_of(CHUNK_BLOCKS as u64))
            && self.has_run(place, CHUNK_BLOCKS, slow)
    }

    /// Refuses a pointer to where no page can be.
    ///
    /// # Errors
    /// Where it points.
    fn check_page(&self, ptr: PagePtr) -> Bounded {
        let meta = self.has_run(ptr.place, 1, |class| class == SpaceClass::Meta);
        need(meta, "a page of a map", ptr.place)
    }

    /// Refuses a map that says that data is where none can be.
    ///
    /// # Errors
    /// The first such place.
    fn check_chunk(&self, page: &ChunkPage) -> Bounded {
        // Mostly all slots are of one vdrive: it is looked up once, and the rest are comparisons.
        let mut known: Option<(VdriveId, Option<(u64, u64)>)> = None;
        for block in page.slot_mask().blocks() {
            let slot = page.slot(block);
            let range = match known {
                Some((vdrive, range)) if vdrive == slot.vdrive() => range,
                _ => {
                    let vdrive = slot.vdrive();
                    let range = self.range_of(vdrive, |class| class != SpaceClass::Meta);
                    known = Some((vdrive, range));
                    range
                }
            };
            let is_there = range.is_some_and(|(first, last)| (first..last).contains(&slot.block()));
            need(is_there, "a block", slot)?;
        }
        let home = page.home();
        let fits = match home.is_none() {
            true => page.home_mask().is_empty(),
            false => self.has_home(home),
        };
        need(fits, "the home of a chunk", home)
    }

    /// Rejects a record with an impossible place. Freed space may have been on a vdrive
    /// that left the pool since.
    ///
    /// # Errors
    /// The first such place.
    fn check_record(&self, record: &Record) -> Bounded {
        let slots = |place: Place, count| need(self.has_slots(place, count), "a block", place);
        let home = |place: Place| {
            let fits = place.is_none() || self.has_home(place);
            need(fits, "the home of a chunk", place)
        };
        let left = |place: &Place| self.space_of(place.vdrive()).is_none();
        let named = record.old_slots().iter();
        let named = named.filter(|place| place.is_some() && !left(place));
        named.copied().try_for_each(|place| slots(place, 1))?;
        match record {
            Record::Write { slot, crcs, .. } => slots(*slot, crcs.len()),
            Record::Promote { slot, count, .. } => slots(*slot, usize::from(*count)),
            Record::Home { home: place, .. } => home(*place),
            Record::MoveHome { new, old, .. } if left(old) => home(*new),
            Record::MoveHome { new, old, .. } => home(*new).and_then(|()| home(*old)),
            Record::Trim { .. } | Record::Evict { .. } | Record::Merge { .. } => Ok(()),
        }
    }

    /// Refuses the bitmap of a group of slots that the pool does not have, or that has blocks beyond its end.
    ///
    /// # Errors
    /// The group's place.
    fn check_slots(&self, key: GroupKey, bits: &[u64; WORDS]) -> Bounded {
        let blocks = self.blocks_of_group() as usize;
        let (whole, rest) = (blocks / 64, blocks % 64);
        let beyond = bits.iter().enumerate().skip(whole);
        let mut beyond = beyond.map(|(word, bits)| match word == whole {
            true => bits >> rest,
            false => *bits,
        });
        let fits = self.has_group(key, |_| true) && beyond.all(|bits| bits == 0);
        need(fits, "a bitmap of blocks", place_of(key))
    }

    /// Refuses a page of bitmaps of homes of which some group is not the pool's, or has chunks beyond its end.
    ///
    /// # Errors
    /// The group's place.
    fn check_homes(&self, page: u32, groups: &[Option<u64>; HOME_GROUPS]) -> Bounded {
        let chunks = self.blocks_of_group() / CHUNK_BLOCKS as u64;
        for (index, bits) in (0u32..).zip(groups) {
            let Some(bits) = bits else { continue };
            let key = page.checked_mul(HOME_GROUPS as u32);
            let key = key.and_then(|first| first.checked_add(index)).map(GroupKey);
            let beyond = match chunks {
                64.. => 0,
                chunks => bits >> chunks,
            };
            let slow = |class| class == SpaceClass::Slow;
            let fits = beyond == 0 && key.is_some_and(|key| self.has_group(key, slow));
            let place = key.map_or(Place::NONE, place_of);
            need(fits, "a bitmap of homes", place)?;
        }
        Ok(())
    }

    /// Whether a group is one of a vdrive of such a class.
    fn has_group(&self, key: GroupKey, fits: impl Fn(SpaceClass) -> bool) -> bool {
        let space = self.space_of(key.vdrive());
        space.is_some_and(|space| fits(space.class) && key.group() < space.groups)
    }
}

/// About where a group lies, for who reads of it: its number takes the place of the block's.
fn place_of(key: GroupKey) -> Place {
    Place::new(key.vdrive(), u64::from(key.group()))
}

fn need(fits: bool, what: &'static str, place: Place) -> Bounded {
    match fits {
        true => Ok(()),
        false => Err(OutOfBounds { what, place }),
    }
}

#[cfg(test)]
mod tests;
