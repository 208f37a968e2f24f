//! Drives without metadata get their labels a little later than the others, and are not taken for old
//! ones then.

use crate::support::{
    self, Client, Folder, MIB, engine, pattern, pool, start_again, vdrive, volume,
};
use engine::{Engine, LayoutSpec, PoolSpec, Tier};
use format::{LABEL_SIZE, label_offsets};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Metadata on `a` and `b`; `c` and `d` follow.
fn mirrored(folder: &Folder) -> PoolSpec {
    let fast = [folder.drive("a", 160), folder.drive("b", 160)];
    let slow = [folder.drive("c", 160), folder.drive("d", 160)];
    let vdrives = vec![
        vdrive(Tier::Fast, LayoutSpec::Mirror, &fast),
        vdrive(Tier::Slow, LayoutSpec::Mirror, &slow),
    ];
    pool("p", 2, vdrives)
}

fn with_data(folder: &Folder) -> (PoolSpec, Engine) {
    let (spec, engine) = (mirrored(folder), engine(2));
    engine.pool_create(&spec).unwrap();
    engine.volume_create("p", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "p", "v");
    client.write(0, &pattern(1, MIB as usize)).unwrap();
    client.flush().unwrap();
    drop(client);
    (spec, engine)
}

/// The generation of the newest label of a drive.
fn generation(folder: &Folder, name: &str) -> u64 {
    folder.newest_label(name).unwrap().generation
}

fn wait_followed(folder: &Folder) {
    for _ in 0..12_000 {
        let newest = generation(folder, "a");
        if ["b", "c", "d"]
            .iter()
            .all(|name| generation(folder, name) == newest)
        {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("the labels do not follow");
}

fn check(engine: &Engine) {
    let client = Client::open(engine, "p", "v");
    assert!(client.read(0, MIB as usize).unwrap() == pattern(1, MIB as usize));
}

#[test]
fn a_host_that_ends_before_labels_follow_finds_every_member_in_order() {
    let folder = Folder::new();
    let (spec, mut engine) = with_data(&folder);
    let (mut number, mut behind) = (0, BTreeSet::new());
    // Even and odd distances; a slow machine gives labels the time to follow now and then.
    for round in 0..40 {
        for _ in 0..1 + round % 4 {
            number += 1;
            let name = format!("s{number}");
            engine
                .snapshot_create("p", &["v".into()], &name, number)
                .unwrap();
        }
        let (newest, slow) = (generation(&folder, "a"), generation(&folder, "c"));
        behind.insert(newest.saturating_sub(slow));
        start_again(&mut engine, &spec, true);
        let status = engine.pool_status("p").unwrap();
        assert_eq!(status.state, "online", "{status:?}");
        assert_eq!(
            engine.snapshot_list("p", None).unwrap().len() as u64,
            number
        );
        check(&engine);
        let far = |odd: u64| behind.iter().any(|by| *by > 1 && by % 2 == odd);
        if far(0) && far(1) {
            break;
        }
    }
    assert!(
        behind.iter().any(|by| *by > 1),
        "the slow drives were waited for"
    );
    engine
        .snapshot_create("p", &["v".into()], "last", 99)
        .unwrap();
    wait_followed(&folder);
    engine.shutdown();
}

#[test]
fn a_drive_from_before_its_label_followed_is_known_as_old() {
    let folder = Folder::new();
    let (spec, mut engine) = with_data(&folder);
    let old = fs::read(folder.path().join("c")).unwrap();
    for number in 0..3 {
        engine
            .snapshot_create("p", &["v".into()], &format!("a{number}"), 1)
            .unwrap();
        wait_followed(&folder);
    }
    let client = Client::open(&engine, "p", "v");
    client.write(0, &pattern(2, MIB as usize)).unwrap();
    client.write(0, &pattern(1, MIB as usize)).unwrap();
    client.flush().unwrap();
    drop(client);
    engine
        .snapshot_create("p", &["v".into()], "unfollowed", 1)
        .unwrap();
    start_again_with(&mut engine, &spec, || {
        fs::write(folder.path().join("c"), &old).unwrap();
    });
    let status = engine.pool_status("p").unwrap();
    assert_ne!(
        status.state, "online",
        "the old image was taken for the drive"
    );
    check(&engine);
    engine.shutdown();
}

#[test]
fn each_snapshot_but_the_first_writes_one_label() {
    let folder = Folder::new();
    let (spec, mut engine) = with_data(&folder);
    let take = |engine: &Engine, name: &str| {
        // Nothing else writes labels once all drives have the newest.
        wait_followed(&folder);
        let before = generation(&folder, "a");
        engine.snapshot_create("p", &["v".into()], name, 1).unwrap();
        generation(&folder, "a") - before
    };
    assert_eq!(take(&engine, "first"), 2);
    assert_eq!(take(&engine, "second"), 1);
    start_again(&mut engine, &spec, true);
    assert_eq!(take(&engine, "third"), 1);
    let client = Client::open(&engine, "p", "v");
    client.write(0, &pattern(2, MIB as usize)).unwrap();
    client.flush().unwrap();
    assert_eq!(take(&engine, "fourth"), 1);
    assert_eq!(
        engine.volume_roll_back("p", "v", "first").unwrap().name,
        "v"
    );
    support::wait_jobs(&engine);
    assert_eq!(take(&engine, "fifth"), 1);
    check(&engine);
    engine.shutdown();
}

#[test]
fn a_volume_that_had_snapshots_is_deleted_with_what_was_announced() {
    let folder = Folder::new();
    let (spec, mut engine) = with_data(&folder);
    for name in ["one", "two"] {
        engine.snapshot_create("p", &["v".into()], name, 1).unwrap();
    }
    engine
        .snapshot_delete("p", "v", &["one".into(), "two".into()])
        .unwrap();
    engine.volume_delete("p", "v").unwrap();
    start_again(&mut engine, &spec, true);
    // One job begins another.
    support::wait_status(&engine, "p", |status| status.used == 0);
    support::wait_jobs(&engine);
    wait_followed(&folder);
    let label = folder.newest_label("a").unwrap();
    assert_eq!(label.config.layers, [], "layers are left over");
    assert_eq!(label.config.volumes, []);
    engine.shutdown();
}

#[test]
fn what_was_written_after_a_snapshot_that_no_label_names_is_there() {
    let folder = Folder::new();
    let (spec, mut engine) = with_data(&folder);
    let take = |engine: &Engine, name: &str| {
        engine.snapshot_create("p", &["v".into()], name, 1).unwrap();
        wait_followed(&folder);
    };
    take(&engine, "named");
    let labels = labels(&folder);
    take(&engine, "unnamed");
    let client = Client::open(&engine, "p", "v");
    client.write(4096, &pattern(7, 8192)).unwrap();
    client.flush().unwrap();
    drop(client);
    // As if it had ended before the label was written.
    start_again_with(&mut engine, &spec, || {
        for (name, at, bytes) in &labels {
            let file = fs::File::options()
                .write(true)
                .open(folder.path().join(name))
                .unwrap();
            file.write_all_at(bytes, *at).unwrap();
        }
    });
    let snapshots = engine.snapshot_list("p", None).unwrap();
    let names: Vec<&str> = snapshots.iter().map(|known| known.name.as_str()).collect();
    assert_eq!(names, ["named"]);
    let client = Client::open(&engine, "p", "v");
    assert!(client.read(4096, 8192).unwrap() == pattern(7, 8192));
    assert!(client.read(0, 4096).unwrap() == pattern(1, MIB as usize)[..4096]);
    drop(client);
    let before = Client::open(&engine, "p", "v@named");
    assert!(before.read(0, MIB as usize).unwrap() == pattern(1, MIB as usize));
    engine.shutdown();
}

/// Every place of a label, by drive and offset.
fn labels(folder: &Folder) -> Vec<(&'static str, u64, Vec<u8>)> {
    let places = ["a", "b", "c", "d"].into_iter().flat_map(|name| {
        let len = fs::metadata(folder.path().join(name)).unwrap().len();
        label_offsets(len).map(|at| (name, at, folder.read(name, at, LABEL_SIZE)))
    });
    places.collect()
}

/// As [`start_again`], with something done while no engine runs.
fn start_again_with(running: &mut Engine, spec: &PoolSpec, meanwhile: impl FnOnce()) {
    let before = std::mem::replace(running, engine(2));
    drop(before);
    meanwhile();
    running
        .pool_import(&support::drives_of(spec), &spec.name, false)
        .unwrap();
}
