//! Zipf's law, and orders without order.

/// Zipf's law by rejection-inversion (Hörmann and Derflinger, 1996): its cost and memory do not
/// depend on how many ranks there are.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    exponent: f64,
    ranks: f64,
    integral_first: f64,
    integral_last: f64,
    accept: f64,
}

impl Zipf {
    /// The law with a positive exponent over so many ranks, at least one.
    #[must_use]
    pub fn new(exponent: f64, ranks: u64) -> Self {
        let ranks = ranks as f64;
        let mut law = Self {
            exponent,
            ranks,
            integral_first: 0.0,
            integral_last: 0.0,
            accept: 0.0,
        };
        law.integral_first = law.integral(1.5) - 1.0;
        law.integral_last = law.integral(ranks + 0.5);
        law.accept = 2.0 - law.integral_inverse(law.integral(2.5) - law.density(2.0));
        law
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    fn integral(&self, x: f64) -> f64 {
        match 1.0 - self.exponent {
            0.0 => x.ln(),
            power => (x.powf(power) - 1.0) / power,
        }
    }

    fn integral_inverse(&self, y: f64) -> f64 {
        match 1.0 - self.exponent {
            0.0 => y.exp(),
            power => (1.0 + y * power).powf(1.0 / power),
        }
    }

    /// A rank, from zero, the most frequent; `unit` gives even numbers from zero to below one.
    pub fn rank(&self, mut unit: impl FnMut() -> f64) -> u64 {
        loop {
            let span = self.integral_first - self.integral_last;
            let y = self.integral_last + unit() * span;
            let x = self.integral_inverse(y);
            let rank = x.round().clamp(1.0, self.ranks);
            if rank - x <= self.accept || y >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// An order of numbers in which neighbours lie far apart, so that rank does not tell place.
#[derive(Clone, Copy, Debug)]
pub struct Order {
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
    /// An order of the numbers below a count, which is at least one; it begins with `first`, which is one
    /// of them.
    #[must_use]
    pub fn new(count: u64, first: u64) -> Self {
        // Steps by the golden ratio spread evenly whatever the count; without a common divisor
        // they meet every number once.
        let golden = ((u128::from(count) * 0x9e37_79b9_7f4a_7c15) >> 64) as u64;
        let mut steps = golden.max(1)..;
        let step = steps.find(|step| greatest_common_divisor(*step, count) == 1);
        Self {
            count,
            step: step.unwrap_or(1),
            first,
        }
    }

    /// The number at a place.
    #[must_use]
    pub fn at(&self, place: u64) -> u64 {
        let steps = u128::from(place) * u128::from(self.step) + u128::from(self.first);
        (steps % u128::from(self.count)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        for exponent in [0.5, 0.99, 1.0, 1.3] {
            let law = Zipf::new(exponent, 1000);
            let mut state = 1u64;
            let mut counts = [0u64; 1000];
            for _ in 0..400_000 {
                let rank = law.rank(|| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (state >> 11) as f64 / (1u64 << 53) as f64
                });
                counts[rank as usize] += 1;
            }
            let all: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1, 2, 5, 20] {
                let wanted = 400_000.0 * f64::from(rank).powf(-exponent) / all;
                let seen = counts[rank as usize - 1] as f64;
                let off = (seen - wanted).abs() / wanted.sqrt();
                assert!(
                    off < 6.0,
                    "exponent {exponent}, rank {rank}: {seen}, not {wanted}"
                );
            }
        }
    }

    #[test]
    fn an_order_has_every_number_once() {
        for count in [1, 2, 7, 64, 1000] {
            let order = Order::new(count, count / 2);
            let mut seen: Vec<u64> = (0..count).map(|place| order.at(place)).collect();
            assert_eq!(seen[0], count / 2);
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }
}
