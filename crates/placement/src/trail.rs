//! Predicts the next accesses of hosts from those that followed the same ones before.
//!
//! A **step** is an extent that hosts come to: nothing of it was there, or what was there had come unasked. Steps are
//! kept in the order in which they were taken, each with the place of the extent's step before, as in a global
//! history buffer (K. J. Nesbit, J. E. Smith, "Data Cache Prefetching Using a Global History Buffer", HPCA 2004).
//! After an extent is accessed again, the sequence may continue as before. How often that
//! comes true depends on how alike the steps before were, how many of the last times it went on so, and how
//! far ahead that was; so predictions are classified by these. All of it is **watched**, whether it is read or
//! not: what is not worth it costs no read to learn that, nor that it has come to be.

use crate::place::{Blocks, Extent};
use std::collections::VecDeque;
use units::hash::mix;

/// Steps that are remembered: 24 bytes each, and four of the index.
const STEPS: usize = 1 << 15;
/// Steps before one that are compared.
const CONTEXT: u32 = 12;
/// Times before that are examined.
const TIMES: usize = 8;
/// Steps after those that are foreseen.
const AHEAD: u32 = 4;
/// Most extents that are foreseen at a time.
const FORESEEN_MOST: usize = 32;
/// Most predictions that are watched for their use.
const WATCHED: usize = 128;
/// Counts beyond which both of a kind halve.
const COUNT_MAX: f32 = 500.0;
/// Groups of each of the three things that tell kinds apart: likeness, agreement, distance.
const LIKENESSES: usize = 6;
const AGREEMENTS: usize = 6;
const DISTANCES: usize = 3;
const KINDS: usize = LIKENESSES * AGREEMENTS * DISTANCES;

#[derive(Clone, Copy)]
struct Step {
    extent: Extent,
    /// Blocks that hosts requested.
    mask: u16,
    /// The number of the extent's step before, if it is still remembered.
    previous: u32,
}

/// An extent that may be requested soon.
#[derive(Clone, Copy)]
pub(crate) struct Foreseen {
    /// The blocks that were, the last times.
    pub blocks: Blocks,
    /// Its features.
    pub kind: u8,
}

#[derive(Clone, Copy)]
struct Candidate {
    blocks: Blocks,
    times: usize,
    alike: usize,
    distance: usize,
}

struct Watched {
    extent: Extent,
    kind: u8,
    was_used: bool,
}

#[derive(Clone, Copy)]
struct Share {
    used: f32,
    foreseen: f32,
}

/// Recent steps, and what they make foresee.
pub(crate) struct Trail {
    steps: Vec<Step>,
    /// The number of the last step of extents, by hash; another one's where two share a place.
    last: Vec<u32>,
    /// The number of the next step.
    next: u32,
    candidates: Vec<Candidate>,
    /// Predictions of the last steps that are not decided yet.
    pub(crate) foreseen: Vec<Foreseen>,
    watched: VecDeque<Watched>,
    shares: [Share; KINDS],
}

impl Trail {
    pub(crate) fn new() -> Self {
        let unknown = Share {
            used: 0.5,
            foreseen: 1.0,
        };
        Self {
            steps: Vec::new(),
            last: Vec::new(),
            next: 0,
            candidates: Vec::new(),
            foreseen: Vec::new(),
            watched: VecDeque::new(),
            shares: [unknown; KINDS],
        }
    }

    /// Hosts come to an extent and request these blocks of it.
    pub(crate) fn came_to(&mut self, blocks: Blocks, saves: bool) {
        let Blocks { extent, mask } = blocks;
        for watched in self.watched.iter_mut().filter(|it| it.extent == extent) {
            watched.was_used |= saves;
        }
        if self.last.is_empty() {
            // Once, and only for an owner who follows.
            self.last = vec![u32::MAX; STEPS];
        }
        let previous = self.find(extent);
        if let Some(previous) = previous {
            self.foresee(extent, previous);
        }
        let step = Step {
            extent,
            mask,
            // Its own number says that there is none.
            previous: previous.unwrap_or(self.next),
        };
        match self.steps.get_mut(self.next as usize % STEPS) {
            Some(oldest) => *oldest = step,
            None => self.steps.push(step),
        }
        self.last[place(extent)] = self.next;
        self.next = self.next.wrapping_add(1);
    }

    /// Hosts asked for these blocks of an extent since they last came to it.
    pub(crate) fn asked(&mut self, blocks: Blocks) {
        if let Some(at) = self.find(blocks.extent) {
            self.steps[at as usize % STEPS].mask |= blocks.mask;
        }
    }

    /// The chance that what is foreseen is requested soon.
    pub(crate) fn chance(&self, kind: u8) -> f32 {
        let Share { used, foreseen } = self.shares[usize::from(kind)];
        used / foreseen
    }

    /// Watches whether what is foreseen, and is not there, is requested.
    pub(crate) fn watch(&mut self, foreseen: Foreseen) {
        if self.watched.len() == WATCHED
            && let Some(oldest) = self.watched.pop_front()
        {
            let share = &mut self.shares[usize::from(oldest.kind)];
            share.foreseen += 1.0;
            share.used += f32::from(u8::from(oldest.was_used));
            if share.foreseen > COUNT_MAX {
                share.foreseen /= 2.0;
                share.used /= 2.0;
            }
        }
        self.watched.push_back(Watched {
            extent: foreseen.blocks.extent,
            kind: foreseen.kind,
            was_used: false,
        });
    }

    /// A step by its number, if it is still remembered.
    fn step(&self, at: u32) -> Option<&Step> {
        let ago = self.next.wrapping_sub(at) as usize;
        let is_there = (1..=self.steps.len()).contains(&ago);
        is_there.then(|| &self.steps[at as usize % STEPS])
    }

    /// The number of an extent's last step.
    fn find(&self, extent: Extent) -> Option<u32> {
        let at = *self.last.get(place(extent))?;
        (self.step(at)?.extent == extent).then_some(at)
    }

    /// A number of steps from one on, as far as they are remembered.
    fn from(&self, at: u32, count: u32) -> impl Iterator<Item = &Step> {
        (0..count).map_while(move |far| self.step(at.wrapping_add(far)))
    }

    /// How many of the steps before that one are among those before now.
    fn alike(&self, extent: Extent, at: u32) -> usize {
        let then = at.wrapping_sub(CONTEXT);
        let now = self.from(self.next.wrapping_sub(CONTEXT), CONTEXT);
        let others = now.filter(|step| step.extent != extent);
        let is_among = |step: &&Step| (self.from(then, CONTEXT)).any(|it| it.extent == step.extent);
        others.filter(is_among).count()
    }

    /// Hosts come to an extent to which they came before: what they went on to then may be next.
    fn foresee(&mut self, extent: Extent, last: u32) {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let (mut at, mut times) = (Some(last), 0);
        while let Some(time) = at
            && times < TIMES
        {
            times += 1;
            let alike = self.alike(extent, time);
            let after = self.from(time.wrapping_add(1), AHEAD);
            for (distance, step) in after.take_while(|it| it.extent != extent).enumerate() {
                note(&mut candidates, step, alike, distance);
            }
            at = self.step(time).map(|step| step.previous);
            // A place may be another extent's by now, and a later one than this.
            at = at.filter(|before| {
                let is_before = self.next.wrapping_sub(*before) > self.next.wrapping_sub(time);
                is_before && self.step(*before).is_some_and(|it| it.extent == extent)
            });
        }
        for candidate in &candidates {
            let extent = candidate.blocks.extent;
            let is_new = self.foreseen.iter().all(|it| it.blocks.extent != extent);
            if is_new && self.foreseen.len() < FORESEEN_MOST {
                self.foreseen.push(Foreseen {
                    blocks: candidate.blocks,
                    kind: kind(candidate, times),
                });
            }
        }
        self.candidates = candidates;
    }
}

/// Notes what hosts went on to.
fn note(candidates: &mut Vec<Candidate>, step: &Step, alike: usize, distance: usize) {
    let known = (candidates.iter_mut()).find(|it| it.blocks.extent == step.extent);
    if let Some(known) = known {
        known.blocks.mask |= step.mask;
        known.times += 1;
        known.alike = known.alike.max(alike);
        known.distance = known.distance.min(distance);
        return;
    }
    candidates.push(Candidate {
        blocks: Blocks {
            extent: step.extent,
            mask: step.mask,
        },
        times: 1,
        alike,
        distance,
    });
}

/// Features of candidates; `times`: how often hosts accessed the extent before them.
fn kind(candidate: &Candidate, times: usize) -> u8 {
    let alike = match candidate.alike {
        0..=2 => candidate.alike,
        3..=4 => 3,
        5..=6 => 4,
        _ => 5,
    };
    let agreement = match (candidate.times, times) {
        (1, 1) => 0,
        (1, 2) => 1,
        (1, _) => 2,
        (2, 2) => 3,
        (2, _) => 4,
        _ => 5,
    };
    let distance = match candidate.distance {
        0 => 0,
        1..=2 => 1,
        _ => 2,
    };
    ((alike * AGREEMENTS + agreement) * DISTANCES + distance) as u8
}

/// The place of an extent in the index.
fn place(extent: Extent) -> usize {
    mix(extent.number ^ u64::from(extent.volume) << 40) as usize % STEPS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(number: u64) -> Extent {
        Extent { volume: 1, number }
    }

    fn come_to(trail: &mut Trail, number: u64) {
        let extent = extent(number);
        trail.came_to(Blocks { extent, mask: 1 }, true);
    }

    /// Takes the predictions since the last call.
    fn foreseen(trail: &mut Trail) -> Vec<u64> {
        let all = trail.foreseen.drain(..);
        all.map(|it| it.blocks.extent.number).collect()
    }

    #[test]
    fn what_followed_an_extent_is_foreseen_when_hosts_come_to_it_again() {
        let mut trail = Trail::new();
        (0..20).for_each(|at| come_to(&mut trail, at * 1_000));
        assert_eq!(foreseen(&mut trail), []);
        come_to(&mut trail, 5_000);
        assert_eq!(foreseen(&mut trail), [6_000, 7_000, 8_000, 9_000]);
    }

    #[test]
    fn all_blocks_that_hosts_asked_for_then_are_foreseen() {
        let mut trail = Trail::new();
        (1..=3).for_each(|number| come_to(&mut trail, number));
        let asked = |number, mask| Blocks {
            extent: extent(number),
            mask,
        };
        trail.asked(asked(2, 0b110));
        trail.asked(asked(9, 0b110));
        come_to(&mut trail, 1);
        let masks: Vec<u16> = trail.foreseen.iter().map(|it| it.blocks.mask).collect();
        assert_eq!(masks, [0b111, 1]);
    }

    /// How likely it is that hosts continue from extent 0 to extent 1, after 400 times for which `next` says to what they did.
    fn chance(next: impl Fn(u64) -> u64) -> f32 {
        let mut trail = Trail::new();
        let mut chance = 0.0;
        for time in 0..400 {
            // Others in between, so that nothing else is alike.
            (0..20).for_each(|far| come_to(&mut trail, 1_000 + time * 20 + far));
            trail.foreseen.clear();
            come_to(&mut trail, 0);
            let all = std::mem::take(&mut trail.foreseen);
            for it in all {
                if it.blocks.extent == extent(1) {
                    chance = trail.chance(it.kind);
                }
                trail.watch(it);
            }
            come_to(&mut trail, next(time));
        }
        chance
    }

    #[test]
    fn what_comes_true_is_likely_and_what_does_not_is_not() {
        let always = chance(|_| 1);
        assert!(always > 0.9, "{always}");
        let seldom = chance(|time| if time % 8 == 0 { 1 } else { 1_000_000 + time });
        assert!(seldom < 0.25, "{seldom}");
    }

    #[test]
    fn what_would_have_been_there_anyway_does_not_count() {
        let mut trail = Trail::new();
        for _ in 0..400 {
            come_to(&mut trail, 0);
            let all = std::mem::take(&mut trail.foreseen);
            all.into_iter().for_each(|it| trail.watch(it));
            let extent = extent(1);
            trail.came_to(Blocks { extent, mask: 1 }, false);
            trail.foreseen.clear();
        }
        come_to(&mut trail, 0);
        let chance = trail.chance(trail.foreseen[0].kind);
        assert!(chance < 0.1, "{chance}");
    }

    #[test]
    fn what_is_long_ago_is_forgotten_and_memory_is_bounded() {
        let mut trail = Trail::new();
        let length = STEPS as u64;
        (0..3 * length).for_each(|at| come_to(&mut trail, at % (2 * length)));
        assert_eq!(foreseen(&mut trail), []);
        assert_eq!((trail.steps.len(), trail.last.len()), (STEPS, STEPS));
        come_to(&mut trail, length - 10);
        assert!(trail.foreseen.len() <= AHEAD as usize && !trail.foreseen.is_empty());
    }

    #[test]
    fn numbers_of_steps_begin_anew() {
        let mut trail = Trail::new();
        trail.next = u32::MAX - 2;
        // As if that many had been taken.
        let step = Step {
            extent: extent(u64::MAX),
            mask: 0,
            previous: trail.next,
        };
        trail.steps = vec![step; STEPS];
        (0..6).for_each(|number| come_to(&mut trail, number));
        come_to(&mut trail, 1);
        assert_eq!(foreseen(&mut trail), [2, 3, 4, 5]);
    }
}
