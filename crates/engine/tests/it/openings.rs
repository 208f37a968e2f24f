//! What an opening makes valid, and a member that lacks it.

use crate::support::memory::{MemoryDrive, attach, detach};
use crate::support::{Client, MIB, engine, pattern, pool, vdrive, volume};
use engine::{Engine, LayoutSpec, Tier};
use format::{LABEL_SIZE, Label, label_offsets};

/// The newest label among a drive's bytes.
fn newest(bytes: &[u8]) -> Label {
    let labels = label_offsets(bytes.len() as u64).map(|at| {
        let at = at as usize;
        Label::decode(&bytes[at..at + LABEL_SIZE as usize]).ok()
    });
    let found = labels.into_iter().flatten();
    found.max_by_key(|label| label.generation).unwrap()
}

/// A mirror of two such drives, with a volume of which the first MiB was written.
fn mirrored(names: [&str; 2]) -> (Engine, [MemoryDrive; 2], [String; 2]) {
    let engine = engine(1);
    let drives = names.map(|name| MemoryDrive::new(name, 96));
    attach(&drives);
    let specs = names.map(str::to_owned);
    let fast = vdrive(Tier::Fast, LayoutSpec::Mirror, &specs);
    engine.pool_create(&pool("tank", 1, vec![fast])).unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &pattern(1, MIB as usize)).unwrap();
    client.flush().unwrap();
    drop(client);
    engine.pool_export("tank").unwrap();
    (engine, drives, specs)
}

/// A mirror is opened with its second member in this state: when the first member gets the record of recovery's
/// checkpoint, its label has to say that the second one is out.
fn is_told_first(names: [&str; 2], spoil: impl FnOnce(&MemoryDrive), here: usize) {
    let (engine, drives, specs) = mirrored(names);
    spoil(&drives[1]);
    drives[0].await_record();
    let status = engine
        .pool_import(&specs[..here], "tank", here < 2)
        .unwrap();
    assert_eq!(status.state, "degraded");
    let label = newest(&drives[0].before_record().expect("recovery's checkpoint"));
    let out: Vec<bool> = label
        .config
        .meta
        .parts
        .iter()
        .map(|part| part.out)
        .collect();
    assert_eq!(out, [false, true]);
    let client = Client::open(&engine, "tank", "v");
    assert!(client.read(0, MIB as usize).unwrap() == pattern(1, MIB as usize));
    detach(&drives);
    drop(client);
    engine.shutdown();
}

#[test]
fn a_member_that_is_missing_does_not_count_before_recovery_makes_anything_valid() {
    is_told_first(["rot:open-a", "rot:open-b"], |_| {}, 1);
}

#[test]
fn a_member_that_fails_during_recovery_does_not_count_before_it_makes_anything_valid() {
    is_told_first(["rot:fail-a", "rot:fail-b"], MemoryDrive::fail_flushes, 2);
}

#[test]
fn a_member_that_is_missing_still_counts_when_recovery_fails_without_it() {
    const CHUNK: u8 = 2;
    let (first, drives, specs) = mirrored(["rot:keep-a", "rot:keep-b"]);
    first.pool_import(&specs, "tank", false).unwrap();
    let client = Client::open(&first, "tank", "v");
    client.write(0, &pattern(2, 4096)).unwrap();
    client.flush().unwrap();
    drop(client);
    drop(first);
    // The journal names a chunk whose page the second member alone still has.
    assert!(drives[0].empty(|block| block.starts_with(b"CVPG") && block[4] == CHUNK) > 0);
    let engine = engine(1);
    let refused = engine.pool_import(&specs[..1], "tank", true).unwrap_err();
    assert_eq!(refused.code, engine::ErrorCode::Damaged, "{refused}");
    let status = engine.pool_import(&specs, "tank", false).unwrap();
    assert_eq!(status.state, "online");
    let client = Client::open(&engine, "tank", "v");
    let mut right = pattern(1, MIB as usize);
    right[..4096].copy_from_slice(&pattern(2, 4096));
    assert!(client.read(0, MIB as usize).unwrap() == right);
    detach(&drives);
    drop(client);
    engine.shutdown();
}
