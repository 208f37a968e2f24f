use super::*;
use serde_json::json;

/// A pool whose layers stand on one another, 1 at the bottom.
fn chain(layers: u32) -> PoolConfig {
    let mut config: PoolConfig = serde_json::from_value(json!({
        "name": "tank", "policy": "slow_first", "shards": 1, "group_blocks": 512,
        "meta": {"parts": [], "journal_blocks": 32},
        "drives": [], "vdrives": [], "volumes": [], "exports": [], "next_volume": 1_000_000,
    }))
    .unwrap();
    config.layers = (1..=layers)
        .map(|id| LayerConfig {
            id,
            parent: id - 1,
            root: 1,
            epoch: id,
        })
        .collect();
    config
}

fn name(config: &mut PoolConfig, layer: u32) {
    config.snapshots.push(SnapshotConfig {
        name: format!("s{layer}"),
        volume: 1,
        layer,
        size: 4096,
        created_s: 0,
        held: false,
        schedule: String::new(),
        origin: String::new(),
    });
}

#[test]
fn tens_of_thousands_of_layers_that_nobody_names_are_no_stack() {
    let mut config = chain(50_000);
    name(&mut config, 1);
    let owners = config.owners(1);
    assert_eq!(owners.len(), 1);
    let viewers = &owners[0].viewers;
    assert!(viewers.iter().map(|viewer| viewer.depth).eq(0..49_999));
    assert_eq!(config.path(50_000).len(), 50_000);
}

#[test]
fn viewers_end_at_who_sees_all_and_come_before_those_on_them() {
    let mut config = chain(4);
    // A branch: 5 on 2, and 6 on that.
    for (id, parent) in [(5, 2), (6, 5)] {
        config.layers.push(LayerConfig {
            id,
            parent,
            root: 1,
            epoch: id,
        });
    }
    [1, 3, 6]
        .into_iter()
        .for_each(|layer| name(&mut config, layer));
    let owners = config.owners(1);
    let seen = owners[0].viewers.iter();
    let seen: Vec<_> = seen
        .map(|seen| (seen.layer, seen.depth, seen.reader))
        .collect();
    assert_eq!(
        seen,
        [
            (2, 0, Reader::Nobody),
            (3, 1, Reader::Other),
            (5, 1, Reader::Nobody),
            (6, 2, Reader::Other),
        ]
    );
}
