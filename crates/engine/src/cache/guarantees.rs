//! Parts of the RAM tier that policies guarantee to volumes (docs/qos.md, "Placement hints").
//!
//! A volume that has no more than its part keeps it: the clock hand passes over its extents. A part is not set aside: while its
//! volume uses less, others have the rest. All parts together are at most three quarters of the tier, and are scaled down to that
//! where more was guaranteed, so that the hand always finds something to evict and other volumes have a quarter.

use units::mutation::{Mutation, is_on};

/// Millionths of the tier that all parts together have at most.
const MOST_PPM: u64 = 750_000;

/// The part of one volume.
#[derive(Debug)]
struct Part {
    volume: u32,
    ppm: u32,
    /// Extents that are guaranteed.
    floor: usize,
    /// Extents that it has.
    used: usize,
}

/// The parts, by their volumes.
#[derive(Debug, Default)]
pub struct Guarantees {
    parts: Vec<Part>,
}

impl Guarantees {
    /// These volumes have so many millionths of a tier of `limit` extents from now on. True when that is new: what they have
    /// has to be counted then.
    pub fn set(&mut self, mut asked: Vec<(u32, u32)>, limit: usize) -> bool {
        asked.sort_unstable();
        let known = self.parts.iter().map(|part| (part.volume, part.ppm));
        if known.eq(asked.iter().copied()) {
            return false;
        }
        let part = |(volume, ppm): (u32, u32)| Part {
            volume,
            ppm,
            floor: 0,
            used: 0,
        };
        self.parts = asked.into_iter().map(part).collect();
        self.fit(limit);
        true
    }

    /// The tier may hold so many extents.
    pub fn fit(&mut self, limit: usize) {
        let all: u64 = self.parts.iter().map(|part| u64::from(part.ppm)).sum();
        for part in &mut self.parts {
            let floor = limit as u128 * u128::from(part.ppm) * u128::from(MOST_PPM);
            part.floor = (floor / u128::from(all.max(MOST_PPM)) / 1_000_000) as usize;
        }
    }

    fn find(&self, volume: u32) -> Option<usize> {
        let found = self.parts.binary_search_by_key(&volume, |part| part.volume);
        found.ok()
    }

    /// An extent of a volume came.
    pub fn came(&mut self, volume: u32) {
        if let Some(at) = self.find(volume) {
            self.parts[at].used += 1;
        }
    }

    /// One left.
    pub fn left(&mut self, volume: u32) {
        if let Some(at) = self.find(volume) {
            self.parts[at].used -= 1;
        }
    }

    /// Whether a volume keeps what it has.
    pub fn keep(&self, volume: u32) -> bool {
        let part = self.find(volume).map(|at| &self.parts[at]);
        part.is_some_and(|part| part.used <= part.floor) && !is_on(Mutation::PlacementUndue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_keeps_its_part_and_no_more() {
        let mut guarantees = Guarantees::default();
        assert!(!guarantees.keep(7), "nothing is guaranteed");
        assert!(guarantees.set(vec![(9, 100_000), (7, 200_000)], 100));
        assert!(!guarantees.set(vec![(7, 200_000), (9, 100_000)], 100));
        (0..20).for_each(|_| guarantees.came(7));
        assert!(guarantees.keep(7) && !guarantees.keep(8));
        guarantees.came(7);
        assert!(!guarantees.keep(7), "one more than its part");
        guarantees.left(7);
        assert!(guarantees.keep(7));
        guarantees.fit(50);
        assert!(!guarantees.keep(7), "the tier became smaller");
        assert!(guarantees.set(Vec::new(), 50) && !guarantees.keep(7));
    }

    #[test]
    fn parts_of_more_than_three_quarters_are_scaled_down() {
        let mut guarantees = Guarantees::default();
        guarantees.set((1..=600).map(|volume| (volume, 100_000)).collect(), 8000);
        let all: usize = guarantees.parts.iter().map(|part| part.floor).sum();
        assert_eq!(all, 6000);
        guarantees.set(vec![(1, 750_000)], 8000);
        assert_eq!(guarantees.parts[0].floor, 6000);
    }
}
