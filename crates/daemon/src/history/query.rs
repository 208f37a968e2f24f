//! What is asked of the figures, and of which ring it is answered. Pure.

use super::counts::Counts;
use super::rings::{RINGS, Ring};
use super::series::Values;
use std::ops::Range;

/// Steps of an answer at most.
const POINTS_MAX: u64 = 4000;
/// Steps of an answer, about, when nobody says how long they are.
const POINTS: u64 = 400;
/// Lengths of steps, in seconds, of which one is chosen then.
const STEPS: [u64; 10] = [1, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400];
/// How long ago somebody may have meant by the time of asking, in seconds: who asks for the last hour is told its seconds,
/// also when a second has begun on the way.
const LATE_S: u64 = 15;

/// What is asked for. Times are seconds since 1970.
pub struct Query<'a> {
    /// The object, as `Kind::object` names it.
    pub object: &'a str,
    /// The first second.
    pub from_s: u64,
    /// The second after the last.
    pub to_s: u64,
    /// Seconds of a step; nothing: what fits.
    pub step_s: Option<u64>,
}

/// What was found.
#[derive(Debug, PartialEq)]
pub struct Found {
    /// Where the first step begins.
    pub from_s: u64,
    /// Seconds of a step.
    pub step_s: u64,
    /// The steps; nothing where nothing is known.
    pub steps: Vec<Option<Values>>,
    /// Operations by times and sizes, a step each; nothing where none was counted.
    pub counts: Vec<Option<Counts>>,
}

/// How it is answered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// The ring that is read.
    pub ring: Ring,
    /// Seconds of the answer's steps, which are whole ones of the ring.
    pub step_s: u64,
    /// Where the first step begins.
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

    /// What is known of each of the answer's steps, of the ring's steps from the number `first` on.
    pub fn grouped<T>(&self, first: u64, steps: Vec<Option<T>>) -> Vec<Vec<T>> {
        let mut groups: Vec<Vec<T>> = (0..self.answers()).map(|_| Vec::new()).collect();
        let numbered = (first..).zip(steps);
        for (number, known) in numbered.filter_map(|(number, step)| Some((number, step?))) {
            let at = (number * self.ring.step_s).saturating_sub(self.from_s) / self.step_s;
            groups[at as usize].push(known);
        }
        groups
    }

    /// The answer where nothing is known.
    fn nothing(&self) -> Found {
        Found {
            from_s: self.from_s,
            step_s: self.step_s,
            steps: vec![None; self.answers()],
            counts: Vec::new(),
        }
    }
}

impl Query<'_> {
    /// The answer for what is there and nothing is known of yet.
    ///
    /// # Errors
    /// Why the question cannot be.
    pub fn nothing(&self, now_s: u64) -> Result<Found, String> {
        self.plan(now_s).map(|plan| plan.nothing())
    }

    /// The ring that is read, and the answer's steps.
    ///
    /// # Errors
    /// Why the question cannot be.
    pub fn plan(&self, now_s: u64) -> Result<Plan, String> {
        if self.from_s >= self.to_s || self.to_s > u64::from(u32::MAX) {
            return Err(format!(
                "the time from {} to {} is none: `from` comes before `to`",
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
        // Whole steps of the ring.
        let step_s = step_s.div_ceil(ring.step_s).saturating_mul(ring.step_s);
        if length_s / step_s > POINTS_MAX {
            return Err(format!(
                "{} steps of {step_s} s are more than {POINTS_MAX}: make them longer, or the time shorter",
                length_s / step_s
            ));
        }
        if step_s > 31 * 86_400 {
            return Err(format!(
                "a step of {step_s} s is longer than 31 days: make it shorter"
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
