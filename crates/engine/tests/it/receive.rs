//! Volumes that are received: how far they are goes where the pool goes, and what they hold is known
//! by the same identity in both pools.

use crate::support::{self, Client, Folder, MIB, engine, pattern, start_again, tiered, volume};
use engine::{Engine, EngineError, ErrorCode, ReceiveSpec, ReceiveStatus};
use units::{PoolId, SnapshotId};

fn id(epoch: u32) -> SnapshotId {
    SnapshotId {
        pool: PoolId(7 << 90),
        epoch,
        created_s: 1_800_000_000 + u64::from(epoch),
    }
}

fn spec(snapshot: &str, to: u32, from: Option<u32>) -> ReceiveSpec {
    ReceiveSpec {
        snapshot: snapshot.to_owned(),
        to: id(to),
        from: from.map(id),
        size: 8 * MIB,
        lba_size: 4096,
        start: 0,
    }
}

fn receiving(engine: &Engine) -> Option<ReceiveStatus> {
    let mut volumes = engine.volume_list("tank").unwrap().into_iter();
    let found = volumes.find(|known| known.name == "v");
    found.unwrap().receiving
}

fn code<T: std::fmt::Debug>(result: Result<T, EngineError>) -> ErrorCode {
    result.unwrap_err().code
}

/// A volume `v` with a snapshot `a` that was received.
fn with_received(engine: &Engine) {
    let first = spec("a", 5, None);
    assert_eq!(engine.receive_begin("tank", "v", &first, false), Ok(0));
    let client = Client::open(engine, "tank", "v");
    client.write(MIB, &pattern(1, MIB as usize)).unwrap();
    client.flush().unwrap();
    engine.receive_end("tank", "v").unwrap();
}

#[test]
fn how_far_it_is_outlives_the_engine_and_its_end_is_one_step() {
    let folder = Folder::new();
    let mut engine = engine(1);
    let pool = tiered(&folder, "tank", 1, 128, 192);
    engine.pool_create(&pool).unwrap();
    let first = spec("a", 5, None);
    assert_eq!(engine.receive_begin("tank", "v", &first, false), Ok(0));
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &pattern(1, MIB as usize)).unwrap();
    client.flush().unwrap();
    drop(client);
    engine.receive_mark("tank", "v", MIB).unwrap();
    for hard in [true, false] {
        start_again(&mut engine, &pool, hard);
        let kept = receiving(&engine).unwrap();
        assert_eq!((kept.snapshot.as_str(), kept.done), ("a", MIB));
        assert_eq!((kept.to, kept.from), (id(5).to_string(), None));
    }
    // A mark never goes back, and another stream does not take its place.
    engine.receive_mark("tank", "v", 4096).unwrap();
    let late = ReceiveSpec {
        start: 2 * MIB,
        ..first.clone()
    };
    let begin = |spec: &ReceiveSpec| engine.receive_begin("tank", "v", spec, false);
    assert_eq!(code(begin(&late)), ErrorCode::Invalid);
    assert_eq!(code(begin(&spec("a", 6, None))), ErrorCode::Exists);
    assert_eq!(begin(&first), Ok(MIB));
    let taken = engine.receive_end("tank", "v").unwrap();
    assert_eq!(taken[0].identity, id(5).to_string());
    assert_eq!(
        (taken[0].name.as_str(), taken[0].created_s),
        ("a", id(5).created_s)
    );
    assert_eq!(receiving(&engine), None);
    assert_eq!(code(engine.receive_end("tank", "v")), ErrorCode::NotFound);
    start_again(&mut engine, &pool, true);
    assert_eq!(receiving(&engine), None);
    let listed = engine.snapshot_list("tank", Some("v")).unwrap();
    assert_eq!(listed[0].identity, id(5).to_string());
}

#[test]
fn what_is_received_on_top_needs_the_snapshot_and_nothing_written_since() {
    let folder = Folder::new();
    let engine = engine(1);
    let pool = tiered(&folder, "tank", 2, 128, 192);
    engine.pool_create(&pool).unwrap();
    with_received(&engine);
    let begin = |spec: &ReceiveSpec, force| engine.receive_begin("tank", "v", spec, force);
    assert_eq!(
        code(begin(&spec("a", 6, Some(5)), false)),
        ErrorCode::Exists
    );
    assert_eq!(
        code(begin(&spec("b", 5, Some(4)), false)),
        ErrorCode::Exists
    );
    assert_eq!(
        code(begin(&spec("b", 6, Some(4)), false)),
        ErrorCode::NotFound
    );
    let none = engine.receive_begin("tank", "w", &spec("b", 6, Some(5)), false);
    assert_eq!(code(none), ErrorCode::NotFound);

    let client = Client::open(&engine, "tank", "v");
    client.write(3 * MIB, &pattern(2, 4096)).unwrap();
    let next = spec("b", 6, Some(5));
    assert_eq!(code(begin(&next, false)), ErrorCode::Refused);
    assert_eq!(receiving(&engine), None);
    assert_eq!(begin(&next, true), Ok(0));
    assert_eq!(client.read(3 * MIB, 4096).unwrap(), vec![0; 4096]);

    // A part of it is there: only the same continues, or with force another.
    client.write(MIB, &pattern(3, 4096)).unwrap();
    client.flush().unwrap();
    engine.receive_mark("tank", "v", 2 * MIB).unwrap();
    assert_eq!(begin(&next, false), Ok(2 * MIB));
    assert_eq!(code(begin(&spec("c", 8, Some(5)), false)), ErrorCode::Busy);
    let other = ReceiveSpec {
        size: 16 * MIB,
        ..spec("c", 8, Some(5))
    };
    assert_eq!(begin(&other, true), Ok(0));
    assert_eq!(client.read(MIB, 4096).unwrap(), pattern(1, 4096));
    assert_eq!(engine.volume_list("tank").unwrap()[0].size, 16 * MIB);
    engine.receive_end("tank", "v").unwrap();
    let listed = engine.snapshot_list("tank", Some("v")).unwrap();
    let sizes: Vec<_> = listed.iter().map(|known| known.size / MIB).collect();
    assert_eq!(sizes, [8, 16]);
}

#[test]
fn a_volume_that_was_made_smaller_does_not_hold_the_snapshot_any_more() {
    let folder = Folder::new();
    let engine = engine(1);
    let pool = tiered(&folder, "tank", 1, 128, 192);
    engine.pool_create(&pool).unwrap();
    with_received(&engine);
    engine.volume_resize("tank", "v", MIB, true).unwrap();
    let next = spec("b", 6, Some(5));
    let begin = |force| engine.receive_begin("tank", "v", &next, force);
    assert_eq!(code(begin(false)), ErrorCode::Refused);
    assert_eq!(receiving(&engine), None);
    assert_eq!(begin(true), Ok(0));
    let client = Client::open(&engine, "tank", "v");
    let kept = client.read(MIB, MIB as usize).unwrap();
    assert_eq!(kept, pattern(1, MIB as usize));
}

#[test]
fn a_part_is_forgotten_with_its_volume_and_by_rolling_back() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 128, 192))
        .unwrap();
    with_received(&engine);
    let next = spec("b", 6, Some(5));
    engine.receive_begin("tank", "v", &next, false).unwrap();
    engine.volume_roll_back("tank", "v", "a").unwrap();
    assert_eq!(receiving(&engine), None);
    assert_eq!(
        code(engine.receive_mark("tank", "v", MIB)),
        ErrorCode::NotFound
    );

    let first = spec("a", 9, None);
    engine.receive_begin("tank", "w", &first, false).unwrap();
    let job = engine.volume_delete("tank", "w").unwrap();
    assert_eq!(support::wait_job(&engine, job).0, "done");
    assert_eq!(engine.receive_begin("tank", "w", &first, false), Ok(0));
}

#[test]
fn a_snapshot_of_this_pool_has_an_identity_that_stays() {
    let folder = Folder::new();
    let mut engine = engine(1);
    let pool = tiered(&folder, "tank", 1, 128, 192);
    let made = engine.pool_create(&pool).unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    let volumes = ["v".to_owned()];
    let mut known = Vec::new();
    for (name, now_s) in [("a", 100), ("b", 200), ("c", 300)] {
        let client = Client::open(&engine, "tank", "v");
        client.write(now_s * 4096, &pattern(now_s, 4096)).unwrap();
        let taken = engine
            .snapshot_create("tank", &volumes, name, now_s)
            .unwrap();
        let id: SnapshotId = taken[0].identity.parse().unwrap();
        assert_eq!(
            (id.pool.to_string(), id.created_s),
            (made.id.clone(), now_s)
        );
        known.push(taken[0].identity.clone());
    }
    engine
        .snapshot_change("tank", "v", "b", Some("renamed"), None)
        .unwrap();
    engine
        .snapshot_delete("tank", "v", &["a".to_owned()])
        .unwrap();
    support::wait_jobs(&engine);
    start_again(&mut engine, &pool, true);
    let listed = engine.snapshot_list("tank", None).unwrap();
    let now: Vec<_> = listed.into_iter().map(|known| known.identity).collect();
    assert_eq!(now, known[1..]);
}
