//! The expected value of keeping an extent, estimated from similar ones.
//!
//! Extents that were used equally often are a class. For each the policy counts how long they
//! waited for their next use, and so knows the chance of one at every age. The **index** of an age
//! is the most uses for the blocks' time, over all times for which an extent could be kept from then
//! on (J. C. Gittins, "Bandit Processes and Dynamic Allocation Indices", J. R. Stat. Soc. B 41(2),
//! 1979): an extent that is about to be used again is worth more than one that was used as often
//! and is not, and one whose time has passed is worth little, however often it was used.
//!
//! Extents of a class that were last used in the same tick are a **cohort**. Often they share their fate: extents that a scan
//! passes is not used again though its class usually is, and where a loop begins again the rest of it is near. So
//! each cohort has a **frailty** (J. W. Vaupel, K. G. Manton, E. Stallard, "The Impact of Heterogeneity in
//! Individual Frailty on the Dynamics of Mortality", Demography 16(3), 1979): how many of its waits ended, to how
//! many its class made expect. Indices are multiplied by it.

use crate::age::{FORGOTTEN, GROUPS, group, width};
use std::ops::Range;

/// Classes of extents: by how often they were used.
const CLASSES: usize = 9;
/// Most uses that are counted.
pub(crate) const USES_MAX: u8 = 15;
/// Age classes, in ticks.
const AGES: usize = FORGOTTEN as usize;
/// The decay of a count per tick: half of it in eleven times the fast tier ...
const KEPT: f32 = 0.998;
/// ... and in the short memory in three quarters of the fast tier.
const KEPT_SHORTLY: f32 = 0.97;
/// Prior of an age: this many uses ...
const PRIOR_USES: f32 = 0.02;
/// ... in this many ticks of waiting.
const PRIOR_TICKS: f32 = 20.0;
/// The weight of all classes together in the estimate of each, in uses of its own: a class of which
/// little was seen is taken for an ordinary one, not for what a few chances make of it.
const SHARED_USES: f32 = 3.0;
/// The weight of the long memory in the short one, in uses: where that has seen many
/// more, a changed load is followed immediately, and elsewhere chance does not count as a change.
const REMEMBERED_USES: f32 = 200.0;
/// The decay of a cohort's counts per tick.
const COHORT_KEPT: f32 = 0.95;
/// Prior of a cohort: as if this many of its waits had been expected to end, and had ended.
const ORDINARY_USES: f32 = 1.0;

fn class(uses: u8) -> usize {
    match uses {
        0 | 1 => 0,
        2..=4 => usize::from(uses) - 1,
        5..=6 => 4,
        7..=8 => 5,
        9..=11 => 6,
        12..=14 => 7,
        _ => 8,
    }
}

/// Statistics of the waits of all classes, decaying with time.
struct Memory {
    /// Ticks that extents spent waiting, by age.
    waited: [[f32; GROUPS]; CLASSES],
    /// Waits that ended with a use, by age.
    ended: [[f32; GROUPS]; CLASSES],
    /// The decay of a count per tick.
    kept: f32,
}

impl Memory {
    fn new(kept: f32) -> Self {
        Self {
            waited: [[0.0; GROUPS]; CLASSES],
            ended: [[0.0; GROUPS]; CLASSES],
            kept,
        }
    }

    fn fade(&mut self) {
        let counts = self.waited.iter_mut().chain(&mut self.ended).flatten();
        counts.for_each(|count| *count *= self.kept);
    }

    /// Uses in a tick of waiting of a class at an age, where `others` are expected, which counts as `weight` uses.
    fn rate(&self, class: usize, group: usize, others: f32, weight: f32) -> f32 {
        (self.ended[class][group] + weight) / (self.waited[class][group] + weight / others)
    }
}

/// Cohorts of a class, by the ticks for which they have waited.
#[derive(Clone)]
struct Cohorts {
    /// Extents that wait.
    waiting: [u32; AGES],
    /// Waits that ended with a use recently, and ...
    ended: [f32; AGES],
    /// ... those that the class made expect.
    expected: [f32; AGES],
}

impl Cohorts {
    const NONE: Self = Self {
        waiting: [0; AGES],
        ended: [0.0; AGES],
        expected: [0.0; AGES],
    };

    /// A use that came `age` ticks after the last: the extent waits no more.
    fn stop(&mut self, age: u16) {
        let waiting = &mut self.waiting[usize::from(age)];
        *waiting = waiting.saturating_sub(1);
    }

    /// All are a tick older. Those that waited longest are forgotten.
    fn grow_older(&mut self) {
        self.waiting.copy_within(..AGES - 1, 1);
        self.ended.copy_within(..AGES - 1, 1);
        self.expected.copy_within(..AGES - 1, 1);
        (self.waiting[0], self.ended[0], self.expected[0]) = (0, 0.0, 0.0);
    }

    fn fade(&mut self) {
        let counts = self.ended.iter_mut().chain(&mut self.expected);
        counts.for_each(|count| *count *= COHORT_KEPT);
    }
}

/// What is made of an index of a cohort. The eighth root of what was seen: most of a cohort of which little is used is
/// what is left after the others were, and a few uses that came together say less than as many that came apart.
fn frailty(ended: f32, expected: f32) -> f32 {
    let ratio = (ended + ORDINARY_USES) / (expected + ORDINARY_USES);
    ratio.sqrt().sqrt().sqrt()
}

/// The counts of all classes, and the indices that follow. A tick goes through all of it while hosts wait: each loop does
/// the same to what is side by side, so that the processor takes several at a time.
pub(crate) struct Hazard {
    /// Extents that wait for their next use, by class.
    cohorts: Box<[Cohorts]>,
    long: Memory,
    short: Memory,
    /// Uses that are expected in a tick of waiting, by age.
    rates: [[f32; GROUPS]; CLASSES],
    /// The indices, by class and age in ticks, with what is known of the cohort of that age.
    index: Box<[[f32; AGES]]>,
}

impl Hazard {
    pub(crate) fn new() -> Self {
        let mut hazard = Self {
            cohorts: vec![Cohorts::NONE; CLASSES].into_boxed_slice(),
            long: Memory::new(KEPT),
            short: Memory::new(KEPT_SHORTLY),
            rates: [[0.0; GROUPS]; CLASSES],
            index: vec![[0.0; AGES]; CLASSES].into_boxed_slice(),
        };
        hazard.rebuild();
        hazard
    }

    /// An extent was used for the `uses`-th time and waits for the next.
    pub(crate) fn began(&mut self, uses: u8) {
        self.cohorts[class(uses)].waiting[0] += 1;
    }

    /// Records that an extent with a number of uses was used again after `age` ticks.
    pub(crate) fn ended(&mut self, uses: u8, age: u16) {
        let class = class(uses);
        self.long.ended[class][group(age)] += 1.0;
        self.short.ended[class][group(age)] += 1.0;
        self.cohorts[class].stop(age);
        self.cohorts[class].ended[usize::from(age)] += 1.0;
    }

    /// An extent with a number of uses waits again: its last use, `age` ticks ago, is still pending.
    pub(crate) fn went_on(&mut self, uses: u8, age: u16) {
        self.cohorts[class(uses)].stop(age);
        self.began(uses);
    }

    /// Expected uses per tick of an extent with a number of uses, last used `age` ticks ago.
    pub(crate) fn index(&self, uses: u8, age: u16) -> f32 {
        // What is older is as if never used.
        let of_class = &self.index[class(uses)];
        of_class.get(usize::from(age)).copied().unwrap_or(0.0)
    }

    /// A tick passes: what was counted goes into the indices.
    pub(crate) fn tick(&mut self) {
        for (class, cohorts) in self.cohorts.iter_mut().enumerate() {
            for (group, ages) in groups() {
                let waiting = &cohorts.waiting[ages.clone()];
                let waited = waiting.iter().map(|count| u64::from(*count)).sum::<u64>() as f32;
                self.long.waited[class][group] += waited;
                self.short.waited[class][group] += waited;
                let rate = self.rates[class][group];
                for (expected, waiting) in cohorts.expected[ages].iter_mut().zip(waiting) {
                    *expected += *waiting as f32 * rate;
                }
            }
            cohorts.grow_older();
        }
        self.rebuild();
        self.long.fade();
        self.short.fade();
        self.cohorts.iter_mut().for_each(Cohorts::fade);
    }

    fn rebuild(&mut self) {
        let shared = self.shared();
        for (class, rates) in self.rates.iter_mut().enumerate() {
            for (group, rate) in rates.iter_mut().enumerate() {
                let long = self.long.rate(class, group, shared[group], SHARED_USES);
                *rate = self.short.rate(class, group, long, REMEMBERED_USES);
            }
        }
        let indices = indices(&self.rates);
        for (class, (of_class, cohorts)) in self.index.iter_mut().zip(&self.cohorts).enumerate() {
            for (group, ages) in groups() {
                let seen = cohorts.ended[ages.clone()]
                    .iter()
                    .zip(&cohorts.expected[ages.clone()]);
                for (index, (ended, expected)) in of_class[ages].iter_mut().zip(seen) {
                    *index = indices[group][class] * frailty(*ended, *expected);
                }
            }
        }
    }

    /// Uses in a tick of waiting, of all classes together, by age.
    fn shared(&self) -> [f32; GROUPS] {
        let sum = |counts: &[[f32; GROUPS]; CLASSES], group: usize| {
            counts.iter().map(|class| class[group]).sum::<f32>()
        };
        std::array::from_fn(|group| {
            let uses = sum(&self.long.ended, group) + PRIOR_USES;
            uses / (sum(&self.long.waited, group) + PRIOR_TICKS)
        })
    }
}

/// The age classes, with their ages.
fn groups() -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut from = 0;
    (0..GROUPS - 1).map(move |group| {
        let ages = from..from + width(group) as usize;
        from = ages.end;
        (group, ages)
    })
}

/// The indices, by group of ages and class, from the uses that are expected in a tick of waiting.
fn indices(rates: &[[f32; GROUPS]; CLASSES]) -> [[f32; CLASSES]; GROUPS] {
    // The chance of a use within a group of ages, for what was not used before.
    let mut chances = [[0.0f32; CLASSES]; GROUPS];
    for (class, rates) in rates.iter().enumerate() {
        for (group, rate) in rates.iter().enumerate() {
            chances[group][class] = (rate * width(group)).min(1.0);
        }
    }
    let mut best = [[0.0f32; CLASSES]; GROUPS];
    for (from, best) in best.iter_mut().enumerate() {
        let (mut uses, mut waited, mut left) =
            ([0.0f32; CLASSES], [0.0f32; CLASSES], [1.0f32; CLASSES]);
        for (to, chances) in chances.iter().enumerate().take(GROUPS - 1).skip(from) {
            let width = width(to);
            for class in 0..CLASSES {
                let used = left[class] * chances[class];
                uses[class] += used;
                waited[class] += (left[class] - used / 2.0) * width;
                left[class] -= used;
                best[class] = best[class].max(uses[class] / waited[class]);
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits of a class that all end after `age`, one a tick.
    fn regular(hazard: &mut Hazard, uses: u8, age: u16) {
        for tick in 0..2_000u16 {
            hazard.began(uses);
            if tick >= age {
                hazard.ended(uses, age);
            }
            pass(hazard);
        }
    }

    /// Waits of a class of which none ends.
    fn idle(hazard: &mut Hazard, uses: u8) {
        for _ in 0..2_000 {
            hazard.began(uses);
            pass(hazard);
        }
    }

    fn pass(hazard: &mut Hazard) {
        hazard.tick();
    }

    #[test]
    fn what_is_about_to_be_used_is_worth_most_and_what_missed_its_time_least() {
        let mut hazard = Hazard::new();
        regular(&mut hazard, 3, 64);
        let [fresh, near, past] = [0, 60, 90].map(|age| hazard.index(3, age));
        assert!(near > 2.0 * fresh, "{near} {fresh}");
        assert!(past < fresh / 3.0, "{past} {fresh}");
    }

    #[test]
    fn a_class_whose_waits_never_end_is_worth_less_than_one_whose_waits_do() {
        let mut hazard = Hazard::new();
        for tick in 0..2_000 {
            hazard.began(1);
            hazard.began(5);
            if tick >= 20 {
                hazard.ended(5, 20);
            }
            pass(&mut hazard);
        }
        let (used, idle) = (hazard.index(5, 0), hazard.index(1, 0));
        assert!(used > 20.0 * idle, "{used} {idle}");
    }

    #[test]
    fn a_class_of_which_little_was_seen_is_taken_for_an_ordinary_one() {
        let index = |of_others: fn(&mut Hazard)| {
            let mut hazard = Hazard::new();
            of_others(&mut hazard);
            hazard.began(9);
            hazard.ended(9, 0);
            pass(&mut hazard);
            hazard.index(9, 0)
        };
        let (alone, busy) = (index(|_| ()), index(|hazard| regular(hazard, 1, 4)));
        let idle = index(|hazard| idle(hazard, 1));
        assert!(busy > 3.0 * idle, "{busy} {idle}");
        assert!(alone > idle, "{alone} {idle}");
    }

    #[test]
    fn an_old_habit_is_forgotten() {
        let mut hazard = Hazard::new();
        regular(&mut hazard, 1, 4);
        let was = hazard.index(1, 0);
        idle(&mut hazard, 1);
        assert!(hazard.index(1, 0) < was / 20.0);
    }

    #[test]
    fn a_load_that_changes_is_followed_within_the_time_of_a_fill() {
        let mut hazard = Hazard::new();
        let mut used = |age: u16, ticks: u16| {
            for tick in 0..ticks {
                (0..50).for_each(|_| hazard.began(2));
                if tick >= age {
                    (0..50).for_each(|_| hazard.ended(2, age));
                }
                hazard.tick();
            }
        };
        used(64, 2_000);
        used(4, 32);
        let [soon, late] = [4, 64].map(|age| hazard.index(2, age));
        assert!(soon > 2.0 * late, "{soon} {late}");
    }

    /// Waits of a class that usually end after two ticks, with one cohort whose waits do not.
    fn with_a_scan(ticks: u16, scanned: u16) -> Hazard {
        let mut hazard = Hazard::new();
        for tick in 0..ticks {
            (0..20).for_each(|_| hazard.began(1));
            if tick >= 2 && tick - 2 != scanned {
                (0..15).for_each(|_| hazard.ended(1, 2));
            }
            hazard.tick();
        }
        hazard
    }

    #[test]
    fn a_cohort_whose_waits_do_not_end_as_its_class_made_expect_is_worth_less() {
        // Six ticks later that cohort waits, and five of each of the others.
        let (scan, none) = (with_a_scan(300, 294), with_a_scan(300, 1_000));
        let [passed, usual] = [&scan, &none].map(|hazard| hazard.index(1, 6));
        assert!(passed < 0.8 * usual, "{passed} {usual}");
        let [passed, usual] = [&scan, &none].map(|hazard| hazard.index(1, 0));
        assert!((0.9..1.1).contains(&(passed / usual)), "{passed} {usual}");
    }

    #[test]
    fn a_cohort_of_which_more_was_used_than_expected_is_worth_more() {
        let index = |used: u32| {
            let mut hazard = Hazard::new();
            for tick in 0..300u16 {
                (0..100).for_each(|_| hazard.began(1));
                if tick >= 8 {
                    // All cohorts alike, but for the one that waits since the 290th tick.
                    let uses = if tick == 298 { used } else { 10 };
                    (0..uses).for_each(|_| hazard.ended(1, 8));
                }
                hazard.tick();
            }
            hazard.index(1, 10)
        };
        let (usual, more) = (index(10), index(60));
        assert!(more > 1.2 * usual, "{more} {usual}");
    }

    #[test]
    fn a_cohort_that_did_as_its_class_made_expect_is_worth_what_its_class_is() {
        // Of all that waits a tenth is used in each tick, so every age is worth the same.
        let mut hazard = Hazard::new();
        let used: Vec<u32> = (0..40)
            .map(|age| (100.0 * 0.9f32.powi(age)) as u32)
            .collect();
        for tick in 0..200 {
            (0..1_000).for_each(|_| hazard.began(1));
            for (age, used) in used.iter().enumerate().take(tick + 1) {
                (0..*used).for_each(|_| hazard.ended(1, age as u16));
            }
            hazard.tick();
        }
        let fresh = hazard.index(1, 0);
        for age in 1..15 {
            let ratio = hazard.index(1, age) / fresh;
            assert!((0.85..1.15).contains(&ratio), "{ratio} at {age}");
        }
    }

    #[test]
    fn what_a_cohort_showed_fades() {
        let ratio = |later: u16| {
            let [scan, none] = [290, 10_000].map(|scanned| with_a_scan(300 + later, scanned));
            scan.index(1, 10 + later) / none.index(1, 10 + later)
        };
        let (soon, late) = (ratio(0), ratio(160));
        assert!(soon < 0.8 && late > 0.95, "{soon} {late}");
    }

    #[test]
    fn a_use_that_goes_on_is_no_wait_that_ended() {
        let mut hazard = Hazard::new();
        for tick in 0..500 {
            hazard.began(2);
            if tick > 0 {
                hazard.went_on(2, 1);
            }
            pass(&mut hazard);
        }
        let mut never = Hazard::new();
        idle(&mut never, 2);
        assert!(hazard.index(2, 0) < 2.0 * never.index(2, 0));
    }
}
