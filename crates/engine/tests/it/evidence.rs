//! Drives that were restored to an earlier state, or truncated, are recognised: nothing old is served without a word, and
//! nothing is written where a drive's end is not where it was.

use crate::support::{
    BLOCK, Client, Folder, MIB, drives_of, engine, pattern, pool, tiered, vdrive, volume, wait_job,
};
use engine::{
    Engine, EngineError, ErrorCode, ImportOptions, LayoutSpec, MissingDrives, PoolSpec, PoolStatus,
    ScrubSpec, Tier,
};
use format::{LABEL_SIZE, data_end, label_offsets};
use std::fs;
use std::os::unix::fs::FileExt;

const FAST: u64 = 64;
const SLOW: u64 = 96;

/// Metadata and new data on `fast` alone, homes on `slow`.
fn plain(folder: &Folder) -> PoolSpec {
    tiered(folder, "p", 1, FAST, SLOW)
}

/// The same over mirrors: `a`, `b`, and `c`, `d`.
fn mirrored(folder: &Folder) -> PoolSpec {
    let drive = |name, mib| folder.drive(name, mib);
    let fast = [drive("a", FAST), drive("b", FAST)];
    let slow = [drive("c", SLOW), drive("d", SLOW)];
    let vdrives = vec![
        vdrive(Tier::Fast, LayoutSpec::Mirror, &fast),
        vdrive(Tier::Slow, LayoutSpec::Mirror, &slow),
    ];
    pool("p", 1, vdrives)
}

/// An engine with the pool, which is closed; its volume has pattern 1.
fn made(spec: &PoolSpec) -> Engine {
    let engine = engine(1);
    engine.pool_create(spec).unwrap();
    engine.volume_create("p", &volume("v", 16)).unwrap();
    write(&engine, 1);
    engine.pool_export("p").unwrap();
    engine
}

fn write(engine: &Engine, seed: u64) {
    let client = Client::open(engine, "p", "v");
    client.write(0, &pattern(seed, 4 * MIB as usize)).unwrap();
    client.flush().unwrap();
}

/// Opens the closed pool, writes this pattern everywhere and down to the slow tier, and closes it.
fn rewrite(engine: &Engine, spec: &PoolSpec, seed: u64) {
    engine.pool_import(&drives_of(spec), "p", false).unwrap();
    write(engine, seed);
    engine.pool_cool("p").unwrap();
    engine.pool_export("p").unwrap();
}

fn images(folder: &Folder, names: &[&str]) -> Vec<Vec<u8>> {
    let read = |name: &&str| fs::read(folder.path().join(name)).unwrap();
    names.iter().map(read).collect()
}

fn put_back(folder: &Folder, names: &[&str], images: &[Vec<u8>]) {
    for (name, image) in names.iter().zip(images) {
        fs::write(folder.path().join(name), image).unwrap();
    }
}

fn resize(folder: &Folder, name: &str, len: u64) {
    let file = fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join(name))
        .unwrap();
    file.set_len(len).unwrap();
}

fn accepted() -> ImportOptions {
    ImportOptions {
        accept_old: true,
        ..ImportOptions::default()
    }
}

fn import(
    engine: &Engine,
    spec: &PoolSpec,
    options: impl Into<ImportOptions>,
) -> Result<PoolStatus, EngineError> {
    engine.pool_import(&drives_of(spec), "p", options)
}

/// The pool is refused because these drives are old, and says so until it was scrubbed when it is opened nevertheless.
fn is_refused_until_accepted(engine: &Engine, spec: &PoolSpec, named: &[&str]) {
    for degraded in [false, true] {
        let refused = import(engine, spec, degraded).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Refused, "{refused}");
        for name in named {
            assert!(refused.message.contains(name), "{refused}");
        }
        assert!(refused.message.contains("--accept-old"), "{refused}");
    }
    let status = import(engine, spec, accepted()).unwrap();
    let is_told = |status: &PoolStatus| {
        // Metadata that was restored to an earlier state with its drive is also reported.
        let count = status.old.iter().filter(|old| old.drive.is_some()).count();
        assert!(
            count >= named.len() || named == ["shard 0"],
            "{:?}",
            status.old
        );
        for name in named {
            let mut messages = status.messages.iter();
            assert!(messages.any(|text| text.contains(name)), "{status:?}");
        }
    };
    is_told(&status);
    // An opening later nothing is older than the newest label any longer, and it is still told of.
    engine.pool_export("p").unwrap();
    is_told(&import(engine, spec, false).unwrap());
    let scrub = ScrubSpec {
        rate: 1 << 40,
        began_s: 1_700_000_000,
    };
    let job = engine.pool_scrub("p", &scrub).unwrap();
    assert_eq!(wait_job(engine, job).0, "done");
    let status = engine.pool_status("p").unwrap();
    assert!(status.old.is_empty(), "{status:?}");
    engine.pool_export("p").unwrap();
    assert!(import(engine, spec, false).unwrap().old.is_empty());
}

#[test]
fn a_lone_drive_that_was_put_back_is_refused_and_named_and_can_be_accepted() {
    for name in ["fast", "slow"] {
        let folder = Folder::new();
        let spec = plain(&folder);
        let engine = made(&spec);
        rewrite(&engine, &spec, 2);
        let old = images(&folder, &[name]);
        rewrite(&engine, &spec, 3);
        put_back(&folder, &[name], &old);
        let path = folder.existing(name);
        is_refused_until_accepted(&engine, &spec, &[&path]);
        engine.shutdown();
    }
}

#[test]
fn all_members_of_a_mirror_that_were_put_back_are_refused() {
    for names in [["a", "b"], ["c", "d"]] {
        let folder = Folder::new();
        let spec = mirrored(&folder);
        let engine = made(&spec);
        rewrite(&engine, &spec, 2);
        let old = images(&folder, &names);
        rewrite(&engine, &spec, 3);
        put_back(&folder, &names, &old);
        let paths = names.map(|name| folder.existing(name));
        is_refused_until_accepted(&engine, &spec, &[&paths[0], &paths[1]]);
        engine.shutdown();
    }
}

#[test]
fn the_newer_one_of_two_old_members_counts() {
    let folder = Folder::new();
    let spec = mirrored(&folder);
    let engine = made(&spec);
    let older = images(&folder, &["c"]);
    rewrite(&engine, &spec, 2);
    let old = images(&folder, &["d"]);
    rewrite(&engine, &spec, 3);
    put_back(&folder, &["c"], &older);
    put_back(&folder, &["d"], &old);
    let refused = import(&engine, &spec, false).unwrap_err();
    assert!(refused.message.contains(&folder.existing("d")), "{refused}");
    assert!(
        !refused.message.contains(&folder.existing("c")),
        "{refused}"
    );
    let status = import(&engine, &spec, accepted()).unwrap();
    assert_eq!(status.old.len(), 1, "{status:?}");
    engine.shutdown();
}

#[test]
fn an_old_member_beside_a_new_one_is_brought_up_to_date() {
    for name in ["a", "d"] {
        let folder = Folder::new();
        let spec = mirrored(&folder);
        let engine = made(&spec);
        let old = images(&folder, &[name]);
        rewrite(&engine, &spec, 2);
        rewrite(&engine, &spec, 3);
        put_back(&folder, &[name], &old);
        let status = import(&engine, &spec, false).unwrap();
        assert_eq!((status.state.as_str(), status.old.len()), ("degraded", 0));
        let told = status.messages.iter();
        assert!(told.clone().any(|text| text.contains(name)), "{status:?}");
        let client = Client::open(&engine, "p", "v");
        assert!(client.read(0, 4 * MIB as usize).unwrap() == pattern(3, 4 * MIB as usize));
        drop(client);
        engine.shutdown();
    }
}

#[test]
fn metadata_that_alone_was_put_back_is_refused() {
    let folder = Folder::new();
    let spec = plain(&folder);
    let engine = made(&spec);
    rewrite(&engine, &spec, 2);
    let part = folder.newest_label("fast").unwrap().config.meta.parts[0].clone();
    let before = folder.read("fast", part.offset, part.blocks * BLOCK);
    rewrite(&engine, &spec, 3);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("fast"))
        .unwrap();
    file.write_all_at(&before, part.offset).unwrap();
    is_refused_until_accepted(&engine, &spec, &["shard 0"]);
    engine.shutdown();
}

#[test]
fn drives_that_are_all_older_than_the_host_has_seen_are_refused() {
    let folder = Folder::new();
    let spec = plain(&folder);
    let engine = made(&spec);
    let old = images(&folder, &["fast", "slow"]);
    rewrite(&engine, &spec, 2);
    let seen = import(&engine, &spec, false).unwrap().generation;
    engine.pool_export("p").unwrap();
    put_back(&folder, &["fast", "slow"], &old);
    let options = ImportOptions {
        seen,
        ..ImportOptions::default()
    };
    let refused = import(&engine, &spec, options).unwrap_err();
    assert!(refused.message.contains("--accept-old"), "{refused}");
    let options = ImportOptions {
        accept_old: true,
        ..options
    };
    assert_eq!(import(&engine, &spec, options).unwrap().old.len(), 2);
    engine.shutdown();
}

/// Everything of a drive.
fn content(folder: &Folder, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

#[test]
fn a_drive_that_is_shorter_than_its_parts_is_refused_and_not_written_to() {
    for name in ["fast", "slow"] {
        let folder = Folder::new();
        let spec = plain(&folder);
        let engine = made(&spec);
        rewrite(&engine, &spec, 2);
        let size = fs::metadata(folder.path().join(name)).unwrap().len();
        let short = data_end(size) - 4 * MIB;
        resize(&folder, name, short);
        let before = content(&folder, name);
        for degraded in [false, true] {
            let refused = import(&engine, &spec, degraded).unwrap_err();
            let text = format!("{} bytes shorter than when it joined", size - short);
            assert!(refused.message.contains(&text), "{refused}");
            assert!(
                refused.message.contains(&folder.existing(name)),
                "{refused}"
            );
        }
        assert!(content(&folder, name) == before, "it was written to");
        // With its size back it is what it was, as far as it was not cut off.
        resize(&folder, name, size);
        assert_eq!(import(&engine, &spec, false).unwrap().state, "online");
        engine.shutdown();
    }
}

#[test]
fn a_short_member_of_a_mirror_counts_as_missing() {
    for name in ["a", "d"] {
        let folder = Folder::new();
        let spec = mirrored(&folder);
        let engine = made(&spec);
        rewrite(&engine, &spec, 2);
        let size = fs::metadata(folder.path().join(name)).unwrap().len();
        resize(&folder, name, size / 2);
        let before = content(&folder, name);
        let refused = import(&engine, &spec, false).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Refused, "{refused}");
        assert!(refused.message.contains("--degraded"), "{refused}");
        assert!(refused.message.contains("bytes shorter"), "{refused}");
        let options = ImportOptions {
            missing: MissingDrives::Gone,
            ..ImportOptions::default()
        };
        let status = import(&engine, &spec, options).unwrap();
        assert_eq!(status.state, "degraded");
        write(&engine, 4);
        let back = engine.drive_online("p", &folder.existing(name), false);
        let refused = back.unwrap_err();
        assert!(refused.message.contains("bytes shorter"), "{refused}");
        let client = Client::open(&engine, "p", "v");
        assert!(client.read(0, 4 * MIB as usize).unwrap() == pattern(4, 4 * MIB as usize));
        drop(client);
        engine.shutdown();
        assert!(content(&folder, name) == before, "it was written to");
    }
}

#[test]
fn no_label_is_written_at_an_end_that_is_not_where_it_was() {
    // Only the last label is cut off; both are; the drive has grown.
    for (name, change) in [
        ("slow", -1i64),
        ("fast", -2 * MIB as i64),
        ("slow", 8 * MIB as i64),
    ] {
        let folder = Folder::new();
        let spec = plain(&folder);
        let engine = made(&spec);
        let size = fs::metadata(folder.path().join(name)).unwrap().len();
        let now = size.checked_add_signed(change).unwrap();
        resize(&folder, name, now);
        // What would be taken for the places of labels now.
        let places: Vec<u64> = label_offsets(now)[2..].to_vec();
        let is_known = |at: &&u64| label_offsets(size).contains(at);
        let others: Vec<u64> = places.iter().filter(|at| !is_known(at)).copied().collect();
        let read = |at: u64| folder.read(name, at, LABEL_SIZE);
        let before: Vec<Vec<u8>> = others.iter().map(|at| read(*at)).collect();
        assert!(!others.is_empty());
        for round in 0..3 {
            let status = import(&engine, &spec, false).unwrap();
            let mut messages = status.messages.iter();
            let told = messages.any(|text| text.contains("bytes shorter"));
            assert_eq!(told, change < 0, "{status:?}");
            write(&engine, 5 + round);
            engine.pool_export("p").unwrap();
        }
        let after: Vec<Vec<u8>> = others.iter().map(|at| read(*at)).collect();
        assert!(before == after, "{name} {change}");
        // Of a drive that has grown the labels at the old end are found.
        if change > 0 {
            let file = fs::OpenOptions::new()
                .write(true)
                .open(folder.path().join(name))
                .unwrap();
            let label = folder.read(name, label_offsets(size)[2], LABEL_SIZE);
            assert!(label.starts_with(b"CONVECT"));
            file.write_all_at(&vec![0; 2 * MIB as usize], 0).unwrap();
            let refused = import(&engine, &spec, false).unwrap_err();
            assert_eq!(
                refused.code,
                ErrorCode::NotFound,
                "only its first labels say where the others are"
            );
        } else {
            assert_eq!(import(&engine, &spec, false).unwrap().state, "online");
            engine.pool_destroy("p").unwrap();
            let left: Vec<Vec<u8>> = others.iter().map(|at| read(*at)).collect();
            assert!(before == left, "clearing labels went to another end");
        }
        engine.shutdown();
    }
}

#[test]
fn a_label_in_the_data_at_the_end_of_a_short_drive_is_not_the_drives() {
    let folder = Folder::new();
    let spec = mirrored(&folder);
    let engine = made(&spec);
    rewrite(&engine, &spec, 2);
    let name = "d";
    let size = fs::metadata(folder.path().join(name)).unwrap().len();
    let short = size / 2;
    // A guest wrote it there: a later generation, of a pool that is not what it was.
    let mut forged = folder.newest_label(name).unwrap();
    forged.generation += 100;
    forged.config.name = "other".into();
    let bytes = forged.encode().unwrap();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join(name))
        .unwrap();
    file.write_all_at(&bytes, label_offsets(short)[2]).unwrap();
    resize(&folder, name, short);
    let refused = import(&engine, &spec, false).unwrap_err();
    assert!(refused.message.contains("bytes shorter"), "{refused}");
    // Nor where the drive's first labels are lost.
    file.write_all_at(&vec![0; 2 * MIB as usize], 0).unwrap();
    let found = engine.pool_scan(&drives_of(&spec)).unwrap();
    assert_eq!(found.pools[0].name, "p");
    assert_eq!(found.pools[0].missing, [folder.existing(name)]);
    engine.shutdown();
}

#[test]
fn a_file_that_is_gone_is_not_asked_to_be_made() {
    let folder = Folder::new();
    let spec = mirrored(&folder);
    let engine = made(&spec);
    fs::remove_file(folder.path().join("b")).unwrap();
    let refused = import(&engine, &spec, false).unwrap_err();
    assert!(refused.message.contains("--degraded"), "{refused}");
    assert!(!refused.message.contains("?size="), "{refused}");
    // A file that was emptied is as gone; one that is there and cannot be opened is not.
    fs::write(folder.path().join("d"), b"").unwrap();
    let options = ImportOptions {
        missing: MissingDrives::Gone,
        ..ImportOptions::default()
    };
    let status = import(&engine, &spec, options).unwrap();
    assert_eq!(status.state, "degraded");
    engine.pool_export("p").unwrap();
    let _ = fs::remove_file(folder.path().join("d"));
    fs::create_dir(folder.path().join("d")).unwrap();
    let refused = import(&engine, &spec, options).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Refused, "{refused}");
    engine.shutdown();
}

/// With this bug the test fails.
fn finds(mutation: units::mutation::Mutation, test: fn()) {
    units::mutation::switch(Some(mutation));
    let passed = std::panic::catch_unwind(test).is_ok();
    units::mutation::switch(None);
    assert!(!passed, "{mutation:?} is not found");
}

#[test]
fn known_bugs_are_found() {
    use units::mutation::Mutation;
    finds(
        Mutation::OldTaken,
        a_lone_drive_that_was_put_back_is_refused_and_named_and_can_be_accepted,
    );
    finds(
        Mutation::OldUnsaid,
        all_members_of_a_mirror_that_were_put_back_are_refused,
    );
    finds(
        Mutation::MarksIgnored,
        metadata_that_alone_was_put_back_is_refused,
    );
    finds(
        Mutation::ShortTaken,
        a_drive_that_is_shorter_than_its_parts_is_refused_and_not_written_to,
    );
}
