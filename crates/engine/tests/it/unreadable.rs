//! Blocks that no drive gives back do not hold up what lies beside them.

use crate::support::{
    self, BLOCK, Client, Folder, MIB, engine, pattern, spoil, tiered, vdrive, volume, wait_job,
    wait_status,
};
use block::ErrorKind;
use engine::{Engine, ErrorCode, LayoutSpec, PoolStatus, SpacePolicy, Tier};

/// Blocks of the chunk that holds little.
const FEW: u64 = 10;
const SPARSE: u64 = 5 * MIB;

fn block(number: u64) -> Vec<u8> {
    pattern(1000 + number, BLOCK as usize)
}

/// Block 7 of chunk 0, and the third of the chunk that holds little.
const LOST: [u64; 2] = [7 * BLOCK, SPARSE + 2 * BLOCK];

/// A pool whose volume has a full chunk and one with a few blocks.
fn written(folder: &Folder, policy: SpacePolicy) -> (Engine, Client) {
    let engine = engine(1);
    let mut spec = tiered(folder, "tank", 1, 128, 192);
    spec.policy = policy;
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", 64)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    for at in offsets() {
        client.write(at, &block(at / BLOCK)).unwrap();
    }
    client.flush().unwrap();
    (engine, client)
}

fn offsets() -> impl Iterator<Item = u64> {
    let dense = (0..MIB / BLOCK).map(|number| number * BLOCK);
    dense.chain((0..FEW).map(|number| SPARSE + number * BLOCK))
}

/// Everything is right but for what is `lost`, which fails.
fn check(client: &Client, lost: &[u64]) {
    for at in offsets() {
        let read = client.read(at, BLOCK as usize);
        if lost.contains(&at) {
            assert_eq!(read.unwrap_err().kind, ErrorKind::Medium);
        } else {
            assert!(read.unwrap() == block(at / BLOCK), "byte {at} is wrong");
        }
    }
}

fn demoted_but(blocks: u64) -> impl Fn(&PoolStatus) -> bool {
    move |status| status.fast_dirty == blocks * BLOCK
}

#[test]
fn what_lies_beside_an_unreadable_block_is_demoted_and_cooling_says_which_it_is() {
    let folder = Folder::new();
    let (engine, client) = written(&folder, SpacePolicy::FastFirst);
    for at in LOST {
        assert_eq!(spoil(&folder, "fast", &block(at / BLOCK)), 1);
    }
    let failed = engine.pool_cool("tank").unwrap_err();
    assert_eq!(failed.code, ErrorCode::Damaged);
    for at in LOST {
        let named = format!("volume v byte {at} (file:");
        assert!(failed.message.contains(&named), "{failed}");
    }
    assert!(failed.message.contains("2 blocks"), "{failed}");
    wait_status(&engine, "tank", demoted_but(2));
    check(&client, &LOST);
    // Rewritten blocks are demoted immediately, and the problem is solved.
    for at in LOST {
        client.write(at, &block(at / BLOCK)).unwrap();
    }
    engine.pool_cool("tank").unwrap();
    wait_status(&engine, "tank", demoted_but(0));
    check(&client, &[]);
    support::audit_at_rest(&engine, "tank");
    engine.shutdown();
}

#[test]
fn an_evacuation_goes_on_past_an_unreadable_block_and_names_it() {
    let folder = Folder::new();
    let (engine, client) = written(&folder, SpacePolicy::SlowFirst);
    engine.pool_cool("tank").unwrap();
    for at in LOST {
        assert_ne!(spoil(&folder, "slow", &block(at / BLOCK)), 0);
    }
    let more = vdrive(Tier::Slow, LayoutSpec::Concat, &[folder.drive("more", 192)]);
    engine.vdrive_add("tank", &more, false).unwrap();
    let job = engine.vdrive_remove("tank", 2).unwrap();
    let (state, message) = wait_job(&engine, job);
    assert_eq!(state, "failed");
    for at in LOST {
        let named = format!("volume v byte {at} (file:");
        assert!(message.contains(&named), "{message}");
    }
    check(&client, &LOST);
    for at in LOST {
        client.write(at, &block(at / BLOCK)).unwrap();
    }
    let job = engine.vdrive_remove("tank", 2).unwrap();
    assert_eq!(wait_job(&engine, job).0, "done");
    check(&client, &[]);
    engine.shutdown();
}
