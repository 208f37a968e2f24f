mod groups;
mod held_for;

use super::*;
use crate::service::ServiceTotals;
use format::QosPolicyConfig;
use std::collections::VecDeque;

const MS: u64 = 1_000_000;
const TICK_NS: u64 = 20 * MS;

/// A policy with these minimums, and nothing else.
fn policy(level: u8, min_iops: u64) -> QosPolicyConfig {
    QosPolicyConfig {
        level,
        min_iops,
        min_bandwidth: 0,
        max_latency_ns: 0,
        ..format::built_in_policies().next().unwrap()
    }
}

/// A host that keeps as many operations of one size in progress.
struct Host {
    volume: u32,
    kind: Kind,
    bytes: u64,
    depth: usize,
    under_way: usize,
    ended: u64,
}

/// A shard that serves one operation after the other, in the order in which they pass.
struct World {
    gate: Gate<Request>,
    hosts: Vec<Host>,
    tenants: BTreeMap<u32, Arc<Tenant>>,
    serving: VecDeque<(Request, u64)>,
    now_ns: u64,
    next_tick_ns: u64,
    /// What was released, in order.
    order: Vec<u32>,
    cost: fn(&Request) -> u64,
}

fn flat(_: &Request) -> u64 {
    10_000
}

impl World {
    fn new(cost: fn(&Request) -> u64) -> Self {
        Self {
            gate: Gate::new(0),
            hosts: Vec::new(),
            tenants: BTreeMap::new(),
            serving: VecDeque::new(),
            now_ns: 1000 * MS,
            next_tick_ns: 1000 * MS + TICK_NS,
            order: Vec::new(),
            cost,
        }
    }

    fn host(mut self, volume: u32, depth: usize, policy: Option<QosPolicyConfig>) -> Self {
        if let Some(policy) = policy {
            self.tenants
                .insert(volume, Arc::new(Tenant::new(Arc::new(policy), 1)));
            self.gate.set_tenants(Arc::new(self.tenants.clone()));
        }
        self.hosts.push(Host {
            volume,
            kind: Kind::Read,
            bytes: 4096,
            depth,
            under_way: 0,
            ended: 0,
        });
        self
    }

    fn submit(&mut self) {
        for host in &mut self.hosts {
            let request = Request {
                volume: host.volume,
                kind: host.kind,
                bytes: host.bytes,
            };
            let more = host.depth.saturating_sub(host.under_way);
            let row = std::iter::repeat_n(request, more);
            let alone = self.gate.pass_alone(row, |a, b| a == b, Some);
            host.under_way += alone;
            let alone = std::iter::repeat_n((request, self.now_ns), alone);
            self.serving.extend(alone);
            while host.under_way < host.depth {
                host.under_way += 1;
                match self.gate.admit(request, self.now_ns) {
                    true => self.serving.push_back((request, self.now_ns)),
                    false => self.gate.hold(request, request, self.now_ns),
                }
            }
        }
    }

    fn run(&mut self, ns: u64) {
        let end_ns = self.now_ns + ns;
        while self.now_ns < end_ns {
            self.gate.begin_turn(self.now_ns);
            self.submit();
            let (now, order, serving) = (self.now_ns, &mut self.order, &mut self.serving);
            self.gate.release(now, |request| {
                order.push(request.volume);
                serving.push_back((request, now));
            });
            match self.serving.pop_front() {
                None => self.now_ns = self.next_tick_ns.min(end_ns),
                Some((request, since_ns)) => {
                    self.now_ns += (self.cost)(&request);
                    let took = self.now_ns - since_ns;
                    self.gate.done(request, 1, took, self.now_ns);
                    let host = (self.hosts.iter_mut()).find(|host| host.volume == request.volume);
                    let host = host.unwrap();
                    host.under_way -= 1;
                    host.ended += 1;
                }
            }
            if self.now_ns >= self.next_tick_ns {
                self.gate.tick(self.now_ns, self.now_ns);
                self.next_tick_ns = self.now_ns + TICK_NS;
            }
        }
    }

    /// Operations a second of each host in the next second.
    fn measure(&mut self) -> Vec<u64> {
        self.hosts.iter_mut().for_each(|host| host.ended = 0);
        self.run(1000 * MS);
        self.hosts.iter().map(|host| host.ended).collect()
    }

    fn totals(&self, volume: u32) -> ServiceTotals {
        self.tenants[&volume].service().totals()
    }
}

#[test]
fn without_contention_everything_passes_at_once() {
    let mut world = World::new(flat).host(1, 8, Some(policy(1, 100)));
    world.run(500 * MS);
    assert_eq!(world.order, [] as [u32; 0], "nothing was held");
    assert_eq!(world.gate.held(), 0);
    assert_eq!(world.totals(1).held, 0);
    assert!(world.totals(1).operations > 45_000);
}

#[test]
fn a_minimum_is_kept_beside_a_flood_and_the_rest_is_anyones() {
    // The capacity is 100,000 per second.
    let mut world = World::new(flat)
        .host(1, 128, Some(policy(1, 70_000)))
        .host(2, 500, None)
        .host(3, 500, None);
    world.run(2000 * MS);
    let got = world.measure();
    assert!(got[0] >= 70_000, "{got:?}");
    assert!(got.iter().sum::<u64>() > 99_000, "{got:?}");
    assert!(got[1].abs_diff(got[2]) < 1000, "{got:?}");
    let before = world.totals(1);
    world.run(5000 * MS);
    let after = world.totals(1);
    let (windows, met) = (after.windows - before.windows, after.met - before.met);
    assert!(
        windows >= 45 && met * 100 >= windows * 99,
        "{met} of {windows}"
    );
    // Once it requests less, others have what it leaves.
    world.hosts[0].depth = 0;
    world.run(500 * MS);
    let got = world.measure();
    assert!(got[0] == 0 && got[1] + got[2] > 99_000, "{got:?}");
}

#[test]
fn levels_miss_their_minimum_from_the_last_to_the_first() {
    // Five minimums of 30,000 each where there is 100,000.
    let mut world = World::new(flat);
    for level in 1..=5 {
        world = world.host(level.into(), 64, Some(policy(level, 30_000)));
    }
    world.run(2000 * MS);
    let got = world.measure();
    for at in 0..3 {
        assert!(got[at] > 29_000, "{got:?}");
    }
    assert!(got[3] > 5_000 && got[3] < 15_000, "{got:?}");
    assert!(got[4] >= 200 && got[4] < 1500, "{got:?}");
}

#[test]
fn small_and_large_operations_are_charged_alike() {
    let by_size = |request: &Request| 5_000 + request.bytes / 2;
    let mut world =
        World::new(by_size)
            .host(1, 64, Some(policy(3, 0)))
            .host(2, 64, Some(policy(3, 0)));
    world.hosts[1].bytes = 256 << 10;
    world.run(4000 * MS);
    let got = world.measure();
    let small = got[0] * (5_000 + 2048);
    let large = got[1] * (5_000 + (128 << 10));
    assert!(
        small.abs_diff(large) * 10 < small + large,
        "{small} {large}"
    );
}

#[test]
fn weights_share_what_is_left() {
    let heavy = QosPolicyConfig {
        weight: 300,
        ..policy(3, 0)
    };
    let mut world = World::new(flat)
        .host(1, 64, Some(heavy))
        .host(2, 64, Some(policy(3, 0)));
    world.run(500 * MS);
    let got = world.measure();
    assert!((72_000..78_000).contains(&got[0]), "{got:?}");
}

#[test]
fn maximums_hold_and_cost_others_nothing() {
    let capped = QosPolicyConfig {
        max_iops: 2000,
        ..policy(1, 0)
    };
    let mut world = World::new(flat).host(1, 64, Some(capped)).host(2, 64, None);
    world.run(1000 * MS);
    let got = world.measure();
    assert!((1900..=2060).contains(&got[0]), "{got:?}");
    assert!(got[1] > 97_000, "{got:?}");
    // Alone, it is held until ticks.
    world.hosts[1].depth = 0;
    world.run(500 * MS);
    let got = world.measure();
    assert!((1900..=2060).contains(&got[0]), "{got:?}");
}

#[test]
fn a_late_volume_has_less_put_before_it() {
    // Ten milliseconds at most, and others keep two seconds of work beneath the gate.
    let timed = QosPolicyConfig {
        max_latency_ns: 10 * MS,
        ..policy(1, 0)
    };
    let slow = |_: &Request| MS;
    let mut world = World::new(slow)
        .host(1, 1, Some(timed))
        .host(2, 1000, None)
        .host(3, 1000, None);
    world.run(4000 * MS);
    let before = world.totals(1);
    world.run(4000 * MS);
    let after = world.totals(1);
    let (ended, late) = (
        after.operations - before.operations,
        after.late - before.late,
    );
    assert!(ended > 200 && late * 20 < ended, "{late} of {ended}");
}

#[test]
fn operations_of_a_volume_pass_in_order_and_none_is_lost() {
    let mut gate: Gate<u64> = Gate::new(0);
    gate.set_tenants(Arc::new(
        [(1, Arc::new(Tenant::new(Arc::new(policy(1, 10)), 1)))].into(),
    ));
    let request = |volume| Request {
        volume,
        kind: Kind::Write,
        bytes: 4096,
    };
    let mut passed = Vec::new();
    for number in 0..600 {
        let request = request(1 + number as u32 % 3);
        match gate.admit(request, 0) {
            true => passed.push(number),
            false => gate.hold(request, number, 0),
        }
    }
    assert!(gate.held() > 400, "a turn is bounded");
    while gate.held() > 0 {
        gate.begin_turn(0);
        let before = passed.len();
        gate.release(0, |number| passed.push(number));
        assert!(passed.len() > before && passed.len() <= before + TURN_OPERATIONS);
    }
    for volume in 0..3 {
        let of: Vec<_> = passed
            .iter()
            .filter(|number| **number % 3 == volume)
            .collect();
        assert!(of.len() == 200 && of.is_sorted());
    }
}

#[test]
fn what_is_held_outlives_its_policy_and_can_be_taken_back() {
    let mut gate: Gate<u64> = Gate::new(0);
    gate.set_tenants(Arc::new(
        [(1, Arc::new(Tenant::new(Arc::new(policy(1, 10)), 1)))].into(),
    ));
    let request = Request {
        volume: 1,
        kind: Kind::Read,
        bytes: 4096,
    };
    for number in 0..3 {
        gate.hold(request, number, 0);
    }
    gate.set_tenants(Arc::default());
    assert!(gate.is_needed());
    let mut passed = Vec::new();
    gate.begin_turn(0);
    gate.release(0, |number| passed.push(number));
    assert_eq!(passed, [0, 1, 2]);
    assert!(!gate.is_needed());
    gate.hold(request, 7, 0);
    assert_eq!(gate.take_all(), [7]);
    assert!(!gate.is_needed() && !gate.can_release(0));
}

#[test]
fn idle_volumes_are_given_up_and_then_no_tick_is_needed() {
    let mut world = World::new(flat).host(1, 4, Some(policy(1, 10)));
    world.run(100 * MS);
    world.hosts[0].depth = 0;
    let ticks = (1..100).find(|_| {
        world.run(TICK_NS);
        !world.gate.tick(world.now_ns, world.now_ns)
    });
    assert!(ticks.is_some());
    assert!(world.gate.entries.is_empty());
}

#[test]
fn virtual_time_is_monotonic_across_a_rebase() {
    let mut world = World::new(flat)
        .host(1, 64, Some(policy(1, 70_000)))
        .host(2, 64, None);
    world.run(500 * MS);
    let far = REBASE * 2;
    let at_ns = world.gate.virtual_ns.of(false);
    world.gate.virtual_ns.set(false, at_ns + far);
    for entry in world.gate.entries.iter_mut() {
        entry.finish += far;
    }
    let queue = std::mem::take(&mut world.gate.queue).into_iter();
    world.gate.queue = queue
        .map(|Reverse((at, of))| Reverse((at + far, of)))
        .collect();
    world.run(500 * MS);
    assert!(world.gate.virtual_ns.of(false) < far);
    let got = world.measure();
    assert!(got[0] >= 70_000 && got[1] > 10_000, "{got:?}");
}

#[test]
fn who_misses_what_was_promised_while_alone_is_hurt_by_what_is_beneath() {
    let is_hurt = |min_iops, max_latency_ns, depth| {
        let policy = QosPolicyConfig {
            max_latency_ns,
            ..policy(1, min_iops)
        };
        let mut world = World::new(flat).host(1, depth, Some(policy));
        world.run(200 * MS);
        world.gate.is_hurt()
    };
    // It is served 100,000 operations per second.
    assert!(is_hurt(200_000, 0, 32));
    assert!(!is_hurt(200_000, 0, 1), "it asks for one after the other");
    assert!(!is_hurt(50_000, 0, 32));
    assert!(is_hurt(0, 400_000, 32) && !is_hurt(0, 400_000, 16));
}

#[test]
fn what_an_operation_is_due_counts_from_its_arrival() {
    let policy = QosPolicyConfig {
        max_latency_ns: 10 * MS,
        ..policy(2, 0)
    };
    let mut world = World::new(flat).host(1, 1, Some(policy)).host(2, 1, None);
    world.run(MS);
    let now = world.now_ns;
    let due = world.gate.due(1, now);
    assert_eq!(due.level(), Some(2));
    let deadline = due.deadline_ns().unwrap();
    assert!(
        deadline <= now + 10 * MS && deadline > now,
        "{deadline} at {now}"
    );
    assert_eq!(world.gate.due(2, now), Due::NONE);
    assert_eq!(world.gate.due(3, now), Due::NONE);
}
