//! What is refused while hosts are connected, and exports that are disabled.

use crate::common::{
    World, export_request, is_offered, manager, pool_request, queues, volume_request,
};
use api::v1::{self, EventCode, Problem, ProblemCode};
use daemon::Manager;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A daemon with the volume tank/a, its snapshot `s`, and an export `e` of it at an address.
fn setup(address: &str) -> (Arc<World>, TempDir, Manager) {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    let pool = pool_request("tank", &["ram:x"], false);
    manager.pools.create(pool).unwrap();
    manager.volumes.create(volume_request("tank", "a")).unwrap();
    let snapshot = v1::SnapshotCreate {
        pool: "tank".to_owned(),
        volumes: vec!["a".to_owned()],
        name: "s".to_owned(),
    };
    manager.snapshots.create(snapshot).unwrap();
    let export = export_request("e", "tank", "a", address);
    manager.exports.create(export).unwrap();
    (world, folder, manager)
}

fn shrunk(force: bool) -> v1::VolumeResize {
    v1::VolumeResize {
        size: 4096,
        shrink: true,
        force,
    }
}

fn to_s(force: bool) -> v1::VolumeRollBack {
    v1::VolumeRollBack {
        snapshot: "s".to_owned(),
        force,
    }
}

/// Asserts that a refusal names the hosts and what to do.
fn names_hosts(problem: &Problem) {
    assert_eq!(problem.code, ProblemCode::Busy, "{problem}");
    for part in ["host at there by export e (pipe)", "--force"] {
        assert!(problem.message.contains(part), "{problem}");
    }
}

#[test]
fn changes_that_cut_hosts_off_are_refused_with_the_hosts() {
    let (world, _folder, manager) = setup("cut-1");
    names_hosts(&manager.pools.export("tank", false).unwrap_err());
    names_hosts(&manager.pools.destroy("tank", false).unwrap_err());
    names_hosts(&manager.volumes.delete("tank", "a", false).unwrap_err());
    names_hosts(
        &manager
            .volumes
            .resize("tank", "a", shrunk(false))
            .unwrap_err(),
    );
    names_hosts(
        &manager
            .snapshots
            .roll_back("tank", "a", &to_s(false))
            .unwrap_err(),
    );
    names_hosts(&manager.exports.disable("e", None, false).unwrap_err());
    assert!(is_offered("cut-1"));
    assert_eq!(world.pools()["tank"].exports.len(), 1);
    assert_eq!(manager.volumes.show("tank", "a").unwrap().size, 1 << 20);
    // Growing takes nothing from them.
    let grown = v1::VolumeResize {
        size: 2 << 20,
        shrink: false,
        force: false,
    };
    manager.volumes.resize("tank", "a", grown).unwrap();
}

#[test]
fn force_overrides_connected_hosts() {
    let (world, _folder, manager) = setup("forced-1");
    manager.volumes.resize("tank", "a", shrunk(true)).unwrap();
    manager
        .snapshots
        .roll_back("tank", "a", &to_s(true))
        .unwrap();
    assert!(is_offered("forced-1"), "offered again after the rollback");
    assert_eq!(manager.exports.show("e", None).unwrap().state, "online");
    manager.volumes.delete("tank", "a", true).unwrap();
    assert!(!is_offered("forced-1"));
    assert!(world.pools()["tank"].exports.is_empty());
    assert!(manager.exports.list(None).items.is_empty());
    manager.volumes.create(volume_request("tank", "b")).unwrap();
    let export = export_request("f", "tank", "b", "forced-2");
    manager.exports.create(export).unwrap();
    manager.pools.export("tank", true).unwrap();
    assert!(!is_offered("forced-2"));
}

#[test]
fn forced_change_that_fails_leaves_the_export_in_service() {
    let (world, _folder, manager) = setup("stays-1");
    let missing = v1::VolumeRollBack {
        snapshot: "none".to_owned(),
        force: true,
    };
    manager
        .snapshots
        .roll_back("tank", "a", &missing)
        .unwrap_err();
    assert!(is_offered("stays-1"));
    let export = export_request("s", "tank", "a@s", "stays-2");
    manager.exports.create(export).unwrap();
    manager
        .snapshots
        .delete(("tank", "a", "s"), false)
        .unwrap_err();
    world.pools().get_mut("tank").unwrap().snapshots.clear();
    manager
        .snapshots
        .delete(("tank", "a", "s"), true)
        .unwrap_err();
    assert!(is_offered("stays-2"));
    assert_eq!(world.pools()["tank"].exports.len(), 2);
}

#[test]
fn idle_export_does_not_block_closing_a_pool() {
    let (_world, _folder, manager) = setup("idle-close-1");
    manager.volumes.resize("tank", "a", shrunk(false)).unwrap();
    let problem = manager
        .snapshots
        .roll_back("tank", "a", &to_s(false))
        .unwrap_err();
    assert!(
        problem.message.contains("tank/a is exported as e: disable"),
        "{problem}"
    );
    manager.pools.export("tank", false).unwrap();
    assert!(!is_offered("idle-close-1"));
}

#[test]
fn disabled_export_serves_nobody_and_returns_as_it_was() {
    let (world, folder, first) = setup("off-1");
    let change = v1::ExportChange {
        parameters: [("queues".to_owned(), "4".to_owned())].into(),
    };
    let before = first.exports.set("e", None, change.clone()).unwrap();
    let disabled = first.exports.disable("e", None, true).unwrap();
    assert_eq!(disabled.state, "disabled");
    assert_eq!((disabled.sessions, disabled.address), (0, None));
    assert_eq!(disabled.parameters, before.parameters);
    assert!(!is_offered("off-1"), "its address is free");
    // Retries do not start it, nor does a restart of the daemon.
    first.exports.retry();
    first.stop();
    drop(first);
    let second = manager(&world, folder.path());
    assert_eq!(second.exports.show("e", None).unwrap().state, "disabled");
    assert!(!is_offered("off-1"));
    assert!(second.exports.session_list().items.is_empty());
    // Its volume can be changed, but not deleted under it.
    second
        .snapshots
        .roll_back("tank", "a", &to_s(false))
        .unwrap();
    second.volumes.resize("tank", "a", shrunk(false)).unwrap();
    second.volumes.delete("tank", "a", false).unwrap_err();
    assert!(!is_offered("off-1"), "the rollback did not start it");
    let enabled = second.exports.enable("e", None).unwrap();
    assert!(is_offered("off-1"));
    assert_eq!(enabled, before);
    assert!(!world.pools()["tank"].exports[0].disabled);
}

#[test]
fn pool_with_disabled_exports_closes() {
    let (_world, _folder, manager) = setup("off-2");
    manager.exports.disable("e", None, true).unwrap();
    manager.exports.disable("e", None, false).unwrap();
    manager.pools.export("tank", false).unwrap();
}

#[test]
fn export_that_cannot_be_enabled_stays_disabled() {
    let (_world, _folder, manager) = setup("off-3");
    manager.exports.disable("e", None, true).unwrap();
    let thief = export_request("f", "tank", "a", "off-3");
    manager.exports.create(thief).unwrap();
    let problem = manager.exports.enable("e", None).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Exists);
    assert_eq!(manager.exports.show("e", None).unwrap().state, "disabled");
    // Its parameters can be changed meanwhile.
    let change = v1::ExportChange {
        parameters: [
            ("listen".to_owned(), "off-4".to_owned()),
            ("queues".to_owned(), "2".to_owned()),
        ]
        .into(),
    };
    manager.exports.set("e", None, change).unwrap();
    assert_eq!(queues("off-4"), None, "it is not started");
    manager.exports.enable("e", None).unwrap();
    assert!(is_offered("off-4"));
}

#[test]
fn disabling_and_enabling_are_events_and_no_alert() {
    let (_world, _folder, manager) = setup("idle-event-1");
    manager.exports.disable("e", None, false).unwrap();
    manager.observer.observe(Duration::from_secs(1), 1001);
    let alerts = manager.notifications.alert_list().items;
    assert!(alerts.iter().all(|alert| alert.subject.name != "e"));
    manager.exports.enable("e", None).unwrap();
    manager.observer.observe(Duration::from_secs(2), 1002);
    let events = manager
        .notifications
        .event_list(&Default::default(), 100)
        .items;
    let told: Vec<_> = (events.iter())
        .filter(|event| event.subject.name == "e")
        .map(|event| (event.code, event.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (EventCode::ExportEnabled, "export e of tank/a was enabled"),
            (EventCode::ExportDisabled, "export e of tank/a was disabled"),
        ]
    );
}
