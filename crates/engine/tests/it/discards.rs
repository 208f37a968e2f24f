//! Discards and writes of zeroes: what they need, what they free, and what they leave.

use crate::support::limits::{is_full, right, show};
use crate::support::{BLOCK, Client, Folder, MIB, engine, pattern, tiered, volume};
use block::{IoBuf, OpFlags, OpKind};
use engine::{Engine, VolumeSpec};

const SECTOR: u64 = 512;

/// A pool with a volume of these limits.
fn volume_of(folder: &Folder, quota: u64) -> (Engine, Client) {
    let engine = engine(1);
    engine
        .pool_create(&tiered(folder, "tank", 1, 256, 256))
        .unwrap();
    let spec = VolumeSpec {
        quota,
        ..volume("v", 64)
    };
    engine.volume_create("tank", &spec).unwrap();
    let client = Client::open(&engine, "tank", "v");
    (engine, client)
}

fn held(engine: &Engine) -> u64 {
    show(engine, "v").held
}

fn zero(client: &Client, no_unmap: bool, offset: u64, len: u64) -> Result<(), block::IoError> {
    let flags = OpFlags {
        no_unmap,
        ..OpFlags::default()
    };
    client
        .run_with(OpKind::WriteZeroes, flags, offset, len, IoBuf::empty())
        .result
}

#[test]
fn parts_of_holes_stay_holes() {
    let folder = Folder::new();
    let (engine, client) = volume_of(&folder, 0);
    client.write(0, &pattern(1, BLOCK as usize)).unwrap();
    for block in 1..256 {
        client.discard(block * BLOCK + SECTOR, SECTOR).unwrap();
        zero(&client, false, block * BLOCK, SECTOR).unwrap();
    }
    client.discard(BLOCK + SECTOR, 100 * BLOCK).unwrap();
    assert_eq!(held(&engine), BLOCK);
    assert_eq!(client.status(0, MIB), [(BLOCK, true), (MIB - BLOCK, false)]);
    right(&engine);
    engine.shutdown();
}

#[test]
fn a_block_is_free_once_its_last_sector_is_discarded() {
    for by_zeroes in [false, true] {
        let folder = Folder::new();
        let (engine, client) = volume_of(&folder, 0);
        client.write(0, &pattern(1, MIB as usize)).unwrap();
        // Backwards and forwards, and sectors of different blocks in turn.
        for sector in (0..8).rev() {
            for block in 0..256 {
                let at = block * BLOCK + sector * SECTOR;
                match by_zeroes {
                    true => zero(&client, false, at, SECTOR).unwrap(),
                    false => client.discard(at, SECTOR).unwrap(),
                }
            }
            let expected = if sector > 0 { MIB } else { 0 };
            assert_eq!(held(&engine), expected, "after sector {sector}");
        }
        assert_eq!(client.read(0, MIB as usize).unwrap(), vec![0; MIB as usize]);
        right(&engine);
        engine.shutdown();
    }
}

#[test]
fn a_discard_of_part_of_a_block_leaves_the_rest_of_it() {
    let folder = Folder::new();
    let (engine, client) = volume_of(&folder, 0);
    let mut expected = pattern(1, 4 * BLOCK as usize);
    client.write(0, &expected).unwrap();
    client.discard(SECTOR, 2 * BLOCK).unwrap();
    expected[SECTOR as usize..(SECTOR + 2 * BLOCK) as usize].fill(0);
    assert_eq!(client.read(0, expected.len()).unwrap(), expected);
    assert_eq!(held(&engine), 3 * BLOCK);
    right(&engine);
    engine.shutdown();
}

#[test]
fn discards_never_fail_at_the_quota() {
    let folder = Folder::new();
    let (engine, client) = volume_of(&folder, MIB);
    client.write(0, &pattern(1, MIB as usize)).unwrap();
    assert!(is_full(client.write(2 * MIB, &pattern(2, 4096))));
    // Holes, data, and, once there is a snapshot, data that it has.
    client.discard(8 * MIB + SECTOR, SECTOR).unwrap();
    client.discard(SECTOR, SECTOR).unwrap();
    let volumes = ["v".to_owned()];
    engine.snapshot_create("tank", &volumes, "s", 1).unwrap();
    client.discard(BLOCK + SECTOR, SECTOR).unwrap();
    client.discard(2 * BLOCK + SECTOR, 2 * BLOCK).unwrap();
    // What a discard may leave, a write of zeroes may not.
    assert!(is_full(zero(&client, false, BLOCK + SECTOR, SECTOR)));
    let part = &pattern(1, MIB as usize)[BLOCK as usize..2 * BLOCK as usize];
    assert_eq!(client.read(BLOCK, BLOCK as usize).unwrap(), part);
    assert_eq!(
        client.read(3 * BLOCK, BLOCK as usize).unwrap(),
        vec![0; 4096]
    );
    right(&engine);
    engine.shutdown();
}

#[test]
fn zeroes_without_unmap_are_provisioned() {
    let folder = Folder::new();
    let (engine, client) = volume_of(&folder, 8 * MIB);
    zero(&client, true, SECTOR, 4 * MIB).unwrap();
    assert_eq!(held(&engine), 4 * MIB + BLOCK);
    assert_eq!(client.status(0, 4 * MIB), [(4 * MIB, true)]);
    // Another volume takes the rest.
    let rest = 8 * MIB - held(&engine);
    client.write(16 * MIB, &pattern(1, rest as usize)).unwrap();
    assert!(is_full(client.write(32 * MIB, &pattern(2, 4096))));
    let data = pattern(3, 4 * MIB as usize);
    client.write(0, &data).unwrap();
    assert_eq!(client.read(0, data.len()).unwrap(), data);
    // And there is no space for zeroes beyond the quota.
    assert!(is_full(zero(&client, true, 40 * MIB, BLOCK)));
    zero(&client, false, 0, 4 * MIB).unwrap();
    assert_eq!(held(&engine), rest + BLOCK);
    right(&engine);
    engine.shutdown();
}
