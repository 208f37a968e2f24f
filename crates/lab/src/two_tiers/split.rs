//! The best static split of requests between two drives, by search.

use crate::failure::Result;

/// Steps to either side of the best so far, one after the other.
const STEPS: [f64; 2] = [0.1, 0.05];
/// No drive goes without requests: the other alone is measured anyway.
const LEAST: f64 = 0.02;

/// A split and what it gave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tried {
    /// The part of the requests that goes to the first drive, from 0 to 1.
    pub first: f64,
    /// Requests a second.
    pub iops: f64,
}

/// The best of them.
pub fn best(tried: &[Tried]) -> Option<Tried> {
    tried
        .iter()
        .copied()
        .max_by(|a, b| a.iops.total_cmp(&b.iops))
}

/// Tries the split that both rates suggest, and to either side of the best so far in smaller and smaller
/// steps; returns all that were tried.
pub fn search(alone: [f64; 2], mut measure: impl FnMut(f64) -> Result<f64>) -> Result<Vec<Tried>> {
    let mut middle = alone[0] / (alone[0] + alone[1]).max(1.0);
    let mut tried = Vec::new();
    let mut splits = vec![middle];
    for step in STEPS {
        splits.extend([middle - step, middle + step]);
        for first in splits.drain(..) {
            let first = first.clamp(LEAST, 1.0 - LEAST);
            if tried.iter().all(|known: &Tried| known.first != first) {
                let iops = measure(first)?;
                tried.push(Tried { first, iops });
            }
        }
        middle = best(&tried).map_or(middle, |best| best.first);
    }
    Ok(tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_peak_wherever_the_rates_are() {
        for rates in [[10_000.0, 10_000.0], [15_000.0, 5_000.0], [9_900.0, 100.0]] {
            let gives = |first: f64| (rates[0] / first).min(rates[1] / (1.0 - first));
            let tried = search(rates, |first| Ok(gives(first))).unwrap();
            let sum = rates[0] + rates[1];
            let found = best(&tried).unwrap();
            assert!(found.iops > 0.9 * sum / 2.0, "{rates:?} {found:?}");
            assert!(tried.len() <= 5);
        }
        let rates = [10_000.0, 6_000.0];
        // What each gives alone may mislead: together they give less of the first.
        let gives = |first: f64| (8_000.0 / first).min(6_000.0 / (1.0 - first));
        let tried = search(rates, |first| Ok(gives(first))).unwrap();
        assert!(best(&tried).unwrap().iops > 0.95 * 14_000.0);
    }
}
