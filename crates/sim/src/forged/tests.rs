//! Some forged pools with every run of the tests; `sim --forged` has many.

use super::attempt::campaign;
use std::sync::atomic::Ordering;

/// Pools of one run; `CONVECT_FORGED` says how many else.
const POOLS: u64 = 500;

#[test]
fn forged_pools_end_nothing() {
    let asked = std::env::var("CONVECT_FORGED").ok();
    let pools = asked.and_then(|asked| asked.parse().ok()).unwrap_or(POOLS);
    let tally = campaign(1, pools, 2).unwrap_or_else(|wrong| panic!("{}", wrong.join("\n")));
    let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    // They are forged, and not merely broken: most of them open, and most of what is wrong is seen.
    assert_eq!(of(&tally.pools), pools);
    assert!(of(&tally.opened) * 3 > pools, "{tally:?}");
    assert!(of(&tally.noticed) * 3 > pools, "{tally:?}");
}
