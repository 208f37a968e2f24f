//! Recording and queries, with crashes and corruption.

use super::super::counts::time;
use super::*;
use std::path::Path;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 86_400;
/// A full hour.
const BEGIN: u64 = 500_000 * HOUR;

fn opened(folder: &Path, now_s: u64) -> Store {
    let store = Store::new(&StateFiles::new(folder));
    store.load(now_s);
    store
}

fn reads(rate: f32) -> Values {
    let latency = if rate > 0.0 { 0.001 } else { f32::NAN };
    Kind::Volume.of_first(&[rate, 0.0, rate * 4096.0, 0.0, latency, f32::NAN])
}

fn write(store: &Store, now_s: u64, rate: f32) {
    let figures = [("volume/tank/v".to_owned(), reads(rate))];
    store.write(now_s, 1, &figures, &[]).unwrap();
}

/// Reads counts per second, in steps of `step_s`.
fn told(store: &Store, from_s: u64, to_s: u64, step_s: u64, now_s: u64) -> Vec<Option<f32>> {
    let query = Query {
        object: "volume/tank/v",
        from_s,
        to_s,
        step_s: Some(step_s),
    };
    let found = store.read(&query, now_s).unwrap();
    assert_eq!((found.from_s, found.step_s), (from_s, step_s));
    let first = |step: Option<Values>| step.map(|step| step[0]);
    found.steps.into_iter().map(first).collect()
}

#[test]
fn seconds_are_aggregated_into_minutes_and_hours() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    // 10 per second in even minutes, none in odd ones.
    for second in 0..2 * HOUR + MINUTE {
        let busy = (second / MINUTE).is_multiple_of(2);
        write(&store, BEGIN + 1 + second, if busy { 10.0 } else { 0.0 });
    }
    let now_s = BEGIN + 2 * HOUR + MINUTE;
    let seconds = told(&store, now_s - 61, now_s - 57, 1, now_s);
    assert_eq!(seconds, [Some(0.0), Some(0.0), Some(10.0), Some(10.0)]);
    // Of the first hour only minutes are kept.
    let minutes = told(&store, BEGIN + 2 * MINUTE, BEGIN + 4 * MINUTE, 60, now_s);
    let near = |rate: Option<f32>, wanted: f32| (rate.unwrap() - wanted).abs() < 0.5;
    assert!(
        near(minutes[0], 10.0) && near(minutes[1], 0.0),
        "{minutes:?}"
    );
    let later = now_s + 8 * DAY;
    write(&store, later, 0.0);
    let hours = told(&store, BEGIN, BEGIN + 2 * HOUR, 3600, later);
    assert!(hours.iter().all(|hour| near(*hour, 5.0)), "{hours:?}");
    // A step length of no ring is aggregated from the finest available.
    let coarse = told(&store, BEGIN, BEGIN + 2 * HOUR, 7200, later);
    assert!(near(coarse[0], 5.0), "{coarse:?}");
    // Those seconds were overwritten.
    assert_eq!(told(&store, later - 3, later - 1, 1, later), [None, None]);
}

#[test]
fn quiet_seconds_are_known_and_downtime_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    write(&store, BEGIN + 1, 5.0);
    write(&store, BEGIN + 2, 0.0);
    drop(store);
    let store = opened(folder.path(), BEGIN + 30);
    write(&store, BEGIN + 31, 7.0);
    // A late sample counts for the seconds before it, up to 15.
    let figures = [("volume/tank/v".to_owned(), reads(9.0))];
    store.write(BEGIN + 60, 500, &figures, &[]).unwrap();
    let seconds = told(&store, BEGIN, BEGIN + 61, 1, BEGIN + 61);
    assert_eq!(seconds[..4], [None, Some(5.0), Some(0.0), None]);
    assert_eq!(seconds[29..33], [None, None, Some(7.0), None]);
    assert_eq!(seconds[44..47], [None, None, Some(9.0)]);
    assert_eq!(seconds[60], Some(9.0));
}

#[test]
fn restart_within_a_minute_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    for second in 1..90 {
        write(&store, BEGIN + second, 6.0);
    }
    // Killed; the next daemon starts ten minutes later.
    drop(store);
    let store = opened(folder.path(), BEGIN + 10 * MINUTE);
    write(&store, BEGIN + 10 * MINUTE, 0.0);
    let later = BEGIN + 2 * HOUR;
    write(&store, later, 0.0);
    let minutes = told(&store, BEGIN, BEGIN + 3 * MINUTE, 60, later);
    assert_eq!(minutes, [Some(6.0), Some(6.0), None]);
    let hour = told(&store, BEGIN, BEGIN + HOUR, 3600, later + 8 * DAY);
    assert!(hour[0].is_some());
}

#[test]
fn torn_and_corrupt_records_lose_only_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    for second in 1..=40 {
        write(&store, BEGIN + second, 3.0);
    }
    drop(store);
    let path = folder.path().join(FOLDER).join(FIGURES);
    let mut bytes = std::fs::read(&path).unwrap();
    let damaged: Vec<usize> = bytes
        .chunks_exact(64)
        .enumerate()
        .filter(|(_, record)| record.iter().any(|byte| *byte != 0))
        .map(|(index, _)| index * 64)
        .collect();
    // A torn record, and a bit flip in another.
    let (torn, flipped) = (damaged[damaged.len() - 5], damaged[damaged.len() - 9]);
    bytes[torn + 32..torn + 64].fill(0);
    bytes[flipped + 9] ^= 4;
    std::fs::write(&path, &bytes).unwrap();
    let store = opened(folder.path(), BEGIN + 41);
    let seconds = told(&store, BEGIN + 1, BEGIN + 41, 1, BEGIN + 41);
    let known = seconds.iter().filter(|rate| **rate == Some(3.0));
    assert_eq!(known.count(), 38, "{seconds:?}");
    // A corrupt index loses history, but the daemon starts.
    drop(store);
    std::fs::write(folder.path().join(FOLDER).join(INDEX), "{").unwrap();
    let store = opened(folder.path(), BEGIN + 50);
    write(&store, BEGIN + 51, 8.0);
    let seconds = told(&store, BEGIN + 45, BEGIN + 52, 1, BEGIN + 52);
    assert_eq!(seconds.last(), Some(&Some(8.0)));
    assert_eq!(seconds[0], None);
}

#[test]
fn recording_continues_after_the_clock_is_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    write(&store, BEGIN + 5000, 1.0);
    for second in 0..130 {
        write(&store, BEGIN + 1000 + second, 2.0);
    }
    let now_s = BEGIN + 1130;
    let seconds = told(&store, now_s - 3, now_s, 1, now_s);
    assert_eq!(seconds, [Some(2.0); 3]);
}

#[test]
fn objects_are_bounded_and_the_oldest_is_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    let named = |range: std::ops::Range<usize>| -> Vec<(String, Values)> {
        range
            .map(|number| (format!("volume/tank/v{number}"), reads(1.0)))
            .collect()
    };
    store
        .write(BEGIN + 1, 1, &named(0..OBJECTS_MAX + 10), &[])
        .unwrap();
    let query = |name: &'static str| Query {
        object: name,
        from_s: BEGIN,
        to_s: BEGIN + 10,
        step_s: None,
    };
    let is_there = |name| store.read(&query(name), BEGIN + 10).is_ok();
    assert!(is_there("volume/tank/v0") && !is_there("volume/tank/v4099"));
    // All but the first continue; two hours later there is room for another.
    store
        .write(BEGIN + 2 * HOUR, 1, &named(1..OBJECTS_MAX), &[])
        .unwrap();
    store
        .write(
            BEGIN + 2 * HOUR + 1,
            1,
            &named(OBJECTS_MAX..OBJECTS_MAX + 1),
            &[],
        )
        .unwrap();
    assert!(!is_there("volume/tank/v0") && is_there("volume/tank/v4096"));
    // Records of the previous object there are ignored.
    let found = store.read(&query("volume/tank/v4096"), BEGIN + 10).unwrap();
    assert!(found.steps.iter().all(Option::is_none));
    let length = std::fs::metadata(folder.path().join(FOLDER).join(FIGURES)).unwrap();
    assert!(length.len() <= (OBJECTS_MAX as u64 + 1) << 21);
}

#[test]
fn invalid_queries_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    write(&store, BEGIN + 1, 1.0);
    let ask = |object, from_s, to_s, step_s| {
        let query = Query {
            object,
            from_s,
            to_s,
            step_s,
        };
        store.read(&query, BEGIN + 10)
    };
    let (v, now_s) = ("volume/tank/v", BEGIN + 10);
    assert!(matches!(
        ask("volume/tank/w", 0, 1, None),
        Err(Missing::Object)
    ));
    assert!(matches!(ask(DAEMON, 0, 1, None), Err(Missing::Object)));
    for (from_s, to_s, step_s) in [
        (now_s, now_s, None),
        (now_s, 5, None),
        (0, u64::MAX, None),
        (0, u64::MAX, Some(u64::MAX)),
        (now_s - 3600, now_s + 3600, Some(1)),
        (0, now_s, Some(3600)),
    ] {
        let answer = ask(v, from_s, to_s, step_s);
        assert!(
            matches!(answer, Err(Missing::Question(_))),
            "{from_s} {to_s} {step_s:?}"
        );
    }
    // The step length is chosen.
    assert_eq!(ask(v, now_s - 60, now_s, None).unwrap().step_s, 1);
    assert_eq!(ask(v, now_s - 3600, now_s, None).unwrap().step_s, 10);
    // A second has passed since the client's query for the last hour.
    let late = ask(v, now_s - 3601, now_s - 1, None).unwrap();
    assert_eq!(late.step_s, 10);
    assert_eq!(ask(v, now_s - 7 * DAY, now_s, None).unwrap().step_s, 3600);
    assert!(ask(v, now_s - 730 * DAY, now_s, None).unwrap().steps.len() <= 732);
}

#[test]
fn percentiles_of_minutes_and_hours_cover_all_operations() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    // Per minute 59 seconds of 100 reads within 8 µs, and one of 60 within 131 ms: just over one
    // percent.
    let mut fast = Counts::default();
    fast.reads.times[1] = 100;
    let mut slow = Counts::default();
    slow.reads.times[15] = 60;
    let object = "volume/tank/v".to_owned();
    for second in 0..HOUR + MINUTE {
        let counts = match second % MINUTE {
            30 => slow,
            _ => fast,
        };
        let figures = [(object.clone(), reads(100.0))];
        let now_s = BEGIN + 1 + second;
        let counts = [(object.clone(), counts)];
        store.write(now_s, 1, &figures, &counts).unwrap();
    }
    let ask = |from_s, to_s, step_s, now_s| {
        let query = Query {
            object: &object,
            from_s,
            to_s,
            step_s: Some(step_s),
        };
        store.read(&query, now_s).unwrap().counts
    };
    let now_s = BEGIN + HOUR + MINUTE;
    let p99 = |counts: &Counts| time(&counts.reads, 0.99).unwrap();
    let seconds = ask(now_s - 20, now_s - 10, 1, now_s);
    assert!(seconds.iter().flatten().all(|second| p99(second) < 10e-6));
    // An hour later its seconds are gone, its minute is not.
    let minute = ask(BEGIN + MINUTE, BEGIN + 2 * MINUTE, 60, now_s + MINUTE)[0].unwrap();
    let total: u64 = minute.reads.times.iter().sum();
    assert!(total.abs_diff(5960) * 256 <= 5960, "{total}");
    assert!(p99(&minute) > 0.065, "{}", p99(&minute));
    let later = now_s + 8 * DAY;
    write(&store, later, 0.0);
    let hour = ask(BEGIN, BEGIN + HOUR, 3600, later)[0].unwrap();
    assert!(p99(&hour) > 0.065 && p99(&hour) < 0.132, "{}", p99(&hour));
    let total: u64 = hour.reads.times.iter().sum();
    assert!(total.abs_diff(60 * 5960) * 100 < 60 * 5960, "{total}");
    // Another object of the same name starts empty; after a restart the data is there.
    let store = opened(folder.path(), later);
    let query = Query {
        object: &object,
        from_s: BEGIN,
        to_s: BEGIN + HOUR,
        step_s: Some(3600),
    };
    let found = store.read(&query, later).unwrap();
    assert_eq!(found.counts, [Some(hour)]);
}

/// Data of the first format: an index, and records of six metrics.
fn first_version(folder: &Path, seconds: std::ops::RangeInclusive<u64>, minute: u64) {
    std::fs::create_dir_all(folder.join(FOLDER)).unwrap();
    let rings = Rings::<[f32; 6]>::open(&folder.join(FOLDER).join("data")).unwrap();
    let place = |id, region| Place { id, region };
    for second in seconds {
        let at = second - BEGIN;
        let write = |place, first: [f32; 6]| rings.write(place, &RINGS[0], second, &first);
        write(place(1, 0), [0.0; 6]).unwrap();
        write(place(2, 1), [at as f32, 1.0, 4096.0, 512.0, 0.001, 0.002]).unwrap();
        write(place(3, 4), [5.0, 6.0, 7.0, 8.0, 9.0, f32::NAN]).unwrap();
    }
    let first = [77.0, 0.0, 0.0, 0.0, f32::NAN, f32::NAN];
    rings
        .write(place(1, 0), &RINGS[1], minute, &[0.0; 6])
        .unwrap();
    rings.write(place(2, 1), &RINGS[1], minute, &first).unwrap();
    let index = format!(
        r#"{{"version": 1, "next_id": 4, "objects": {{
            "daemon": {{"id": 1, "region": 0, "created_s": {BEGIN}, "seen_s": {BEGIN}}},
            "volume/tank/v": {{"id": 2, "region": 1, "created_s": 1, "seen_s": {BEGIN}}},
            "tier/tank/fast": {{"id": 3, "region": 4, "created_s": {BEGIN}, "seen_s": {BEGIN}}}}}}}"#
    );
    std::fs::write(folder.join(FOLDER).join(INDEX), index).unwrap();
}

#[test]
fn last_hour_includes_the_newest_second() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path(), BEGIN);
    let ask = |from_s, to_s, step_s, now_s| {
        let query = Query {
            object: "volume/tank/v",
            from_s,
            to_s,
            step_s: Some(step_s),
        };
        store.read(&query, now_s).unwrap()
    };
    for now_s in BEGIN + 1..BEGIN + 25 {
        write(&store, now_s, 5.0);
        let found = ask(now_s + 1 - HOUR, now_s + 1, 10, now_s);
        assert!(found.steps.last().unwrap().is_some(), "{now_s}");
        let number = found.steps.len() as u64;
        assert!(found.from_s + number * 10 > now_s);
    }
    // Even if most of the range is in the future.
    let found = ask(BEGIN + 20, BEGIN + 400 * DAY, DAY, BEGIN + 24);
    assert_eq!(found.steps.iter().flatten().count(), 1);
}

#[test]
fn first_format_is_migrated_once() {
    let folder = tempfile::tempdir().unwrap();
    let minute = BEGIN / MINUTE - 500;
    first_version(folder.path(), BEGIN + 1..=BEGIN + 20, minute);
    let now_s = BEGIN + 21;
    let store = opened(folder.path(), now_s);
    let seconds: Vec<Option<f32>> = (1..=20).map(|at| Some(at as f32)).collect();
    assert_eq!(told(&store, BEGIN + 1, now_s, 1, now_s), seconds);
    let from_s = minute * MINUTE;
    assert_eq!(
        told(&store, from_s, from_s + MINUTE, 60, now_s),
        [Some(77.0)]
    );
    let tier = Query {
        object: "tier/tank/fast",
        from_s: BEGIN + 1,
        to_s: BEGIN + 2,
        step_s: Some(1),
    };
    let step = store.read(&tier, now_s).unwrap().steps[0].unwrap();
    let known: Vec<(&str, f32)> = (Kind::Tier.names().zip(step))
        .filter(|(_, value)| !value.is_nan())
        .map(|((name, _), value)| (name, value))
        .collect();
    let wanted = [
        ("served_bytes", 5.0),
        ("moved_in_bytes", 6.0),
        ("used", 7.0),
        ("dirty", 8.0),
        ("shadow", 9.0),
    ];
    assert_eq!(known, wanted);
    // Recording continues; the next daemon has nothing to migrate.
    write(&store, now_s, 8.0);
    drop(store);
    let path = |name: &str| folder.path().join(FOLDER).join(name);
    assert!(!path("data").exists());
    let store = opened(folder.path(), now_s + 1);
    let seconds = told(&store, now_s - 1, now_s + 1, 1, now_s + 1);
    assert_eq!(seconds, [Some(20.0), Some(8.0)]);
}

#[test]
fn interrupted_migration_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (seconds, now_s) = (BEGIN + 1..=BEGIN + 3, BEGIN + 4);
    first_version(folder.path(), seconds.clone(), 0);
    drop(opened(folder.path(), now_s));
    // Power failure before the index was written: index and old file are unchanged, the new data is
    // lost.
    let figures = folder.path().join(FOLDER).join(FIGURES);
    std::fs::write(figures, []).unwrap();
    first_version(folder.path(), seconds, 0);
    let store = opened(folder.path(), now_s);
    let seconds = told(&store, BEGIN + 1, now_s, 1, now_s);
    assert_eq!(seconds, [Some(1.0), Some(2.0), Some(3.0)]);
}

#[test]
fn failed_migration_sets_the_file_aside() {
    let folder = tempfile::tempdir().unwrap();
    first_version(folder.path(), BEGIN + 1..=BEGIN + 3, 0);
    let path = |name: &str| folder.path().join(FOLDER).join(name);
    // A missing file cannot be read.
    std::fs::remove_file(path("data")).unwrap();
    std::fs::create_dir(path("data")).unwrap();
    let store = opened(folder.path(), BEGIN + 4);
    assert!(path(first::ASIDE).exists() && !path("data").exists());
    write(&store, BEGIN + 4, 2.0);
    let seconds = told(&store, BEGIN + 3, BEGIN + 5, 1, BEGIN + 5);
    assert_eq!(seconds, [None, Some(2.0)]);
}
