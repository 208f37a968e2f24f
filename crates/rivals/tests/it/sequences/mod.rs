//! Sequences of keys that the tests run over, the same ones each time.

/// A small generator of numbers: Vigna's splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// Key `k` in about one of `k + 1` of the uses of key 0.
fn zipf(keys: u64, uses: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let scale = 1 << 30;
    let mut sum = 0;
    let sums: Vec<u64> = (1..=keys)
        .map(|rank| {
            sum += scale / rank;
            sum
        })
        .collect();
    let draw = |_| sums.partition_point(|upto| *upto <= random.below(sum)) as u64;
    (0..uses).map(draw).collect()
}

fn looped(keys: u64, uses: usize) -> Vec<u64> {
    (0..keys).cycle().take(uses).collect()
}

fn uniform(keys: u64, uses: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..uses).map(|_| random.below(keys)).collect()
}

/// Frequent keys, a scan over others after every few hundred uses.
fn zipf_and_scans(uses: usize, seed: u64) -> Vec<u64> {
    let mut found = Vec::new();
    for (round, part) in zipf(300, uses, seed).chunks(300).enumerate() {
        found.extend(part);
        let start = 10_000 + 400 * (round as u64 % 5);
        found.extend(start..start + 400);
    }
    found
}

/// What is frequent changes.
fn drift(uses: usize, seed: u64) -> Vec<u64> {
    let keys = zipf(200, uses, seed).into_iter().enumerate();
    keys.map(|(number, key)| key + number as u64 / 500 * 20)
        .collect()
}

/// All of them by name.
pub fn all() -> Vec<(&'static str, Vec<u64>)> {
    vec![
        ("zipf", zipf(1_000, 10_000, 1)),
        ("zipf of few", zipf(5, 2_000, 2)),
        ("loop within a cache of 100", looped(90, 5_000)),
        (
            "loop slightly larger than a cache of 100",
            looped(110, 5_000),
        ),
        ("loop of three", looped(3, 500)),
        ("scan", (0..5_000).collect()),
        ("uniform", uniform(200, 10_000, 3)),
        ("uniform over four", uniform(4, 2_000, 4)),
        ("zipf and scans", zipf_and_scans(6_000, 5)),
        ("drift", drift(10_000, 6)),
        (
            "ends of the range",
            [0, u64::MAX, 1, u64::MAX - 1].repeat(300),
        ),
    ]
}
