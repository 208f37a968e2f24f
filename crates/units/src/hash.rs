//! A hash that is the same in every run. What is kept by it is looked up by its key; where order counts there are trees.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Mixer`]s.
pub type Seeded = BuildHasherDefault<Mixer>;

/// Mixes integers; nobody chooses the keys to make them collide who could not do worse.
#[derive(Clone, Copy, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        mix(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The finish of MurmurHash3: every bit depends on every other.
pub fn mix(mut number: u64) -> u64 {
    number = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number = (number ^ number >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}
