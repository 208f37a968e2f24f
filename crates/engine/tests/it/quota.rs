//! Quotas: a volume takes what it may of its pool, all of it, and not a block more.

use crate::support::limits::{REGION, change, is_full, right, show};
use crate::support::{
    BLOCK, Client, Folder, MIB, engine, pattern, start_again, tiered, volume, wait_jobs,
};
use block::ErrorKind;
use engine::{Engine, ErrorCode, VolumeChange, VolumeSpec, VolumeStatus};

fn limited(name: &str, mib: u64, quota: u64) -> VolumeSpec {
    VolumeSpec {
        quota,
        ..volume(name, mib)
    }
}

/// Bytes that a volume and its snapshots have, and its quota.
fn books(engine: &Engine, name: &str) -> (u64, u64) {
    let status = show(engine, name);
    (status.held, status.quota)
}

fn set(engine: &Engine, name: &str, quota: u64) -> Result<VolumeStatus, ErrorCode> {
    let to = VolumeChange {
        quota: Some(quota),
        ..VolumeChange::default()
    };
    change(engine, name, to)
}

/// Writes single blocks of four regions concurrently, more than `quota` of them; returns how many were taken.
fn fill(client: &Client, quota: u64) -> u64 {
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..4)
            .map(|region| {
                scope.spawn(move || {
                    let blocks = (0..quota / BLOCK).map(|block| region * REGION + block * BLOCK);
                    blocks
                        .filter(
                            |at| match client.write(*at, &pattern(*at, BLOCK as usize)) {
                                Ok(()) => true,
                                Err(error) => {
                                    assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
                                    false
                                }
                            },
                        )
                        .count() as u64
                })
            })
            .collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
    })
}

#[test]
fn writes_of_all_shards_take_the_quota_to_the_last_block_and_no_further() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    let quota = 2 * MIB;
    // What is requested is rounded up to whole blocks.
    let made = engine.volume_create("tank", &limited("v", 1024, quota - 5));
    assert_eq!(made.unwrap().quota, quota);
    engine.volume_create("tank", &volume("other", 8)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    assert_eq!(fill(&client, quota), quota / BLOCK);
    assert_eq!(books(&engine, "v"), (quota, quota));
    // Only the volume is full.
    assert_eq!(engine.pool_status("tank").unwrap().state, "online");
    Client::open(&engine, "tank", "other")
        .write(0, &[1; 8192])
        .unwrap();
    let (mut has, mut lacks) = (Vec::new(), Vec::new());
    for region in 0..4 {
        for at in (0..quota / BLOCK).map(|block| region * REGION + block * BLOCK) {
            let read = client.read(at, BLOCK as usize).unwrap();
            match read == pattern(at, BLOCK as usize) {
                true => has.push(at),
                false => lacks.push(at),
            }
        }
    }
    assert_eq!(has.len() as u64, quota / BLOCK);
    // What is there is overwritten, in parts too; a write with one new block is refused whole.
    client.write(has[0], &pattern(1, BLOCK as usize)).unwrap();
    client.write(has[1] + 512, &[7; 512]).unwrap();
    assert!(is_full(client.write(lacks[0], &[7; 512])));
    client.flush().unwrap();
    right(&engine);
    start_again(&mut engine, &spec, true);
    let client = Client::open(&engine, "tank", "v");
    assert_eq!(books(&engine, "v"), (quota, quota));
    assert!(is_full(client.write(lacks[0], &[7; 4096])));
    // A discard in one shard makes room in another one.
    let other = |at: u64| {
        lacks
            .iter()
            .find(|lacks| (*lacks ^ at) & REGION != 0)
            .unwrap()
    };
    client.discard(has[2], BLOCK).unwrap();
    client.write(*other(has[2]), &[7; 4096]).unwrap();
    assert!(is_full(client.write(lacks[1], &[7; 4096])));
    assert_eq!(set(&engine, "v", quota - BLOCK), Err(ErrorCode::Refused));
    assert_eq!(
        set(&engine, "v", quota + BLOCK).unwrap().quota,
        quota + BLOCK
    );
    client.write(lacks[1], &[7; 4096]).unwrap();
    assert!(is_full(client.write(lacks[2], &[7; 4096])));
    assert_eq!(set(&engine, "v", 0).unwrap().quota, 0);
    client.write(lacks[2], &[7; 4096]).unwrap();
    // One that is set while the volume has something counts that.
    let held = quota + 2 * BLOCK;
    assert_eq!(
        set(&engine, "v", held - BLOCK).unwrap_err(),
        ErrorCode::Refused
    );
    assert_eq!(books(&engine, "v"), (held, 0));
    set(&engine, "v", held).unwrap();
    assert!(is_full(client.write(lacks[3], &[7; 4096])));
    right(&engine);
    start_again(&mut engine, &spec, false);
    assert_eq!(books(&engine, "v"), (held, held));
    right(&engine);
    engine.shutdown();
}

#[test]
fn a_volume_holds_its_snapshots_and_a_clone_only_what_it_wrote() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 2, 192, 256);
    let mut engine = engine(2);
    engine.pool_create(&spec).unwrap();
    let quota = 6 * MIB;
    engine
        .volume_create("tank", &limited("v", 600, quota))
        .unwrap();
    let client = Client::open(&engine, "tank", "v");
    let mib = |number: u64| pattern(number, MIB as usize);
    // In regions of both shards.
    for at in [0, MIB, REGION, REGION + MIB] {
        client.write(at, &mib(at)).unwrap();
    }
    let snapshot = |engine: &Engine, name: &str| {
        let taken = engine.snapshot_create("tank", &["v".to_owned()], name, 7);
        taken.unwrap();
    };
    snapshot(&engine, "one");
    // What the snapshot has is written again, and counts twice.
    client.write(0, &mib(1)).unwrap();
    client.write(REGION, &mib(2)).unwrap();
    assert!(is_full(client.write(MIB, &mib(3))));
    client.write(0, &mib(4)).unwrap();
    assert_eq!(
        (show(&engine, "v").mapped, show(&engine, "v").held),
        (2 * MIB, quota)
    );
    // A discard of what the snapshot has gives nothing back, one of the volume's own does.
    client.discard(MIB, MIB).unwrap();
    assert!(is_full(client.write(MIB, &mib(3))));
    client.discard(REGION, MIB).unwrap();
    client.write(2 * MIB, &mib(3)).unwrap();
    client.flush().unwrap();
    right(&engine);
    start_again(&mut engine, &spec, true);
    assert_eq!(books(&engine, "v"), (quota, quota));

    engine.snapshot_clone("tank", "v", "one", "copy").unwrap();
    assert_eq!(books(&engine, "copy"), (0, 0));
    set(&engine, "copy", 2 * MIB).unwrap();
    let copy = Client::open(&engine, "tank", "copy");
    copy.write(0, &mib(5)).unwrap();
    copy.write(REGION, &mib(6)).unwrap();
    assert!(is_full(copy.write(MIB, &[1; 4096])));
    // With the snapshot it would hold 6 MiB.
    let refused = engine.volume_promote("tank", "copy").unwrap_err();
    assert_eq!(refused.code, ErrorCode::Refused, "{refused}");
    assert_eq!(
        (books(&engine, "copy").0, books(&engine, "v").0),
        (2 * MIB, quota)
    );
    set(&engine, "copy", 6 * MIB).unwrap();
    engine.volume_promote("tank", "copy").unwrap();
    assert_eq!(
        (books(&engine, "copy").0, books(&engine, "v").0),
        (6 * MIB, 2 * MIB)
    );
    assert!(is_full(copy.write(MIB, &[1; 4096])));
    let client = Client::open(&engine, "tank", "v");
    client.write(REGION, &mib(7)).unwrap();
    right(&engine);

    // Deleting a snapshot frees the blocks that only it references; the volume keeps the others.
    client.flush().unwrap();
    snapshot(&engine, "two");
    client.write(0, &mib(8)).unwrap();
    client.write(4 * MIB, &mib(8)).unwrap();
    assert_eq!(books(&engine, "v").0, 5 * MIB);
    engine
        .snapshot_delete("tank", "v", &["two".to_owned()])
        .unwrap();
    wait_jobs(&engine);
    assert_eq!(books(&engine, "v").0, 4 * MIB);
    right(&engine);
    snapshot(&engine, "three");
    client.write(0, &mib(9)).unwrap();
    engine.volume_roll_back("tank", "v", "three").unwrap();
    wait_jobs(&engine);
    assert_eq!(books(&engine, "v").0, 4 * MIB);
    right(&engine);
    for at in [5 * MIB, REGION + 2 * MIB] {
        client.write(at, &mib(at)).unwrap();
    }
    assert!(is_full(client.write(9 * MIB, &[1; 4096])));
    right(&engine);
    start_again(&mut engine, &spec, false);
    assert_eq!(
        (books(&engine, "copy").0, books(&engine, "v").0),
        (6 * MIB, quota)
    );
    right(&engine);
    engine.shutdown();
}

#[test]
fn a_quota_that_cannot_be_is_refused_and_a_thick_volume_fits_in_its_own() {
    let folder = Folder::new();
    let spec = tiered(&folder, "tank", 1, 192, 256);
    let engine = engine(1);
    engine.pool_create(&spec).unwrap();
    let code = |spec: &VolumeSpec| engine.volume_create("tank", spec).unwrap_err().code;
    assert_eq!(code(&limited("v", 8, u64::MAX)), ErrorCode::Invalid);
    assert_eq!(code(&limited("v", 8, (1 << 60) + 1)), ErrorCode::Invalid);
    let thick = |quota| VolumeSpec {
        thick: true,
        ..limited("v", 8, quota)
    };
    assert_eq!(code(&thick(8 * MIB - BLOCK)), ErrorCode::Invalid);
    assert_eq!(engine.pool_status("tank").unwrap().reserved, 0);
    engine.volume_create("tank", &thick(8 * MIB)).unwrap();
    let grown = engine.volume_resize("tank", "v", 9 * MIB, false);
    assert_eq!(grown.unwrap_err().code, ErrorCode::Invalid);
    assert_eq!(set(&engine, "v", 4 * MIB).unwrap_err(), ErrorCode::Invalid);
    assert_eq!(set(&engine, "v", 1 << 60).unwrap().quota, 1 << 60);
    let client = Client::open(&engine, "tank", "v");
    client.write(0, &vec![1; 8 * MIB as usize]).unwrap();
    assert_eq!(show(&engine, "v").held, 8 * MIB);
    right(&engine);
    // Deleted volumes are not counted, and their space is freed.
    engine.volume_delete("tank", "v").unwrap();
    wait_jobs(&engine);
    right(&engine);
    assert_eq!(engine.pool_status("tank").unwrap().used, 0);
    engine.shutdown();
}
