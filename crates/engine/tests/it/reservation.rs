//! Reservations: what is kept for a volume is there when it is written, whatever others do.

use crate::support::limits::{REGION, change, is_full, right, show};
use crate::support::{
    BLOCK, Client, Folder, MIB, engine, pattern, start_again, tiered, volume, wait_jobs,
};
use engine::{Engine, ErrorCode, VolumeChange, VolumeSpec, VolumeStatus};

fn reserved(name: &str, mib: u64, reservation: u64) -> VolumeSpec {
    VolumeSpec {
        reservation,
        ..volume(name, mib)
    }
}

fn set(engine: &Engine, name: &str, reservation: u64) -> Result<VolumeStatus, ErrorCode> {
    let to = VolumeChange {
        reservation: Some(reservation),
        ..VolumeChange::default()
    };
    change(engine, name, to)
}

/// What the pool keeps for volumes and they do not store, in bytes.
fn kept(engine: &Engine) -> u64 {
    engine.pool_status("tank").unwrap().reserved
}

/// Writes pieces of 64 KiB to four regions concurrently until there is no space left.
fn fill(client: &Client) {
    let piece = 64 << 10;
    std::thread::scope(|scope| {
        for region in 0..4 {
            scope.spawn(move || {
                let places = (0..REGION / piece).map(|at| region * REGION + at * piece);
                for at in places {
                    if is_full(client.write(at, &pattern(at, piece as usize))) {
                        break;
                    }
                }
            });
        }
    });
    // And what single blocks still fit.
    for region in 0..4 {
        let last = region * REGION + REGION - MIB;
        let mut blocks = (0..MIB / BLOCK).map(|block| last + block * BLOCK);
        assert!(blocks.any(|at| is_full(client.write(at, &pattern(at, BLOCK as usize)))));
    }
}

#[test]
fn what_is_reserved_can_be_written_after_others_have_filled_the_pool() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    let bytes = 32 * MIB;
    let made = engine.volume_create("tank", &reserved("v", 1024, bytes - 5));
    assert_eq!(made.unwrap().reservation, bytes);
    engine
        .volume_create("tank", &volume("other", 1024))
        .unwrap();
    let (v, other) = (
        Client::open(&engine, "tank", "v"),
        Client::open(&engine, "tank", "other"),
    );
    v.write(0, &pattern(0, MIB as usize)).unwrap();
    let unused = bytes - MIB;
    assert_eq!(
        (show(&engine, "v").reserved, kept(&engine)),
        (unused, unused)
    );
    fill(&other);
    right(&engine);
    start_again(&mut engine, &spec, true);
    let (v, other) = (
        Client::open(&engine, "tank", "v"),
        Client::open(&engine, "tank", "other"),
    );
    assert_eq!(kept(&engine), unused);
    assert!(is_full(other.write(REGION - BLOCK, &[7; 4096])));
    // In both shards' regions, to the last block.
    for at in (1..bytes / MIB).map(|at| (at % 4) * REGION + at * MIB) {
        v.write(at, &pattern(at, MIB as usize)).unwrap();
    }
    assert_eq!((show(&engine, "v").reserved, kept(&engine)), (0, 0));
    assert!(is_full(v.write(3 * REGION, &[7; 4096])));
    assert!(is_full(other.write(REGION - BLOCK, &[7; 4096])));
    right(&engine);
    // Space that it discards stays reserved for it.
    v.discard(0, MIB).unwrap();
    assert!(is_full(other.write(REGION - BLOCK, &[7; 4096])));
    v.write(REGION / 2, &pattern(1, MIB as usize)).unwrap();
    // What is no more reserved is for all.
    set(&engine, "v", bytes - MIB).unwrap();
    assert!(is_full(other.write(REGION - BLOCK, &[7; 4096])));
    v.discard(REGION / 2, MIB).unwrap();
    other.write(REGION - BLOCK, &[7; 4096]).unwrap();
    right(&engine);
    engine.shutdown();
}

#[test]
fn a_shard_gets_the_groups_that_another_one_can_do_without() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 256, 512);
    for again in [false, true] {
        let mut engine = engine(2);
        engine.pool_create(&spec).unwrap();
        engine
            .volume_create("tank", &reserved("v", 4096, 64 * MIB))
            .unwrap();
        engine
            .volume_create("tank", &volume("other", 4096))
            .unwrap();
        let other = Client::open(&engine, "tank", "other");
        // What is demoted leaves copies; both shards fill at their own pace.
        for size in [MIB, BLOCK] {
            let places = (0..1024).map(|at| at * 4 * MIB + 2 * (MIB - size));
            let written =
                places.take_while(|at| !is_full(other.write(*at, &pattern(*at, size as usize))));
            assert!(written.count() < 1024);
        }
        if again {
            start_again(&mut engine, &spec, true);
        }
        let v = Client::open(&engine, "tank", "v");
        for at in (0..64).map(|at| (at % 4) * 1024 * MIB + at * MIB) {
            v.write(at, &pattern(at, MIB as usize)).unwrap();
        }
        assert_eq!(kept(&engine), 0);
        right(&engine);
        engine.pool_destroy("tank").unwrap();
        engine.shutdown();
    }
}

#[test]
fn a_reservation_counts_what_snapshots_hold_and_ends_with_its_volume() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    let bytes = 8 * MIB;
    engine.volume_create("tank", &volume("v", 600)).unwrap();
    let v = Client::open(&engine, "tank", "v");
    v.write(0, &pattern(0, 2 * MIB as usize)).unwrap();
    // One that is set while the volume has something keeps the rest.
    set(&engine, "v", bytes).unwrap();
    assert_eq!(kept(&engine), 6 * MIB);
    let of = ["v".to_owned()];
    engine.snapshot_create("tank", &of, "one", 7).unwrap();
    v.write(0, &pattern(9, 2 * MIB as usize)).unwrap();
    assert_eq!(kept(&engine), 4 * MIB);
    engine.snapshot_clone("tank", "v", "one", "clone").unwrap();
    let clone = Client::open(&engine, "tank", "clone");
    clone.write(0, &pattern(8, MIB as usize)).unwrap();
    assert_eq!(kept(&engine), 4 * MIB);
    // The clone takes over what the snapshot holds: so much more is kept for the volume.
    engine.volume_promote("tank", "clone").unwrap();
    assert_eq!(kept(&engine), 6 * MIB);
    right(&engine);
    start_again(&mut engine, &spec, true);
    assert_eq!(kept(&engine), 6 * MIB);
    // Not when the pool has not that much.
    let available = {
        let status = engine.pool_status("tank").unwrap();
        status.capacity - status.used - status.reserved
    };
    engine
        .volume_create("tank", &reserved("rest", 600, available))
        .unwrap();
    engine.volume_promote("tank", "v").unwrap();
    let grown = kept(&engine);
    set(&engine, "rest", available + 2 * MIB).unwrap();
    assert_eq!(
        engine.volume_promote("tank", "clone").unwrap_err().code,
        ErrorCode::Refused
    );
    assert_eq!(kept(&engine), grown + 2 * MIB);
    right(&engine);
    engine.volume_delete("tank", "rest").unwrap();
    engine.volume_promote("tank", "clone").unwrap();
    engine.volume_delete("tank", "v").unwrap();
    wait_jobs(&engine);
    assert_eq!(kept(&engine), 0);
    right(&engine);
    engine.shutdown();
}

#[test]
fn a_reservation_that_cannot_be_is_refused_and_takes_nothing() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 192, 256);
    let engine = engine(1);
    engine.pool_create(&spec).unwrap();
    let code = |spec: &VolumeSpec| engine.volume_create("tank", spec).unwrap_err().code;
    let capacity = engine.pool_status("tank").unwrap().capacity;
    assert_eq!(code(&reserved("v", 8, u64::MAX)), ErrorCode::Invalid);
    assert_eq!(code(&reserved("v", 8, capacity + 1)), ErrorCode::NoSpace);
    let thick = VolumeSpec {
        thick: true,
        ..reserved("v", 8, MIB)
    };
    assert_eq!(code(&thick), ErrorCode::Invalid);
    let narrow = VolumeSpec {
        quota: MIB,
        ..reserved("v", 8, MIB + 1)
    };
    assert_eq!(code(&narrow), ErrorCode::Invalid);
    assert_eq!(kept(&engine), 0);
    engine
        .volume_create("tank", &reserved("v", 8, MIB))
        .unwrap();
    assert_eq!(set(&engine, "v", capacity + 1), Err(ErrorCode::NoSpace));
    // Both together: neither is changed if one cannot be.
    let both = |quota, reservation| {
        let to = VolumeChange {
            quota: Some(quota),
            reservation: Some(reservation),
            ..VolumeChange::default()
        };
        change(&engine, "v", to)
    };
    assert_eq!(
        both(capacity + MIB, capacity + MIB),
        Err(ErrorCode::NoSpace)
    );
    assert_eq!(both(MIB, 2 * MIB), Err(ErrorCode::Invalid));
    let status = show(&engine, "v");
    assert_eq!((status.quota, status.reservation), (0, MIB));
    assert_eq!(kept(&engine), MIB);
    right(&engine);
    // All of it, and then no thick volume fits any longer.
    assert_eq!(both(capacity, capacity).unwrap().reserved, capacity);
    let thick = VolumeSpec {
        thick: true,
        ..volume("thick", 1)
    };
    assert_eq!(code(&thick), ErrorCode::NoSpace);
    set(&engine, "v", capacity - MIB).unwrap();
    engine.volume_create("tank", &thick).unwrap();
    let grown = engine.volume_resize("tank", "thick", 2 * MIB, false);
    assert_eq!(grown.unwrap_err().code, ErrorCode::NoSpace);
    set(&engine, "v", 0).unwrap();
    engine
        .volume_resize("tank", "thick", 2 * MIB, false)
        .unwrap();
    assert_eq!(kept(&engine), 2 * MIB);
    engine.volume_resize("tank", "thick", MIB, true).unwrap();
    assert_eq!(kept(&engine), MIB);
    right(&engine);
    engine.shutdown();
}
