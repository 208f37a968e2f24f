//! Pacing: limits for other volumes while some miss their minimums without being held at the gate.
//!
//! A gate orders what has arrived at it. But its loop also does the front ends' work, and a machine has other processes:
//! where hundreds of sessions have their turn before a volume's next requests are examined, these never wait at the gate,
//! and its order is of no use. What helps is that the others send less, so they are **paced**: together they may pass so
//! much of the shard's time a second, in the order of the gate, and those who miss their minimum are exempt.
//!
//! How much is found by feedback, once a tick: an integral controller (the time that the missing operations would take is
//! taken from the others, and given back more slowly). Whether it helps at all is not known beforehand: a volume may be
//! below its minimum because its host requests no more, or because it waits for a disk. So a limit begins as a **trial**:
//! the others are cut for a third of a second, and only if the volume has more of that does the limit stay. What it had
//! then is what it wants: the others get back what can be given without it losing a part of that. Failed trials are
//! repeated ever more rarely, successful ones every ten seconds while the minimum is not reached.
//!
//! All this is done for one level at a time, the most important one that gains by it.
//!
//! Leaves out: volumes that have fewer than [`TELLING`] operations per second, which tell nothing in the time of a trial;
//! order at the gate serves them.

use units::mutation::{Mutation, is_on};

/// Minimums of fewer operations per second are not examined.
pub const JUDGED: f64 = 100.0;
/// The target, relative to the minimum: a window that is judged should not miss it by chance.
pub const AIM: f64 = 1.08;
/// Levels.
const LEVELS: usize = *format::QOS_LEVELS.end() as usize;
/// The least that the others keep together: a fiftieth of the shard's time, in nanoseconds a second, and an operation for so
/// many of the volumes that miss their minimum.
const LEAST: f64 = 2e7;
const LEAST_OF: f64 = 64.0;
/// A limit above this is lifted, unless operations are still queued for it: cost estimates are poor where few operations
/// pass.
const MOST: f64 = 2e9;
/// Time for which the others may pass ahead of their limit, in nanoseconds.
const AHEAD_NS: u64 = 300_000;
/// Ticks in a second.
const TICKS: f64 = 50.0;
/// Ticks over which it is averaged what is usual, after which a trial may begin.
const USUAL: u32 = 16;
/// Operations in a tick that are as many as they are usually: with fewer, ticks are averaged over more of them.
const STEADY: f64 = 100.0;
/// Operations a second below which chance decides a trial.
const TELLING: f64 = 100.0;
/// The part of what the others have that matters: a tenth of all.
const OTHERS: f64 = 10.0;
/// Ticks of a trial; those of them after which what is had counts; how many are enough where it is all that is aimed at;
/// and the gain that it has to bring else.
const TRIAL: u32 = 16;
const SETTLES: u32 = 6;
const ENOUGH: u32 = 3;
const GAIN: f64 = 1.05;
/// Ticks between trials: after a failed one, at most after many, and after one that succeeded.
const RESTS: u32 = 250;
const RESTS_MOST: u32 = 3_000;
const AGAIN: u32 = 500;
/// Acceptable loss of a trial's gain.
const KEEPS: f64 = 0.97;
/// Parts of what is missing, or too much, by which the limit moves in a tick, and of itself by which it grows besides, times
/// the ticks for which nothing was missing.
const CUT: f64 = 0.7;
const GIVE: f64 = 0.15;
const GROWS: f64 = 0.01;
/// The most of those ticks that count.
const CALM: u32 = 8;
/// Part of the limit with which something was missed up to which it grows after that, and by which part of itself that grows in
/// each tick: near where it is too much, it stays for seconds; and parts of itself times what is had beyond the aim.
const PLATEAU: f64 = 0.8;
const RISES: f64 = 0.004;
const RISES_MORE: f64 = 0.04;
/// Part of itself by which the limit shrinks besides where nothing is had: operations may be cheap, and their time little.
const SHRINKS: f64 = 0.3;
/// A tick with less than this part of the usual work is a stall, and this many of them in a row are not.
const STALL: f64 = 0.6;
const STALLS: u32 = 5;
/// Part by which the usual work, and that of the others, follows that of a tick.
const WORK: f64 = 0.25;
/// Ticks at the least limit after which what a volume has is taken for what it wants, and ticks without any request after
/// which the others get everything back.
const STUCK: u32 = 15;
const GONE: u32 = 3;

/// Attained service of the volumes of a level with minimums in a tick.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Attained {
    /// Operations a second that they had, and that are aimed at.
    pub had: f64,
    /// See there.
    pub aim: f64,
    /// The shard's time used by them and by the others, in nanoseconds per second.
    pub used: f64,
    /// See there.
    pub others: f64,
    /// Mean time of the others' operations, in nanoseconds; 0 while unknown.
    pub others_mean: f64,
}

impl Attained {
    /// The least that the others keep of the shard's time, in nanoseconds a second.
    fn least(&self) -> f64 {
        LEAST.max(self.had / LEAST_OF * self.others_mean)
    }
}

/// The same of all levels, the most important first; none of a level that requested nothing.
pub type ByLevel = [Option<Attained>; LEVELS];

/// Attained service of a level over some time.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Operations a second lately, and over a longer time without a trial.
    recent: f64,
    usual: f64,
    /// The more of the last two ticks; with few operations a tick, what it had lately.
    best: f64,
    /// In the last tick.
    last: f64,
    /// The shard's time that the others usually use, in nanoseconds per second.
    others: f64,
    /// The shard's time that all usually use, in nanoseconds per second, and ticks in a row with hardly any of it.
    work: f64,
    stalled: u32,
    /// Ticks since it requested something again, up to [`USUAL`].
    settled: u32,
    /// Ticks without a request.
    gone: u32,
    /// Trials that failed in a row, and ticks until the next one.
    failed: u32,
    rests: u32,
}

impl Known {
    /// Whether the last tick is left out. A stall that lasts is none.
    fn is_stalled(&self) -> bool {
        (1..=STALLS).contains(&self.stalled)
    }

    fn note(&mut self, attained: Option<Attained>, is_trial: bool) {
        self.rests = self.rests.saturating_sub(1);
        let Some(Attained {
            had, used, others, ..
        }) = attained
        else {
            self.gone += 1;
            if self.gone >= GONE {
                (self.settled, self.gone) = (0, GONE);
            }
            return;
        };
        self.gone = 0;
        if self.settled == 0 {
            (self.recent, self.usual, self.last) = (had, had, had);
            (self.work, self.others, self.stalled) = (used + others, others, 0);
        }
        // No work was done: this loop, or the hosts, did not get the processor. This says nothing about a limit.
        let is_still = used + others < self.work * STALL;
        self.stalled = if is_still { self.stalled + 1 } else { 0 };
        if self.is_stalled() {
            return;
        }
        self.work += (used + others - self.work) * WORK;
        self.others += (others - self.others) * WORK;
        // Chance moves small counts about.
        let best = had.max(self.last);
        let quick = (best / TICKS / STEADY).clamp(0.125, 0.5);
        self.recent += (had - self.recent) * quick;
        self.best = if quick == 0.5 { best } else { self.recent };
        self.last = had;
        if !is_trial {
            self.settled = (self.settled + 1).min(USUAL);
            self.usual += (had - self.usual) / f64::from(self.settled);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// No volume is limited.
    Free,
    /// It is seen whether a limit helps.
    Trial(Trial),
    /// It helps.
    Limited(Limited),
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Limited {
    /// Operations a second that are wanted.
    wants: f64,
    /// Ticks until the next trial.
    again: u32,
    /// Ticks at the least limit, and those in a row in which all was had that is aimed at.
    stuck: u32,
    calm: u32,
    /// Up to where the limit grows: less than that with which something was missed last.
    ceiling: f64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Trial {
    /// Ticks that are left of it.
    left: u32,
    /// Operations a second before.
    base: f64,
    /// Sum and count of what was had in ticks that count.
    sum: f64,
    count: u32,
    /// There was a limit before.
    again: bool,
}

/// The limit.
#[derive(Clone, Debug)]
pub struct Pace {
    state: State,
    /// Nanoseconds of the shard's time a second that the others have; none: no limit.
    limit: Option<f64>,
    /// Place of the level for whose volumes they are limited, or were last.
    level: usize,
    known: [Known; LEVELS],
    /// Until when what passed is paid for, and whether the others may pass ahead of that.
    paid_ns: u64,
    is_open: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            state: State::Free,
            limit: None,
            level: 0,
            known: Default::default(),
            paid_ns: 0,
            is_open: true,
        }
    }
}

impl Pace {
    /// The level for whose volumes, and those of higher levels, the others are limited; `None` without limits.
    pub fn favours(&self) -> Option<u8> {
        self.limit.map(|_| self.level as u8 + 1)
    }

    /// Nanoseconds of the shard's time a second that the others have; none: no limit.
    pub fn limit(&self) -> Option<u64> {
        self.limit.map(|limit| limit as u64)
    }

    /// Whether another operation of the others may pass.
    pub fn has_room(&self, now_ns: u64) -> bool {
        let ahead_ns = if self.is_open { AHEAD_NS } else { 0 };
        self.limit.is_none() || self.paid_ns <= now_ns + ahead_ns
    }

    /// When one of them may, while none may.
    pub fn free_ns(&self) -> Option<u64> {
        self.limit.map(|_| self.paid_ns)
    }

    /// One of them passes, which takes so much of the shard's time.
    pub fn take(&mut self, cost_ns: u64, now_ns: u64) {
        let Some(limit) = self.limit else {
            return;
        };
        let takes_ns = cost_ns as f64 * 1e9 / limit;
        self.is_open |= self.paid_ns <= now_ns;
        self.paid_ns = self.paid_ns.max(now_ns) + takes_ns as u64;
        self.is_open &= self.paid_ns <= now_ns + AHEAD_NS;
    }

    /// A tick has passed. `is_saturated`: the loop hardly slept in it; one that did has time for everybody, and no trial
    /// begins. `is_waited_for`: operations are queued for the limit.
    pub fn tick(&mut self, attained: &ByLevel, is_saturated: bool, is_waited_for: bool) {
        let is_trial = matches!(self.state, State::Trial(_));
        let others = self.known[self.level].others;
        for (level, known) in self.known.iter_mut().enumerate() {
            known.note(attained[level], is_trial && level >= self.level);
        }
        match (self.state, attained[self.level]) {
            (State::Free, _) if is_saturated && !is_on(Mutation::QosPacedNever) => {
                self.choose(attained);
            }
            (State::Free, _) => {}
            (_, None) if is_on(Mutation::QosPacedForEver) => {}
            (_, None) if self.known[self.level].gone >= GONE => self.give_back(),
            (_, None) => {}
            _ if self.known[self.level].is_stalled() => {}
            (State::Trial(trial), Some(of)) => self.try_out(trial, of),
            (State::Limited(limited), Some(of)) => {
                self.follow(limited, (of, others), is_waited_for);
            }
        }
    }

    /// The others have everything.
    fn give_back(&mut self) {
        (self.state, self.limit) = (State::Free, None);
    }

    /// Begins a trial for the most important level that misses its minimums.
    fn choose(&mut self, attained: &ByLevel) {
        let missed = attained.iter().enumerate().find_map(|(level, of)| {
            let (of, known) = ((*of)?, self.known[level]);
            let is_missed = known.recent < of.aim && known.recent >= TELLING;
            let matters = of.others * OTHERS >= of.used + of.others;
            let may = known.settled == USUAL && known.rests == 0;
            (is_missed && matters && may).then_some((level, of))
        });
        if let Some((level, of)) = missed {
            self.level = level;
            self.begin_trial(of, false);
        }
    }

    fn begin_trial(&mut self, of: Attained, again: bool) {
        self.state = State::Trial(Trial {
            left: TRIAL,
            base: self.known[self.level].usual,
            sum: 0.0,
            count: 0,
            again,
        });
        self.cut_to(of.others / 2.0, of);
    }

    fn cut_to(&mut self, limit: f64, of: Attained) {
        let limit = self.limit.map_or(limit, |before| before.min(limit));
        self.limit = Some(limit.max(of.least()));
    }

    fn try_out(&mut self, mut trial: Trial, of: Attained) {
        trial.left -= 1;
        if trial.left < TRIAL - SETTLES {
            (trial.sum, trial.count) = (trial.sum + of.had, trial.count + 1);
        }
        let had = trial.sum / f64::from(trial.count.max(1));
        if trial.count >= ENOUGH && had >= of.aim {
            return self.succeed(of.aim);
        }
        if trial.left > 0 {
            self.cut_to(of.others * CUT, of);
            self.state = State::Trial(trial);
            return;
        }
        // Four standard deviations of what chance does to the count.
        let counted = trial.base * f64::from(trial.count) / TICKS;
        let chance = 4.0 / counted.max(1.0).sqrt();
        let gains = had >= trial.base * GAIN.max(1.0 + chance);
        if gains || is_on(Mutation::QosPacedForNothing) {
            self.succeed(had);
        } else if trial.again {
            // It has what it wants, as before.
            self.succeed(trial.base.max(had));
        } else {
            let known = &mut self.known[self.level];
            known.rests = (RESTS << known.failed.min(8)).min(RESTS_MOST);
            known.failed += 1;
            self.give_back();
        }
    }

    fn succeed(&mut self, wants: f64) {
        self.known[self.level].failed = 0;
        self.state = State::Limited(Limited {
            wants,
            again: AGAIN,
            stuck: 0,
            calm: 0,
            ceiling: f64::INFINITY,
        });
    }

    /// Moves the limit towards what leaves what is wanted. `others`: what they take usually.
    fn follow(&mut self, mut limited: Limited, (of, others): (Attained, f64), is_waited_for: bool) {
        let Some(limit) = self.limit else {
            return self.give_back();
        };
        let least = of.least();
        let Known { recent, best, .. } = self.known[self.level];
        limited.wants = limited.wants.max(recent);
        if limited.again == 0 && limited.wants < of.aim * KEEPS && recent >= TELLING {
            return self.begin_trial(of, true);
        }
        let aim = of.aim.min(limited.wants * KEEPS);
        // What the operations that are missing would take, or those take that are too many.
        let over = (recent - aim) * of.used / of.had.max(1.0);
        let limit = if over < 0.0 && best >= aim {
            // One tick alone is chance.
            limit
        } else if over < 0.0 {
            let limit = limit.min(others.max(of.others).max(least));
            if limited.calm > 0 {
                limited.ceiling = limit * PLATEAU;
            }
            limited.calm = 0;
            limit + over * CUT - limit * SHRINKS * (1.0 - recent / aim)
        } else {
            limited.calm = (limited.calm + 1).min(CALM);
            limited.ceiling *= 1.0 + RISES + (recent / aim - 1.0) * RISES_MORE;
            let grown = limit + over * GIVE + limit * GROWS * f64::from(limited.calm);
            grown.min(limited.ceiling.max(limit))
        };
        if limit > MOST && !is_waited_for {
            return self.give_back();
        }
        self.limit = Some(limit.clamp(least, least.max(10.0 * MOST)));
        limited.stuck = if limit <= least { limited.stuck + 1 } else { 0 };
        limited.again = limited.again.saturating_sub(1);
        if limited.stuck >= STUCK {
            // Not what it has at this moment: that may be little by chance.
            return self.succeed(recent.max(self.known[self.level].usual));
        }
        self.state = State::Limited(limited);
    }
}

#[cfg(test)]
mod tests;
