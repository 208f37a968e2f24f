//! Scheduled scrubs: each starts once, at its hour; a missed one starts when the daemon is back.

use crate::fake::{Fake, World};
use daemon::ManagerConfig;
use daemon::{Config, Control, Manager, ScrubSchedule, StateDir};
use engine::{PoolSpec, SpacePolicy};
use std::path::Path;
use std::sync::Arc;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

fn schedule(text: &str) -> ScrubSchedule {
    let text = format!("[scrub]\n{text}");
    Config::parse(&text, Path::new("c.toml")).unwrap().scrub
}

/// The hours of the first `days` days in which a scrub started, with hourly checks beginning at
/// `first_s`.
fn begun(schedule: ScrubSchedule, first_s: u64, days: u64) -> Vec<u64> {
    let mut last = first_s;
    let mut hours = Vec::new();
    for hour in first_s / HOUR..first_s / HOUR + days * 24 {
        let now = hour * HOUR + 30;
        if schedule.is_due(last, now) {
            last = now;
            hours.push(hour);
        }
    }
    hours
}

#[test]
fn scrub_starts_at_its_hour_without_drift() {
    let weekly = schedule("every = '7d'\nat = 4");
    let from = 100 * DAY + 9 * HOUR + 12;
    let days: Vec<u64> = begun(weekly, from, 40);
    let expected: Vec<u64> = [108, 115, 122, 129, 136].map(|day| day * 24 + 4).to_vec();
    assert_eq!(days, expected);
    assert_eq!(begun(schedule("every = '6h'"), 0, 1), [6, 12, 18]);
    assert!(begun(schedule("every = 'off'"), 0, 4000).is_empty());
}

#[test]
fn missed_scrub_is_due_at_any_hour() {
    let monthly = ScrubSchedule::default();
    assert!(!monthly.is_due(DAY, 20 * DAY));
    assert!(monthly.is_due(DAY, 90 * DAY + 17 * HOUR));
}

#[test]
fn due_scrub_is_started_once() {
    let world = Arc::new(World::default());
    let fake = Fake::over(&world);
    let spec = PoolSpec {
        name: "p".into(),
        vdrives: Vec::new(),
        policy: SpacePolicy::SlowFirst,
        shards: 1,
        force: false,
        accept_unmirrored: true,
    };
    fake.pool_create(&spec).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = StateDir::open(folder.path()).unwrap();
    let manager = Manager::new(
        fake.clone(),
        &[],
        state,
        ManagerConfig {
            scrubs: schedule("at = 3"),
            ..ManagerConfig::default()
        },
    );
    let scrub = || fake.pool_scrub_status("p").unwrap();
    manager.pools.scrub_what_is_due(1000 * DAY);
    assert_eq!((scrub().began_s, scrub().job), (1000 * DAY, None));
    manager.pools.scrub_what_is_due(1030 * DAY + HOUR);
    assert_eq!(scrub().job, None, "not before its hour");
    let due = 1030 * DAY + 3 * HOUR;
    manager.pools.scrub_what_is_due(due);
    assert_eq!((scrub().began_s, scrub().job), (due, Some(7)));
    manager.pools.scrub_what_is_due(due + 10);
    assert_eq!(scrub().began_s, due);
    fake.pool_scrub_cancel("p").unwrap();
    manager.pools.scrub_what_is_due(due + 20);
    assert_eq!(scrub().job, None, "a cancelled one does not begin again");
}
