//! Pools: reopened after a restart, and listed as absent if that fails.

use crate::common::{
    Fake, World, export_request, is_offered, manager, pool_request, volume_request,
};
use api::v1::{PoolImport, ProblemCode};
use daemon::ManagerConfig;
use daemon::{Manager, StateDir};
use std::sync::Arc;

fn names(manager: &Manager) -> Vec<String> {
    let list = manager.pools.list().unwrap();
    list.items.into_iter().map(|pool| pool.name).collect()
}

#[test]
fn pools_vdrives_and_volumes_show_how_many_failures_they_survive() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    let shown = |pool: &str| {
        let pool = manager.pools.show(pool).unwrap();
        let volume = manager.volumes.show(&pool.name, "v").unwrap();
        let all = [
            pool.protection,
            pool.vdrives[0].protection,
            volume.protection,
        ];
        all.map(|known| {
            let known = known.unwrap();
            (known.survives_failures, known.by_design)
        })
    };
    for (name, drives, mirror) in [
        ("safe", &["ram:a", "ram:b"][..], true),
        ("plain", &["ram:c", "ram:d"][..], false),
    ] {
        let pool = pool_request(name, drives, mirror);
        manager.pools.create(pool).unwrap();
        manager.volumes.create(volume_request(name, "v")).unwrap();
    }
    assert_eq!(shown("safe"), [(1, 1); 3]);
    assert_eq!(shown("plain"), [(0, 0); 3]);
    let lose = |pool: &mut engine::PoolStatus| {
        "missing".clone_into(&mut pool.vdrives[0].drives[1].state);
    };
    world.pools().get_mut("safe").unwrap().alter = Some(lose);
    assert_eq!(shown("safe"), [(0, 1); 3]);
}

#[test]
fn open_pools_are_reopened_after_restart() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let first = manager(&world, folder.path());
    for (name, drive) in [("tank", "ram:a"), ("lake", "ram:b"), ("pond", "ram:c")] {
        first
            .pools
            .create(pool_request(name, &[drive], false))
            .unwrap();
    }
    first.pools.export("pond", false).unwrap();
    let added = api::v1::VdriveAdd {
        tier: api::v1::Tier::Fast,
        layout: api::v1::Layout::Concat,
        drives: vec!["ram:d".to_owned()],
        force: false,
    };
    first.pools.vdrive_add("tank", added).unwrap();
    first.stop();
    drop(first);
    let second = manager(&world, folder.path());
    assert_eq!(names(&second), ["lake", "tank"]);
    let kept = std::fs::read_to_string(folder.path().join("pools.json")).unwrap();
    assert!(kept.contains("ram:d"), "{kept}");
}

#[test]
fn poll_after_stop_removes_no_pool() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let first = manager(&world, folder.path());
    first
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    first.stop();
    // Like the daemon's own tasks that were waiting when it stopped.
    first.registry.refresh();
    // A late request: its pool is closed again, as it would replace the list.
    let late = first.pools.create(pool_request("lake", &["ram:b"], false));
    assert_eq!(late.unwrap_err().code, ProblemCode::Io);
    drop(first);
    let second = manager(&world, folder.path());
    assert_eq!(names(&second), ["tank"]);
}

#[test]
fn pool_with_missing_drive_is_listed_and_others_are_served() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let first = manager(&world, folder.path());
    first
        .pools
        .create(pool_request("tank", &["ram:a", "ram:b"], false))
        .unwrap();
    first
        .pools
        .create(pool_request("lake", &["ram:c"], false))
        .unwrap();
    first.stop();
    drop(first);
    world.take_away("ram:b");

    let second = manager(&world, folder.path());
    assert_eq!(names(&second), ["lake"]);
    let absent = second.pools.list().unwrap().absent;
    assert_eq!(absent.len(), 1);
    assert!(absent[0].message.contains("ram:b is missing"), "{absent:?}");
    let problem = second.pools.show("tank").unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
    assert!(problem.message.contains("ram:b"), "{problem}");
    let taken = second
        .pools
        .create(pool_request("tank", &["ram:z"], false))
        .unwrap_err();
    assert_eq!(taken.code, ProblemCode::Exists);

    world.away.lock().unwrap().clear();
    let request = PoolImport {
        drives: vec!["ram:a".to_owned(), "ram:b".to_owned()],
        folders: Vec::new(),
        degraded: false,
        accept_old: false,
    };
    second.pools.import("tank", &request).unwrap();
    assert!(second.pools.list().unwrap().absent.is_empty());
}

#[test]
fn mirror_is_served_without_its_missing_member() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let first = manager(&world, folder.path());
    first
        .pools
        .create(pool_request("tank", &["ram:a", "ram:b"], true))
        .unwrap();
    first.stop();
    drop(first);
    world.take_away("ram:b");
    let second = manager(&world, folder.path());
    assert_eq!(names(&second), ["tank"]);
}

#[test]
fn outdated_pool_is_not_opened_automatically() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let first = manager(&world, folder.path());
    first
        .pools
        .create(pool_request("tank", &["ram:a", "ram:b"], true))
        .unwrap();
    // A member fails, and the other one is used alone; at the next start it is missing, and the
    // first one is back.
    world.pools().get_mut("tank").unwrap().generation = 20;
    first.registry.refresh();
    first.stop();
    drop(first);
    world.pools().get_mut("tank").unwrap().generation = 12;
    world.take_away("ram:b");
    let mut request = PoolImport {
        drives: vec!["ram:a".to_owned()],
        folders: Vec::new(),
        degraded: true,
        accept_old: false,
    };
    for _ in 0..2 {
        let again = manager(&world, folder.path());
        let absent = again.pools.list().unwrap().absent;
        assert!(absent[0].message.contains("older"), "{absent:?}");
        let refused = again.pools.import("tank", &request).unwrap_err();
        assert_eq!(refused.code, ProblemCode::Refused);
    }
    request.accept_old = true;
    let last = manager(&world, folder.path());
    last.pools.import("tank", &request).unwrap();
    assert_eq!(names(&last), ["tank"]);
}

#[test]
fn absent_pool_stays_listed_until_removed() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let first = manager(&world, folder.path());
    first
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    first.stop();
    drop(first);
    world.take_away("ram:a");
    for _ in 0..2 {
        let again = manager(&world, folder.path());
        assert_eq!(again.pools.list().unwrap().absent.len(), 1);
    }
    let last = manager(&world, folder.path());
    last.pools.export("tank", false).unwrap();
    drop(last);
    let after = manager(&world, folder.path());
    assert!(after.pools.list().unwrap().absent.is_empty());
    let problem = after.pools.export("tank", false).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn pools_on_configured_drives_are_opened_with_exports() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let first = manager(&world, folder.path());
    first
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    first.volumes.create(volume_request("tank", "v")).unwrap();
    first
        .exports
        .create(export_request("e", "tank", "v", "found-1"))
        .unwrap();
    first.stop();
    drop(first);

    let elsewhere = tempfile::tempdir().unwrap();
    let state = StateDir::open(elsewhere.path()).unwrap();
    let second = Manager::new(
        Fake::over(&world),
        crate::common::FRONT_ENDS,
        state,
        ManagerConfig::default(),
    );
    second.start(&["ram:a".to_owned()]).unwrap();
    assert_eq!(names(&second), ["tank"]);
    assert!(is_offered("found-1"));
}

#[test]
fn pool_that_cannot_be_recorded_is_not_created() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let manager = manager(&world, &state);
    std::fs::remove_dir_all(&state).unwrap();
    let problem = manager
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap_err();
    assert_eq!(problem.code, ProblemCode::Io);
    assert!(problem.message.contains("state folder"), "{problem}");
    assert!(world.pools().is_empty());
}

#[test]
fn pool_names_are_unique_and_validated() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    let problem = manager
        .pools
        .create(pool_request("tank", &["ram:b"], false))
        .unwrap_err();
    assert_eq!(problem.code, ProblemCode::Exists);
    for name in ["", "1tank", "a/b", "tank\n", "a b"] {
        let problem = manager
            .pools
            .create(pool_request(name, &["ram:b"], false))
            .unwrap_err();
        assert_eq!(problem.code, ProblemCode::Invalid, "{name}");
        let problem = manager
            .volumes
            .create(volume_request("tank", name))
            .unwrap_err();
        assert_eq!(problem.code, ProblemCode::Invalid, "{name}");
    }
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    let problem = manager
        .volumes
        .create(volume_request("tank", "v"))
        .unwrap_err();
    assert_eq!(problem.code, ProblemCode::Exists);
}

#[test]
fn map_cells_are_bounded() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    assert_eq!(
        manager
            .volumes
            .map("tank", "v", None, 0, None)
            .unwrap()
            .cells
            .len(),
        64
    );
    assert_eq!(
        manager
            .volumes
            .map("tank", "v", Some(9), 0, None)
            .unwrap()
            .cells
            .len(),
        9
    );
    for cells in [0, 65_537] {
        let problem = manager
            .volumes
            .map("tank", "v", Some(cells), 0, None)
            .unwrap_err();
        assert_eq!(problem.code, ProblemCode::Invalid);
    }
    let problem = manager.volumes.map("tank", "w", None, 0, None).unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn block_history_is_in_wall_clock_time() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    let told = manager
        .diagnostics
        .volume_explain("tank", "v", Some(2057))
        .unwrap();
    let volume = manager.volumes.show("tank", "v").unwrap();
    let byte = 2057 * u64::from(volume.lba_size);
    assert_eq!(
        (told.offset, told.extent),
        (byte / 4096 * 4096, byte / 65_536 * 65_536)
    );
    let [rose, wrote] = &told.moves[..] else {
        panic!("{:?}", told.moves);
    };
    assert_eq!(
        (rose.at_s - wrote.at_s, wrote.at_s - told.log_since_s),
        (100, 100)
    );
    assert_eq!((rose.from.as_str(), rose.to.as_str()), ("ram", "fast"));
    assert_eq!((rose.worth, rose.wanted), (Some(0.5), Some(0.25)));
    assert_eq!((wrote.worth, wrote.wanted), (None, None));
    assert_eq!((&rose.blocks[..], wrote.blocks.len()), (&[1, 3][..], 16));
    assert_eq!(told.places[0].came.as_ref(), Some(rose));
    assert_eq!(told.log_since_s - told.places[0].log_since_s, 100);
    let displaced = rose.displaced.as_ref().unwrap();
    assert_eq!(
        (displaced.volume.as_deref(), displaced.offset),
        (Some("w"), 65_536)
    );
    for (pool, volume) in [("tank", "w"), ("lake", "v")] {
        let problem = manager
            .diagnostics
            .volume_explain(pool, volume, None)
            .unwrap_err();
        assert_eq!(problem.code, ProblemCode::NotFound);
    }
}

#[test]
fn every_reason_is_counted() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    let counts = manager.diagnostics.pool_moves("tank").unwrap().items;
    let moves: Vec<u64> = counts.iter().map(|count| count.moves).collect();
    assert_eq!(
        moves,
        (0..engine::Cause::ALL.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(counts[0].reason, "written");
    let problem = manager.diagnostics.pool_moves("lake").unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn forecasts_are_passed_through() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["ram:a"], false))
        .unwrap();
    let told = manager.diagnostics.pool_what_if("tank").unwrap();
    assert_eq!((told.fast_ns, told.slow_ns), (Some(100_000), None));
    assert_eq!(told.pool.points[0].hits, Some(0.75));
    assert_eq!(told.volumes[0].volume.as_deref(), Some("vm1"));
    let problem = manager.diagnostics.pool_what_if("lake").unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn running_job_is_never_100_percent() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    assert_eq!(manager.jobs.show(1).unwrap().percent, 99.9);
    assert_eq!(
        manager.jobs.show(8).unwrap_err().code,
        ProblemCode::NotFound
    );
}
