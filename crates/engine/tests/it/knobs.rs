//! Settings of volumes, changed while volumes are used: kept in the labels, refused where the
//! pool cannot keep to them.

use crate::support::limits::{change, right, show};
use crate::support::{
    Client, Folder, MIB, engine, pattern, start_again, tiered, volume, wait_status,
};
use engine::{
    Engine, ErrorCode, KnobsChange, KnobsStatus, Pin, PinChange, Reaction, Tier, VolumeChange,
};

fn turn(engine: &Engine, name: &str, knobs: KnobsChange) -> Result<KnobsStatus, ErrorCode> {
    let to = VolumeChange {
        knobs,
        ..VolumeChange::default()
    };
    change(engine, name, to).map(|status| status.knobs)
}

fn pin(offset: u64, length: u64, tier: Option<Tier>) -> KnobsChange {
    let pin = PinChange {
        offset,
        length: (length > 0).then_some(length),
        tier,
    };
    KnobsChange {
        pins: vec![pin],
        ..KnobsChange::default()
    }
}

/// Waits until a volume has as many bytes on the fast tier.
fn wait_fast(engine: &Engine, name: &str, bytes: u64) {
    wait_status(engine, "tank", |_| show(engine, name).fast == bytes);
}

#[test]
fn knobs_outlive_an_engine_and_go_when_they_are_turned_back() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let before = show(&engine, "v").knobs;
    let set = KnobsChange {
        promotion: Some(false),
        fast_floor: Some(4 * MIB - 1),
        fast_ceiling: Some(8 * MIB),
        reaction: Some(Reaction::Thrifty),
        write_budget: Some(5 * MIB),
        ..pin(MIB + 1, 1, Some(Tier::Fast))
    };
    let turned = turn(&engine, "v", set).unwrap();
    let pins = vec![Pin {
        offset: MIB,
        length: Some(64 << 10),
        tier: Tier::Fast,
    }];
    assert_eq!((turned.promotion, &turned.pins), (false, &pins));
    assert_eq!((turned.fast_floor, turned.fast_ceiling), (4 * MIB, 8 * MIB));
    for hard in [false, true] {
        start_again(&mut engine, &spec, hard);
        assert_eq!(show(&engine, "v").knobs, turned);
    }
    // What is not named stays.
    let more = turn(&engine, "v", pin(2 * MIB, MIB, Some(Tier::Slow))).unwrap();
    assert_eq!((more.pins.len(), more.reaction), (2, Reaction::Thrifty));
    let back = KnobsChange {
        promotion: Some(true),
        fast_floor: Some(0),
        fast_ceiling: Some(0),
        reaction: Some(Reaction::Normal),
        write_budget: Some(0),
        ..pin(0, 0, None)
    };
    assert_eq!(turn(&engine, "v", back), Ok(before.clone()));
    start_again(&mut engine, &spec, false);
    assert_eq!(show(&engine, "v").knobs, before);
}

#[test]
fn what_the_fast_tier_has_no_room_for_is_refused() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 192, 256))
        .unwrap();
    engine.volume_create("tank", &volume("v", 512)).unwrap();
    engine.volume_create("tank", &volume("w", 64)).unwrap();
    let room = engine.pool_status("tank").unwrap().fast_capacity / 16 * 15;
    assert_eq!(
        turn(&engine, "v", pin(0, 0, Some(Tier::Fast))).unwrap_err(),
        ErrorCode::Refused
    );
    turn(&engine, "w", pin(0, 0, Some(Tier::Fast))).unwrap();
    let left = (room - 64 * MIB) / (64 << 10) * (64 << 10);
    let floor = |bytes| KnobsChange {
        fast_floor: Some(bytes),
        ..KnobsChange::default()
    };
    assert_eq!(
        turn(&engine, "v", floor(left + 4096 * 32)).unwrap_err(),
        ErrorCode::Refused
    );
    turn(&engine, "v", floor(left)).unwrap();
    // What is pinned whole grows with its volume.
    let grown = engine.volume_resize("tank", "w", 80 * MIB, false);
    assert_eq!(grown.unwrap_err().code, ErrorCode::Refused);
    turn(&engine, "v", floor(0)).unwrap();
    engine.volume_resize("tank", "w", 80 * MIB, false).unwrap();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = Folder::new();
    let engine = engine(1);
    let mut spec = tiered(&folder, "tank", 1, 192, 256);
    spec.vdrives.truncate(1);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let wrong = |knobs| turn(&engine, "v", knobs).unwrap_err();
    // There is no slow tier.
    assert_eq!(wrong(pin(0, 0, Some(Tier::Slow))), ErrorCode::Invalid);
    assert_eq!(wrong(pin(64 * MIB, MIB, None)), ErrorCode::Invalid);
    let limits = KnobsChange {
        fast_floor: Some(2 * MIB),
        fast_ceiling: Some(MIB),
        ..KnobsChange::default()
    };
    assert_eq!(wrong(limits), ErrorCode::Invalid);
    let ceiling = KnobsChange {
        fast_ceiling: Some(MIB),
        ..pin(0, 2 * MIB, Some(Tier::Fast))
    };
    assert_eq!(wrong(ceiling), ErrorCode::Invalid);
    let much = KnobsChange {
        write_budget: Some(u64::MAX),
        ..KnobsChange::default()
    };
    assert_eq!(wrong(much), ErrorCode::Invalid);
    let many = KnobsChange {
        pins: (0..17)
            .map(|number| pin(number * MIB, 4096, Some(Tier::Fast)).pins[0])
            .collect(),
        ..KnobsChange::default()
    };
    assert_eq!(wrong(many), ErrorCode::Invalid);
    assert_eq!(show(&engine, "v").knobs.pins, []);
}

#[test]
fn a_pinned_volume_is_on_its_tier_after_every_opening() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 512);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    for at in 0..8 {
        let bytes = pattern(at, MIB as usize);
        client.write(at * MIB, &bytes).unwrap();
    }
    engine.pool_cool("tank").unwrap();
    assert_eq!(show(&engine, "v").fast, 0);
    turn(&engine, "v", pin(0, 0, Some(Tier::Fast))).unwrap();
    wait_fast(&engine, "v", 8 * MIB);
    right(&engine);
    // Cooling the pool works, and pinned data is promoted again.
    engine.pool_cool("tank").unwrap();
    wait_fast(&engine, "v", 8 * MIB);
    turn(&engine, "v", pin(0, 0, None)).unwrap();
    engine.pool_cool("tank").unwrap();
    assert_eq!(show(&engine, "v").fast, 0);
    turn(&engine, "v", pin(2 * MIB, 2 * MIB, Some(Tier::Fast))).unwrap();
    wait_fast(&engine, "v", 2 * MIB);
    start_again(&mut engine, &spec, false);
    let client = Client::open(&engine, "tank", "v");
    engine.pool_cool("tank").unwrap();
    wait_fast(&engine, "v", 2 * MIB);
    // What was written is demoted and leaves where it is pinned to the slow tier.
    turn(&engine, "v", pin(0, 0, Some(Tier::Slow))).unwrap();
    client.write(5 * MIB, &pattern(99, 4096)).unwrap();
    wait_fast(&engine, "v", 0);
    for at in (0..8).filter(|at| *at != 5) {
        assert_eq!(
            client.read(at * MIB, MIB as usize).unwrap(),
            pattern(at, MIB as usize)
        );
    }
    assert_eq!(client.read(5 * MIB, 4096).unwrap(), pattern(99, 4096));
    right(&engine);
}

#[test]
fn what_a_snapshot_alone_has_is_not_pinned_and_what_the_volume_shares_is() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 192, 512);
    let engine = engine(1);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    for at in 0..4 {
        client.write(at * MIB, &pattern(at, MIB as usize)).unwrap();
    }
    engine
        .snapshot_create("tank", &["v".to_owned()], "s", 1)
        .unwrap();
    // The volume has one MiB of its own from now on, and shares three.
    client.write(0, &pattern(9, MIB as usize)).unwrap();
    engine.pool_cool("tank").unwrap();
    assert_eq!(show(&engine, "v").fast, 0);
    turn(&engine, "v", pin(0, 0, Some(Tier::Fast))).unwrap();
    // The snapshot's layer was made first, and is examined first.
    wait_status(&engine, "tank", |_| {
        let seen = engine.volume_map("tank", "v", 0..u64::MAX, 64).unwrap();
        seen.iter().map(|cell| cell.fast).sum::<u64>() == 4 * MIB
    });
    assert_eq!(show(&engine, "v").fast, 4 * MIB);
    right(&engine);
}
