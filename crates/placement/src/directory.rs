//! The known regions of volumes, and their numbers.
//!
//! It is asked at every use, so it has to stay in the processor's nearest caches: four bytes a region where many of a
//! volume's are known, 16 KiB for a TiB, with no hash to be made for those that were requested recently.

use units::hash::{Table, mix};

/// Regions of a group: one entry of the table each.
const GROUP: u64 = 64;
/// Groups that are found without the table.
const NEAR: usize = 256;
/// No region, no group.
const NONE: u32 = u32::MAX;

/// A group that was requested recently, and where it is.
#[derive(Clone, Copy)]
struct Near {
    volume: u32,
    at: u32,
    group: u64,
}

const NOTHING_NEAR: Near = Near {
    volume: 0,
    at: NONE,
    group: u64::MAX,
};

/// The numbers of regions by volume and place.
pub(crate) struct Directory {
    near: Box<[Near; NEAR]>,
    places: Table<(u32, u64), u32>,
    groups: Vec<[u32; GROUP as usize]>,
    /// Groups of which no region is known.
    free: Vec<u32>,
}

impl Directory {
    pub(crate) fn new() -> Self {
        Self {
            near: Box::new([NOTHING_NEAR; NEAR]),
            places: Table::default(),
            groups: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The number of a volume's region.
    #[inline]
    pub(crate) fn get(&self, volume: u32, region: u64) -> Option<u32> {
        let group = region / GROUP;
        let near = &self.near[slot(volume, group)];
        let at = match near.group == group && near.volume == volume {
            true => near.at,
            false => *self.places.get(&(volume, group))?,
        };
        let number = self.groups[at as usize][(region % GROUP) as usize];
        (number != NONE).then_some(number)
    }

    /// The same; the next lookup finds it directly.
    #[inline]
    pub(crate) fn get_near(&mut self, volume: u32, region: u64) -> Option<u32> {
        let group = region / GROUP;
        let near = &self.near[slot(volume, group)];
        if near.group != group || near.volume != volume {
            self.bring_near(volume, group)?;
        }
        self.get(volume, region)
    }

    #[cold]
    fn bring_near(&mut self, volume: u32, group: u64) -> Option<()> {
        let at = *self.places.get(&(volume, group))?;
        self.near[slot(volume, group)] = Near { volume, at, group };
        Some(())
    }

    /// Notes a region that is not known yet.
    pub(crate) fn insert(&mut self, volume: u32, region: u64, number: u32) {
        let group = region / GROUP;
        let known = self.places.get(&(volume, group)).copied();
        let at = known.unwrap_or_else(|| {
            let at = self.free.pop().unwrap_or_else(|| {
                self.groups.push([NONE; GROUP as usize]);
                self.groups.len() as u32 - 1
            });
            self.places.insert((volume, group), at);
            at
        });
        self.groups[at as usize][(region % GROUP) as usize] = number;
    }

    /// Forgets a region; true when it was known.
    pub(crate) fn remove(&mut self, volume: u32, region: u64) -> bool {
        let group = region / GROUP;
        let Some(at) = self.places.get(&(volume, group)).copied() else {
            return false;
        };
        let regions = &mut self.groups[at as usize];
        let number = std::mem::replace(&mut regions[(region % GROUP) as usize], NONE);
        if regions.iter().all(|it| *it == NONE) {
            self.places.remove(&(volume, group));
            self.free.push(at);
            let near = &mut self.near[slot(volume, group)];
            if near.group == group && near.volume == volume {
                *near = NOTHING_NEAR;
            }
        }
        number != NONE
    }
}

/// Where a group is while it is near. A volume's neighbours have places of their own, and what several volumes have at
/// the same place is spread.
fn slot(volume: u32, group: u64) -> usize {
    (group.wrapping_add(mix(u64::from(volume))) % NEAR as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regions near each other and far apart, of several volumes.
    fn regions() -> impl Iterator<Item = (u32, u64)> {
        let places = (0..1_000u64).chain((1..40).map(|it| mix(it) >> 12));
        places.flat_map(|region| (0..5).map(move |volume| (volume, region)))
    }

    #[test]
    fn every_region_is_found_until_it_is_forgotten() {
        let mut directory = Directory::new();
        for (number, (volume, region)) in (0..).zip(regions()) {
            assert_eq!(directory.get_near(volume, region), None);
            directory.insert(volume, region, number);
            assert_eq!(directory.get_near(volume, region), Some(number));
        }
        for (number, (volume, region)) in (0..).zip(regions()) {
            assert_eq!(directory.get(volume, region), Some(number));
            assert_eq!(directory.get_near(volume, region), Some(number));
        }
        for (volume, region) in regions().filter(|(volume, _)| *volume == 2) {
            assert!(directory.remove(volume, region));
            assert!(!directory.remove(volume, region));
        }
        for (number, (volume, region)) in (0..).zip(regions()) {
            let known = (volume != 2).then_some(number);
            assert_eq!(directory.get(volume, region), known);
            assert_eq!(directory.get_near(volume, region), known);
        }
    }

    #[test]
    fn what_was_forgotten_makes_room_for_others() {
        let mut directory = Directory::new();
        for volume in 0..100 {
            (0..500).for_each(|region| directory.insert(volume, region, 7));
            (0..500).for_each(|region| assert_eq!(directory.get_near(volume, region), Some(7)));
            // What has its room now is not taken for it.
            let before = volume.wrapping_sub(1);
            assert!((0..500).all(|region| directory.get_near(before, region).is_none()));
            assert!((0..500).all(|region| directory.remove(volume, region)));
            assert_eq!(directory.get_near(volume, 499), None);
        }
        assert_eq!(directory.groups.len(), 8);
        assert!(directory.places.is_empty());
    }
}
