//! For how long operations were held, and for whom.

use super::*;

#[test]
fn time_for_which_a_volume_was_held_is_laid_to_whom_was_served_meanwhile() {
    let mut world = World::new(flat)
        .host(1, 128, Some(policy(5, 1000)))
        .host(2, 64, Some(policy(1, 60_000)))
        .host(3, 64, Some(policy(1, 20_000)))
        .host(4, 1, None);
    world.run(3000 * MS);
    let service = world.tenants[&1].service();
    let whom = service.held_for();
    let keys: Vec<u32> = whom.iter().map(|of| of.0).collect();
    assert_eq!(keys[..2], [2, 3], "{whom:?}");
    assert!(whom[0].1 > 2 * whom[1].1, "{whom:?}");
    assert!(
        whom.iter().map(|of| of.1).sum::<u64>() <= 1_000_000,
        "{whom:?}"
    );
    let totals = service.totals();
    assert!(
        totals.held_ns > 2500 * MS && totals.own_ns == 0,
        "{totals:?}"
    );
    // 128 operations wait at a time, nearly all of them held.
    assert!(totals.waited_ns > 100 * totals.held_ns, "{totals:?}");
    assert!(totals.waited_ns > totals.took_ns, "{totals:?}");
}

#[test]
fn time_for_its_own_maximum_is_laid_to_nobody() {
    let capped = QosPolicyConfig {
        max_iops: 1000,
        ..policy(3, 0)
    };
    let mut world = World::new(flat).host(1, 64, Some(capped)).host(2, 1, None);
    world.run(3000 * MS);
    let service = world.tenants[&1].service();
    let totals = service.totals();
    assert!(totals.held_ns > 2500 * MS, "{totals:?}");
    assert!(totals.own_ns * 10 > totals.held_ns * 9, "{totals:?}");
}
