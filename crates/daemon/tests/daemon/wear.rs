//! Wear of drives: counted, stored every ten minutes, and reported per day.

use crate::common::{manager, pool_request};
use crate::fake::World;
use api::v1::{PoolChange, Wear};
use std::sync::Arc;

const GIB: u64 = 1 << 30;

#[test]
fn wear_is_stored_at_once_for_new_drives_then_every_ten_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    let kept = || world.pools()["tank"].wear_kept.clone();
    manager.wear.watch(5, 1_000);
    assert_eq!(kept(), [1_000], "a drive that does not count yet");
    for up_s in (15..605).step_by(10) {
        manager.wear.watch(up_s, 995 + up_s);
    }
    assert_eq!(kept(), [1_000]);
    manager.wear.watch(605, 1_600);
    manager.wear.watch(615, 1_610);
    assert_eq!(kept(), [1_000, 1_600]);
    // A clock set back has no effect.
    manager.wear.watch(1_204, 10);
    assert_eq!(kept().len(), 2);
    manager.wear.watch(1_205, 11);
    assert_eq!(kept(), [1_000, 1_600, 11]);
}

#[test]
fn wear_is_reported_by_purpose_and_per_day() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    let told = || -> Wear { manager.pools.show("tank").unwrap().vdrives[0].drives[0].wear };
    let unknown = told();
    assert_eq!((unknown.since_s, unknown.daily), (None, None));
    {
        let mut pools = world.pools();
        let wear = &mut pools.get_mut("tank").unwrap().wear;
        wear.since_s = 1;
        (wear.hosts, wear.promotion) = (GIB, 2 * GIB);
        (wear.upkeep, wear.metadata) = (4 * GIB, 8 * GIB);
    }
    let wear = told();
    assert_eq!((wear.since_s, wear.total), (Some(1), 15 * GIB));
    assert_eq!((wear.hosts, wear.promotion), (GIB, 2 * GIB));
    assert_eq!((wear.upkeep, wear.metadata), (4 * GIB, 8 * GIB));
    assert!(wear.daily.is_some_and(|daily| daily < GIB), "{wear:?}");
    assert_eq!(wear.daily_since_start, None, "no observation yet");
    let listed = manager.pools.vdrive_list("tank").unwrap().items;
    assert_eq!(listed[0].drives[0].wear.total, wear.total);
}

#[test]
fn promotion_budget_is_changed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let world = Arc::new(World::default());
    let manager = manager(&world, folder.path());
    manager
        .pools
        .create(pool_request("tank", &["a"], false))
        .unwrap();
    assert_eq!(manager.pools.show("tank").unwrap().promotion_budget, None);
    let change = PoolChange {
        promotion_budget: Some(5 * GIB),
    };
    let changed = manager.pools.change("tank", &change).unwrap();
    assert_eq!(changed.promotion_budget.unwrap().daily, 5 * GIB);
    let gone = manager.pools.change("none", &change).unwrap_err();
    assert_eq!(gone.code, api::v1::ProblemCode::NotFound);
}
