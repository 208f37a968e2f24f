//! A damaged or unwritable state folder: pools and exports are served, and problems are reported.

use crate::common::{export_request, manager, pool_request, volume_request};
use crate::fake::World;
use api::v1::{EventCode, Role, TokenCreate};
use daemon::Manager;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).collect()
}

/// A killed daemon that had stored something in every file.
fn filled(world: &Arc<World>, folder: &Path) {
    let manager = manager(world, folder);
    manager
        .pools
        .create(pool_request("tank", &["file:/a"], false))
        .unwrap();
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    let at = folder.display().to_string();
    manager
        .exports
        .create(export_request("e", "tank", "v", &at))
        .unwrap();
    let token = TokenCreate {
        name: "ci".to_owned(),
        role: Role::Viewer,
        expires_in_s: None,
    };
    manager.access.token_create(&token).unwrap();
    for second in 0..3 {
        manager
            .observer
            .observe(Duration::from_secs(second), 1000 + second);
    }
}

fn codes(manager: &Manager, subject: &str) -> Vec<EventCode> {
    manager.observer.observe(Duration::from_secs(10), 2000);
    let alerts = manager.notifications.alert_list().items.into_iter();
    let of_subject = alerts.filter(|alert| alert.subject.name == subject);
    of_subject.map(|alert| alert.code).collect()
}

fn serves(manager: &Manager) -> bool {
    let exports = manager.exports.list(None).items;
    exports.len() == 1 && exports[0].state == "online"
}

#[test]
fn pools_and_exports_survive_any_damaged_state_file() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    filled(&world, folder.path());
    for path in files_in(folder.path()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for damage in ["", "\0\0\0\0", "{"] {
            let good = std::fs::read(&path).unwrap();
            std::fs::write(&path, damage).unwrap();
            let manager = manager(&world, folder.path());
            assert!(serves(&manager), "{name} {damage:?}");
            if name.ends_with(".json") || name == "cookie" {
                let told = codes(&manager, &name);
                assert_eq!(told, [EventCode::StateDamaged], "{name} {damage:?}");
            }
            drop(manager);
            let _ = std::fs::remove_file(folder.path().join(format!("{name}.damaged")));
            std::fs::write(&path, good).unwrap();
        }
    }
}

#[test]
fn pools_and_exports_survive_truncated_state_files() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    filled(&world, folder.path());
    for path in files_in(folder.path()) {
        std::fs::write(path, "").unwrap();
    }
    let manager = manager(&world, folder.path());
    assert!(serves(&manager));
    assert_eq!(manager.access.token_list().items, []);
    assert_eq!(codes(&manager, "tokens.json"), [EventCode::StateDamaged]);
    std::fs::remove_file(folder.path().join("tokens.json.damaged")).unwrap();
    assert_eq!(codes(&manager, "tokens.json"), []);
}

/// A directory in place of a file cannot be read, written or replaced, even by root.
#[test]
fn unusable_audit_log_is_an_alert() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    filled(&world, folder.path());
    let log = folder.path().join("audit.log");
    let _ = std::fs::remove_file(&log);
    std::fs::create_dir(&log).unwrap();
    let manager = manager(&world, folder.path());
    assert!(serves(&manager));
    assert_eq!(codes(&manager, "audit.log"), [EventCode::StateUnwritten]);
}

/// The state of pools in [`World`] outlives the daemon, like their drives.
#[test]
fn truncated_audit_log_contradicts_the_pools_anchor() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    filled(&world, folder.path());
    let change = |manager: &Manager| {
        let access = &manager.access;
        let caller = daemon::Caller::user(0);
        access.asked(&caller, "VolumeCreate", "name=v").unwrap();
    };
    let first = manager(&world, folder.path());
    (0..4).for_each(|_| change(&first));
    first.anchors.keep();
    first.stop();
    drop(first);
    let whole = std::fs::read(&log).unwrap();
    let broken = |log_is: Option<&[u8]>| {
        match log_is {
            Some(bytes) => std::fs::write(&log, bytes).unwrap(),
            None => std::fs::remove_file(&log).unwrap(),
        }
        let manager = manager(&world, folder.path());
        manager.access.broken_at()
    };
    let ends: Vec<usize> = (0..whole.len())
        .filter(|at| whole[*at] == b'\n')
        .map(|at| at + 1)
        .collect();
    assert_eq!(broken(Some(&whole)), None);
    assert_eq!(broken(Some(&whole[..ends[2]])), Some(4));
    assert_eq!(broken(Some(&whole[ends[1]..])), Some(3));
    assert_eq!(broken(Some(b"")), Some(1));
    assert_eq!(broken(Some(&whole)), None);
    assert_eq!(broken(None), Some(1));
}
