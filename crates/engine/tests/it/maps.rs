//! Locations of volumes for a map: all of them, or a part in detail; and their statistics together.

use crate::support::{Client, Folder, MIB, engine, pattern, tiered, volume};
use engine::MapCell;

/// Regions of 256 MiB belong to the shards in turn.
const REGION: u64 = 256 * MIB;

fn stored(cell: &MapCell) -> u64 {
    cell.ram + cell.fast + cell.slow
}

#[test]
fn a_part_is_looked_at_up_close_and_what_is_used_often_is_hot() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "p", 2, 192, 256))
        .unwrap();
    engine.volume_create("p", &volume("v", 2 * 256)).unwrap();
    let client = Client::open(&engine, "p", "v");
    // Beside where the one shard's region ends and the other's begins.
    for chunk in [REGION / MIB - 2, REGION / MIB + 1] {
        client
            .write(chunk * MIB, &pattern(chunk, MIB as usize))
            .unwrap();
    }
    for _ in 0..3 {
        client.read(REGION + MIB, 4096).unwrap();
    }
    let part = REGION - 4 * MIB..REGION + 4 * MIB;
    let cells = engine.volume_map("p", "v", part, 8).unwrap();
    let sums: Vec<u64> = cells.iter().map(stored).collect();
    assert_eq!(sums, [0, 0, MIB, 0, 0, MIB, 0, 0]);
    let empty: Vec<u64> = cells.iter().map(|cell| cell.empty).collect();
    assert_eq!(empty, [MIB, MIB, 0, MIB, MIB, 0, MIB, MIB]);
    let uses: Vec<bool> = cells.iter().map(|cell| cell.uses > 0).collect();
    let hot = [false, false, true, false, false, true, false, false];
    assert_eq!(uses, hot);
    // What is beyond the end is not there.
    let cells = engine.volume_map("p", "v", REGION..u64::MAX, 256).unwrap();
    assert_eq!(cells.iter().map(stored).sum::<u64>(), MIB);
    assert_eq!(stored(&cells[1]), MIB);
    let whole = engine.volume_map("p", "v", 0..u64::MAX, 2).unwrap();
    assert_eq!([stored(&whole[0]), stored(&whole[1])], [MIB, MIB]);
    engine.shutdown();
}

#[test]
fn counters_of_all_volumes_are_those_of_each() {
    let folder = Folder::new();
    let engine = engine(2);
    engine
        .pool_create(&tiered(&folder, "p", 2, 192, 256))
        .unwrap();
    for (name, writes) in [("a", 1), ("b", 2)] {
        engine.volume_create("p", &volume(name, 8)).unwrap();
        let client = Client::open(&engine, "p", name);
        for write in 0..writes {
            client.write(write * MIB, &pattern(write, 4096)).unwrap();
        }
    }
    let all = &engine.look()[0];
    assert_eq!(all.volumes.len(), 2);
    for (volume, (name, writes)) in all.volumes.iter().zip([("a", 1), ("b", 2)]) {
        assert_eq!(
            (volume.status.name.as_str(), volume.counters.writes),
            (name, writes)
        );
        assert_eq!(volume.counters, engine.volume_counters("p", name).unwrap());
        assert_eq!(volume.spread.writes.sizes.iter().sum::<u64>(), writes);
        assert_eq!(
            engine
                .volume_list("p")
                .unwrap()
                .iter()
                .filter(|known| **known == volume.status)
                .count(),
            1
        );
    }
    assert_eq!(all.counters, engine.pool_counters("p").unwrap());
    assert_eq!(all.status, engine.pool_status("p").unwrap());
    engine.shutdown();
}

#[test]
fn reads_are_counted_by_where_they_came_from() {
    let folder = Folder::new();
    let engine = engine(1);
    engine
        .pool_create(&tiered(&folder, "p", 1, 192, 256))
        .unwrap();
    engine.volume_create("p", &volume("v", 8)).unwrap();
    let client = Client::open(&engine, "p", "v");
    let counts = || {
        let volume = &engine.look()[0].volumes[0];
        let sources = &volume.sources;
        let sources = [&sources.ram, &sources.fast, &sources.slow];
        let took: u64 = sources.iter().map(|times| times.ns).sum();
        assert!(took <= volume.counters.read_ns);
        sources.map(|times| times.counts.iter().sum::<u64>())
    };
    client.write(0, &pattern(1, 4096)).unwrap();
    client.read(0, 4096).unwrap();
    assert_eq!(counts(), [0, 1, 0]);
    engine.pool_cool("p").unwrap();
    client.read(0, 4096).unwrap();
    assert_eq!(counts(), [0, 1, 1]);
    // The disk's answer was kept.
    client.read(0, 4096).unwrap();
    assert_eq!(counts(), [1, 1, 1]);
    drop(client);
    engine.shutdown();
}
