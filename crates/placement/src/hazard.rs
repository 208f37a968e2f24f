//! What the future of an extent is worth, told by what became of others like it.
//!
//! Extents that were used equally often are a class. For each the policy counts how long they
//! waited for their next use, and so knows the chance of one at every age. The **index** of an age
//! is the most uses for the blocks' time, over all times for which an extent could be kept from then
//! on (J. C. Gittins, "Bandit Processes and Dynamic Allocation Indices", J. R. Stat. Soc. B 41(2),
//! 1979): an extent that is about to be used again is worth more than one that was used as often
//! and is not, and one whose time has passed is worth little, however often it was used.

use crate::age::{GROUPS, group, width};

/// Classes of extents: by how often they were used.
const CLASSES: usize = 9;
/// Most uses that are counted.
pub(crate) const USES_MAX: u8 = 15;
/// What a count keeps of its weight in a tick: half of it in six times the fast tier.
const KEPT: f32 = 0.996_2;
/// Uses that a class is taken to have had at any age before anything was seen, in fills' worth of ticks.
const PRIOR: f32 = 0.02;

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

/// The counts of all classes, and the indices that follow.
pub(crate) struct Hazard {
    /// Waits that began.
    began: [f32; CLASSES],
    /// Waits that ended with a use, by the age at which they did; each weighs what its beginning does.
    ended: [[f32; GROUPS]; CLASSES],
    index: [[f32; GROUPS]; CLASSES],
    /// What a beginning weighs after so many ticks, by group.
    weight: [f32; GROUPS],
}

impl Hazard {
    pub(crate) fn new() -> Self {
        let mut weight = [0.0; GROUPS];
        let mut ticks = 0.0;
        for (at, weight) in weight.iter_mut().enumerate() {
            *weight = KEPT.powf(ticks);
            ticks += width(at);
        }
        let mut hazard = Self {
            began: [0.0; CLASSES],
            ended: [[0.0; GROUPS]; CLASSES],
            index: [[0.0; GROUPS]; CLASSES],
            weight,
        };
        hazard.rebuild(0);
        hazard
    }

    /// An extent was used for the `uses`-th time and waits for the next.
    pub(crate) fn began(&mut self, uses: u8) {
        self.began[class(uses)] += 1.0;
    }

    /// An extent with so many uses was used again after `age` ticks.
    pub(crate) fn ended(&mut self, uses: u8, age: u16) {
        let group = group(age);
        self.ended[class(uses)][group] += self.weight[group];
    }

    /// Uses to be had in a tick from an extent with so many uses, last used `age` ticks ago.
    pub(crate) fn index(&self, uses: u8, age: u16) -> f32 {
        self.index[class(uses)][group(age)]
    }

    /// Takes what was counted into the indices; `ticks` since that was last done.
    pub(crate) fn rebuild(&mut self, ticks: u32) {
        let kept = KEPT.powi(ticks as i32);
        for class in 0..CLASSES {
            let (at_risk, hits) = self.chances(class);
            for from in 0..GROUPS {
                let (mut uses, mut waited, mut best) = (0.0f32, 0.0f32, 0.0f32);
                let mut left = 1.0f32;
                for to in from..GROUPS - 1 {
                    let prior = PRIOR / 8.0 * width(to);
                    let chance = (hits[to] + prior * PRIOR) / (at_risk[to] + prior);
                    let used = left * chance.min(1.0);
                    uses += used;
                    waited += (left - used / 2.0) * width(to);
                    left -= used;
                    best = best.max(uses / waited);
                }
                self.index[class][from] = best;
            }
            self.began[class] *= kept;
            self.ended[class]
                .iter_mut()
                .for_each(|count| *count *= kept);
        }
    }

    /// Of a class, by group: those that reached it, and those of them whose wait ended in it.
    fn chances(&self, class: usize) -> ([f32; GROUPS], [f32; GROUPS]) {
        let mut at_risk = [0.0; GROUPS];
        let mut reached = self.began[class];
        for group in 0..GROUPS {
            at_risk[group] = reached.max(self.ended[class][group]);
            // Those whose wait began too lately to have come so far are out of the count.
            let younger = self.weight[(group + 1).min(GROUPS - 1)] / self.weight[group];
            reached = (reached - self.ended[class][group]).max(0.0) * younger;
        }
        (at_risk, self.ended[class])
    }
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
            hazard.rebuild(1);
        }
    }

    #[test]
    fn what_is_about_to_be_used_is_worth_most_and_what_missed_its_time_least() {
        let mut hazard = Hazard::new();
        regular(&mut hazard, 3, 64);
        let [fresh, near, past] = [0, 60, 90].map(|age| hazard.index(3, age));
        assert!(near > 3.0 * fresh, "{near} {fresh}");
        assert!(past < fresh / 3.0, "{past} {fresh}");
    }

    #[test]
    fn a_class_whose_waits_never_end_is_worth_less_than_one_whose_waits_do() {
        let mut hazard = Hazard::new();
        regular(&mut hazard, 5, 20);
        for _ in 0..2_000 {
            hazard.began(1);
            hazard.rebuild(1);
        }
        assert!(hazard.index(5, 0) > 50.0 * hazard.index(1, 0));
    }

    #[test]
    fn an_old_habit_is_forgotten() {
        let mut hazard = Hazard::new();
        regular(&mut hazard, 1, 4);
        let was = hazard.index(1, 0);
        for _ in 0..2_000 {
            hazard.began(1);
            hazard.rebuild(1);
        }
        assert!(hazard.index(1, 0) < was / 20.0);
    }
}
