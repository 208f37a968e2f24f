//! The attained service of a volume with a policy, and whether it meets its guarantees.
//!
//! Every gate reports once a tick. Windows of 100 ms with demand are judged: the volume's
//! **minimum** when operations were held for at least half of the window, by what it had in that time; its **latency**
//! when it did not do more than its minimum. A window in which it requested nothing counts for neither.

use super::costs::rate;
use super::rivals::{HeldFor, Rivals};
use format::QosPolicyConfig;
use units::mutation::{Mutation, is_on};

/// Length of a window, in nanoseconds.
const WINDOW_NS: u64 = 100_000_000;
/// A window that is as much longer is of an idle volume: it is left out.
const STALE_NS: u64 = 3 * WINDOW_NS;
/// Operations in a window that say something about latency.
const ENOUGH: u64 = 20;
/// Misses by at most this much count as met: counting ends at ticks, and operations in flight do not count yet.
const NEARLY: f64 = 0.97;

/// One gate's statistics of a volume since its last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Operations that ended.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, those that took longer than the policy's maximum latency, including the time held.
    pub late: u64,
    /// Nanoseconds of the shard's time that they were charged for.
    pub cost_ns: u64,
    /// Nanoseconds for which operations were held, and those of them for its own maximum.
    pub held_ns: u64,
    /// See there.
    pub own_ns: u64,
    /// Nanoseconds for which those operations were held that were released, summed over them.
    pub waited_ns: u64,
    /// Nanoseconds that those that ended took since they passed, summed over them.
    pub took_ns: u64,
    /// Operations that were held at all.
    pub held: u64,
}

/// Sums since the volume was given its policy, or the pool was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServiceTotals {
    /// Operations that ended.
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that took longer than the maximum latency.
    pub late: u64,
    /// Nanoseconds of shards' time that they were charged for.
    pub cost_ns: u64,
    /// Operations that were held.
    pub held: u64,
    /// Nanoseconds for which operations were held, summed over shards, and those of them for its own maximum.
    pub held_ns: u64,
    /// See there.
    pub own_ns: u64,
    /// Nanoseconds for which operations were held, summed over them.
    pub waited_ns: u64,
    /// Nanoseconds that operations took beneath the gate, summed over them.
    pub took_ns: u64,
    /// Windows of 100 ms in which it requested what it was promised.
    pub windows: u64,
    /// Of these, those in which the minimum was met.
    pub met: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfShard {
    /// Recent charges there, decaying by half each tick, in nanoseconds.
    demand_ns: u64,
    /// Time for which operations were held there in this window.
    held_ns: u64,
}

/// The state of a busy volume.
#[derive(Debug)]
struct Busy {
    began_ns: u64,
    /// Sums of this window.
    window: Report,
    shards: Vec<OfShard>,
    /// Operations and bytes per second of the last whole window.
    rates: (u64, u64),
    held_for: HeldFor,
}

/// Attained service of a volume. An idle one only keeps its sums, since there may be thousands.
#[derive(Debug, Default)]
pub struct Service {
    shards: usize,
    totals: ServiceTotals,
    busy: Option<Box<Busy>>,
}

impl Service {
    /// For a volume of a pool with a number of shards.
    pub fn new(shards: usize) -> Self {
        Self {
            shards,
            ..Self::default()
        }
    }

    /// Whether it has more than its sums.
    #[cfg(test)]
    pub fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    fn busy(&mut self) -> &mut Busy {
        self.busy.get_or_insert_with(|| {
            Box::new(Busy {
                began_ns: 0,
                window: Report::default(),
                shards: vec![OfShard::default(); self.shards],
                rates: (0, 0),
                held_for: HeldFor::default(),
            })
        })
    }

    /// A shard's gate has seen nothing of it for a while.
    pub fn rest(&mut self, shard: usize) {
        let Some(busy) = &mut self.busy else {
            return;
        };
        if let Some(of) = busy.shards.get_mut(shard) {
            *of = OfShard::default();
        }
        if busy.shards.iter().all(|of| of.demand_ns == 0) {
            self.busy = None;
        }
    }

    /// Sums so far.
    pub fn totals(&self) -> ServiceTotals {
        self.totals
    }

    /// Continues the counters of the policy's previous figures.
    pub fn resume(&mut self, totals: ServiceTotals) {
        self.totals = totals;
    }

    /// Operations and bytes per second in the last whole window. Gates report for a while of volumes that became idle.
    pub fn rates(&self) -> (u64, u64) {
        self.busy.as_ref().map_or((0, 0), |busy| busy.rates)
    }

    /// For whom its operations were held recently, largest share first: keys of a gate's entries, and parts of the time for which
    /// they were held for others, in millionths. At most eight.
    pub fn held_for(&self) -> Vec<(u32, u64)> {
        let busy = self.busy.as_ref();
        busy.map_or_else(Vec::new, |busy| busy.held_for.whom())
    }

    /// Takes note of who was served while operations of this tenant, whose entry has this key, were held.
    pub fn note_rivals(&mut self, rivals: &Rivals, key: u32, seen: &Report) {
        let held_ns = seen.held_ns.saturating_sub(seen.own_ns);
        if held_ns > 0 {
            self.busy()
                .held_for
                .note(rivals, key, seen.cost_ns, held_ns);
        }
    }

    /// Takes note of what a shard's gate saw until `now_ns`.
    pub fn report(&mut self, policy: &QosPolicyConfig, shard: usize, now_ns: u64, more: &Report) {
        let totals = &mut self.totals;
        totals.operations += more.operations;
        totals.bytes += more.bytes;
        totals.late += more.late;
        totals.cost_ns += more.cost_ns;
        totals.held += more.held;
        totals.held_ns += more.held_ns;
        totals.own_ns += more.own_ns;
        totals.waited_ns += more.waited_ns;
        totals.took_ns += more.took_ns;
        let busy = self.busy();
        if let Some(of) = busy.shards.get_mut(shard) {
            of.demand_ns = of.demand_ns / 2 + more.cost_ns + more.held_ns / 2;
            of.held_ns += more.held_ns;
        }
        let window = &mut busy.window;
        window.operations += more.operations;
        window.bytes += more.bytes;
        window.late += more.late;
        let length = now_ns.saturating_sub(busy.began_ns);
        if length < WINDOW_NS {
            return;
        }
        let per_second = |count: u64| (count as f64 * 1e9 / length as f64) as u64;
        let is_whole = length < STALE_NS;
        busy.rates = match is_whole {
            true => (per_second(window.operations), per_second(window.bytes)),
            false => (0, 0),
        };
        let ended = std::mem::take(window);
        let held = busy
            .shards
            .iter_mut()
            .map(|of| std::mem::take(&mut of.held_ns));
        let held_ns = held.max().unwrap_or(0);
        busy.began_ns = now_ns;
        busy.held_for.forget();
        if is_whole {
            self.judge(policy, &ended, held_ns, length);
        }
    }

    fn judge(&mut self, policy: &QosPolicyConfig, window: &Report, held_ns: u64, length_ns: u64) {
        let held_ns = held_ns.min(length_ns);
        let mean = window.bytes.checked_div(window.operations).unwrap_or(4096);
        let floor = rate(policy.min_iops, policy.min_bandwidth, mean);
        let asked = floor > 0.0 && held_ns * 2 >= length_ns;
        let wanted = floor * held_ns as f64 / 1e9;
        let has_floor = !asked || window.operations as f64 >= wanted * NEARLY;
        let most = floor * length_ns as f64 / 1e9 / NEARLY;
        let timed = policy.max_latency_ns > 0
            && window.operations >= ENOUGH
            && (floor == 0.0 || window.operations as f64 <= most);
        let in_time = !timed || window.late * 100 <= window.operations;
        if asked || timed {
            self.totals.windows += 1;
            self.totals.met += u64::from(has_floor && in_time);
        }
    }

    /// A shard's part of `floor`, in proportion to its recent demand.
    pub fn part(&self, shard: usize, floor: u64) -> u64 {
        let shards = self.busy.as_ref().map_or(&[][..], |busy| &busy.shards);
        let all: u64 = shards.iter().map(|of| of.demand_ns).sum();
        let here = shards.get(shard).map_or(0, |of| of.demand_ns);
        match all {
            _ if is_on(Mutation::QosWholeFloor) => floor,
            0 => floor / self.shards.max(1) as u64,
            all => (u128::from(floor) * u128::from(here) / u128::from(all)) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn policy() -> QosPolicyConfig {
        QosPolicyConfig {
            min_iops: 1000,
            min_bandwidth: 0,
            max_latency_ns: 10 * MS,
            ..format::built_in_policies().next().unwrap()
        }
    }

    /// Half a second of reports, 20 ms each, from two shards of which the second saw nothing.
    fn judged(each: Report) -> (u64, u64) {
        let mut service = Service::new(2);
        for tick in 1..=25 {
            service.report(&policy(), 0, tick * 20 * MS, &each);
            service.report(&policy(), 1, tick * 20 * MS, &Report::default());
        }
        (service.totals().windows, service.totals().met)
    }

    #[test]
    fn a_minimum_counts_while_operations_are_held() {
        let each = |operations, held_ns| Report {
            operations,
            bytes: operations * 4096,
            held_ns,
            ..Report::default()
        };
        assert_eq!(judged(each(20, 20 * MS)), (5, 5));
        assert_eq!(judged(each(10, 20 * MS)), (5, 0));
        assert_eq!(judged(each(1, 5 * MS)), (0, 0), "it asks for little");
        // Half of the time it waits, and then it has what it is promised for that.
        assert_eq!(judged(each(11, 10 * MS)), (5, 5));
        assert_eq!(judged(Report::default()), (0, 0));
    }

    #[test]
    fn latency_counts_up_to_the_minimum() {
        let each = |operations, late| Report {
            operations,
            bytes: operations * 4096,
            late,
            ..Report::default()
        };
        assert_eq!(judged(each(10, 0)), (5, 5));
        assert_eq!(judged(each(10, 1)), (5, 0));
        assert_eq!(judged(each(30, 30)), (0, 0), "more than was promised");
        assert_eq!(judged(each(1, 1)), (0, 0), "too few to tell");
    }

    #[test]
    fn idle_times_are_no_windows() {
        let mut service = Service::new(1);
        let late = Report {
            operations: 50,
            late: 50,
            ..Report::default()
        };
        for at in 1..20 {
            service.report(&policy(), 0, at * 1000 * MS, &late);
        }
        assert_eq!(service.totals().windows, 0);
        assert_eq!(service.totals().operations, 950);
        assert_eq!(service.rates(), (0, 0));
    }

    #[test]
    fn a_minimum_goes_where_it_is_asked_for() {
        let mut service = Service::new(2);
        assert_eq!(service.part(0, 1000), 500);
        let busy = Report {
            cost_ns: 3 * MS,
            ..Report::default()
        };
        let less = Report {
            cost_ns: MS,
            ..Report::default()
        };
        for tick in 1..50 {
            service.report(&policy(), 0, tick * 20 * MS, &busy);
            service.report(&policy(), 1, tick * 20 * MS, &less);
        }
        assert!((999..=1000).contains(&(service.part(0, 1000) + service.part(1, 1000))));
        assert!((740..=760).contains(&service.part(0, 1000)));
    }
}
