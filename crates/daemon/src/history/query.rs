//! Queries and the ring that answers each. Pure functions.

use super::counts::Counts;
use super::rings::{RINGS, Ring};
use super::series::Values;
use std::ops::Range;

/// Maximum steps of a response.
const POINTS_MAX: u64 = 4000;
/// Approximate number of steps by default.
const POINTS: u64 = 400;
/// Step lengths to choose from by default, in seconds.
const STEPS: [u64; 10] = [1, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400];
/// Tolerated delay between the client's clock and the query, in seconds: a query for the last hour
/// is answered in seconds although one has passed in transit.
const LATE_S: u64 = 15;

/// A query. Times are seconds since 1970.
pub struct Query<'a> {
    /// The object, as named by `Kind::object`.
    pub object: &'a str,
    /// The first second.
    pub from_s: u64,
    /// The second after the last.
    pub to_s: u64,
    /// Seconds per step; nothing: chosen.
    pub step_s: Option<u64>,
}

/// The result.
#[derive(Debug, PartialEq)]
pub struct QueryResult {
    /// Start of the first step.
    pub from_s: u64,
    /// Seconds per step.
    pub step_s: u64,
    /// Metrics of the steps; nothing where unknown.
    pub steps: Vec<Option<Values>>,
    /// Histograms of the steps; nothing where nothing was counted.
    pub counts: Vec<Option<Counts>>,
}

/// How a query is answered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// The ring to read.
    pub ring: Ring,
    /// Seconds per step of the result, a multiple of the ring's.
    pub step_s: u64,
    /// Start of the first step.
    pub from_s: u64,
    to_s: u64,
}

impl Plan {
    /// The steps of the ring.
    pub fn steps(&self) -> Range<u64> {
        self.from_s / self.ring.step_s..self.to_s / self.ring.step_s
    }

    fn answers(&self) -> usize {
        ((self.to_s - self.from_s) / self.step_s) as usize
    }

    /// Groups the ring's steps, numbered from `first`, into steps of the result.
    pub fn grouped<T>(&self, first: u64, steps: Vec<Option<T>>) -> Vec<Vec<T>> {
        let mut groups: Vec<Vec<T>> = (0..self.answers()).map(|_| Vec::new()).collect();
        let numbered = (first..).zip(steps);
        for (number, known) in numbered.filter_map(|(number, step)| Some((number, step?))) {
            let at = (number * self.ring.step_s).saturating_sub(self.from_s) / self.step_s;
            groups[at as usize].push(known);
        }
        groups
    }

    /// The result without data.
    fn nothing(&self) -> QueryResult {
        QueryResult {
            from_s: self.from_s,
            step_s: self.step_s,
            steps: vec![None; self.answers()],
            counts: Vec::new(),
        }
    }
}

impl Query<'_> {
    /// The result for an object that has no data yet.
    ///
    /// # Errors
    /// Why the query is invalid.
    pub fn nothing(&self, now_s: u64) -> Result<QueryResult, String> {
        self.plan(now_s).map(|plan| plan.nothing())
    }

    /// Selects the ring and the steps.
    ///
    /// # Errors
    /// Why the query is invalid.
    pub fn plan(&self, now_s: u64) -> Result<Plan, String> {
        if self.from_s >= self.to_s || self.to_s > u64::from(u32::MAX) {
            return Err(format!(
                "the time range from {} to {} is empty: `from` must precede `to`",
                self.from_s, self.to_s
            ));
        }
        let length_s = self.to_s - self.from_s;
        let covers = |ring: &&Ring| {
            self.from_s
                .saturating_add(ring.steps * ring.step_s + LATE_S)
                >= now_s
        };
        let ring = RINGS.iter().find(covers).unwrap_or(&RINGS[2]);
        let fits = |step: &&u64| length_s / **step <= POINTS;
        let usual = STEPS.iter().find(fits).copied();
        let step_s = self.step_s.or(usual).unwrap_or(86_400).max(1);
        // Multiples of the ring's steps.
        let step_s = step_s.div_ceil(ring.step_s).saturating_mul(ring.step_s);
        if length_s / step_s > POINTS_MAX {
            return Err(format!(
                "{} steps of {step_s} s exceed the limit of {POINTS_MAX}: use longer steps or a \
                 shorter time range",
                length_s / step_s
            ));
        }
        if step_s > 31 * 86_400 {
            return Err(format!(
                "a step of {step_s} s is longer than 31 days: use shorter steps"
            ));
        }
        Ok(Plan {
            ring: *ring,
            step_s,
            from_s: self.from_s / step_s * step_s,
            to_s: self.to_s.div_ceil(step_s) * step_s,
        })
    }
}
