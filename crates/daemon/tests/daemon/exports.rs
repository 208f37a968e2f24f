//! Exports: atomic creation, storage in the pool, restart.

use crate::common::{
    World, export_request, is_offered, manager, pool_request, queues, volume_request,
};
use api::v1::{self, ExportCreate, ProblemCode};
use daemon::Manager;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tempfile::TempDir;

/// A daemon with the volumes tank/a and tank/b.
fn setup() -> (Arc<World>, TempDir, Manager) {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["ram:x"], false))
        .unwrap();
    for name in ["a", "b"] {
        manager
            .volumes
            .create(volume_request("tank", name))
            .unwrap();
    }
    (world, folder, manager)
}

#[test]
fn export_is_started_stored_and_shown() {
    let (world, _folder, manager) = setup();
    let made = manager
        .exports
        .create(export_request("e", "tank", "a", "shown-1"))
        .unwrap();
    assert!(is_offered("shown-1"));
    assert_eq!(world.pools()["tank"].exports.len(), 1);
    assert_eq!(made.state, "online");
    assert_eq!(made.address.as_deref(), Some("shown-1"));
    assert_eq!(made.hints, ["use shown-1"]);
    assert_eq!(made.sessions, 3);
    assert_eq!(manager.exports.show("e", None).unwrap(), made);
    assert_eq!(manager.volumes.show("tank", "a").unwrap().exports, ["e"]);
    assert!(
        manager
            .volumes
            .show("tank", "b")
            .unwrap()
            .exports
            .is_empty()
    );
    // No initiator was given.
    assert_eq!(made.initiator, None);
    let request = ExportCreate {
        initiator: Some("backup".to_owned()),
        ..export_request("f", "tank", "b", "shown-2")
    };
    let made = manager.exports.create(request).unwrap();
    assert_eq!(made.initiator.as_deref(), Some("backup"));
    let kept = &world.pools()["tank"].exports[1];
    assert_eq!(kept.initiator.as_deref(), Some("backup"));
    let opened = world.opened_by.lock().unwrap().clone();
    assert_eq!(opened, [None, Some("backup".to_owned())]);
}

#[test]
fn invalid_request_leaves_nothing_behind() {
    let (world, _folder, manager) = setup();
    manager
        .exports
        .create(export_request("taken", "tank", "b", "wrong-taken"))
        .unwrap();
    let with = |change: fn(&mut ExportCreate)| {
        let mut request = export_request("e", "tank", "a", "wrong-1");
        change(&mut request);
        request
    };
    let cases: [(ExportCreate, ProblemCode, &str); 12] = [
        (
            with(|r| r.initiator = Some(String::new())),
            ProblemCode::Invalid,
            "that is no name",
        ),
        (
            with(|r| r.name = "../e".into()),
            ProblemCode::Invalid,
            "'../e' is not a valid name",
        ),
        (
            with(|r| r.name = String::new()),
            ProblemCode::Invalid,
            "is not a valid name",
        ),
        (
            with(|r| r.name = "e".repeat(65)),
            ProblemCode::Invalid,
            "at most 64",
        ),
        (
            with(|r| r.name = "taken".into()),
            ProblemCode::Exists,
            "choose another name",
        ),
        (
            with(|r| r.kind = "scsi".into()),
            ProblemCode::Invalid,
            "choose one of pipe",
        ),
        (
            with(|r| r.pool = "lake".into()),
            ProblemCode::NotFound,
            "no pool",
        ),
        (
            with(|r| r.volume = "c".into()),
            ProblemCode::NotFound,
            "no such volume",
        ),
        (
            with(|r| drop(r.parameters.insert("lisen".into(), "x".into()))),
            ProblemCode::Invalid,
            "no parameter 'lisen': it has listen, queues",
        ),
        (
            with(|r| r.parameters.clear()),
            ProblemCode::Invalid,
            "requires the parameter 'listen': where: any word.",
        ),
        (
            with(|r| drop(r.parameters.insert("queues".into(), "1\n2".into()))),
            ProblemCode::Invalid,
            "is invalid",
        ),
        (
            with(|r| drop(r.parameters.insert("listen".into(), "wrong-taken".into()))),
            ProblemCode::Exists,
            "is in use: choose another",
        ),
    ];
    for (request, code, said) in cases {
        let problem = manager.exports.create(request).expect_err(said);
        assert_eq!(problem.code, code, "{problem}");
        assert!(problem.message.contains(said), "{problem}");
        assert!(!is_offered("wrong-1"), "{problem}");
        assert_eq!(world.pools()["tank"].exports.len(), 1, "{problem}");
    }
}

#[test]
fn export_that_cannot_be_stored_is_not_started() {
    let (world, _folder, manager) = setup();
    world.full.store(true, Ordering::Relaxed);
    let problem = manager
        .exports
        .create(export_request("e", "tank", "a", "kept-1"))
        .unwrap_err();
    assert_eq!(problem.code, ProblemCode::NoSpace);
    assert!(!is_offered("kept-1"));
    assert!(manager.exports.list(None).items.is_empty());
}

#[test]
fn writable_snapshot_export_uses_a_clone_deleted_on_failure() {
    let (world, _folder, manager) = setup();
    let a = v1::SnapshotCreate {
        pool: "tank".to_owned(),
        volumes: vec!["a".to_owned()],
        name: "monday".to_owned(),
    };
    manager.snapshots.create(a).unwrap();
    let writable = |name: &str, volume: &str, at: &str| ExportCreate {
        writable: true,
        ..export_request(name, "tank", volume, at)
    };
    let volumes = || -> Vec<String> { world.pools()["tank"].volumes.keys().cloned().collect() };
    let said = manager.exports.create(writable("w", "a", "written-1"));
    assert!(said.unwrap_err().message.contains("is not a snapshot"));
    let said = manager
        .exports
        .create(writable("w", "a@friday", "written-1"));
    assert_eq!(said.unwrap_err().code, ProblemCode::NotFound);
    assert_eq!(volumes(), ["a", "b"]);

    let made = manager
        .exports
        .create(writable("w", "a@monday", "written-1"));
    assert_eq!(made.unwrap().volume, "w");
    assert!(is_offered("written-1"));
    assert_eq!(volumes(), ["a", "b", "w"]);
    // The clone outlives the export.
    manager.exports.delete("w", None).unwrap();
    assert_eq!(volumes(), ["a", "b", "w"]);

    // An existing volume is not affected.
    let said = manager
        .exports
        .create(writable("b", "a@monday", "written-2"));
    assert_eq!(said.unwrap_err().code, ProblemCode::Exists);
    assert_eq!(volumes(), ["a", "b", "w"]);
    world.full.store(true, Ordering::Relaxed);
    let said = manager
        .exports
        .create(writable("x", "a@monday", "written-3"));
    assert_eq!(said.unwrap_err().code, ProblemCode::NoSpace);
    assert!(!is_offered("written-3"));
    assert_eq!(volumes(), ["a", "b", "w"]);
}

#[test]
fn parameters_change_atomically() {
    let (world, _folder, manager) = setup();
    manager
        .exports
        .create(export_request("e", "tank", "a", "changed-1"))
        .unwrap();
    let set = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        let parameters = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let parameters = parameters.collect();
        manager
            .exports
            .set("e", None, v1::ExportChange { parameters })
    };
    let kept = || world.pools()["tank"].exports[0].parameters.clone();
    let shown = set(&[("queues", "7")]).unwrap();
    assert_eq!(shown.parameters["queues"], "7");
    assert_eq!(queues("changed-1").as_deref(), Some("7"));
    assert_eq!(kept(), shown.parameters);
    for (pairs, code) in [
        (
            &[("listen", "elsewhere"), ("queues", "8")][..],
            ProblemCode::Invalid,
        ),
        (&[("lisen", "x")], ProblemCode::Invalid),
        (&[("listen", "")], ProblemCode::Invalid),
    ] {
        assert_eq!(set(pairs).unwrap_err().code, code);
        assert_eq!(queues("changed-1").as_deref(), Some("7"));
        assert_eq!(kept(), shown.parameters);
    }
    world.full.store(true, Ordering::Relaxed);
    assert_eq!(
        set(&[("queues", "9")]).unwrap_err().code,
        ProblemCode::NoSpace
    );
    assert_eq!(queues("changed-1").as_deref(), Some("7"), "set back");
    assert_eq!(manager.exports.show("e", None).unwrap(), shown);
    world.full.store(false, Ordering::Relaxed);
    assert!(
        !set(&[("queues", "")])
            .unwrap()
            .parameters
            .contains_key("queues")
    );
}

#[test]
fn session_is_listed_once_with_all_exports() {
    let (_world, _folder, manager) = setup();
    for (name, volume, at) in [
        ("e", "a", "session-1"),
        ("f", "b", "session-2"),
        ("g", "a", "session"),
    ] {
        manager
            .exports
            .create(export_request(name, "tank", volume, at))
            .unwrap();
    }
    let listed: Vec<_> = manager
        .exports
        .session_list()
        .items
        .into_iter()
        .map(|session| (session.id, session.exports.join(" ")))
        .collect();
    let both = "tank/e tank/f".to_owned();
    assert_eq!(listed, [(7, "tank/g".to_owned()), (9, both)]);
    manager.exports.end_session(9).unwrap();
    let problem = manager.exports.end_session(10).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn export_that_cannot_be_removed_continues() {
    let (world, _folder, manager) = setup();
    manager
        .exports
        .create(export_request("e", "tank", "a", "goes-on-1"))
        .unwrap();
    world.full.store(true, Ordering::Relaxed);
    manager.exports.delete("e", None).unwrap_err();
    assert!(is_offered("goes-on-1"));
    world.full.store(false, Ordering::Relaxed);
    manager.exports.delete("e", None).unwrap();
    assert!(!is_offered("goes-on-1"));
    assert!(world.pools()["tank"].exports.is_empty());
    let problem = manager.exports.delete("e", None).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn exports_restart_with_the_daemon() {
    let (world, folder, first) = setup();
    first
        .exports
        .create(export_request("e", "tank", "a", "again-1"))
        .unwrap();
    first.stop();
    assert!(!is_offered("again-1"));
    drop(first);
    let second = manager(&world, folder.path());
    assert!(is_offered("again-1"));
    assert_eq!(second.exports.show("e", None).unwrap().state, "online");
}

#[test]
fn failed_export_is_listed_and_others_are_served() {
    let (world, folder, first) = setup();
    for (name, at) in [("e", "rest-1"), ("f", "rest-2")] {
        first
            .exports
            .create(export_request(name, "tank", "a", at))
            .unwrap();
    }
    first.stop();
    drop(first);
    let thief = tempfile::tempdir().unwrap();
    let other = manager(&Arc::new(World::default()), thief.path());
    other
        .pools
        .create(pool_request("tank", &["ram:y"], false))
        .unwrap();
    other.volumes.create(volume_request("tank", "a")).unwrap();
    other
        .exports
        .create(export_request("e", "tank", "a", "rest-1"))
        .unwrap();

    let second = manager(&world, folder.path());
    let failed = second.exports.show("e", None).unwrap();
    assert_eq!(failed.state, "failed");
    assert!(failed.error.unwrap().contains("rest-1 is in use"));
    assert_eq!(second.exports.show("f", None).unwrap().state, "online");
    second.exports.delete("e", None).unwrap();
    assert_eq!(world.pools()["tank"].exports.len(), 1);
}

#[test]
fn export_starts_once_its_address_is_available_and_the_alert_clears() {
    let (world, folder, first) = setup();
    first
        .exports
        .create(export_request("e", "tank", "a", "returns-1"))
        .unwrap();
    first.stop();
    drop(first);
    let thief = tempfile::tempdir().unwrap();
    let other = manager(&Arc::new(World::default()), thief.path());
    other
        .pools
        .create(pool_request("tank", &["ram:y"], false))
        .unwrap();
    other.volumes.create(volume_request("tank", "a")).unwrap();
    other
        .exports
        .create(export_request("e", "tank", "a", "returns-1"))
        .unwrap();
    let second = manager(&world, folder.path());
    let refused = |at_s: u64| {
        second
            .observer
            .observe(std::time::Duration::from_secs(at_s), 1000 + at_s);
        let alerts = second.notifications.alert_list().items;
        let refused = |alert: &api::v1::Alert| alert.code == api::v1::EventCode::ExportRefused;
        alerts.iter().any(refused)
    };
    second.exports.retry();
    assert_eq!(second.exports.show("e", None).unwrap().state, "failed");
    assert!(refused(1));
    other.exports.delete("e", None).unwrap();
    second.exports.retry();
    assert_eq!(second.exports.show("e", None).unwrap().state, "online");
    assert!(is_offered("returns-1") && !refused(2));
    second.exports.retry();
    assert_eq!(second.exports.list(None).items.len(), 1);
}

#[test]
fn exported_objects_are_not_deleted() {
    let (_world, _folder, manager) = setup();
    for (name, at) in [("e", "busy-1"), ("f", "busy-2")] {
        manager
            .exports
            .create(export_request(name, "tank", "a", at))
            .unwrap();
    }
    let problem = manager.volumes.delete("tank", "a", false).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Busy);
    assert!(
        problem.message.contains("tank/a is exported as e, f"),
        "{problem}"
    );
    let problem = manager.pools.destroy("tank", false).unwrap_err();
    assert_eq!(problem.code, ProblemCode::Busy);
    assert!(problem.message.contains("e, f"), "{problem}");
    manager.volumes.delete("tank", "b", false).unwrap();
    for name in ["e", "f"] {
        manager.exports.delete(name, None).unwrap();
    }
    manager.volumes.delete("tank", "a", false).unwrap();
    manager.pools.destroy("tank", false).unwrap();
}

#[test]
fn closed_pool_takes_its_exports_along() {
    let (world, _folder, first) = setup();
    first
        .exports
        .create(export_request("e", "tank", "a", "idle-along-1"))
        .unwrap();
    first.pools.export("tank", false).unwrap();
    assert!(!is_offered("idle-along-1"));
    assert!(first.exports.list(None).items.is_empty());

    let elsewhere = tempfile::tempdir().unwrap();
    let second = manager(&world, elsewhere.path());
    let request = api::v1::PoolImport {
        drives: vec!["ram:x".to_owned()],
        folders: Vec::new(),
        degraded: false,
        accept_old: false,
    };
    second.pools.import("tank", &request).unwrap();
    assert!(is_offered("idle-along-1"));
}

#[test]
fn exports_of_one_name_in_two_pools_are_distinguished() {
    let (world, folder, manager) = setup();
    manager
        .exports
        .create(export_request("e", "tank", "a", "apart-1"))
        .unwrap();
    let record = world.pools()["tank"].exports[0].clone();
    let mut copy = world.pools()["tank"].clone();
    copy.id = "id-lake".to_owned();
    copy.drives = vec!["ram:z".to_owned()];
    copy.exports = vec![record];
    world.pools().insert("lake".to_owned(), copy);
    let request = api::v1::PoolImport {
        drives: vec!["ram:z".to_owned()],
        folders: Vec::new(),
        degraded: false,
        accept_old: false,
    };
    manager.pools.import("lake", &request).unwrap();
    let problem = manager.exports.show("e", None).unwrap_err();
    assert!(problem.message.contains("lake, tank"), "{problem}");
    assert_eq!(
        manager.exports.show("e", Some("tank")).unwrap().state,
        "online"
    );
    let second = manager.exports.show("e", Some("lake")).unwrap();
    assert!(
        second
            .error
            .unwrap()
            .contains("pool tank already has an export e")
    );
    manager.exports.delete("e", Some("lake")).unwrap();
    assert!(is_offered("apart-1"));
    drop(folder);
}
