//! Properties of every schedule: operations pass in order and none is lost, no shard idles while something could go
//! on, maximums hold over all shards, shards do not promise more of a minimum than it is, and each volume attains what
//! its policy promises as far as the levels above it leave it.
//!
//! Attained service is judged of volumes that had operations held at every tick of a long while after the last change:
//! - **minimum**: where the minimums of its level and of those above it fit, it attained its own,
//!   and not in bursts;
//! - **no starvation**: it attained a part of a hundredth of it at least, whatever the guarantees of others;
//! - **no inversion**: no volume of a lower level had more than that hundredth while it missed its own;
//! - **nothing beyond**: it did not attain more than its minimum while another one missed theirs;
//! - **fairness**: volumes without minimums attained time in proportion to their weights.

use super::Tally;
use super::draw::{Habit, MS, Plan, SECOND, Spread, Volume};
use super::world::Op;
use qos::Tenant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time after a change in which shares and costs are learned again, and the least that is judged.
const SETTLES_NS: u64 = 700 * MS;
const JUDGED_NS: u64 = 500 * MS;
/// Part of shards' time that minimums may take to be counted on, and of a minimum that has to be attained.
const FITS: f64 = 0.75;
const ATTAINS: f64 = 0.8;
/// The same where small and large operations are mixed on shards that serve several concurrently.
const ATTAINS_MIXED: f64 = 0.6;
/// Fewest operations that a judgement is based on.
const ENOUGH: f64 = 100.0;

#[derive(Clone, Default)]
struct Of {
    /// Held now, by shard.
    held: Vec<u64>,
    /// The next number that has to pass, by shard.
    next: Vec<u64>,
    /// When the latest one did, by shard, and the longest time between two while operations were held.
    passed_ns: Vec<u64>,
    longest_ns: u64,
    /// Operations that passed since it counts.
    attained: u64,
    /// Held at every tick since it counts.
    is_backlogged: bool,
    /// Since when its maximum is counted, and what passed since.
    limited_ns: u64,
    passed: u64,
}

/// The oracle of one schedule.
pub struct Oracle {
    of: Vec<Of>,
    max: Vec<Option<(u64, u64)>>,
    shards: usize,
    counts_ns: u64,
    over: bool,
    tally: Tally,
}

type Result = std::result::Result<(), String>;

impl Oracle {
    /// For a plan that begins now.
    pub fn new(plan: &Plan, now_ns: u64) -> Self {
        let of = Of {
            held: vec![0; plan.shards],
            next: vec![0; plan.shards],
            passed_ns: vec![now_ns; plan.shards],
            ..Of::default()
        };
        let mut oracle = Self {
            of: vec![of; plan.volumes.len()],
            max: vec![None; plan.volumes.len()],
            shards: plan.shards,
            counts_ns: 0,
            over: false,
            tally: Tally {
                schedules: 1,
                ..Tally::default()
            },
        };
        oracle.changed(plan, now_ns);
        oracle
    }

    /// Policies are others from now on.
    pub fn changed(&mut self, plan: &Plan, now_ns: u64) {
        self.counts_ns = now_ns + SETTLES_NS;
        for ((of, max), volume) in self.of.iter_mut().zip(&mut self.max).zip(&plan.volumes) {
            (of.attained, of.longest_ns) = (0, 0);
            of.is_backlogged = true;
            let policy = volume.policy.as_ref().filter(|policy| policy.max_iops > 0);
            let next = policy.map(|policy| (policy.max_iops, u64::from(policy.burst_s)));
            if *max != next {
                (*max, of.limited_ns, of.passed) = (next, now_ns, 0);
            }
        }
    }

    /// An operation is held.
    pub fn held(&mut self, volume: usize, shard: usize) {
        self.of[volume].held[shard] += 1;
        self.tally.held += 1;
    }

    /// One is not any longer.
    pub fn released(&mut self, volume: usize, shard: usize) {
        self.of[volume].held[shard] -= 1;
    }

    /// An operation passes.
    pub fn passed(&mut self, op: &Op, now_ns: u64) -> Result {
        let of = &mut self.of[op.volume];
        let next = &mut of.next[op.shard];
        if op.number != *next {
            return Err(format!(
                "volume {}, shard {}: operation {} passes before {next}",
                op.volume, op.shard, op.number
            ));
        }
        *next += 1;
        of.passed += 1;
        // What a gate gives is what it lets pass; what is beneath it then takes its time.
        of.attained += u64::from(now_ns >= self.counts_ns && !self.over);
        let since_ns = of.passed_ns[op.shard].max(self.counts_ns);
        of.passed_ns[op.shard] = now_ns;
        if op.sent_ns <= since_ns && !self.over {
            of.longest_ns = of.longest_ns.max(now_ns.saturating_sub(since_ns));
        }
        let Some((rate, burst_s)) = self.max[op.volume] else {
            return Ok(());
        };
        let since_ns = now_ns - of.limited_ns;
        let saved_ns = (burst_s * SECOND).max(25 * MS);
        let allowed = (since_ns + saved_ns) as f64 * rate as f64 / SECOND as f64;
        let slack = self.shards as f64 + 1.0;
        match of.passed as f64 <= allowed + slack {
            true => Ok(()),
            false => Err(format!(
                "volume {}: {} operations passed in {since_ns} ns, and its maximum is {rate} a second",
                op.volume, of.passed
            )),
        }
    }

    /// An operation has ended.
    pub fn ended(&mut self) {
        self.tally.operations += 1;
    }

    /// A shard is idle: then nothing may be held, except for tenants at their maximum.
    pub fn conserves_work(
        &self,
        shard: usize,
        serving: u64,
        tenants: &BTreeMap<u32, Arc<Tenant>>,
        now_ns: u64,
    ) -> Result {
        if serving > 0 {
            return Ok(());
        }
        for (volume, of) in (0..).zip(&self.of) {
            let limits = |tenant: &Arc<Tenant>| tenant.is_capped();
            let is_capped = tenants.get(&volume).is_some_and(limits);
            if of.held[shard] > 0 && !is_capped {
                return Err(format!(
                    "shard {shard} is idle at {now_ns} ns, and {} operations of volume {volume} are held",
                    of.held[shard]
                ));
            }
        }
        Ok(())
    }

    /// A gate was ticked. `goes_on`: it wants to be again.
    pub fn ticked(&mut self, shard: usize, goes_on: bool) -> Result {
        let held: u64 = self.of.iter().map(|of| of.held[shard]).sum();
        if held > 0 && !goes_on {
            return Err(format!("{held} operations are held, and nobody ticks"));
        }
        for of in &mut self.of {
            of.is_backlogged &= of.held[shard] > 0 || of.next[shard] == 0;
        }
        Ok(())
    }

    /// Shards' parts of a minimum add up to no more than it is.
    pub fn conserves_budgets(&self, tenants: &BTreeMap<u32, Arc<Tenant>>, shards: usize) -> Result {
        for (volume, tenant) in tenants {
            let floor = 1_000_000;
            let service = tenant.service();
            let parts: u64 = (0..shards).map(|shard| service.part(shard, floor)).sum();
            if parts > floor {
                return Err(format!(
                    "volume {volume}: shards give {parts} of {floor} that it was promised"
                ));
            }
        }
        Ok(())
    }

    /// Whether hosts have stopped, and what was attained is judged.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Its observations.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Hosts stop: judges what volumes attained.
    pub fn judge(&mut self, plan: &Plan, now_ns: u64) -> Result {
        self.over = true;
        let Some(length_ns) = now_ns.checked_sub(self.counts_ns) else {
            return Ok(());
        };
        // Who is late has little put before it: a shard with many channels does less then.
        let limits = |volume: &Volume| {
            volume
                .policy
                .as_ref()
                .is_some_and(|of| of.max_latency_ns > 0)
        };
        let has_policy = plan.volumes.iter().any(|volume| volume.policy.is_some());
        if length_ns < JUDGED_NS
            || !has_policy
            || (plan.channels > 2 && plan.volumes.iter().any(limits))
        {
            return Ok(());
        }
        let seconds = length_ns as f64 / SECOND as f64;
        let judged = plan.volumes.iter().zip(&self.of).enumerate();
        let judged: Vec<Attained<'_>> = judged
            .filter(|(_, (volume, of))| of.is_backlogged && is_judged(volume))
            .map(|(number, (volume, of))| Attained {
                number,
                volume,
                floor: floor(volume) * seconds,
                most: plan.most(volume) * seconds,
                got: of.attained as f64,
                longest_ns: of.longest_ns,
            })
            .collect();
        let loads = judged.iter().map(|one| load(plan, one.volume));
        let fits: Vec<(&Attained<'_>, f64)> = judged.iter().zip(loads).collect();
        self.tally.judged += fits.len() as u64;
        self.tally.scarce += fits.iter().filter(|(_, load)| *load > 1.0).count() as u64;
        for (one, load) in fits {
            let part = if is_known(plan) {
                ATTAINS
            } else {
                ATTAINS_MIXED
            };
            one.has_minimum(load, part)?;
            one.has_it_evenly(load, plan)?;
            one.is_not_starved(plan)?;
        }
        // With pauses, a level may miss its minimum at one time and a lower one have more at another.
        let is_steady = |volume: &Volume| {
            volume.spread == Spread::All && !matches!(volume.habit, Habit::Bursts(..))
        };
        if plan.volumes.iter().all(is_steady) && plan.channels == 1 {
            for (one, other) in pairs(&judged) {
                one.is_not_beneath(other)?;
                one.has_nothing_beyond(other)?;
                one.has_its_part(other, plan)?;
            }
        }
        Ok(())
    }
}

/// Whether gates can learn what operations cost: of unlike ones that shards serve several of at a time, only their sum
/// shows (the crate `qos`, `moments.rs`).
fn is_known(plan: &Plan) -> bool {
    let service = |volume: &Volume| plan.service_ns(volume.kind, volume.bytes);
    let all = || plan.volumes.iter().map(service);
    let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
    plan.channels == 1 || most <= least + least / 4
}

fn pairs<'a, 'b>(
    of: &'b [Attained<'a>],
) -> impl Iterator<Item = (&'b Attained<'a>, &'b Attained<'a>)> {
    let each = of
        .iter()
        .flat_map(|one| of.iter().map(move |other| (one, other)));
    each.filter(|(one, other)| one.number != other.number)
}

/// Those that always have operations to be served, whatever their maximum.
fn is_judged(volume: &Volume) -> bool {
    let policy = volume.policy.as_ref();
    let is_capped = policy.is_some_and(|policy| policy.max_iops > 0);
    matches!(volume.habit, Habit::Flood(_)) && !is_capped
}

/// Operations a second that a volume is guaranteed.
fn floor(volume: &Volume) -> f64 {
    volume
        .policy
        .as_ref()
        .map_or(0.0, |policy| policy.min_iops as f64)
}

fn level(volume: &Volume) -> u8 {
    volume.policy.as_ref().map_or(6, |policy| policy.level)
}

/// Part of the time of the shards that a volume uses which is promised to it and to others of its level and above.
fn load(plan: &Plan, of: &Volume) -> f64 {
    let on = |shard: usize| {
        let there = plan.volumes.iter().filter(|volume| match volume.spread {
            Spread::All => true,
            Spread::One(one) => one == shard,
        });
        let before = there.filter(|volume| level(volume) <= level(of));
        before
            .map(|volume| floor(volume) / plan.most(volume))
            .sum::<f64>()
    };
    match of.spread {
        Spread::One(shard) => on(shard),
        Spread::All => (0..plan.shards).map(on).fold(0.0, f64::max),
    }
}

/// A volume, and what it attained.
struct Attained<'a> {
    number: usize,
    volume: &'a Volume,
    /// Operations that it was promised in this time, that it could do alone, and that it did.
    floor: f64,
    most: f64,
    got: f64,
    longest_ns: u64,
}

impl Attained<'_> {
    fn has_minimum(&self, load: f64, part: f64) -> Result {
        let is_enough = self.floor >= ENOUGH && load <= FITS;
        match is_enough && self.got < self.floor * part {
            false => Ok(()),
            true => Err(format!(
                "volume {}: {} operations of {:.0} that fit, of level {}",
                self.number,
                self.got,
                self.floor,
                level(self.volume)
            )),
        }
    }

    /// Nor does it wait for long and have all of it later.
    fn has_it_evenly(&self, load: f64, plan: &Plan) -> Result {
        let every_ns = plan.shards as f64 * SECOND as f64 / floor(self.volume);
        let most_ns = 90.0 * MS as f64 + 6.0 * every_ns;
        let is_judged = self.floor >= ENOUGH && load <= FITS && plan.channels <= 2;
        match is_judged && self.longest_ns as f64 > most_ns {
            false => Ok(()),
            true => Err(format!(
                "volume {}: nothing passed for {} ns, where {:.0} operations a second are its minimum",
                self.number,
                self.longest_ns,
                floor(self.volume)
            )),
        }
    }

    fn is_not_starved(&self, plan: &Plan) -> Result {
        let kept = match self.floor > 0.0 {
            true => self.floor / 100.0,
            false => self.most / 100.0 / plan.volumes.len() as f64 / 6.0,
        };
        let least = (kept * 0.4 - plan.shards as f64).max(0.0);
        match self.got < least {
            false => Ok(()),
            true => Err(format!(
                "volume {}: {} operations, where {least:.0} are kept for it whatever else",
                self.number, self.got
            )),
        }
    }

    fn misses(&self, part: f64) -> bool {
        self.floor >= ENOUGH && self.got < self.floor * part
    }

    fn is_not_beneath(&self, other: &Self) -> Result {
        let wrong = level(self.volume) < level(other.volume)
            && self.misses(0.8)
            && other.got > other.most * 0.1;
        match wrong {
            false => Ok(()),
            true => Err(format!(
                "volume {} of level {} misses its minimum, {} of {:.0}, while volume {} of level {} has {}",
                self.number,
                level(self.volume),
                self.got,
                self.floor,
                other.number,
                level(other.volume),
                other.got
            )),
        }
    }

    fn has_nothing_beyond(&self, other: &Self) -> Result {
        let wrong = self.floor >= ENOUGH && self.got > self.floor * 1.5 && other.misses(0.6);
        match wrong {
            false => Ok(()),
            true => Err(format!(
                "volume {} has {} of {:.0}, while volume {} misses its minimum, {} of {:.0}",
                self.number, self.got, self.floor, other.number, other.got, other.floor
            )),
        }
    }

    fn has_its_part(&self, other: &Self, plan: &Plan) -> Result {
        let weight = |of: &Volume| of.policy.as_ref().map_or(100.0, |of| f64::from(of.weight));
        let time = |of: &Self| {
            of.got * plan.service_ns(of.volume.kind, of.volume.bytes) as f64 / weight(of.volume)
        };
        let is_judged =
            self.floor == 0.0 && other.floor == 0.0 && self.got.min(other.got) >= ENOUGH;
        match is_judged && time(self) > time(other) * 1.2 {
            false => Ok(()),
            true => Err(format!(
                "volumes {} and {}: {} and {} operations are not the same time for their weights",
                self.number, other.number, self.got, other.got
            )),
        }
    }
}
