//! Operations are counted by export: of all initiators, of volumes and of snapshots.

use crate::support::{Answer, BLOCK, Client, Folder, MIB, engine, pattern, tiered, volume};
use block::{CompletionSink, IoBuf, Op, OpFlags, OpKind};
use engine::{Engine, ExportLook, ExportRecord};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

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
fn reads_that_come_together_are_counted_by_whom_and_as_large_as_each_was() {
    let folder = Folder::new();
    let engine = start(&folder);
    let (one, two) = (
        open(&engine, "v", "one", None),
        open(&engine, "v", "two", None),
    );
    // Unwritten blocks of a chunk whose page is in memory are served immediately, and counted with the rest.
    let nobody = Client::open(&engine, "tank", "v");
    nobody.write(MIB / 2, &pattern(1, 4096)).unwrap();
    one.read(0, 4096).unwrap();
    let (give, take) = channel();
    let done: Arc<dyn CompletionSink> = Arc::new(Answer(Mutex::new(give)));
    // By two exports, of two sizes: some of the same kind in a row, and some of each alone.
    let asks = |round: u64| {
        let kinds = [(&one, 4096), (&one, 4096), (&two, 4096), (&two, 16384)];
        let all = kinds.into_iter().chain([(&one, 16384)]);
        all.skip((round % 2) as usize)
    };
    let (rounds, mut sent) = (100, 0);
    for (client, len) in (0..rounds).flat_map(asks) {
        let op = Op {
            tag: sent,
            kind: OpKind::Read,
            flags: OpFlags::default(),
            offset: 0,
            len,
            buf: IoBuf::zeroed(len as usize),
            done: done.clone(),
        };
        assert!(client.0.submit(op).is_ok());
        sent += 1;
    }
    for _ in 0..sent {
        let answer = take.recv_timeout(std::time::Duration::from_secs(60));
        assert!(answer.unwrap().result.is_ok());
    }
    // Of 4 KiB: the one before, two a round or one, and one a round; of 16 KiB one each a round.
    let (ones, twos) = (1 + 150 + 100, 200);
    assert_eq!(
        did(&engine, "one"),
        Some([ones, 0, 151 * 4096 + 100 * 16384, 0])
    );
    assert_eq!(
        did(&engine, "two"),
        Some([twos, 0, 100 * 4096 + 100 * 16384, 0])
    );
    let sizes = |export: &str| {
        let looks = looks(&engine);
        let look = looks.iter().find(|look| look.name == export).unwrap();
        [look.spread.reads.sizes[3], look.spread.reads.sizes[5]]
    };
    assert_eq!((sizes("one"), sizes("two")), ([151, 100], [100, 100]));
    let pools = engine.look();
    let all = &pools[0].volumes[0];
    assert_eq!(all.counters.blocks_zero, 251 + 4 * 200);
    // What was never written comes from nowhere, however it is read.
    let sources = [&all.sources.ram, &all.sources.fast, &all.sources.slow];
    let reads = sources.map(|source| source.counts.iter().sum::<u64>());
    assert_eq!(reads, [0; 3]);
    assert_eq!(all.counters.read_ns, pools[0].counters.read_ns);
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
        disabled: false,
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

#[test]
fn a_disabled_export_stays_disabled_in_another_process() {
    let folder = Folder::new();
    let first = start(&folder);
    let drives: Vec<String> = first
        .pool_status("tank")
        .unwrap()
        .vdrives
        .iter()
        .flat_map(|vdrive| vdrive.drives.iter().map(|drive| drive.spec.clone()))
        .collect();
    let record = |name: &str, disabled| ExportRecord {
        name: name.to_owned(),
        volume: "v".to_owned(),
        kind: "nbd".to_owned(),
        parameters: [("listen".to_owned(), "unix:/n".to_owned())].into(),
        initiator: None,
        disabled,
    };
    let exports = vec![record("off", true), record("on", false)];
    first.pool_set_exports("tank", exports.clone()).unwrap();
    first.pool_export("tank").unwrap();
    drop(first);
    let second = engine(2);
    second
        .pool_import(&drives, "tank", engine::ImportOptions::default())
        .unwrap();
    assert_eq!(second.pool_exports("tank").unwrap(), exports);
}
