//! Numbers that look random and repeat from a seed.

/// A generator (splitmix64): small, fast, and good enough to choose addresses and moments.
#[derive(Clone, Debug)]
pub struct Chance(u64);

/// Scatters the bits of a number.
pub fn scatter(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Chance {
    /// Begins at a seed.
    pub fn new(seed: u64) -> Self {
        Self(scatter(seed))
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scatter(self.0)
    }

    /// The next number below `bound`, which is not 0. Slightly uneven for huge bounds, which
    /// nothing here minds.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from zero to below one.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
