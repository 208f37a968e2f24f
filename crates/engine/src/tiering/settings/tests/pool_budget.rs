//! The promotion budget of a whole pool, besides the budgets of volumes; and writes are counted.

use super::*;
use crate::control::explain::Cause;
use crate::tiering::promotion_claim::NotNow;
use format::WearConfig;
use units::VdriveId;

/// Bytes of some blocks.
fn bytes(blocks: u64) -> u64 {
    blocks * BLOCK as u64
}

/// The pool may promote so many blocks from now on, and next to nothing over the day.
fn allow(probe: &Probe, blocks: u64) -> Arc<Budget> {
    let budget = Arc::new(Budget::new(4096));
    assert!(budget.is_empty(probe.shard.handle.now_ns()));
    budget.give_back(bytes(blocks));
    probe.shard.set_budget(Some(budget.clone()));
    budget
}

/// A volume's budget alone, with so many blocks in it.
fn allow_volume(probe: &Probe, volume: u32, blocks: u64) -> Arc<Budget> {
    let settings = KnobsConfig {
        write_budget: 4096,
        ..KnobsConfig::default()
    };
    let budget = set(probe, volume, settings).budget.clone().unwrap();
    assert!(budget.is_empty(probe.shard.handle.now_ns()));
    budget.give_back(bytes(blocks));
    budget
}

/// Times that something was not promoted for a reason.
fn stayed(probe: &Probe, cause: Cause) -> u64 {
    let state = probe.shard.state.borrow();
    let mut counts = state.ledger.counts();
    counts.find(|count| count.cause == cause).unwrap().moves
}

async fn promote_hot(probe: &Probe, volume: u32) -> u64 {
    for _ in 0..4 {
        read_hot(probe, volume, 0..4).await;
        promote_all(probe).await;
    }
    fast(probe, volume)
}

#[test]
fn all_volumes_together_promote_no_more_than_the_pools_budget() {
    run(|handle| async move {
        let probe = cold(&handle, "pool-budget", 4).await;
        let budget = allow(&probe, 40);
        let one = promote_hot(&probe, probe.volume).await;
        let both = one + promote_hot(&probe, OTHER).await;
        assert!((25..=40).contains(&both), "{both}");
        assert_eq!(budget.left(), bytes(40 - both));
        let now_ns = probe.shard.handle.now_ns();
        assert_eq!(budget.today(now_ns), bytes(both));
        assert!(stayed(&probe, Cause::StayedBudget) > 0);
        assert_eq!(stayed(&probe, Cause::StayedKnobs), 0);
        // Another budget applies immediately, and without one everything is promoted.
        allow(&probe, 0);
        assert_eq!(promote_hot(&probe, probe.volume).await, one);
        probe.shard.set_budget(None);
        assert!(promote_hot(&probe, probe.volume).await > 100);
    });
}

#[test]
fn both_budgets_have_to_allow_a_promotion_and_a_refused_one_costs_neither() {
    run(|handle| async move {
        for (of_volume, of_pool) in [(20, 200), (200, 20)] {
            let name = format!("both-{of_volume}");
            let probe = cold(&handle, &name, 4).await;
            let volume = allow_volume(&probe, probe.volume, of_volume);
            let pool = allow(&probe, of_pool);
            let has = promote_hot(&probe, probe.volume).await;
            assert!((5..=20).contains(&has), "{has}");
            assert_eq!(volume.left(), bytes(of_volume - has));
            assert_eq!(pool.left(), bytes(of_pool - has));
            let now_ns = probe.shard.handle.now_ns();
            assert_eq!(volume.today(now_ns), pool.today(now_ns));
        }
    });
}

#[test]
fn what_is_pinned_waits_for_the_pools_budget_as_well() {
    run(|handle| async move {
        let probe = cold(&handle, "pinned-budget", 4).await;
        let (shard, volume) = (&probe.shard, probe.volume);
        set(&probe, volume, pinned(TierConfig::Fast, 0..4));
        let of_pool = allow(&probe, 20);
        let claim = |blocks| shard.claim_pinned(volume, blocks);
        assert!(matches!(claim(21), Err(NotNow(Cause::StayedBudget))));
        assert_eq!(of_pool.left(), bytes(20));
        drop(claim(20));
        assert_eq!(of_pool.left(), bytes(20), "nothing was written");
        let taken = claim(15).map(|mut claim| claim.wrote());
        assert!(taken.is_ok());
        assert_eq!(of_pool.left(), bytes(5));
        assert!(!shard.state.borrow().limits.is_spent(shard.handle.now_ns()));
        assert!(claim(5).map(|mut claim| claim.wrote()).is_ok());
        assert!(shard.state.borrow().limits.is_spent(shard.handle.now_ns()));
    });
}

/// What was written to the fast drive and to the slow one.
fn wear(probe: &Probe) -> [WearConfig; 2] {
    [1, 2].map(|id| probe.shard.vdrive(VdriveId(id)).unwrap().wear()[0])
}

fn sum(wear: &WearConfig) -> u64 {
    wear.hosts + wear.promotion + wear.upkeep + wear.metadata
}

/// What is counted for each drive, after that was held against what the drives saw.
fn right(probe: &Probe, what: &str) -> [WearConfig; 2] {
    let wear = wear(probe);
    assert_eq!(
        wear.each_ref().map(sum),
        probe.written(),
        "{what}: {wear:?}"
    );
    wear
}

#[test]
fn every_byte_that_a_drive_saw_is_counted_once_by_what_it_was_for() {
    run(|handle| async move {
        let probe = Probe::open(&handle, "wear").await;
        let opened = right(&probe, "opening");
        assert_eq!((opened[0].hosts, opened[1].hosts), (0, 0));
        drop(probe);

        let probe = both(&handle, "wear-2", 4).await;
        let [quick, slow] = right(&probe, "writing and demoting");
        assert_eq!(
            (quick.hosts, quick.promotion, quick.upkeep),
            (8 * MIB, 0, 0)
        );
        assert_eq!((slow.hosts, slow.upkeep, slow.metadata), (0, 8 * MIB, 0));
        assert!(quick.metadata > 0);
        small_ram(&probe);
        probe.shard.moves.note_looked_over();
        evict(&probe, 8 * CHUNK).await;
        promote_hot(&probe, probe.volume).await;
        let [quick, _] = right(&probe, "promotion");
        assert_eq!(quick.hosts, 8 * MIB);
        assert_eq!(quick.promotion, bytes(fast(&probe, probe.volume)));
        probe.shard.barrier().await.unwrap();
        let before = right(&probe, "a barrier")[0].metadata;
        assert!(before > 0);
    });
}
