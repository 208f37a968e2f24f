//! What comes by each export is counted for it, and for no other: whoever asks, and of volumes as of snapshots.

mod support;

use block::{IoBuf, OpKind};
use engine::{Engine, ExportLook, ExportRecord};
use support::{BLOCK, Client, Folder, MIB, engine, pattern, tiered, volume};

fn open(engine: &Engine, volume: &str, export: &str, initiator: Option<&str>) -> Client {
    let opened = engine.volume_open_export("tank", volume, export, initiator);
    Client(opened.unwrap())
}

fn looks(engine: &Engine) -> Vec<ExportLook> {
    let pools = engine.look();
    pools.into_iter().next().unwrap().exports
}

/// Reads, writes, bytes read and bytes written of an export.
fn did(engine: &Engine, export: &str) -> Option<[u64; 4]> {
    let looks = looks(engine);
    let look = looks.iter().find(|look| look.name == export)?;
    let counters = &look.counters;
    let counted = [counters.reads, counters.writes];
    let sums = [look.spread.reads, look.spread.writes].map(|spread| {
        let times: u64 = spread.times.iter().sum();
        assert_eq!(times, spread.sizes.iter().sum::<u64>());
        times
    });
    assert_eq!(sums, counted);
    let bytes = [counters.read_bytes, counters.write_bytes];
    Some([counted[0], counted[1], bytes[0], bytes[1]])
}

fn start(folder: &Folder) -> Engine {
    let engine = engine(2);
    engine
        .pool_create(&tiered(folder, "tank", 2, 192, 512))
        .unwrap();
    engine.volume_create("tank", &volume("v", 300)).unwrap();
    engine
}

#[test]
fn each_export_has_what_came_by_it() {
    let folder = Folder::new();
    let engine = start(&folder);
    let (one, two) = (
        open(&engine, "v", "one", None),
        open(&engine, "v", "two", None),
    );
    let host = open(&engine, "v", "two", Some("backup"));
    let nobody = Client::open(&engine, "tank", "v");
    for at in 0..5 {
        one.write(at * MIB, &pattern(at, 8192)).unwrap();
    }
    two.write(20 * MIB, &pattern(1, 4096)).unwrap();
    host.read(20 * MIB, 4096).unwrap();
    host.read(0, 65536).unwrap();
    nobody.read(0, 4096).unwrap();
    // What is no read or write, and over where shards' regions meet: two parts.
    one.flush().unwrap();
    one.discard(40 * MIB, MIB).unwrap();
    two.read(256 * MIB - 4096, 8192).unwrap();
    assert_eq!(did(&engine, "one"), Some([0, 5, 0, 5 * 8192]));
    let read = 4096 + 65536 + 8192;
    assert_eq!(did(&engine, "two"), Some([4, 1, read, 4096]));
    let pools = engine.look();
    let all = &pools[0].volumes[0].counters;
    assert_eq!((all.reads, all.writes), (5, 6));
    let blocks = all.blocks_ram + all.blocks_fast + all.blocks_slow + all.blocks_zero;
    assert_eq!(blocks, (read + 4096) / BLOCK);
    let pool = &pools[0].counters;
    assert_eq!(
        (all.blocks_fast, all.blocks_zero),
        (pool.blocks_fast, pool.blocks_zero)
    );
    // Two of `one`'s, as often as they were read, and `two`'s.
    assert_eq!((all.blocks_fast, all.blocks_zero), (4, 16));
}

#[test]
fn a_snapshot_is_counted_for_its_export_and_what_fails_is_as_much_as_what_does_not() {
    let folder = Folder::new();
    let engine = start(&folder);
    let writer = Client::open(&engine, "tank", "v");
    writer.write(0, &pattern(3, 4096)).unwrap();
    let names = ["v".to_owned()];
    engine.snapshot_create("tank", &names, "s", 1).unwrap();
    let reader = open(&engine, "v@s", "old", None);
    assert!(reader.read(0, 4096).unwrap() == pattern(3, 4096));
    // It never comes to a shard.
    let bytes = IoBuf::from_bytes(pattern(4, 4096).into());
    let refused = reader.run(OpKind::Write, 0, 4096, bytes, false);
    assert!(refused.result.is_err());
    assert_eq!(did(&engine, "old"), Some([1, 0, 4096, 0]));
}

#[test]
fn an_export_that_is_gone_is_forgotten_and_one_that_is_kept_goes_on() {
    let folder = Folder::new();
    let engine = start(&folder);
    let record = |name: &str| ExportRecord {
        name: name.to_owned(),
        volume: "v".to_owned(),
        kind: "nbd".to_owned(),
        parameters: std::collections::BTreeMap::new(),
        initiator: None,
    };
    let writes = |export: &str| {
        let client = open(&engine, "v", export, None);
        client.write(0, &pattern(1, 4096)).unwrap();
    };
    let exports = vec![record("kept"), record("gone")];
    engine.pool_set_exports("tank", exports).unwrap();
    writes("kept");
    writes("gone");
    assert_eq!(did(&engine, "kept"), Some([0, 1, 0, 4096]));
    let exports = vec![record("kept")];
    engine.pool_set_exports("tank", exports).unwrap();
    assert_eq!(did(&engine, "gone"), None);
    // Another one has its number, and nothing of what it counted.
    writes("new");
    writes("kept");
    assert_eq!(did(&engine, "new"), None, "nobody has it open, or keeps it");
    let new = open(&engine, "v", "newer", None);
    new.read(0, 4096).unwrap();
    assert_eq!(did(&engine, "newer"), Some([1, 0, 4096, 0]));
    assert_eq!(did(&engine, "kept"), Some([0, 2, 0, 8192]));
}
