//! Initiators that a volume bypasses: their reads leave no trace in placement, from the moment of the
//! setting until it is changed.

use crate::support::limits::{change, right, show};
use crate::support::{Client, Folder, MIB, engine, pattern, start_again, tiered, volume};
use block::OpKind;
use engine::{Engine, ErrorCode, IoCounters, KnobsChange, VolumeChange};
use std::time::Duration;

/// MiB of the volume.
const MIBS: u64 = 16;

fn bypass(engine: &Engine, names: &[&str]) -> Result<Vec<String>, ErrorCode> {
    let names = names.iter().map(|name| (*name).to_owned());
    let knobs = KnobsChange {
        bypass: Some(names.collect()),
        ..KnobsChange::default()
    };
    let to = VolumeChange {
        knobs,
        ..VolumeChange::default()
    };
    change(engine, "v", to).map(|status| status.knobs.bypass)
}

fn open(engine: &Engine, name: &str, initiator: &str) -> Client {
    Client(engine.volume_open("tank", name, Some(initiator)).unwrap())
}

/// A volume that is on the slow tier alone.
fn cold(folder: &Folder) -> Engine {
    let engine = engine(2);
    engine
        .pool_create(&tiered(folder, "tank", 2, 192, 512))
        .unwrap();
    engine.volume_create("tank", &volume("v", MIBS)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    for at in 0..MIBS {
        client.write(at * MIB, &pattern(at, MIB as usize)).unwrap();
    }
    cool(&engine);
    engine
}

/// Brings all of it to the slow tier. Earlier reads may still be being promoted: it is there when it was so for
/// several times.
fn cool(engine: &Engine) {
    let mut times = 0;
    for _ in 0..1200 {
        engine.pool_cool("tank").unwrap();
        std::thread::park_timeout(Duration::from_millis(50));
        times = if warm(engine, "v") == (0, 0) {
            times + 1
        } else {
            0
        };
        if times == 3 {
            return;
        }
    }
    panic!("it does not get cold: {:?}", warm(engine, "v"));
}

/// Reads all of it, 64 KiB at a time.
fn scan(client: &Client) {
    for at in 0..MIBS {
        let expected = pattern(at, MIB as usize);
        for part in 0..16usize {
            let (offset, len) = (part << 16, 1 << 16);
            let read = client.read(at * MIB + offset as u64, len).unwrap();
            assert!(read == expected[offset..offset + len], "{at} {part}");
        }
    }
}

/// Bytes of the volume in RAM and on the fast tier.
fn warm(engine: &Engine, name: &str) -> (u64, u64) {
    let map = engine.volume_map("tank", name, 0..u64::MAX, 4).unwrap();
    let sum = |of: fn(&engine::MapCell) -> u64| map.iter().map(of).sum();
    (sum(|cell| cell.ram), sum(|cell| cell.fast))
}

fn bypassed(counters: IoCounters) -> (u64, u64, u64) {
    let IoCounters {
        bypassed_reads,
        bypassed_writes,
        bypassed_blocks,
        ..
    } = counters;
    (bypassed_reads, bypassed_writes, bypassed_blocks)
}

#[test]
fn two_who_have_a_volume_open_are_told_apart_and_a_change_reaches_both_at_once() {
    let folder = Folder::new();
    let engine = cold(&folder);
    let (backup, other) = (open(&engine, "v", "backup"), open(&engine, "v", "other"));
    let counted = || bypassed(engine.volume_counters("tank", "v").unwrap());
    bypass(&engine, &["backup"]).unwrap();
    scan(&backup);
    assert_eq!(warm(&engine, "v"), (0, 0));
    let scanned = (MIBS * 16, 0, MIBS * 256);
    assert_eq!(counted(), scanned);
    scan(&other);
    assert!(warm(&engine, "v").0 > 0);
    assert_eq!(counted(), scanned);
    // The other way round, for devices that are open.
    cool(&engine);
    bypass(&engine, &["other", "third"]).unwrap();
    scan(&other);
    assert_eq!(warm(&engine, "v"), (0, 0));
    assert_eq!(counted().0, 2 * scanned.0);
    scan(&backup);
    assert!(warm(&engine, "v").0 > 0);
    // None, and not a similar name.
    for names in [&[][..], &["Backup", "backup "]] {
        cool(&engine);
        bypass(&engine, names).unwrap();
        scan(&backup);
        assert!(warm(&engine, "v").0 > 0, "{names:?}");
    }
    assert_eq!(counted().0, 2 * scanned.0);
    // Who has no name is never bypassed.
    bypass(&engine, &["backup", "other"]).unwrap();
    cool(&engine);
    scan(&Client::open(&engine, "tank", "v"));
    assert!(warm(&engine, "v").0 > 0);
    let all = engine.pool_counters("tank").unwrap();
    assert_eq!(bypassed(all), counted());
    assert_eq!(show(&engine, "v").knobs.bypassed[0], counted().0);
    right(&engine);
}

#[test]
fn what_somebody_writes_who_is_bypassed_is_as_safe_as_any_write() {
    let folder = Folder::new();
    let mut engine = cold(&folder);
    bypass(&engine, &["restore"]).unwrap();
    let client = open(&engine, "v", "restore");
    client.write(MIB, &pattern(99, 8192)).unwrap();
    client.write(5 * MIB + 512, &pattern(98, 1024)).unwrap();
    client.discard(7 * MIB, MIB).unwrap();
    client.flush().unwrap();
    // Others see it, and it is there after a crash; who is bypassed is, too.
    let spec = tiered(&folder, "tank", 2, 192, 512);
    for _ in 0..2 {
        let other = Client::open(&engine, "tank", "v");
        assert_eq!(other.read(MIB, 8192).unwrap(), pattern(99, 8192));
        let part = other.read(5 * MIB + 512, 1024).unwrap();
        assert_eq!(part, pattern(98, 1024));
        assert_eq!(other.read(7 * MIB, 4096).unwrap(), [0; 4096]);
        drop(other);
        assert_eq!(show(&engine, "v").knobs.bypass, ["restore"]);
        right(&engine);
        start_again(&mut engine, &spec, true);
    }
    let counted = || bypassed(engine.volume_counters("tank", "v").unwrap());
    assert_eq!(counted(), (0, 0, 0));
    let client = open(&engine, "v", "restore");
    client.write(MIB + 512, &pattern(1, 512)).unwrap();
    client.read(MIB, 8192).unwrap();
    assert_eq!(counted(), (1, 1, 3));
}

#[test]
fn a_backup_of_a_snapshot_goes_by_its_volume() {
    let folder = Folder::new();
    let engine = cold(&folder);
    let snapshot = |name: &str| {
        let volumes = ["v".to_owned()];
        engine.snapshot_create("tank", &volumes, name, 1).unwrap();
    };
    bypass(&engine, &["backup"]).unwrap();
    snapshot("s");
    let client = open(&engine, "v@s", "backup");
    scan(&client);
    assert_eq!(warm(&engine, "v"), (0, 0));
    let counted = || bypassed(engine.volume_counters("tank", "v").unwrap());
    assert_eq!(counted(), (MIBS * 16, 0, MIBS * 256));
    // The next snapshot leaves what was counted as it is, and who has the volume open.
    let volume = open(&engine, "v", "backup");
    snapshot("t");
    scan(&volume);
    assert_eq!(warm(&engine, "v"), (0, 0));
    assert_eq!(counted().0, 2 * MIBS * 16);
    bypass(&engine, &[]).unwrap();
    scan(&client);
    assert!(warm(&engine, "v").0 > 0);
    assert_eq!(counted().0, 2 * MIBS * 16);
    // It is notified of snapshots for comparison, and of its end, like all that have it open.
    let plain = Client::open(&engine, "tank", "v").0.bases();
    assert_eq!((plain.len(), volume.0.bases()), (2, plain));
    engine
        .snapshot_delete("tank", "v", &["s".to_owned()])
        .unwrap();
    assert!(client.0.is_gone() && !volume.0.is_gone());
    let answer = client.run(OpKind::Read, 0, 512, block::IoBuf::zeroed(512), false);
    assert!(answer.result.is_err());
}

#[test]
fn nobody_can_be_called_what_is_no_name() {
    let folder = Folder::new();
    let engine = cold(&folder);
    let long = "x".repeat(224);
    for name in ["", "a\nb", "a\u{7f}", long.as_str()] {
        let opened = engine.volume_open("tank", "v", Some(name));
        assert_eq!(opened.err().unwrap().code, ErrorCode::Invalid, "{name:?}");
        assert_eq!(bypass(&engine, &["good", name]), Err(ErrorCode::Invalid));
    }
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    assert_eq!(bypass(&engine, &names), Err(ErrorCode::Invalid));
    assert!(show(&engine, "v").knobs.bypass.is_empty());
    let longest = "x".repeat(223);
    let good = ["b", "é", longest.as_str(), "b"];
    assert_eq!(bypass(&engine, &good).unwrap(), good[..3]);
    bypass(&engine, &names[..8]).unwrap();
    let missing = engine.volume_open("tank", "w", Some("a"));
    assert_eq!(missing.err().unwrap().code, ErrorCode::NotFound);
}

#[test]
fn every_part_of_every_operation_is_bypassed() {
    let folder = Folder::new();
    let engine = cold(&folder);
    engine.volume_resize("tank", "v", 512 * MIB, false).unwrap();
    bypass(&engine, &["backup"]).unwrap();
    // Two shards have a part of the first each.
    let (across, alone) = (256 * MIB - 4096, 300 * MIB);
    let used = || {
        [across, across + 4096, alone].map(|offset| {
            let told = engine.volume_explain("tank", "v", offset / 512).unwrap();
            assert!(!told.places.is_empty());
            told.heat.is_some()
        })
    };
    let backup = open(&engine, "v", "backup");
    backup.write(across, &pattern(5, 8192)).unwrap();
    backup.write(alone, &pattern(6, 4096)).unwrap();
    assert_eq!(backup.read(across, 8192).unwrap(), pattern(5, 8192));
    backup.discard(alone + 512, 1024).unwrap();
    assert_eq!(used(), [false; 3]);
    cool(&engine);
    assert_eq!(backup.read(across, 8192).unwrap(), pattern(5, 8192));
    assert_eq!(used(), [false; 3]);
    let other = open(&engine, "v", "other");
    other.read(across, 8192).unwrap();
    assert_eq!(used(), [true, true, false]);
    other.discard(alone + 512, 1024).unwrap();
    assert_eq!(used(), [true; 3]);
}
