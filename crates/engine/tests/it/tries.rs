//! Reads that fail once: each block is tried again, however many of a read failed beside it.

use crate::support::memory::{MemoryDrive, attach, detach};
use crate::support::{BLOCK, Client, engine, pattern, pool, vdrive, volume};
use engine::{LayoutSpec, Tier};

/// Blocks of the read, each in a place of its own.
const COUNT: u64 = 64;

#[test]
fn a_read_of_many_pieces_of_which_each_fails_once_succeeds() {
    let engine = engine(1);
    let drives = [MemoryDrive::new("rot:tries", 96)];
    attach(&drives);
    let fast = vdrive(Tier::Fast, LayoutSpec::Concat, &["rot:tries".to_owned()]);
    engine.pool_create(&pool("tank", 1, vec![fast])).unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    // No two neighbours are written after one another.
    for block in (0..COUNT).map(|index| index * 5 % COUNT) {
        let data = pattern(block, BLOCK as usize);
        client.write(block * BLOCK, &data).unwrap();
    }
    client.flush().unwrap();
    assert!(drives[0].fail_once() as u64 >= COUNT);
    let read = client.read(0, (COUNT * BLOCK) as usize).unwrap();
    for (block, bytes) in (0..COUNT).zip(read.chunks_exact(BLOCK as usize)) {
        assert!(bytes == pattern(block, BLOCK as usize), "block {block}");
    }
    detach(&drives);
    drop(client);
    engine.shutdown();
}
