//! Writes of so many blocks that they go to the drive in steps.

use crate::support::memory::{MemoryDrive, attach, detach};
use crate::support::{BLOCK, Client, MIB, audit_at_rest, engine, pattern, pool, vdrive, volume};
use engine::{LayoutSpec, Tier};

#[test]
fn a_long_write_is_all_there_and_one_that_fails_leaves_each_chunk_as_it_was_or_whole() {
    let engine = engine(1);
    let drives = [MemoryDrive::new("rot:long", 96)];
    attach(&drives);
    let fast = vdrive(Tier::Fast, LayoutSpec::Concat, &["rot:long".to_owned()]);
    engine.pool_create(&pool("tank", 1, vec![fast])).unwrap();
    engine.volume_create("tank", &volume("v", 8)).unwrap();
    let client = Client::open(&engine, "tank", "v");
    // Free space is in pieces of all lengths afterwards.
    for block in (0..512).filter(|block| block % 7 < 3) {
        client
            .write(block * BLOCK, &pattern(block, BLOCK as usize))
            .unwrap();
    }
    for block in (0..512).filter(|block| block % 5 < 2) {
        client.discard(block * BLOCK, BLOCK).unwrap();
    }
    let (at, len) = (MIB - 3 * BLOCK, 2 * MIB as usize);
    let [old, new] = [1000, 2000].map(|seed| pattern(seed, len));
    client.write(at, &old).unwrap();
    assert!(client.read(at, len).unwrap() == old);

    // Each chunk is written as one; they are in progress together.
    let (first, second) = (3 * BLOCK as usize, 3 * BLOCK as usize + MIB as usize);
    let chunks = [0..first, first..second, second..len];
    for wrong in [3, 100, 258] {
        let bad = &new[wrong * BLOCK as usize..][..BLOCK as usize];
        drives[0].fail_write_of(Some(bad.to_vec()));
        client.write(at, &new).unwrap_err();
        drives[0].fail_write_of(None);
        let read = client.read(at, len).unwrap();
        for (number, chunk) in chunks.iter().enumerate() {
            let is = |whole: &[u8]| read[chunk.clone()] == whole[chunk.clone()];
            if chunk.contains(&(wrong * BLOCK as usize)) {
                assert!(is(&old), "the chunk of block {wrong} has changed");
            } else {
                assert!(is(&old) || is(&new), "chunk {number} is torn");
            }
        }
        client.write(at, &old).unwrap();
    }
    client.write(at, &new).unwrap();
    assert!(client.read(at, len).unwrap() == new);
    client.flush().unwrap();
    audit_at_rest(&engine, "tank");
    drop(client);
    engine.shutdown();
    detach(&drives);
}
