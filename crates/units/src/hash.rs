//! A hash that is the same in every run, and a table that is kept by it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Maps that are only looked up by key: where order matters, trees are used. No walk through it can
/// depend on how it is kept.
pub struct Table<K, V>(HashMap<K, V, BuildHasherDefault<Mixer>>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Eq + Hash, V> Table<K, V> {
    /// With capacity for a number of entries.
    pub fn with_capacity(entries: usize) -> Self {
        Self(HashMap::with_capacity_and_hasher(
            entries,
            BuildHasherDefault::default(),
        ))
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    /// Returns what was there.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    /// Returns what was there.
    #[inline]
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }

    /// How many keys there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory that entries take, used or not.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<(K, V)>()
    }
}

/// Mixes integers; peers that could choose colliding keys could do worse anyway.
#[derive(Clone, Copy, Default)]
struct Mixer(u64);

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
#[inline]
pub fn mix(number: u64) -> u64 {
    let most = mix_but_last(number);
    most ^ most >> 33
}

/// [`mix`] without its last step, which leaves the upper 33 bits as they are: for those who look at these alone.
#[inline]
pub fn mix_but_last(mut number: u64) -> u64 {
    number = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (number ^ number >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_of_mixing_leaves_the_upper_bits_as_they_are() {
        for number in (0..1_000).chain((0..1_000).map(mix)) {
            assert_eq!(mix(number) >> 31, mix_but_last(number) >> 31);
        }
    }
}
