//! Chance that repeats from its seed: numbers, zipf's law, and orders without order.

/// splitmix64 (Steele, Lea and Flood, OOPSLA 2014): small, and good enough for patterns.
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound, which is at least one.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of the product; its bias is below bound / 2^64.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether something happens that does so in so many of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number from zero to below one.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Zipf's law with exponent 0.99, by rejection-inversion (Hörmann and Derflinger, 1996): its cost
/// and memory do not depend on how many ranks there are.
pub(super) struct Zipf {
    ranks: f64,
    integral_first: f64,
    integral_last: f64,
    accept: f64,
}

const EXPONENT: f64 = 0.99;

fn density(x: f64) -> f64 {
    x.powf(-EXPONENT)
}

fn integral(x: f64) -> f64 {
    (x.powf(1.0 - EXPONENT) - 1.0) / (1.0 - EXPONENT)
}

fn integral_inverse(y: f64) -> f64 {
    (1.0 + y * (1.0 - EXPONENT)).powf(1.0 / (1.0 - EXPONENT))
}

impl Zipf {
    /// The law over so many ranks, at least one.
    pub fn new(ranks: u64) -> Self {
        let ranks = ranks as f64;
        Self {
            ranks,
            integral_first: integral(1.5) - 1.0,
            integral_last: integral(ranks + 0.5),
            accept: 2.0 - integral_inverse(integral(2.5) - density(2.0)),
        }
    }

    /// A rank, from zero, the most frequent.
    pub fn rank(&self, random: &mut Random) -> u64 {
        loop {
            let span = self.integral_first - self.integral_last;
            let y = self.integral_last + random.unit() * span;
            let x = integral_inverse(y);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.accept || y >= integral(rank + 0.5) - density(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// An order of numbers in which neighbours lie far apart, so that rank does not tell place.
#[derive(Clone, Copy)]
pub(super) struct Order {
    count: u64,
    step: u64,
    first: u64,
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

impl Order {
    /// An order of the numbers below a count, which is at least one.
    pub fn new(count: u64, random: &mut Random) -> Self {
        // Steps by the golden ratio spread evenly whatever the count; without a common divisor
        // they meet every number once.
        let golden = ((u128::from(count) * 0x9e37_79b9_7f4a_7c15) >> 64) as u64;
        let mut steps = golden.max(1)..;
        let step = steps.find(|step| greatest_common_divisor(*step, count) == 1);
        Self {
            count,
            step: step.unwrap_or(1),
            first: random.below(count),
        }
    }

    /// The number at a place.
    pub fn at(&self, place: u64) -> u64 {
        let steps = u128::from(place) * u128::from(self.step) + u128::from(self.first);
        (steps % u128::from(self.count)) as u64
    }
}
