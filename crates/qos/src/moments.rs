//! The shard's time that operations used, moment by moment.
//!
//! A shard's time is that of its loop: while that has something to do, what front ends do for operations before and after
//! them is part of what these take.
//!
//! At each moment at which something ends, the time since the moment before belongs to what ended: that is its service
//! time where one is served after the other, and on average the inverse of the throughput where several are, as long as
//! all of them are alike. Where unlike ones are in progress together, a large one ends as soon after another one as a small
//! one does, and the time says nothing of either alone. So two kinds of moments are distinguished: **plain** ones, before which
//! everything in progress was of one class, and **mixed** ones.

use super::costs::{CLASSES, Costs, Ended};

/// Operations in progress that keep a shard as busy as it can be.
const DEEP: usize = 16;

/// Operations that ended since the last tick.
#[derive(Debug, Default)]
pub struct Moments {
    /// Operations that ended at one moment, by class, and the time since the previous moment.
    together: Vec<(usize, u32)>,
    together_ns: u64,
    /// That moment.
    at_ns: u64,
    /// Since when the loop has had something to do.
    awake_ns: u64,
    /// Class of what passed last, and how many operations in flight, when the first of these passed, were others.
    class: usize,
    others: usize,
    plain: [Ended; CLASSES],
    mixed: [Ended; CLASSES],
    /// Moments, and those after which the shard was still as busy as it can be.
    count: u32,
    deep: u32,
}

impl Moments {
    /// Counting begins.
    pub fn start(&mut self, now_ns: u64) {
        self.at_ns = now_ns;
    }

    /// Resumes accounting after a pause, whose time is charged to no operation.
    pub fn resume(&mut self, costs: &Costs, now_ns: u64) {
        self.close(costs);
        self.at_ns = now_ns;
    }

    /// The loop has had something to do since then.
    #[inline]
    pub fn wake(&mut self, awake_ns: u64) {
        self.awake_ns = awake_ns;
    }

    /// Operations of a class pass, with a number in flight.
    #[inline]
    pub fn pass(&mut self, class: usize, under_way: usize, costs: &Costs) {
        if under_way == 0 {
            self.close(costs);
            self.at_ns = self.at_ns.max(self.awake_ns);
            (self.class, self.others) = (class, 0);
        } else if class != self.class {
            (self.class, self.others) = (class, under_way);
        }
    }

    /// Operations of a class have ended, with a number still in flight.
    pub fn end(&mut self, class: usize, count: u64, under_way: usize, costs: &Costs, now_ns: u64) {
        if now_ns > self.at_ns {
            self.close(costs);
            self.together_ns = now_ns - self.at_ns;
            self.at_ns = now_ns;
            self.count += 1;
            self.deep += u32::from(under_way >= DEEP);
        }
        self.together.push((class, count as u32));
    }

    /// Operations that ended at one moment cost the time since the previous moment, divided by their estimated costs.
    fn close(&mut self, costs: &Costs) {
        let ns = std::mem::take(&mut self.together_ns);
        if let [(class, count)] = self.together[..] {
            let of = match self.others {
                0 => &mut self.plain[class],
                _ => &mut self.mixed[class],
            };
            of.count += count;
            of.ns += ns;
            self.others = self.others.saturating_sub(count as usize);
            self.together.clear();
            return;
        }
        let known = |(class, count): &(usize, u32)| costs.of(*class) * u64::from(*count);
        let sum: u64 = self.together.iter().map(known).sum();
        let is_plain = self.others == 0 && self.together.windows(2).all(|two| two[0].0 == two[1].0);
        for (class, count) in self.together.drain(..) {
            let part = costs.of(class) * u64::from(count);
            let of = match is_plain {
                true => &mut self.plain[class],
                false => &mut self.mixed[class],
            };
            of.count += count;
            of.ns += (u128::from(ns) * u128::from(part) / u128::from(sum.max(1))) as u64;
            self.others = self.others.saturating_sub(count as usize);
        }
    }

    /// A tick has passed: has `costs` learn from what ended. `blocked`: operations were held for what was in progress.
    pub fn tick(&mut self, costs: &mut Costs, blocked: bool) {
        self.close(costs);
        let is_deep = self.deep * 2 > self.count;
        costs.learn(&self.plain, blocked || is_deep);
        costs.learn_mixed(&self.mixed, blocked || is_deep);
        (self.plain, self.mixed) = Default::default();
        (self.count, self.deep) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::{Kind, class};

    const US: u64 = 1_000;

    /// Operations of classes that end in this order, each so long after the one before, with as many in progress.
    fn ended(order: &[(usize, u64)], under_way: usize, costs: &mut Costs, rounds: usize) {
        let mut moments = Moments::default();
        let mut now_ns = 0;
        for _ in 0..rounds {
            for (class, takes_ns) in order {
                moments.wake(now_ns);
                moments.pass(*class, under_way, costs);
                now_ns += takes_ns;
                moments.end(*class, 1, under_way, costs, now_ns);
            }
            moments.tick(costs, true);
        }
    }

    #[test]
    fn what_runs_alone_costs_the_time_between_two_ends() {
        let (small, large) = (class(Kind::Read, 4096), class(Kind::Read, 256 << 10));
        let mut costs = Costs::default();
        ended(&[(small, 10 * US); 8], 0, &mut costs, 200);
        ended(&[(large, 100 * US); 8], 0, &mut costs, 200);
        assert!((9_900..10_100).contains(&costs.of(small)), "{costs:?}");
        assert!((99_000..101_000).contains(&costs.of(large)), "{costs:?}");
    }

    #[test]
    fn what_a_busy_loop_does_between_operations_is_part_of_them() {
        let small = class(Kind::Read, 4096);
        let mut costs = Costs::default();
        let mut moments = Moments::default();
        let mut now_ns = 0;
        for round in 0..800 {
            // The front end takes as long as the shard; once in a while there is nothing to do.
            now_ns += 10 * US;
            if round % 8 == 0 {
                now_ns += 1_000 * US;
                moments.wake(now_ns - 10 * US);
            }
            moments.pass(small, 0, &costs);
            now_ns += 10 * US;
            moments.end(small, 1, 0, &costs, now_ns);
            moments.tick(&mut costs, true);
        }
        assert!((19_000..21_000).contains(&costs.of(small)), "{costs:?}");
    }

    #[test]
    fn mixed_ends_keep_the_ratio_of_classes_that_were_seen_alone() {
        let (small, large) = (class(Kind::Read, 4096), class(Kind::Read, 256 << 10));
        let mut costs = Costs::default();
        ended(&[(small, 10 * US); 8], 0, &mut costs, 200);
        ended(&[(large, 100 * US); 8], 0, &mut costs, 200);
        // Several channels: each ends as soon after another one, and the shard became half as fast.
        ended(&[(small, 110 * US), (large, 110 * US)], 4, &mut costs, 200);
        let ratio = costs.of(large) as f64 / costs.of(small) as f64;
        assert!((9.5..10.5).contains(&ratio), "{ratio}");
        assert!((19_000..21_000).contains(&costs.of(small)), "{costs:?}");
    }

    #[test]
    fn what_ends_at_one_moment_shares_the_time_before_it() {
        let (read, write) = (class(Kind::Read, 4096), class(Kind::Write, 4096));
        let mut costs = Costs::default();
        let mut moments = Moments::default();
        for at in 1..=400 {
            moments.wake((at - 1) * 80 * US);
            moments.pass(read, 0, &costs);
            moments.end(read, 2, 2, &costs, at * 80 * US);
            moments.end(write, 2, 0, &costs, at * 80 * US);
            moments.tick(&mut costs, true);
        }
        let sum = costs.of(read) + costs.of(write);
        assert!((39_000..41_000).contains(&sum), "{costs:?}");
    }
}
