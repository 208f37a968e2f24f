//! Snapshot schedules over months of simulated time, with restarts and clock jumps.

use crate::common::{FRONT_ENDS, pool_request, volume_request};
use crate::fake::{Fake, World};
use api::v1::ScheduleSet;
use daemon::ManagerConfig;
use daemon::{Clocks, Due, Manager, Past, SnapshotRule, StateDir, TakenSnapshot, snapshot_name};
use engine::ScheduleStatus;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// Interval of checks.
const LOOK: u64 = 10;
/// Monday, 2024-01-01.
const MONDAY: u64 = 1_704_067_200;

/// A schedule and the clocks of a host.
struct Walk {
    rule: SnapshotRule,
    past: Past,
    now: Clocks,
    /// Existing snapshots, oldest first: when each was taken.
    there: Vec<u64>,
    held: BTreeSet<u64>,
    /// Times of all snapshots.
    taken: Vec<u64>,
    missed: u64,
}

impl Walk {
    fn new(every_s: u64, keep: usize, now_s: u64) -> Self {
        let past = Past {
            last_s: now_s,
            tried: None,
        };
        Self {
            rule: SnapshotRule { every_s, keep },
            past,
            now: Clocks { now_s, up_s: 0 },
            there: Vec::new(),
            held: BTreeSet::new(),
            taken: Vec::new(),
            missed: 0,
        }
    }

    /// Runs a check that takes a due snapshot unless it `fails`; returns whether it was due.
    fn look(&mut self, fails: bool) -> bool {
        let Due::Now { missed, .. } = self.rule.due(&self.past, self.now) else {
            return false;
        };
        self.past.tried = Some(self.now);
        if fails {
            return true;
        }
        self.past.last_s = self.now.now_s;
        self.missed += missed;
        self.taken.push(self.now.now_s);
        self.there.push(self.now.now_s);
        let list: Vec<TakenSnapshot> = self.there.iter().map(|at| self.as_taken(*at)).collect();
        for gone in self.rule.expired(&list) {
            self.there.retain(|at| snapshot_name("s", *at) != gone);
        }
        true
    }

    fn as_taken(&self, at: u64) -> TakenSnapshot {
        TakenSnapshot {
            name: snapshot_name("s", at),
            in_use: self.held.contains(&at),
        }
    }

    /// Lets time pass with checks.
    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds / LOOK {
            self.look(false);
            self.now.now_s += LOOK;
            self.now.up_s += LOOK;
        }
    }

    /// Lets time pass without checks, and drops the daemon's memory.
    fn stop(&mut self, seconds: u64) {
        self.now.now_s += seconds;
        self.now.up_s = 0;
        self.past.tried = None;
    }
}

#[test]
fn each_due_time_of_months_has_one_snapshot() {
    for (every_s, keep) in [(15 * MINUTE, 8), (HOUR, 24), (DAY, 7), (7 * DAY, 4)] {
        let from = MONDAY + 3 * DAY + 5 * HOUR + 7 * MINUTE + 3;
        let mut walk = Walk::new(every_s, keep, from);
        walk.run(90 * DAY);
        let first = MONDAY + (from - MONDAY).div_ceil(every_s) * every_s;
        let due: Vec<u64> = (first..from + 90 * DAY).step_by(every_s as usize).collect();
        assert_eq!(walk.taken.len(), due.len(), "every {every_s} s");
        for (at, due) in walk.taken.iter().zip(&due) {
            assert!((*due..due + LOOK).contains(at), "{at} for {due}");
        }
        assert_eq!(walk.there, walk.taken[walk.taken.len() - keep..]);
        assert_eq!(walk.missed, 0);
    }
}

#[test]
fn weeks_begin_on_monday_and_days_at_midnight_utc() {
    let mut walk = Walk::new(7 * DAY, 2, MONDAY + 2 * DAY);
    walk.run(6 * DAY);
    assert_eq!(walk.taken, [MONDAY + 7 * DAY]);
    // Daylight saving time begins in most of Europe; schedules use UTC.
    let night = MONDAY + 90 * DAY;
    let mut walk = Walk::new(DAY, 2, night - HOUR);
    walk.run(2 * DAY);
    assert_eq!(walk.taken, [night, night + DAY]);
}

#[test]
fn after_downtime_one_snapshot_is_taken_and_others_are_missed() {
    let mut walk = Walk::new(HOUR, 24, MONDAY);
    walk.run(3 * HOUR + 10 * MINUTE);
    walk.stop(10 * MINUTE);
    walk.run(10 * MINUTE);
    assert_eq!(walk.taken.len(), 3, "nothing was due meanwhile");
    // 04:00 to 06:00 are missed, and 07:00 is late.
    walk.stop(3 * HOUR + 55 * MINUTE);
    let back = walk.now;
    let past = walk.past;
    let due = Due::Now {
        missed: 3,
        missed_since_s: MONDAY + 4 * HOUR,
    };
    assert_eq!(walk.rule.due(&past, back), due);
    walk.run(HOUR);
    let hours = [HOUR, 2 * HOUR, 3 * HOUR, back.now_s - MONDAY, 8 * HOUR];
    let expected: Vec<u64> = hours.iter().map(|at| MONDAY + at).collect();
    assert_eq!((walk.taken, walk.missed), (expected, 3));
}

#[test]
fn restarts_take_no_snapshot_twice() {
    let mut walk = Walk::new(HOUR, 24, MONDAY);
    for _ in 0..12 * 24 * 10 {
        walk.run(4 * MINUTE + 50);
        walk.stop(10);
    }
    assert_eq!(walk.taken.len(), 10 * 24 - 1);
    assert_eq!(walk.missed, 0);
}

#[test]
fn failed_snapshot_is_retried_at_the_next_due_time() {
    let mut walk = Walk::new(HOUR, 24, MONDAY);
    let mut tries = 0;
    for _ in 0..5 * HOUR / LOOK {
        tries += u64::from(walk.look(true));
        walk.now.now_s += LOOK;
        walk.now.up_s += LOOK;
    }
    assert_eq!(tries, 4, "at 01:00, 02:00, 03:00 and 04:00");
    walk.run(HOUR);
    assert_eq!((walk.taken.len(), walk.missed), (1, 4));
}

#[test]
fn clock_jump_neither_floods_nor_stops_the_schedule() {
    let mut walk = Walk::new(HOUR, 24, MONDAY);
    walk.run(2 * HOUR + 30 * MINUTE);
    // Ten years ahead: one snapshot.
    walk.now.now_s += 3650 * DAY;
    walk.run(LOOK * 5);
    assert_eq!((walk.taken.len(), walk.missed), (3, 3650 * 24 - 1));
    walk.run(40 * MINUTE);
    assert_eq!(walk.taken.len(), 4, "it continues from there");
    // And back: one now, then as before.
    walk.now.now_s -= 3650 * DAY;
    let back = walk.now.now_s;
    walk.run(2 * HOUR);
    let of_now: Vec<u64> = walk.taken[4..].to_vec();
    assert_eq!(of_now.len(), 3, "{of_now:?}");
    assert!(of_now[0] - back < 10 * MINUTE, "{of_now:?}");
    // The clock is set back repeatedly, but the snapshot is taken once.
    let mut walk = Walk::new(HOUR, 24, MONDAY);
    walk.run(HOUR + LOOK);
    for _ in 0..20 {
        walk.now.now_s -= 2 * LOOK;
        walk.run(2 * LOOK);
    }
    assert_eq!(walk.taken.len(), 1);
    // The clock is set back by less than an interval: the next snapshot is taken when due.
    let mut walk = Walk::new(HOUR, 24, MONDAY);
    walk.run(HOUR + 20 * MINUTE);
    walk.now.now_s -= 25 * MINUTE;
    walk.run(65 * MINUTE);
    assert_eq!(walk.taken, [MONDAY + HOUR]);
    // A random clock: no more snapshots than the monotonic clock permits, and retention holds.
    let mut walk = Walk::new(HOUR, 24, MONDAY);
    for round in 0..6 * HOUR / LOOK {
        walk.now.now_s = MONDAY + round * 7919 * HOUR % (3650 * DAY);
        walk.look(false);
        walk.now.up_s += LOOK;
    }
    let count = walk.taken.len() as u64;
    assert!((20..=36).contains(&count), "{count} in 6 hours");
}

#[test]
fn extreme_times_are_handled() {
    for (last_s, now_s) in [(0, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX), (0, 0)] {
        for every_s in [1, 60, 366 * DAY, u64::MAX] {
            let rule = SnapshotRule { every_s, keep: 1 };
            let past = Past {
                last_s,
                tried: None,
            };
            rule.due(&past, Clocks { now_s, up_s: 0 });
        }
    }
}

#[test]
fn held_snapshots_stay_and_do_not_count() {
    let mut walk = Walk::new(HOUR, 3, MONDAY);
    walk.run(2 * HOUR + LOOK);
    let held = walk.taken[0];
    walk.held.insert(held);
    walk.run(10 * HOUR);
    let last = walk.taken[walk.taken.len() - 3..].to_vec();
    assert_eq!(walk.there, [&[held], &last[..]].concat());
    walk.held.clear();
    walk.run(HOUR);
    assert_eq!(walk.there, walk.taken[walk.taken.len() - 3..]);
}

#[test]
fn snapshot_names_sort_chronologically() {
    assert_eq!(snapshot_name("daily", MONDAY), "daily-2024-01-01T00-00-00Z");
    let times = (0..400).map(|number| MONDAY + number * 5 * HOUR + number);
    let names: Vec<String> = times.map(|at| snapshot_name("x", at)).collect();
    assert!(names.is_sorted(), "{names:?}");
}

struct Host {
    manager: Manager,
    world: Arc<World>,
    _folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let world = Arc::new(World::default());
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        let manager = Manager::new(
            Fake::over(&world),
            FRONT_ENDS,
            state,
            ManagerConfig::default(),
        );
        manager
            .pools
            .create(pool_request("tank", &["ram:a"], false))
            .unwrap();
        for name in ["a", "b"] {
            manager
                .volumes
                .create(volume_request("tank", name))
                .unwrap();
        }
        let request = ScheduleSet {
            pool: "tank".into(),
            volumes: vec!["a".into(), "b".into()],
            name: "hourly".into(),
            every_s: HOUR,
            keep: 2,
        };
        manager.schedules.set(request).unwrap();
        // The manager uses the host's clock, not the test's.
        world.pools().get_mut("tank").unwrap().schedules[0].since_s = MONDAY;
        Self {
            manager,
            world,
            _folder: folder,
        }
    }

    fn at(&self, now_s: u64) -> Clocks {
        Clocks {
            now_s,
            up_s: now_s - MONDAY,
        }
    }

    fn take_at(&self, now_s: u64) {
        self.manager.schedules.take_what_is_due(self.at(now_s));
    }

    fn shown(&self, now_s: u64) -> api::v1::Schedule {
        let listed = self.manager.schedules.list_at(None, None, self.at(now_s));
        listed.unwrap().items.remove(0)
    }

    /// Names of the snapshots of a volume.
    fn names(&self, volume: &str) -> Vec<String> {
        let listed = self
            .manager
            .snapshots
            .list(Some("tank"), Some(volume), None);
        let items = listed.unwrap().items.into_iter();
        items.map(|known| known.name).collect()
    }
}

#[test]
fn due_snapshots_are_taken_and_unused_expired_ones_deleted() {
    let host = Host::new();
    let mine = api::v1::SnapshotCreate {
        pool: "tank".into(),
        volumes: vec!["a".into()],
        name: "hourly-0".into(),
    };
    host.manager.snapshots.create(mine).unwrap();
    assert_eq!(host.shown(MONDAY).next_s, MONDAY + HOUR);
    let name = |hour: u64| snapshot_name("hourly", MONDAY + hour * HOUR);
    let set = |volume: &str, hour: u64, change: &dyn Fn(&mut engine::SnapshotStatus)| {
        let mut pools = host.world.pools();
        let all = &mut pools.get_mut("tank").unwrap().snapshots;
        let found = all
            .iter_mut()
            .find(|known| known.volume == volume && known.name == name(hour));
        change(found.unwrap());
    };
    for hour in 1..=6 {
        host.take_at(MONDAY + hour * HOUR);
        host.take_at(MONDAY + hour * HOUR + LOOK);
        match hour {
            1 => set("a", 1, &|known| known.held = true),
            2 => set("a", 2, &|known| known.clones.push("copy".into())),
            3 => {
                let export = crate::common::export_request("e", "tank", "a@x", "at-3");
                let export = api::v1::ExportCreate {
                    volume: format!("a@{}", name(3)),
                    ..export
                };
                host.world.pools().get_mut("tank").unwrap().volumes.insert(
                    export.volume.clone(),
                    engine::VolumeSpec {
                        name: export.volume.clone(),
                        size: 1 << 20,
                        lba_size: 512,
                        thick: false,
                        quota: 0,
                        reservation: 0,
                    },
                );
                host.manager.exports.create(export).unwrap();
            }
            _ => {}
        }
    }
    let of_a: Vec<String> = [1, 2, 3, 5, 6].map(name).to_vec();
    assert_eq!(
        host.names("a"),
        [&["hourly-0".to_owned()], &of_a[..]].concat()
    );
    assert_eq!(host.names("b"), [5, 6].map(name));
    let shown = host.shown(MONDAY + 6 * HOUR + LOOK);
    assert_eq!(shown.last_s, Some(MONDAY + 6 * HOUR));
    assert_eq!(shown.next_s, MONDAY + 7 * HOUR);
    assert_eq!((shown.missed, shown.error), (0, None));
}

#[test]
fn failure_is_shown_and_retried_at_the_next_due_time() {
    let host = Host::new();
    host.world.full.store(true, Ordering::Relaxed);
    host.take_at(MONDAY + HOUR);
    let shown = host.shown(MONDAY + HOUR + LOOK);
    assert!(shown.error.unwrap().contains("the label is full"));
    assert_eq!(shown.error_s, Some(MONDAY + HOUR));
    assert_eq!(shown.next_s, MONDAY + 2 * HOUR);
    host.world.full.store(false, Ordering::Relaxed);
    host.take_at(MONDAY + HOUR + LOOK);
    assert!(host.names("a").is_empty(), "not before the next is due");
    host.take_at(MONDAY + 2 * HOUR);
    let shown = host.shown(MONDAY + 2 * HOUR + LOOK);
    assert_eq!((shown.error, shown.error_s), (None, None));
    assert_eq!(
        (shown.missed, shown.missed_since_s),
        (1, Some(MONDAY + HOUR))
    );
    assert_eq!(host.names("b").len(), 1);
    // Errors of removed schedules are dropped, and changed schedules are retried.
    host.manager
        .schedules
        .remove("tank", "a", "hourly")
        .unwrap();
    host.take_at(MONDAY + 9 * HOUR);
    assert_eq!(host.names("b").len(), 1);
    let gone: Vec<ScheduleStatus> = host.world.pools()["tank"].schedules.clone();
    assert!(gone.is_empty());
}
