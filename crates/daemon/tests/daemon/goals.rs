//! Volumes that miss their performance targets.

use crate::common::{World, manager, pool_request, volume_request};
use api::v1::{AlertList, EventCode};
use daemon::Manager;
use engine::Targets;
use std::sync::Arc;
use std::time::Duration;

/// A second with 500 reads, slow or fast.
fn second(world: &Arc<World>, manager: &Manager, up_s: u64, slow: bool) {
    {
        let mut did = world.did.lock().unwrap();
        let (counters, spread) = did.entry("v".to_owned()).or_default();
        counters.reads += 500;
        counters.read_ns += 500 * if slow { 10_000_000 } else { 100_000 };
        spread.reads.times[if slow { 12 } else { 5 }] += 500;
    }
    manager
        .observer
        .observe(Duration::from_secs(up_s), 1_000_000 + up_s);
}

fn unmet(manager: &Manager) -> Vec<String> {
    let AlertList { items, .. } = manager.notifications.alert_list();
    let unmet = items
        .into_iter()
        .filter(|alert| alert.code == EventCode::TargetUnmet);
    unmet.map(|alert| alert.message).collect()
}

#[test]
fn missed_target_is_alerted_until_met_for_five_minutes() {
    let world = Arc::new(World::default());
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    manager.volumes.create(volume_request("tank", "v")).unwrap();
    for up_s in 0..100 {
        second(&world, &manager, up_s, true);
    }
    assert!(unmet(&manager).is_empty(), "no targets are set");
    *world.expected.lock().unwrap() = Targets {
        latency_ns: 2_000_000,
        ..Targets::default()
    };
    for up_s in 100..150 {
        second(&world, &manager, up_s, true);
    }
    assert!(unmet(&manager).is_empty(), "the minute is not over");
    for up_s in 150..180 {
        second(&world, &manager, up_s, true);
    }
    let told = unmet(&manager);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("volume tank/v") && told[0].contains("2.000 ms"),
        "{told:?}"
    );
    for up_s in 180..400 {
        second(&world, &manager, up_s, false);
    }
    assert_eq!(
        unmet(&manager).len(),
        1,
        "it was met for less than five minutes"
    );
    for up_s in 400..570 {
        second(&world, &manager, up_s, false);
    }
    assert!(unmet(&manager).is_empty());
}
