//! What discards leave free in small pieces everywhere can be written again, wherever it is requested.

use crate::support::limits::{REGION, is_full, right};
use crate::support::{
    BLOCK, Client, Folder, engine, pattern, pool, rounds, start_again, tiered, vdrive, volume,
};
use engine::{LayoutSpec, PoolSpec, Tier};

const PIECE: u64 = 64 << 10;

/// Offsets of pieces in the regions that the first shard of two has, or the second.
fn pieces_of(shard: u64) -> impl Iterator<Item = u64> {
    let regions = (shard..8).step_by(2);
    regions.flat_map(|region| (0..REGION / PIECE).map(move |at| region * REGION + at * PIECE))
}

/// Writes, a few pieces side by side, until nothing more goes in; returns where.
fn fill(client: &Client, places: impl Iterator<Item = u64>) -> Vec<u64> {
    let places: Vec<u64> = places.collect();
    let mut written = Vec::new();
    for some in places.chunks(8) {
        let pieces: Vec<_> = some
            .iter()
            .map(|at| (*at, pattern(*at, PIECE as usize)))
            .collect();
        let full: Vec<bool> = client.write_all(&pieces).into_iter().map(is_full).collect();
        let fitting = some.iter().zip(&full).filter(|(_, full)| !**full);
        written.extend(fitting.map(|(at, _)| at));
        if full.contains(&true) {
            break;
        }
    }
    written
}

/// Fills a pool from one shard, discards every second block, and writes as much in the other shard's regions, or the
/// same one's.
fn holes_are_filled(spec: &PoolSpec, into: u64) {
    let mut engine = engine(2);
    engine.pool_create(spec).unwrap();
    engine.volume_create("tank", &volume("v", 2048)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    let written = fill(&client, pieces_of(0));
    // What is demoted has been demoted.
    start_again(&mut engine, spec, false);
    let client = Client::open(&engine, "tank", "v");
    for at in &written {
        let second = (1..PIECE / BLOCK).step_by(2);
        client.discard_all(second.map(|block| at + block * BLOCK), BLOCK);
    }
    client.flush().unwrap();
    let again = fill(&client, pieces_of(into).filter(|at| !written.contains(at)));
    let status = engine.pool_status("tank").unwrap();
    assert!(
        status.capacity - status.used < 2 * PIECE,
        "{} of {} pieces were written; {} of {} bytes are used",
        again.len(),
        written.len() / 2,
        status.used,
        status.capacity
    );
    right(&engine);
    start_again(&mut engine, spec, true);
    let client = Client::open(&engine, "tank", "v");
    for at in &again {
        let read = client.read(*at, PIECE as usize).unwrap();
        assert_eq!(read, pattern(*at, PIECE as usize));
    }
    for at in &written {
        let mut expected = pattern(*at, PIECE as usize);
        for block in expected.chunks_mut(BLOCK as usize).skip(1).step_by(2) {
            block.fill(0);
        }
        assert_eq!(client.read(*at, PIECE as usize).unwrap(), expected);
    }
    right(&engine);
    engine.shutdown();
}

#[test]
fn holes_in_one_shards_groups_are_for_the_other() {
    let folder = Folder::new();
    let drives = [folder.drive("only", 256)];
    let only = vdrive(Tier::Slow, LayoutSpec::Concat, &drives);
    holes_are_filled(&pool("tank", 2, vec![only]), 1);
}

#[test]
fn holes_in_homes_are_for_all_chunks() {
    let all = [(2, 1), (2, 0), (1, 0)];
    for (shards, into) in all.into_iter().take(rounds(all.len())) {
        let folder = Folder::new();
        holes_are_filled(&tiered(&folder, "tank", shards, 64, 96), into);
    }
}
