//! Space: it runs out with the right error, comes back, is promised, and moves off a vdrive.

use crate::support::memory::{MemoryDrive, attached};
use crate::support::{
    self, Client, Folder, MIB, engine, pattern, pool, tiered, tiered_of, vdrive, volume, wait_job,
    wait_status,
};
use block::{DriveIoKind, ErrorKind};
use engine::{ErrorCode, LayoutSpec, Tier, VolumeSpec};

/// Writes MiB after MiB until the pool is full; returns how many it took.
fn fill(client: &Client, mib: u64) -> u64 {
    for number in 0..mib {
        match client.write(number * MIB, &pattern(number, MIB as usize)) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
                return number;
            }
        }
    }
    mib
}

fn check(client: &Client, mib: u64) {
    for number in 0..mib {
        let read = client.read(number * MIB, MIB as usize).unwrap();
        assert!(
            read == pattern(number, MIB as usize),
            "MiB {number} is wrong"
        );
    }
}

#[test]
fn a_full_pool_refuses_writes_keeps_reading_and_goes_on_when_space_is_added() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "tank", 2, 128, 192))
        .unwrap();
    engine.volume_create("tank", &volume("v", 1000)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    let taken = fill(&client, 1000);
    let capacity = engine.pool_status("tank").unwrap().capacity / MIB;
    assert!(
        taken >= capacity * 9 / 10 && taken <= capacity,
        "{taken} of {capacity} MiB"
    );
    assert_eq!(engine.pool_status("tank").unwrap().state, "full");
    check(&client, taken);
    // What is there can be written again.
    client.write(0, &pattern(0, MIB as usize)).unwrap();
    let more = vdrive(Tier::Slow, LayoutSpec::Concat, &[folder.drive("more", 128)]);
    engine.vdrive_add("tank", &more, false).unwrap();
    client
        .write(taken * MIB, &pattern(taken, MIB as usize))
        .unwrap();
    assert_eq!(engine.pool_status("tank").unwrap().state, "online");
    check(&client, taken + 1);
    engine.shutdown();
}

#[test]
fn discarded_space_is_used_again() {
    let folder = Folder::new();
    let engine = engine(1);
    let spec = pool(
        "p",
        1,
        vec![vdrive(
            Tier::Fast,
            LayoutSpec::Concat,
            &[folder.drive("a", 160)],
        )],
    );
    engine.pool_create(&spec).unwrap();
    engine.volume_create("p", &volume("v", 1000)).unwrap();
    let client = Client::open(&engine, "p", "v");
    let taken = fill(&client, 1000);
    client.discard(0, taken * MIB).unwrap();
    client.flush().unwrap();
    assert_eq!(engine.pool_status("p").unwrap().used, 0);
    assert_eq!(client.status(0, taken * MIB), [(taken * MIB, false)]);
    assert!(fill(&client, 1000) >= taken * 9 / 10);
    engine.shutdown();
}

#[test]
fn a_thick_volume_has_its_space_promised_and_a_refusal_takes_nothing() {
    let folder = Folder::new();
    let engine = engine(1);
    let spec = pool(
        "p",
        1,
        vec![vdrive(
            Tier::Fast,
            LayoutSpec::Concat,
            &[folder.drive("a", 300)],
        )],
    );
    let capacity = engine.pool_create(&spec).unwrap().capacity / MIB;
    let thick = |name: &str, mib: u64| VolumeSpec {
        thick: true,
        ..volume(name, mib)
    };
    let refused = engine
        .volume_create("p", &thick("big", capacity + 1))
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::NoSpace);
    engine
        .volume_create("p", &thick("t", capacity / 2))
        .unwrap();
    engine.volume_create("p", &volume("thin", 1000)).unwrap();
    let thin = fill(&Client::open(&engine, "p", "thin"), 1000);
    assert!(
        thin >= capacity / 2 - 2 && thin <= capacity / 2 + 2,
        "{thin} of {capacity}"
    );
    assert_eq!(
        fill(&Client::open(&engine, "p", "t"), capacity / 2),
        capacity / 2
    );
    Client::open(&engine, "p", "t").flush().unwrap();
    drop(engine);
    let engine = support::engine(1);
    engine
        .pool_import(&[folder.existing("a")], "p", false)
        .unwrap();
    assert_eq!(engine.volume_list("p").unwrap().len(), 2);
    let job = engine.volume_delete("p", "thin").unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    let status = wait_status(&engine, "p", |status| status.reserved == 0);
    assert_eq!(status.used / MIB, capacity / 2);
    engine.shutdown();
}

#[test]
fn a_vdrive_is_emptied_while_hosts_write_and_leaves_the_pool() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "tank", 2, 192, 192))
        .unwrap();
    let second = vdrive(
        Tier::Slow,
        LayoutSpec::Concat,
        &[folder.drive("other", 256)],
    );
    let id = engine.vdrive_add("tank", &second, false).unwrap();
    engine.volume_create("tank", &volume("v", 300)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    assert_eq!(fill(&client, 120), 120);
    engine.pool_cool("tank").unwrap();
    let first = engine.pool_status("tank").unwrap().vdrives[1].clone();
    assert!(first.used > 0, "{first:?}");
    let job = engine.vdrive_remove("tank", first.id).unwrap();
    for number in 0..40 {
        client
            .write(number * MIB, &pattern(number, MIB as usize))
            .unwrap();
    }
    assert_eq!(wait_job(&engine, job), ("done".into(), String::new()));
    let status = engine.pool_status("tank").unwrap();
    assert!(status.vdrives.iter().all(|vdrive| vdrive.id != first.id) && id != first.id);
    check(&client, 120);
    client.flush().unwrap();
    drop(engine);
    let engine = support::engine(2);
    let drives = ["fast", "other"].map(|name| folder.existing(name));
    engine.pool_import(&drives, "tank", false).unwrap();
    client_check(&engine, 120);
    engine.shutdown();
}

fn client_check(engine: &engine::Engine, mib: u64) {
    check(&Client::open(engine, "tank", "v"), mib);
}

#[test]
fn a_vdrive_that_cannot_be_spared_stays_with_the_reason() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "tank", 1, 192, 192))
        .unwrap();
    engine.volume_create("tank", &volume("v", 300)).unwrap();
    fill(&Client::open(&engine, "tank", "v"), 200);
    let no_room = engine.vdrive_remove("tank", 2).unwrap_err();
    assert_eq!(no_room.code, ErrorCode::NoSpace);
    let metadata = engine.vdrive_remove("tank", 1).unwrap_err();
    assert!(metadata.message.contains("metadata"), "{metadata}");
    assert_eq!(
        engine.vdrive_remove("tank", 9).unwrap_err().code,
        ErrorCode::NotFound
    );
    engine.shutdown();
}

#[test]
fn a_volume_grows_online_and_shrinks_only_with_a_word() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "tank", 2, 128, 192))
        .unwrap();
    engine.volume_create("tank", &volume("v", 10)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    assert_eq!(fill(&client, 10), 10);
    assert_eq!(
        client.write(10 * MIB, &[1; 4096]).unwrap_err().kind,
        ErrorKind::Invalid
    );
    engine.volume_resize("tank", "v", 600 * MIB, false).unwrap();
    client.write(599 * MIB, &pattern(9, 4096)).unwrap();
    assert_eq!(client.0.geometry().size, 600 * MIB);
    let refused = engine
        .volume_resize("tank", "v", 5 * MIB, false)
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::Refused);
    engine
        .volume_resize("tank", "v", 5 * MIB + 4096, true)
        .unwrap();
    engine.volume_resize("tank", "v", 600 * MIB, false).unwrap();
    check(&client, 5);
    assert_eq!(
        client.read(5 * MIB, 4096).unwrap(),
        &pattern(5, MIB as usize)[..4096]
    );
    assert!(
        client
            .read(5 * MIB + 4096, 1 << 20)
            .unwrap()
            .iter()
            .all(|byte| *byte == 0)
    );
    assert!(
        client
            .read(599 * MIB, 4096)
            .unwrap()
            .iter()
            .all(|byte| *byte == 0)
    );
    engine.shutdown();
}

#[test]
fn what_a_shrink_cut_off_within_the_last_chunk_does_not_come_back() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "tank", 2, 128, 192))
        .unwrap();
    engine.volume_create("tank", &volume("v", 4)).unwrap();
    // Neither size is whole chunks.
    let (size, less) = (4 * MIB + MIB / 2, 2 * MIB + MIB / 4);
    engine.volume_resize("tank", "v", size, false).unwrap();
    let client = Client::open(&engine, "tank", "v");
    let bytes = pattern(1, size as usize);
    client.write(0, &bytes).unwrap();
    engine.volume_resize("tank", "v", less, true).unwrap();
    engine.volume_resize("tank", "v", 6 * MIB, false).unwrap();
    let read = client.read(0, 6 * MIB as usize).unwrap();
    assert!(read[..less as usize] == bytes[..less as usize]);
    assert!(read[less as usize..].iter().all(|byte| *byte == 0));
    engine.shutdown();
}

#[test]
fn what_has_moved_off_a_vdrive_is_there_after_a_power_cut() {
    const HELD: u64 = 60;
    let first = engine(1);
    let (drives, specs) = attached(["cut:fast", "cut:leaving", "cut:staying"], 96);
    let [fast, leaving, staying] = specs.clone();
    let spec = tiered_of("tank", 1, &[fast, leaving]);
    first.pool_create(&spec).unwrap();
    first.volume_create("tank", &volume("v", HELD)).unwrap();
    let client = Client::open(&first, "tank", "v");
    assert_eq!(fill(&client, HELD), HELD);
    first.pool_cool("tank").unwrap();
    let staying = vdrive(Tier::Slow, LayoutSpec::Concat, &[staying]);
    first.vdrive_add("tank", &staying, false).unwrap();
    // It stops at a block that the other drive does not take yet.
    let last = pattern(HELD - 1, MIB as usize)[..4096].to_vec();
    drives[2].hold(Some((DriveIoKind::Write, last)));
    first.vdrive_remove("tank", 2).unwrap();
    drives[2].wait_held();
    // The power goes when what was recorded so far, on the fast drive, has been flushed.
    client.flush().unwrap();
    assert_eq!(drives[2].count(&pattern(0, MIB as usize)[..4096]), 1);
    drop(client);
    drop(first);
    drives.iter().for_each(MemoryDrive::lose_power);
    let second = engine(1);
    second.pool_import(&specs, "tank", false).unwrap();
    check(&Client::open(&second, "tank", "v"), HELD);
    second.shutdown();
}
