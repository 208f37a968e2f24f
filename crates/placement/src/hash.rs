//! Random numbers from a seed.

use units::hash::mix;

/// Numbers that are the same for the same seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// One below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Whether something of this chance happens.
    pub(crate) fn happens(&mut self, chance: f32) -> bool {
        (self.next() >> 40) as f32 / (1u32 << 24) as f32 <= chance
    }
}
