//! Schedules of snapshots are in the labels: they go where the pool goes, and change with what they
//! took in one step.

use crate::support::{Folder, engine, tiered, volume};
use engine::{Engine, ErrorCode, ScheduleSpec, ScheduleTurn};

const HOUR: u64 = 3600;

fn spec(name: &str, volumes: &[&str], every_s: u64, keep: u32) -> ScheduleSpec {
    ScheduleSpec {
        name: name.to_owned(),
        volumes: volumes.iter().map(|name| (*name).to_owned()).collect(),
        every_s,
        keep,
    }
}

fn turn(snapshot: &str, now_s: u64, missed: u64) -> ScheduleTurn {
    ScheduleTurn {
        snapshot: snapshot.to_owned(),
        now_s,
        missed,
        missed_since_s: now_s - missed * HOUR,
    }
}

fn with_volumes(folder: &Folder) -> Engine {
    let engine = engine(1);
    engine
        .pool_create(&tiered(folder, "tank", 1, 128, 192))
        .unwrap();
    for name in ["a", "b"] {
        engine.volume_create("tank", &volume(name, 8)).unwrap();
    }
    engine
}

/// Each schedule's name and volumes.
fn listed(engine: &Engine) -> Vec<(String, Vec<String>)> {
    let found = engine.schedule_list("tank", None).unwrap();
    let parts = |known: engine::ScheduleStatus| (known.name, known.volumes);
    found.into_iter().map(parts).collect()
}

#[test]
fn a_schedule_and_what_it_took_are_there_when_the_pool_is_opened_again() {
    let folder = Folder::new();
    let before = with_volumes(&folder);
    let set = spec("hourly", &["b", "a"], HOUR, 3);
    let status = before.schedule_set("tank", &set, 1000).unwrap();
    assert_eq!((status.since_s, status.last_s), (1000, None));
    for (name, now_s, missed) in [("h1", 5 * HOUR, 2), ("h2", 9 * HOUR, 3)] {
        let taken = before
            .schedule_take("tank", "a", "hourly", &turn(name, now_s, missed))
            .unwrap();
        let volumes: Vec<_> = taken.iter().map(|known| known.volume.as_str()).collect();
        assert_eq!(volumes, ["a", "b"], "one moment");
    }
    let listed = before.schedule_list("tank", Some("b")).unwrap();
    before.pool_export("tank").unwrap();
    before.shutdown();

    let again = engine(1);
    let drives = [folder.existing("fast"), folder.existing("slow")];
    again.pool_import(&drives, "tank", false).unwrap();
    assert_eq!(again.schedule_list("tank", None).unwrap(), listed);
    let status = &listed[0];
    assert_eq!(status.last_s, Some(9 * HOUR));
    assert_eq!((status.missed, status.missed_since_s), (5, Some(3 * HOUR)));
    let snapshots = again.snapshot_list("tank", None).unwrap();
    assert_eq!(snapshots.len(), 4);
    assert!(snapshots.iter().all(|known| known.schedule == "hourly"));

    // Only `keep` changes: it continues. Another interval: it begins again.
    let status = again
        .schedule_set("tank", &spec("hourly", &["a", "b"], HOUR, 9), 10 * HOUR)
        .unwrap();
    assert_eq!((status.keep, status.missed, status.since_s), (9, 5, 1000));
    let status = again
        .schedule_set("tank", &spec("hourly", &["a", "b"], 60, 9), 10 * HOUR)
        .unwrap();
    assert_eq!((status.last_s, status.missed), (None, 0));
    again.shutdown();
}

#[test]
fn a_snapshot_that_gets_a_name_is_nobodys_and_the_order_is_that_of_taking() {
    let folder = Folder::new();
    let engine = with_volumes(&folder);
    engine
        .schedule_set("tank", &spec("daily", &["a"], 86_400, 1), 0)
        .unwrap();
    // The clock goes back in between.
    for (name, now_s) in [("late", 9000), ("early", 4000)] {
        engine
            .schedule_take("tank", "a", "daily", &turn(name, now_s, 0))
            .unwrap();
    }
    let kept = engine
        .snapshot_change("tank", "a", "late", Some("kept"), None)
        .unwrap();
    assert_eq!(kept.schedule, "");
    let order: Vec<_> = engine.snapshot_list("tank", Some("a")).unwrap();
    let order: Vec<_> = order.iter().map(|known| known.name.as_str()).collect();
    assert_eq!(order, ["kept", "early"]);
    engine.shutdown();
}

#[test]
fn a_volume_is_in_one_schedule_of_a_name_and_leaves_it_when_it_is_deleted() {
    let folder = Folder::new();
    let engine = with_volumes(&folder);
    let set = |spec: &ScheduleSpec| engine.schedule_set("tank", spec, 5);
    set(&spec("hourly", &["a", "b"], HOUR, 2)).unwrap();
    set(&spec("hourly", &["b"], HOUR, 2)).unwrap();
    let of = |name: &str| ("hourly".to_owned(), vec![name.to_owned()]);
    assert_eq!(listed(&engine), [of("a"), of("b")]);
    engine.volume_delete("tank", "b").unwrap();
    assert_eq!(listed(&engine), [of("a")]);
    engine.schedule_remove("tank", "a", "hourly").unwrap();
    assert!(listed(&engine).is_empty());
    let gone = engine.schedule_remove("tank", "a", "hourly").unwrap_err();
    assert_eq!(gone.code, ErrorCode::NotFound, "{gone}");
    engine.shutdown();
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let folder = Folder::new();
    let engine = with_volumes(&folder);
    let mut thick = volume("thick", 8);
    thick.thick = true;
    engine.volume_create("tank", &thick).unwrap();
    for (wrong, says) in [
        (spec("every hour", &["a"], HOUR, 2), "schedule's name"),
        (spec(&"x".repeat(41), &["a"], HOUR, 2), "too long"),
        (spec("x", &[], HOUR, 2), "not 0"),
        (spec("x", &["a", "a"], HOUR, 2), "twice"),
        (spec("x", &["a"], 59, 2), "out of range"),
        (spec("x", &["a"], u64::MAX, 2), "out of range"),
        (spec("x", &["a"], HOUR, 0), "1 to 1000"),
        (spec("x", &["a"], HOUR, 1001), "1 to 1000"),
        (spec("x", &["a", "thick"], HOUR, 2), "is thick"),
        (spec("x", &["a", "none"], HOUR, 2), "none"),
    ] {
        let refused = engine.schedule_set("tank", &wrong, 5).unwrap_err();
        assert!(refused.message.contains(says), "{refused}: {says}");
    }
    for number in 0..16 {
        let one = spec(&format!("s{number}"), &["a"], HOUR, 2);
        engine.schedule_set("tank", &one, 5).unwrap();
    }
    let full = engine.schedule_set("tank", &spec("x", &["b", "a"], HOUR, 2), 5);
    assert_eq!(full.unwrap_err().code, ErrorCode::Refused);
    assert_eq!(listed(&engine).len(), 16);
    // One that is there can be changed.
    engine
        .schedule_set("tank", &spec("s3", &["a"], HOUR, 5), 5)
        .unwrap();

    // The second volume has a snapshot of this name: neither gets one.
    engine
        .schedule_set("tank", &spec("s0", &["a", "b"], HOUR, 2), 5)
        .unwrap();
    engine
        .snapshot_create("tank", &["b".into()], "taken", 6)
        .unwrap();
    let before = engine.schedule_list("tank", None).unwrap();
    let refused = engine.schedule_take("tank", "a", "s0", &turn("taken", 9 * HOUR, 1));
    assert_eq!(refused.unwrap_err().code, ErrorCode::Exists);
    assert_eq!(engine.schedule_list("tank", None).unwrap(), before);
    assert_eq!(engine.snapshot_list("tank", None).unwrap().len(), 1);
    engine.shutdown();
}
