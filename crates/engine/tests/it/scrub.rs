//! A scrub finds every bad copy, repairs those that can be repaired, and reports the rest.

use crate::support::memory::attached;
use crate::support::{
    self, BLOCK, Client, Folder, MIB, engine, pattern, pool, tiered, tiered_of, vdrive, volume,
    wait_job,
};
use block::DriveIoKind;
use engine::{Engine, ErrorCode, LayoutSpec, PoolSpec, ScrubSpec, ScrubStatus, Tier};
use std::os::unix::fs::FileExt;

const FAST: ScrubSpec = ScrubSpec {
    rate: 1 << 40,
    began_s: 1_700_000_000,
};

fn mirrored(folder: &Folder) -> PoolSpec {
    let members = [folder.drive("a", 160), folder.drive("b", 160)];
    pool(
        "p",
        2,
        vec![vdrive(Tier::Fast, LayoutSpec::Mirror, &members)],
    )
}

fn with_data(engine: &Engine, spec: &PoolSpec) -> Client {
    engine.pool_create(spec).unwrap();
    engine.volume_create("p", &volume("v", 64)).unwrap();
    let client = Client::open(engine, "p", "v");
    (0..32).for_each(|number| {
        client
            .write(number * MIB, &pattern(number, MIB as usize))
            .unwrap()
    });
    client.flush().unwrap();
    client
}

fn scrub(engine: &Engine) -> ScrubStatus {
    let job = engine.pool_scrub("p", &FAST).unwrap();
    assert_eq!(wait_job(engine, job), ("done".into(), String::new()));
    engine.pool_scrub_status("p").unwrap()
}

/// Overwrites everything of a drive, or everything but its labels.
fn damage(folder: &Folder, name: &str, labels: bool) {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join(name))
        .unwrap();
    let range = if labels { 0..160 } else { 2..158 };
    for number in range {
        file.write_all_at(&pattern(99, MIB as usize), number * MIB)
            .unwrap();
    }
}

#[test]
fn a_whole_pool_is_read_and_nothing_is_wrong() {
    let folder = Folder::new();
    let engine = engine(2);
    with_data(&engine, &mirrored(&folder));
    let status = scrub(&engine);
    assert_eq!((status.errors, status.repaired, status.lost), (0, 0, 0));
    assert!(status.bytes >= 2 * 32 * MIB, "{status:?}");
    assert_eq!(
        (status.state.as_str(), status.began_s),
        ("done", FAST.began_s)
    );
    engine.shutdown();
}

#[test]
fn a_member_that_is_wrong_everywhere_is_whole_again() {
    let folder = Folder::new();
    let engine = engine(2);
    let client = with_data(&engine, &mirrored(&folder));
    damage(&folder, "a", true);
    let status = scrub(&engine);
    assert!(status.errors >= 8192, "{status:?}");
    assert_eq!((status.repaired, status.lost), (status.errors, 0));
    assert!(status.faults.len() <= 1000 && status.faults.iter().all(|fault| fault.repaired));
    let again = scrub(&engine);
    assert_eq!(again.errors, 0, "{again:?}");
    // The other member is not needed any longer.
    drop(client);
    engine.pool_export("p").unwrap();
    damage(&folder, "b", true);
    engine
        .pool_import(&[folder.existing("a")], "p", true)
        .unwrap();
    let client = Client::open(&engine, "p", "v");
    for number in 0..32 {
        let bytes = client.read(number * MIB, MIB as usize).unwrap();
        assert!(bytes == pattern(number, MIB as usize));
    }
    engine.shutdown();
}

#[test]
fn what_no_drive_has_right_is_told_with_its_volume_and_place() {
    let folder = Folder::new();
    let engine = engine(1);
    let members = [folder.drive("a", 160), folder.drive("b", 160)];
    let spec = pool(
        "p",
        1,
        vec![vdrive(Tier::Fast, LayoutSpec::Concat, &members)],
    );
    let client = with_data(&engine, &spec);
    let wanted = pattern(5, MIB as usize);
    let marker = &wanted[..4096];
    let mut found = 0;
    for name in ["a", "b"] {
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(folder.path().join(name))
            .unwrap();
        let mut bytes = vec![0; 160 << 20];
        file.read_exact_at(&mut bytes, 0).unwrap();
        for (at, block) in bytes.chunks_exact(4096).enumerate() {
            if block == marker {
                file.write_all_at(&[block[77] ^ 4], at as u64 * BLOCK + 77)
                    .unwrap();
                found += 1;
            }
        }
    }
    assert_eq!(found, 1);
    let status = scrub(&engine);
    assert_eq!((status.errors, status.repaired, status.lost), (1, 0, 1));
    let fault = &status.faults[0];
    let place = (fault.volume.as_str(), fault.offset, fault.length);
    assert_eq!(place, ("v", 5 * MIB, BLOCK));
    assert!(fault.drive.contains(&folder.path().display().to_string()));
    assert!(client.read(5 * MIB, 4096).is_err());
    assert!(client.read(5 * MIB + BLOCK, 4096).unwrap() == wanted[4096..8192]);
    engine.shutdown();
}

/// A chunk is on many pieces of a stripe: each block is known by its own place and offset.
#[test]
fn a_wrong_block_of_a_stripe_is_told_with_its_own_offset() {
    let folder = Folder::new();
    let engine = engine(1);
    let (fast, slow) = (
        [folder.drive("fast", 160)],
        [folder.drive("a", 160), folder.drive("b", 160)],
    );
    let vdrives = vec![
        vdrive(Tier::Fast, LayoutSpec::Concat, &fast),
        vdrive(Tier::Slow, LayoutSpec::Stripe { chunk: 64 << 10 }, &slow),
    ];
    let client = with_data(&engine, &pool("p", 1, vdrives));
    engine.pool_cool("p").unwrap();
    let is_cold = |status: &engine::PoolStatus| status.fast_dirty + status.fast_shadow == 0;
    support::wait_status(&engine, "p", is_cold);
    // The sixth piece of its chunk.
    let at = 85 * BLOCK;
    let wrong = pattern(5, MIB as usize)[at as usize..][..BLOCK as usize].to_vec();
    let of = |name: &str| support::spoil(&folder, name, &wrong);
    assert_eq!(of("a") + of("b"), 1);
    let status = scrub(&engine);
    assert_eq!((status.errors, status.repaired, status.lost), (1, 0, 1));
    let fault = &status.faults[0];
    let place = (fault.volume.as_str(), fault.offset, fault.length);
    assert_eq!(place, ("v", 5 * MIB + at, BLOCK));
    assert!(client.read(5 * MIB + at, BLOCK as usize).is_err());
    engine.shutdown();
}

#[test]
fn a_clean_copy_that_is_wrong_comes_from_the_other_tier() {
    let folder = Folder::new();
    let engine = engine(1);
    let client = with_data(&engine, &tiered(&folder, "p", 1, 160, 256));
    let clean =
        |status: &engine::PoolStatus| status.fast_dirty == 0 && status.fast_shadow >= 32 * MIB;
    support::wait_status(&engine, "p", clean);
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(folder.path().join("slow"))
        .unwrap();
    let mut bytes = vec![0; 256 << 20];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let blocks: Vec<Vec<u8>> = (0..32)
        .flat_map(|number| {
            let bytes = pattern(number, MIB as usize);
            bytes.chunks(4096).map(<[u8]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    let known: std::collections::BTreeSet<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    for (at, block) in bytes.chunks_exact(4096).enumerate() {
        if known.contains(block) {
            file.write_all_at(&[block[0] ^ 1], at as u64 * BLOCK)
                .unwrap();
        }
    }
    let status = scrub(&engine);
    assert!(status.repaired > 1000, "{status:?}");
    assert_eq!(status.errors, status.repaired + status.lost, "{status:?}");
    let right = (0..32 * 256)
        .filter(|block| match client.read(block * BLOCK, 4096) {
            Ok(bytes) => {
                assert!(bytes == blocks[*block as usize]);
                true
            }
            Err(_) => false,
        })
        .count() as u64;
    assert_eq!(right + status.lost, 32 * 256);
    engine.shutdown();
}

#[test]
fn one_runs_at_a_time_can_be_cancelled_and_goes_on_where_it_was() {
    let folder = Folder::new();
    let engine = engine(1);
    let client = with_data(&engine, &mirrored(&folder));
    drop(client);
    let slow = ScrubSpec {
        rate: 1 << 20,
        ..FAST
    };
    let job = engine.pool_scrub("p", &slow).unwrap();
    let busy = engine.pool_scrub("p", &slow).unwrap_err();
    assert_eq!(busy.code, ErrorCode::Busy);
    let progress = |engine: &Engine| engine.pool_scrub_status("p").unwrap().bytes;
    for _ in 0..6000 {
        if progress(&engine) >= 2 * MIB {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    let before = progress(&engine);
    engine.pool_export("p").unwrap();
    let drives = ["a", "b"].map(|name| folder.existing(name));
    engine.pool_import(&drives, "p", false).unwrap();
    let status = engine.pool_scrub_status("p").unwrap();
    assert_eq!(status.state, "running");
    assert!(status.bytes >= before, "{status:?}");
    engine.pool_scrub_cancel("p").unwrap();
    let id = status.job.unwrap();
    assert_eq!(wait_job(&engine, id).0, "cancelled");
    assert_ne!(id, job);
    let status = engine.pool_scrub_status("p").unwrap();
    assert_eq!(status.state, "cancelled");
    assert!(engine.pool_scrub_cancel("p").is_err());
    engine.shutdown();
}

#[test]
fn a_scrub_beside_writes_finds_nothing_wrong() {
    let folder = Folder::new();
    let engine = engine(2);
    let client = with_data(&engine, &tiered(&folder, "p", 2, 128, 256));
    let writer = client.clone();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let mut random = support::Random(7);
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            let block = random.below(64 * 256 - 16);
            let bytes = pattern(random.next(), 4096 * (1 + random.below(16) as usize));
            writer.write(block * BLOCK, &bytes).unwrap();
            if random.below(50) == 0 {
                writer.discard(random.below(63) * MIB, MIB / 2).unwrap();
                writer.flush().unwrap();
            }
        }
    });
    for _ in 0..6 {
        let status = scrub(&engine);
        assert_eq!((status.errors, status.lost), (0, 0), "{status:?}");
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    thread.join().unwrap();
    engine.shutdown();
}

#[test]
fn a_block_that_is_written_while_its_wrong_copy_is_read_is_not_lost() {
    let engine = engine(1);
    let (drives, specs) = attached(["while:fast", "while:slow"], 96);
    let client = with_data(&engine, &tiered_of("p", 1, &specs));
    engine.pool_cool("p").unwrap();
    let offset = 3 * MIB + 5 * BLOCK;
    let old = &pattern(3, MIB as usize)[5 * BLOCK as usize..][..BLOCK as usize];
    let [wrong, new] = [98, 99].map(|seed| pattern(seed, BLOCK as usize));
    assert_eq!(drives[1].replace(old, &wrong), 1);
    drives[1].hold(Some((DriveIoKind::Read, wrong)));
    let job = engine.pool_scrub("p", &FAST).unwrap();
    drives[1].wait_held();
    client.write(offset, &new).unwrap();
    drives[1].hold(None);
    assert_eq!(wait_job(&engine, job), ("done".into(), String::new()));
    let status = engine.pool_scrub_status("p").unwrap();
    assert_eq!((status.errors, status.repaired, status.lost), (0, 0, 0));
    assert!(client.read(offset, BLOCK as usize).unwrap() == new);
    drop(client);
    engine.shutdown();
}
