//! How full a pool says that its parts are, and the levels at which it is to be warned.

use crate::support::{
    self, BLOCK, Client, Folder, MIB, engine, pattern, tiered, volume, wait_status,
};
use engine::{Engine, ErrorCode, FillPart, FillStatus, SpacePolicy};

fn fill(engine: &Engine, part: FillPart) -> Option<FillStatus> {
    let status = engine.pool_status("tank").unwrap();
    status.fills.into_iter().find(|fill| fill.part == part)
}

#[test]
fn parts_fill_with_what_is_written_and_promised() {
    let folder = Folder::new();
    let mut engine = engine(1);
    let spec = tiered(&folder, "tank", 1, 128, 256);
    engine.pool_create(&spec).unwrap();
    for (name, mib) in [("a", 300), ("b", 200)] {
        engine.volume_create("tank", &volume(name, mib)).unwrap();
    }
    let status = engine.pool_status("tank").unwrap();
    assert_eq!(status.promised, 500 * MIB);
    assert!(status.promised > status.capacity);
    let parts: Vec<FillPart> = status.fills.iter().map(|fill| fill.part).collect();
    let all = [
        FillPart::Space,
        FillPart::Metadata,
        FillPart::Fast,
        FillPart::Slow,
    ];
    assert_eq!(parts, all);
    assert_eq!(status.fills[0].used, 0);
    assert_eq!(status.fills[0].capacity, status.capacity);

    let before = fill(&engine, FillPart::Metadata).unwrap();
    let client = Client::open(&engine, "tank", "a");
    for chunk in 0..32 {
        client
            .write(chunk * MIB, &pattern(chunk + 1, MIB as usize))
            .unwrap();
    }
    client.flush().unwrap();
    assert_eq!(fill(&engine, FillPart::Space).unwrap().used, 32 * MIB);
    // It is demoted: then none of it is on the fast tier alone.
    engine.pool_cool("tank").unwrap();
    wait_status(&engine, "tank", |status| {
        let used = |part: usize| status.fills[part].used;
        used(2) == 0 && used(3) >= 32 * MIB
    });
    // Closing the pool writes the pages.
    drop(client);
    support::start_again(&mut engine, &spec, false);
    let metadata = fill(&engine, FillPart::Metadata).unwrap();
    let room = before.used + 32 * BLOCK..metadata.capacity;
    assert!(room.contains(&metadata.used), "{metadata:?}, {before:?}");

    // A thick volume is promised its space, and its size counts until it is deleted.
    let mut thick = volume("thick", 64);
    thick.thick = true;
    engine.volume_create("tank", &thick).unwrap();
    assert_eq!(fill(&engine, FillPart::Space).unwrap().used, 96 * MIB);
    engine.volume_delete("tank", "thick").unwrap();
    engine.volume_delete("tank", "b").unwrap();
    wait_status(&engine, "tank", |status| {
        status.promised == 300 * MIB && status.fills[0].used == 32 * MIB
    });
    engine.shutdown();
}

#[test]
fn a_fast_tier_that_is_to_be_full_is_no_part() {
    let folder = Folder::new();
    let engine = engine(1);
    let mut spec = tiered(&folder, "tank", 1, 128, 256);
    spec.policy = SpacePolicy::FastFirst;
    engine.pool_create(&spec).unwrap();
    assert_eq!(fill(&engine, FillPart::Fast), None);
    assert!(fill(&engine, FillPart::Slow).is_some());
    engine.pool_destroy("tank").unwrap();

    let folder = Folder::new();
    let mut spec = tiered(&folder, "tank", 1, 128, 256);
    spec.vdrives.truncate(1);
    engine.pool_create(&spec).unwrap();
    let status = engine.pool_status("tank").unwrap();
    assert_eq!(status.fills.len(), 2, "{:?}", status.fills);
    engine.shutdown();
}

#[test]
fn levels_go_where_the_pool_goes() {
    let folder = Folder::new();
    let mut running = engine(1);
    let spec = tiered(&folder, "tank", 1, 128, 256);
    let made = running.pool_create(&spec).unwrap();
    assert_eq!(made.warn_at, [80, 90, 95]);
    for wrong in [
        &[90, 80][..],
        &[50, 50],
        &[9],
        &[101],
        &[10, 20, 30, 40, 50, 60, 70, 80, 90],
    ] {
        let refused = running.pool_warn_at("tank", wrong).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Invalid, "{refused}");
        assert!(refused.message.contains("from 10 to 100"), "{refused}");
    }
    assert_eq!(running.pool_status("tank").unwrap().warn_at, [80, 90, 95]);
    for levels in [&[10, 100][..], &[], &[80, 90, 95]] {
        running.pool_warn_at("tank", levels).unwrap();
        support::start_again(&mut running, &spec, true);
        assert_eq!(running.pool_status("tank").unwrap().warn_at, levels);
    }
    running.shutdown();
}
