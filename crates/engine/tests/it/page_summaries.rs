//! Pages of snapshots' layers leave memory while there is room: what remains of them is found, and right.

use crate::support::{
    self, Client, Folder, MIB, Random, engine_with, pattern, pool, start_again, vdrive, volume,
};

const CHUNKS: u64 = 24;
const BLOCK: usize = 4096;
const LAYERS: u64 = 60;
/// Many times what all pages take.
const MUCH: u64 = 256 * MIB;

#[test]
fn pages_of_many_snapshots_shrink_to_summaries_and_are_read_by_them() {
    let folder = Folder::new();
    let drives = [folder.drive("fast", 512)];
    let spec = pool(
        "tank",
        1,
        vec![vdrive(
            engine::Tier::Fast,
            engine::LayoutSpec::Concat,
            &drives,
        )],
    );
    let mut engine = engine_with(1, MUCH);
    engine.pool_create(&spec).unwrap();
    engine.volume_create("tank", &volume("v", CHUNKS)).unwrap();
    let mut random = Random(7);
    let blocks = CHUNKS * MIB / BLOCK as u64;
    let mut model = vec![None; blocks as usize];
    let write = |engine: &engine::Engine, model: &mut Vec<Option<u64>>, block: u64, seed: u64| {
        let client = Client::open(engine, "tank", "v");
        let content = pattern(seed, BLOCK);
        client.write(block * BLOCK as u64, &content).unwrap();
        model[block as usize] = Some(seed);
    };
    for layer in 0..LAYERS {
        for chunk in 0..CHUNKS {
            let block = chunk * 256 + random.below(256);
            write(&engine, &mut model, block, 1 + layer * CHUNKS + chunk);
        }
        let name = format!("s{layer}");
        let taken = engine.snapshot_create("tank", &["v".to_owned()], &name, 0);
        taken.unwrap();
    }
    let pages = LAYERS * CHUNKS * BLOCK as u64;
    let full = engine.pool_status("tank").unwrap().map_bytes;
    assert!(full > pages, "{full} bytes");
    let is_small = |status: &engine::PoolStatus| status.map_bytes < full - pages * 3 / 4;
    support::wait_status(&engine, "tank", is_small);
    let check = |engine: &engine::Engine, model: &[Option<u64>]| {
        let client = Client::open(engine, "tank", "v");
        for (block, seed) in (0..).zip(model) {
            let read = client.read(block * BLOCK as u64, BLOCK).unwrap();
            let wanted = seed.map_or(vec![0; BLOCK], |seed| pattern(seed, BLOCK));
            assert!(read == wanted, "block {block}");
        }
    };
    check(&engine, &model);
    // Reading took no page back.
    assert!(is_small(&engine.pool_status("tank").unwrap()));
    // What is written since is found, and what goes into other layers with a deletion.
    for seed in 0..500 {
        let block = random.below(blocks);
        write(&engine, &mut model, block, 1_000_000 + seed);
    }
    let names: Vec<String> = (0..LAYERS).step_by(2).map(|at| format!("s{at}")).collect();
    engine.snapshot_delete("tank", "v", &names).unwrap();
    check(&engine, &model);
    support::wait_jobs(&engine);
    check(&engine, &model);
    start_again(&mut engine, &spec, true);
    check(&engine, &model);
    support::audit_at_rest(&engine, "tank");
}
