//! RAM tiers: full size, and reduced while the host is short of memory.

use crate::common::{FRONT_ENDS, Fake, World, pool_request};
use daemon::ManagerConfig;
use daemon::{Manager, RamPlan, StateDir};
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn meminfo(available: u64) -> String {
    let kib = available * 1024;
    format!("MemTotal: 9 kB\nMemAvailable:   {kib} kB\n")
}

#[test]
fn ram_tiers_shrink_while_memory_is_short_and_recover() {
    let (world, folder) = (Arc::new(World::default()), tempfile::tempdir().unwrap());
    let state = StateDir::open(folder.path()).unwrap();
    let ram = RamPlan {
        each: 200 * MIB,
        pools: BTreeMap::from([("tank".to_owned(), 600 * MIB)]),
        reserve: Some(500 * MIB),
    };
    let manager = Manager::new(
        Fake::over(&world),
        FRONT_ENDS,
        state,
        ManagerConfig {
            ram,
            ..ManagerConfig::default()
        },
    );
    for name in ["tank", "lake"] {
        manager
            .pools
            .create(pool_request(name, &[name], false))
            .unwrap();
    }
    let limits = || ["tank", "lake"].map(|name| world.pools()[name].ram.1 / MIB);
    manager.ram.fit(&meminfo(4000));
    assert_eq!(limits(), [600, 200]);
    // 400 MiB of 800 MiB are used, and 200 MiB are lacking.
    world.pools().get_mut("tank").unwrap().ram.0 = 400 * MIB;
    manager.ram.fit(&meminfo(300));
    assert_eq!(limits(), [150, 50]);
    // Unknown available memory changes nothing.
    manager.ram.fit("");
    assert_eq!(limits(), [150, 50]);
    for _ in 0..6 {
        manager.ram.fit(&meminfo(4000));
    }
    assert_eq!(limits(), [600, 200]);
}
