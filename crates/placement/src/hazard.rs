//! What the future of an extent is worth, told by what became of others like it.
//!
//! Extents that were used equally often are a class. For each the policy counts how long they
//! waited for their next use, and so knows the chance of one at every age. The **index** of an age
//! is the most uses for the blocks' time, over all times for which an extent could be kept from then
//! on (J. C. Gittins, "Bandit Processes and Dynamic Allocation Indices", J. R. Stat. Soc. B 41(2),
//! 1979): an extent that is about to be used again is worth more than one that was used as often
//! and is not, and one whose time has passed is worth little, however often it was used.
//!
//! Extents of a class that were last used in the same tick are a **cohort**. Often they share their fate: what a scan
//! passes is not used again though its class usually is, and where a loop begins anew the rest of it is near. So
//! each cohort has a **frailty** (J. W. Vaupel, K. G. Manton, E. Stallard, "The Impact of Heterogeneity in
//! Individual Frailty on the Dynamics of Mortality", Demography 16(3), 1979): how many of its waits ended, to how
//! many its class made expect. Indices are multiplied by it.

use crate::age::{FORGOTTEN, GROUPS, group, width};

/// Classes of extents: by how often they were used.
const CLASSES: usize = 9;
/// Most uses that are counted.
pub(crate) const USES_MAX: u8 = 15;
/// Ages that are told apart, in ticks.
const AGES: usize = FORGOTTEN as usize;
/// What a count keeps of its weight in a tick: half of it in eleven times the fast tier ...
const KEPT: f32 = 0.998;
/// ... and in the short memory in three quarters of the fast tier.
const KEPT_SHORTLY: f32 = 0.97;
/// Before anything was seen of an age it is taken that so many uses came ...
const PRIOR_USES: f32 = 0.02;
/// ... of so many ticks that extents waited.
const PRIOR_TICKS: f32 = 20.0;
/// What all classes together show of an age counts for each as so many uses of its own: a class of which
/// little was seen is taken for an ordinary one, not for what a few chances make of it.
const SHARED_USES: f32 = 3.0;
/// What the long memory shows of an age counts as so many uses in the short one: where that has seen many
/// more, a load that has changed is followed at once, and elsewhere chance does not count as a change.
const REMEMBERED_USES: f32 = 200.0;
/// What a cohort's counts keep of their weight in a tick.
const COHORT_KEPT: f32 = 0.95;
/// A cohort is taken for an ordinary one as if so many of its waits had been expected to end, and had.
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

/// What was seen of the waits of all classes, what was long ago counting less.
struct Memory {
    /// Ticks that extents spent waiting, by age.
    waited: [[f32; GROUPS]; CLASSES],
    /// Waits that ended with a use, by age.
    ended: [[f32; GROUPS]; CLASSES],
    /// What a count keeps of its weight in a tick.
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

/// Extents of a class that wait for their next use since the same tick.
#[derive(Clone, Copy, Default)]
struct Cohort {
    waiting: u32,
    /// Waits that ended with a use of late, and ...
    ended: f32,
    /// ... those that the class made expect.
    expected: f32,
}

impl Cohort {
    /// What is made of an index. The eighth root of what was seen: most of a cohort of which little is used is what
    /// is left after the others were, and a few uses that came together say less than as many that came apart.
    fn frailty(self) -> f32 {
        let ratio = (self.ended + ORDINARY_USES) / (self.expected + ORDINARY_USES);
        ratio.sqrt().sqrt().sqrt()
    }
}

/// The counts of all classes, and the indices that follow.
pub(crate) struct Hazard {
    /// Extents that wait for their next use, by the tick since which they do.
    cohorts: Box<[[Cohort; CLASSES]]>,
    /// The tick of now, in that order.
    now: usize,
    long: Memory,
    short: Memory,
    /// Uses that are expected in a tick of waiting, by age.
    rates: [[f32; GROUPS]; CLASSES],
    /// The indices, by age in ticks, with what is known of the cohort of that age.
    index: Box<[[f32; CLASSES]]>,
}

impl Hazard {
    pub(crate) fn new() -> Self {
        let mut hazard = Self {
            cohorts: vec![[Cohort::default(); CLASSES]; AGES].into_boxed_slice(),
            now: 0,
            long: Memory::new(KEPT),
            short: Memory::new(KEPT_SHORTLY),
            rates: [[0.0; GROUPS]; CLASSES],
            index: vec![[0.0; CLASSES]; AGES].into_boxed_slice(),
        };
        hazard.rebuild();
        hazard
    }

    /// An extent was used for the `uses`-th time and waits for the next.
    pub(crate) fn began(&mut self, uses: u8) {
        self.cohorts[self.now][class(uses)].waiting += 1;
    }

    /// An extent with so many uses was used again after `age` ticks.
    pub(crate) fn ended(&mut self, uses: u8, age: u16) {
        self.long.ended[class(uses)][group(age)] += 1.0;
        self.short.ended[class(uses)][group(age)] += 1.0;
        self.stop(uses, age).ended += 1.0;
    }

    /// An extent with so many uses waits anew: its last use, `age` ticks ago, went on.
    pub(crate) fn went_on(&mut self, uses: u8, age: u16) {
        self.stop(uses, age);
        self.began(uses);
    }

    fn stop(&mut self, uses: u8, age: u16) -> &mut Cohort {
        let cohort = &mut self.cohorts[since(self.now, usize::from(age))][class(uses)];
        cohort.waiting = cohort.waiting.saturating_sub(1);
        cohort
    }

    /// Uses to be had in a tick from an extent with so many uses, last used `age` ticks ago.
    pub(crate) fn index(&self, uses: u8, age: u16) -> f32 {
        // What is older is as if never used.
        (self.index.get(usize::from(age))).map_or(0.0, |of_age| of_age[class(uses)])
    }

    /// A tick passes: what was counted goes into the indices.
    pub(crate) fn tick(&mut self) {
        for age in 0..AGES {
            let group = group(age as u16);
            let of_age = &mut self.cohorts[since(self.now, age)];
            for (class, cohort) in of_age.iter_mut().enumerate() {
                let waiting = cohort.waiting as f32;
                self.long.waited[class][group] += waiting;
                self.short.waited[class][group] += waiting;
                cohort.expected += waiting * self.rates[class][group];
            }
        }
        // Those that waited longest are forgotten.
        self.now = (self.now + 1) % AGES;
        self.cohorts[self.now] = [Cohort::default(); CLASSES];
        self.rebuild();
        self.long.fade();
        self.short.fade();
        for cohort in self.cohorts.iter_mut().flatten() {
            cohort.ended *= COHORT_KEPT;
            cohort.expected *= COHORT_KEPT;
        }
    }

    fn rebuild(&mut self) {
        let shared = self.shared();
        let mut index = [[0.0f32; GROUPS]; CLASSES];
        for (class, of_class) in index.iter_mut().enumerate() {
            self.rates[class] = std::array::from_fn(|group| {
                let long = self.long.rate(class, group, shared[group], SHARED_USES);
                self.short.rate(class, group, long, REMEMBERED_USES)
            });
            *of_class = indices(&self.rates[class]);
        }
        for age in 0..AGES {
            let group = group(age as u16);
            let of_age = &self.cohorts[since(self.now, age)];
            for (class, cohort) in of_age.iter().enumerate() {
                self.index[age][class] = index[class][group] * cohort.frailty();
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

/// The place of the cohorts that wait for `age` ticks.
fn since(now: usize, age: usize) -> usize {
    (now + AGES - age) % AGES
}

/// The indices of a class, by age, from the uses that are expected in a tick of waiting.
fn indices(rates: &[f32; GROUPS]) -> [f32; GROUPS] {
    // The chance of a use within a group of ages, for what was not used before.
    let chances: [f32; GROUPS] =
        std::array::from_fn(|group| (rates[group] * width(group)).min(1.0));
    std::array::from_fn(|from| {
        let (mut uses, mut waited, mut best) = (0.0f32, 0.0f32, 0.0f32);
        let mut left = 1.0f32;
        for (to, chance) in chances.iter().enumerate().take(GROUPS - 1).skip(from) {
            let used = left * chance;
            uses += used;
            waited += (left - used / 2.0) * width(to);
            left -= used;
            best = best.max(uses / waited);
        }
        best
    })
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
