//! Two vdrives under a load with a fixed queue depth, in virtual time.

use super::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// A drive that starts a read each `gap_ns` at best and answers it `alone_ns` later.
#[derive(Clone, Copy)]
struct Drive {
    gap_ns: u64,
    alone_ns: u64,
    open_ns: u64,
}

impl Drive {
    fn rate(iops: u64) -> Self {
        Self {
            gap_ns: SECOND / iops,
            alone_ns: 90 * US,
            open_ns: 0,
        }
    }

    /// One head.
    fn disk() -> Self {
        Self {
            gap_ns: 8 * MS,
            alone_ns: 8 * MS,
            open_ns: 0,
        }
    }

    fn read(&mut self, now_ns: u64) -> u64 {
        let start = self.open_ns.max(now_ns);
        self.open_ns = start + self.gap_ns;
        start + self.alone_ns
    }
}

#[derive(Default)]
struct Load {
    now_ns: u64,
    costs: [ReadCost; 2],
    /// When a read ends, which one it is.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    reads: Vec<(Begun, usize, bool)>,
}

impl Load {
    fn start(&mut self, drives: &mut [Drive; 2], at: usize, host: bool) {
        let begun = self.costs[at].begin(self.now_ns, 1);
        self.ends
            .push(Reverse((drives[at].read(self.now_ns), self.reads.len())));
        self.reads.push((begun, at, host));
    }

    fn host(&mut self, drives: &mut [Drive; 2]) {
        let [fast, slow] = &mut self.costs;
        let choice = choose(fast, slow, self.now_ns, 1);
        let at = usize::from(choice.other);
        self.start(drives, at, true);
        if choice.probe {
            self.start(drives, 1 - at, false);
        }
    }

    /// Reads of hosts that each drive answers in so long, `depth` outstanding; and reads to learn.
    fn run(&mut self, drives: &mut [Drive; 2], depth: usize, for_ns: u64) -> ([u64; 2], u64) {
        let (until, mut hosts, mut probes) = (self.now_ns + for_ns, [0; 2], 0);
        for _ in 0..depth {
            self.host(drives);
        }
        while let Some(Reverse((at_ns, index))) = self.ends.pop() {
            self.now_ns = at_ns;
            let (begun, at, host) = self.reads[index];
            self.costs[at].end(at_ns, begun, true);
            if host {
                hosts[at] += 1;
                if at_ns < until {
                    self.host(drives);
                }
            } else {
                probes += 1;
            }
        }
        (hosts, probes)
    }
}

/// What each of the two does in a second, once all is known.
fn settled(drives: &mut [Drive; 2], depth: usize) -> [f64; 2] {
    let mut load = Load::default();
    load.run(drives, depth, 3 * SECOND);
    let (hosts, _) = load.run(drives, depth, 4 * SECOND);
    hosts.map(|count| count as f64 / 4.0)
}

#[test]
fn equal_drives_share_evenly_and_give_twice_as_much() {
    for depth in [16, 64, 256] {
        let [fast, slow] = settled(&mut [Drive::rate(10_000); 2], depth);
        assert!(fast + slow > 19_000.0, "{depth}: {fast} {slow}");
        assert!(
            (0.9..1.1).contains(&(fast / slow)),
            "{depth}: {fast} {slow}"
        );
    }
}

#[test]
fn unequal_drives_share_by_what_they_can_do() {
    let rates = [(15_000, 5_000, 3.0), (5_000, 15_000, 1.0 / 3.0)];
    for (fast, slow, ratio) in rates {
        for depth in [64, 256] {
            let mut drives = [Drive::rate(fast), Drive::rate(slow)];
            let [fast, slow] = settled(&mut drives, depth);
            assert!(fast + slow > 19_000.0, "{depth}: {fast} {slow}");
            let seen = fast / slow / ratio;
            assert!((0.9..1.1).contains(&seen), "{depth}: {fast} {slow}");
        }
    }
}

#[test]
fn a_disk_beside_flash_gets_nothing_until_flash_takes_as_long() {
    let mut load = Load::default();
    let mut drives = [Drive::rate(100_000), Drive::disk()];
    for depth in [1, 4, 32, 1, 256] {
        let (hosts, probes) = load.run(&mut drives, depth, 2 * SECOND);
        assert_eq!(hosts[1], 0, "{depth} outstanding: {hosts:?}");
        assert!(probes <= u64::from(KNOWN), "{probes}");
    }
    // A host that waits for others as long as for the disk may as well ask that.
    let (hosts, _) = load.run(&mut drives, 2000, 2 * SECOND);
    assert!((10..500).contains(&hosts[1]), "{hosts:?}");
}

#[test]
fn flushes_and_bursts_on_flash_send_nothing_to_the_disk() {
    let mut load = Load::default();
    let mut drives = [Drive::rate(100_000), Drive::disk()];
    load.run(&mut drives, 64, 2 * SECOND);
    for depth in [1, 8].repeat(20) {
        load.run(&mut drives, depth, SECOND / 4);
        // Nothing ends for as long as a flush takes.
        drives[0].open_ns = load.now_ns + 50 * MS;
        let (hosts, _) = load.run(&mut drives, depth, 60 * MS);
        assert_eq!(hosts[1], 0, "{depth} outstanding");
        let (hosts, _) = load.run(&mut drives, 256, 5 * MS);
        assert_eq!(hosts[1], 0, "a burst after {depth}");
    }
}

#[test]
fn a_slow_spell_is_noticed_and_forgotten_on_either_side() {
    for spell in [0, 1] {
        let mut drives = [Drive::rate(10_000); 2];
        let mut load = Load::default();
        load.run(&mut drives, 64, 3 * SECOND);
        let before = drives[spell];
        drives[spell] = Drive {
            gap_ns: 20 * MS,
            alone_ns: 200 * MS,
            ..before
        };
        load.run(&mut drives, 64, 10 * SECOND);
        let (hosts, _) = load.run(&mut drives, 64, 10 * SECOND);
        assert!(hosts[spell] < 1_000, "{spell}: {hosts:?}");
        assert!(hosts[1 - spell] > 90_000, "{spell}: {hosts:?}");
        drives[spell] = before;
        load.run(&mut drives, 64, 20 * SECOND);
        let (hosts, _) = load.run(&mut drives, 64, SECOND);
        assert!(hosts[0] + hosts[1] > 19_000, "{spell}: {hosts:?}");
    }
}

#[test]
fn one_that_is_silent_or_fails_is_left_alone_for_a_while() {
    let slower = Drive {
        alone_ns: 2 * MS,
        ..Drive::rate(10_000)
    };
    let mut load = Load::default();
    load.run(&mut [Drive::rate(10_000), slower], 64, 3 * SECOND);
    let [mut fast, mut slow] = load.costs;
    let mut now = load.now_ns;
    // The one that is read as a rule has hung.
    let hung = fast.begin(now, 1);
    assert!(!choose(&mut fast, &mut slow, now + MS, 1).other);
    now += SECOND;
    assert!(choose(&mut fast, &mut slow, now, 1).other);
    // The other one cannot be read.
    let failed = slow.begin(now, 1);
    slow.end(now, failed, false);
    assert!(!choose(&mut fast, &mut slow, now, 1).other);
    assert!(!choose(&mut fast, &mut slow, now, 1).probe);
    assert!(choose(&mut fast, &mut slow, now + BARRED_NS, 1).other);
    fast.forget(hung);
    assert_eq!(fast.in_flight, 0);
}

#[test]
fn long_reads_are_shared_as_well() {
    let [mut fast, mut slow] = <[ReadCost; 2]>::default();
    let mut now = 0;
    for cost in [&mut fast, &mut slow] {
        for _ in 0..2000 {
            now += MS;
            let begun = cost.begin(now, 1);
            cost.end(now + 100 * US, begun, true);
            // Two of 1 MiB at a time, 2 ms each.
            let both = [cost.begin(now, 256), cost.begin(now, 256)];
            cost.end(now + 2 * MS, both[0], true);
            cost.end(now + 4 * MS, both[1], true);
            now += 4 * MS;
        }
    }
    assert!(!choose(&mut fast, &mut slow, now, 256).other);
    let _waiting = [(); 3].map(|()| fast.begin(now, 256));
    assert!(choose(&mut fast, &mut slow, now, 256).other);
}
