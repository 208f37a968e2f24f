//! Events and alerts: raised once, cleared once, and restored after a restart.

use crate::common::manager_with;
use crate::common::pool_request;
use crate::fake::World;
use crate::http::Daemon;
use api::v1::{Alert, Event, EventCode, EventState, Severity};
use daemon::Manager;
use daemon::ManagerConfig;
use engine::{PoolStatus, Tier};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DAY_S: u64 = 86_400;

fn up(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn flash_limit() -> ManagerConfig {
    ManagerConfig {
        flash_daily_percent: 100,
        ..ManagerConfig::default()
    }
}

struct Site {
    world: Arc<World>,
    folder: tempfile::TempDir,
    manager: Option<Manager>,
    up_s: u64,
}

impl Site {
    fn start() -> Self {
        let world = Arc::new(World::default());
        let folder = tempfile::tempdir().unwrap();
        let manager = manager_with(&world, folder.path(), flash_limit());
        manager
            .pools
            .create(pool_request("tank", &["file:/a", "file:/bb"], true))
            .unwrap();
        Self {
            world,
            folder,
            manager: Some(manager),
            up_s: 0,
        }
    }

    fn manager(&self) -> &Manager {
        self.manager.as_ref().unwrap()
    }

    fn alter(&self, alter: fn(&mut PoolStatus)) {
        self.world.pools().get_mut("tank").unwrap().alter = Some(alter);
    }

    /// Runs a check now, and one after each of `seconds`.
    fn look_for(&mut self, seconds: u64) -> Vec<(EventCode, EventState)> {
        let newest = self.events().first().map_or(0, |event| event.number);
        self.manager()
            .observer
            .observe(up(self.up_s), 1000 + self.up_s);
        self.up_s += seconds;
        self.manager()
            .observer
            .observe(up(self.up_s), 1000 + self.up_s);
        let new = self.events().into_iter();
        let new = new.filter(|event| event.number > newest);
        let mut new: Vec<_> = new.map(|event| (event.code, event.state)).collect();
        new.reverse();
        new
    }

    /// Events, newest first.
    fn events(&self) -> Vec<Event> {
        self.manager()
            .notifications
            .event_list(&Default::default(), 1000)
            .items
    }

    fn alerts(&self) -> Vec<Alert> {
        self.manager().notifications.alert_list().items
    }

    /// Restarts after an orderly stop, or after kill -9.
    fn restart(&mut self, in_order: bool) {
        let before = self.manager.take().unwrap();
        if in_order {
            before.stop();
        }
        drop(before);
        self.manager = Some(manager_with(&self.world, self.folder.path(), flash_limit()));
    }
}

use EventState::{Cleared, Raised};

/// A problem of the pool, its event code, and the seconds until it is raised and cleared.
type Case = (fn(&mut PoolStatus), EventCode, u64, u64);

#[test]
fn each_condition_is_raised_once_and_cleared_once() {
    let cases: &[Case] = &[
        (
            |pool| pool.vdrives[0].drives[1].slow = true,
            EventCode::DriveSlow,
            0,
            60,
        ),
        (
            |pool| pool.vdrives[0].drives[1].state = "out".to_owned(),
            EventCode::LegOut,
            0,
            0,
        ),
        (
            |pool| pool.state = "failed".to_owned(),
            EventCode::PoolFailed,
            0,
            10,
        ),
        (
            |pool| pool.state = "full".to_owned(),
            EventCode::PoolFull,
            0,
            10,
        ),
        (
            |pool| {
                pool.vdrives[0].tier = Tier::Fast;
                let drive = &mut pool.vdrives[0].drives[0];
                drive.wear.since_s = 1;
                // Twice its size per day, for a period that ends in the far future.
                drive.wear.hosts = 2 * drive.size * 400 * 365;
            },
            EventCode::FlashWearing,
            600,
            3600,
        ),
        (
            |pool| (pool.scrub.state, pool.scrub.errors) = ("done".to_owned(), 3),
            EventCode::ScrubFound,
            0,
            0,
        ),
        (
            |pool| (pool.scrub.state, pool.scrub.lost) = ("done".to_owned(), 1),
            EventCode::DataLost,
            0,
            0,
        ),
        (|pool| pool.opening_lost = 1, EventCode::DataLost, 0, 0),
    ];
    for (wrong, code, raise_s, clear_s) in cases {
        let mut site = Site::start();
        // Wear is evaluated by the real clock.
        let at_s = |up_s: u64| 2 * DAY_S + up_s;
        assert_eq!(site.look_for(9), [], "{code:?}: nothing is wrong");
        site.alter(*wrong);
        site.manager()
            .observer
            .observe(up(site.up_s), at_s(site.up_s));
        if *raise_s > 0 {
            assert_eq!(site.alerts(), [], "{code:?} too early");
            site.up_s += raise_s;
            site.manager()
                .observer
                .observe(up(site.up_s), at_s(site.up_s));
        }
        let open: Vec<EventCode> = site.alerts().iter().map(|alert| alert.code).collect();
        assert_eq!(open, [*code]);
        let alert = site.alerts().remove(0);
        assert!(alert.message.contains("tank"), "{}", alert.message);
        assert!(!alert.advice.is_empty());
        assert_eq!(alert.runbook, format!("docs/events.md#{}", code.as_str()));
        site.up_s += 1;
        site.manager()
            .observer
            .observe(up(site.up_s), at_s(site.up_s));
        site.alter(|pool| pool.scrub.state = "done".to_owned());
        if *clear_s > 0 {
            assert_eq!(site.look_for(clear_s - 1), [], "{code:?} cleared too early");
            site.up_s += 1;
        }
        assert_eq!(site.look_for(0), [(*code, Cleared)]);
        assert_eq!(site.alerts(), []);
        let told = site.events();
        let cleared = told.first().unwrap();
        assert_eq!(cleared.of, Some(alert.number));
        let raised = told.iter().filter(|event| event.state == Raised);
        assert_eq!(raised.count(), 1, "{code:?} once");
    }
}

#[test]
fn absent_pool_is_alerted_until_it_is_open() {
    let mut site = Site::start();
    let lake = pool_request("lake", &["file:/ccc"], false);
    site.manager().pools.create(lake).unwrap();
    site.look_for(1);
    site.world.take_away("file:/ccc");
    site.restart(true);
    assert_eq!(site.look_for(1), [(EventCode::PoolAbsent, Raised)]);
    let alert = site.alerts().remove(0);
    assert_eq!(
        (alert.subject.name.as_str(), alert.severity),
        ("lake", Severity::Critical)
    );
    site.world.away.lock().unwrap().clear();
    let import = api::v1::PoolImport {
        drives: vec!["file:/ccc".to_owned()],
        folders: Vec::new(),
        degraded: false,
        accept_old: false,
    };
    site.manager().pools.import("lake", &import).unwrap();
    assert_eq!(site.look_for(9), []);
    site.up_s += 1;
    assert_eq!(site.look_for(0), [(EventCode::PoolAbsent, Cleared)]);
}

#[test]
fn growing_errors_and_repairs_are_reported() {
    let mut site = Site::start();
    assert_eq!(site.look_for(1), []);
    site.alter(|pool| pool.vdrives[0].drives[0].errors = 1);
    assert_eq!(site.look_for(1), [(EventCode::DriveFailing, Raised)]);
    // More errors belong to the same alert.
    site.alter(|pool| pool.vdrives[0].drives[0].timeouts = 3);
    assert_eq!(site.look_for(1800), []);
    assert!(site.alerts()[0].message.contains("3 timed out"));
    assert_eq!(site.look_for(3599), []);
    assert_eq!(site.look_for(1), [(EventCode::DriveFailing, Cleared)]);
    site.alter(|pool| pool.vdrives[0].drives[0].repaired = 5);
    assert_eq!(site.look_for(1), [(EventCode::DriveCorrupt, Raised)]);
}

#[test]
fn leg_out_is_alerted_until_resynced() {
    let mut site = Site::start();
    site.alter(|pool| pool.vdrives[0].drives[1].state = "missing".to_owned());
    assert_eq!(site.look_for(1), [(EventCode::LegOut, Raised)]);
    site.alter(|pool| pool.vdrives[0].drives[1].state = "syncing".to_owned());
    assert_eq!(site.look_for(100), []);
    assert!(site.alerts()[0].message.contains("is resyncing"));
    site.alter(|_| {});
    assert_eq!(site.look_for(0), [(EventCode::LegOut, Cleared)]);
}

#[test]
fn scrub_findings_persist_until_a_clean_scrub() {
    let mut site = Site::start();
    site.alter(|pool| (pool.scrub.state, pool.scrub.errors) = ("done".to_owned(), 2));
    assert_eq!(site.look_for(1), [(EventCode::ScrubFound, Raised)]);
    for state in ["running", "cancelled"] {
        let alter: fn(&mut PoolStatus) = match state {
            "running" => |pool| pool.scrub.state = "running".to_owned(),
            _ => |pool| pool.scrub.state = "cancelled".to_owned(),
        };
        site.alter(alter);
        assert_eq!(site.look_for(100), [], "{state}");
    }
    site.alter(|pool| pool.scrub.state = "done".to_owned());
    assert_eq!(site.look_for(1), [(EventCode::ScrubFound, Cleared)]);
}

#[test]
fn filling_pool_is_alerted_at_each_level() {
    let mut site = Site::start();
    let levels = api::v1::PoolWarnings { at: vec![80, 90] };
    site.manager().pools.warn_at("tank", &levels).unwrap();
    for (per_mille, told) in [
        (700, &[][..]),
        (810, &[(EventCode::PoolFilling, Raised)]),
        (850, &[]),
        (905, &[(EventCode::PoolFilling, Raised)]),
        (895, &[]),
        (850, &[]),
        (100, &[(EventCode::PoolFilling, Cleared)]),
    ] {
        site.world.pools().get_mut("tank").unwrap().used = ((1 << 30) * per_mille) / 1000;
        site.manager().fills.watch(site.up_s);
        assert_eq!(site.look_for(1), told, "{per_mille}");
    }
    let told = site.events();
    let raised: Vec<&Event> = told.iter().filter(|event| event.state == Raised).collect();
    assert!(
        raised[0].message.contains("its space is 90.5 % full"),
        "{raised:?}"
    );
    assert_eq!((raised[0].of, raised[1].of), (Some(raised[1].number), None));
}

#[test]
fn failed_job_is_reported_once() {
    let mut site = Site::start();
    assert_eq!(site.look_for(1), []);
    *site.world.alter_job.lock().unwrap() = Some(|job| {
        (job.state, job.message) = ("failed".to_owned(), "a drive is gone".to_owned());
    });
    let noted = (EventCode::JobFailed, EventState::Noted);
    assert_eq!(site.look_for(1), [noted]);
    assert!(
        site.events()[0]
            .message
            .contains("job 1 (evacuate of tank) failed: a drive is gone")
    );
    assert_eq!(site.look_for(1), []);
}

#[test]
fn events_and_alerts_survive_a_kill_with_increasing_numbers() {
    let mut site = Site::start();
    site.alter(|pool| pool.vdrives[0].drives[1].state = "out".to_owned());
    site.look_for(1);
    let (events, alerts) = (site.events(), site.alerts());
    site.restart(false);
    let after = site.events();
    assert_eq!(after[2..], events[..]);
    assert_eq!(after[1].code, EventCode::DaemonKilled);
    assert_eq!(
        (after[0].code, after[0].number),
        (EventCode::DaemonStarted, events[0].number + 2)
    );
    assert_eq!(site.alerts(), alerts);
    // Unchanged: no new event.
    assert_eq!(site.look_for(100), []);
    site.restart(true);
    let codes: Vec<EventCode> = site
        .events()
        .iter()
        .take(2)
        .map(|event| event.code)
        .collect();
    assert_eq!(codes, [EventCode::DaemonStarted, EventCode::DaemonStopped]);
    site.alter(|_| {});
    assert_eq!(site.look_for(1), [(EventCode::LegOut, Cleared)]);
    site.restart(false);
    assert_eq!(site.alerts(), []);
}

/// Truncates a file by `bytes`, like a torn write.
fn tear(path: &Path, bytes: usize) {
    let text = std::fs::read(path).unwrap();
    std::fs::write(path, &text[..text.len() - bytes]).unwrap();
}

#[test]
fn torn_line_loses_one_event_but_not_its_alert() {
    let mut site = Site::start();
    site.alter(|pool| pool.vdrives[0].drives[1].state = "out".to_owned());
    site.look_for(1);
    let events = site.events();
    // Killed between writing the event and the alerts: the event restores the alert.
    std::fs::remove_file(site.folder.path().join("alerts.json")).unwrap();
    site.restart(false);
    assert_eq!(site.alerts()[0].code, EventCode::LegOut);
    let before = site.events().len();
    tear(&site.folder.path().join("events.log"), 9);
    site.restart(false);
    // One event was torn, and two are new.
    assert_eq!(site.events().len(), before + 1);
    assert!(events.iter().all(|event| site.events().contains(event)));
    let numbers: Vec<u64> = site.events().iter().map(|event| event.number).collect();
    assert!(
        numbers.is_sorted_by(|newer, older| newer > older),
        "{numbers:?}"
    );
}

#[test]
fn events_are_paged_and_filtered() {
    let daemon = Daemon::start(&Arc::default());
    assert_eq!(daemon.ask("POST", "/v1/pools", crate::http::pool()).0, 201);
    let (status, all) = daemon.ask("GET", "/v1/events", Value::Null);
    assert_eq!(status, 200);
    assert_eq!(all["items"][0]["code"], "daemon_started");
    assert_eq!(all["items"][0]["runbook"], "docs/events.md#daemon_started");
    assert_eq!(all.get("next"), None);
    for (query, status, count) in [
        ("severity=warning", 200, 0),
        ("severity=info&code=daemon_started,leg_out", 200, 1),
        ("code=leg_out", 200, 0),
        ("pool=tank", 200, 0),
        ("before=1", 200, 0),
        ("limit=1", 200, 1),
        ("limit=0", 422, 0),
        ("limit=1001", 422, 0),
        ("severity=fatal", 422, 0),
        ("code=nonsense", 422, 0),
        ("before=x", 422, 0),
        ("page=2", 422, 0),
    ] {
        let path = format!("/v1/events?{query}");
        let (found, answer) = daemon.ask("GET", &path, Value::Null);
        let items = answer["items"].as_array().map_or(0, Vec::len);
        assert_eq!((found, items), (status, count), "{query}: {answer}");
    }
    let (status, alerts) = daemon.ask("GET", "/v1/alerts", Value::Null);
    assert_eq!(
        (status, alerts["items"].as_array().map(Vec::len)),
        (200, Some(0))
    );
}

#[test]
fn pages_have_no_gaps() {
    let mut site = Site::start();
    for _ in 0..5 {
        site.alter(|pool| pool.vdrives[0].drives[1].state = "out".to_owned());
        site.look_for(1);
        site.alter(|_| {});
        site.look_for(1);
    }
    let all = site.events();
    let mut filter = Default::default();
    let first = site.manager().notifications.event_list(&filter, 4);
    assert_eq!(
        (&first.items[..], first.next),
        (&all[..4], Some(all[3].number))
    );
    filter.before = first.next;
    let rest = site.manager().notifications.event_list(&filter, 1000);
    assert_eq!((&rest.items[..], rest.next), (&all[4..], None));
    filter.severity = Some(Severity::Critical);
    filter.before = None;
    assert_eq!(
        site.manager()
            .notifications
            .event_list(&filter, 1000)
            .items
            .len(),
        10
    );
}

#[test]
fn alerts_persist_across_a_stop() {
    let mut site = Site::start();
    site.alter(|pool| pool.vdrives[0].drives[1].state = "out".to_owned());
    assert_eq!(site.look_for(10), [(EventCode::LegOut, Raised)]);
    site.manager().stop();
    // A check in progress: the engine has already closed its pools.
    assert_eq!(site.look_for(60), []);
    assert_eq!(site.events()[0].code, EventCode::DaemonStopped);
    assert_eq!(site.alerts().len(), 1);
}
