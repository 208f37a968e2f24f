//! Which drives are flushed for demoted data, and when.

use crate::shard::probe::{Probe, run};
use crate::tiering::access_stats::By;
use block::IoBuf;
use units::BLOCK;

/// Hosts' barriers wait for the drives that bear what hosts wrote, and not for the heads of those that
/// bear what has been demoted.
#[test]
fn a_barrier_does_not_flush_what_was_flushed_before_it_was_demoted() {
    run(|handle| async move {
        let probe = Probe::open(&handle, "demote").await;
        let (shard, volume) = (&probe.shard, probe.volume);
        let block = IoBuf::zeroed(BLOCK);
        shard.write(By::write(volume), 0, &block).await.unwrap();
        shard.barrier().await.unwrap();
        probe.since();
        // One block of a chunk: it is packed into a slot of the slow tier.
        shard.cool().await.unwrap();
        assert_eq!(probe.since()[1], 1, "what is demoted is flushed");
        shard.barrier().await.unwrap();
        assert!(
            matches!(probe.since(), [(1..), 0]),
            "its record is, and nothing else"
        );
        // What hosts wrote to slots is flushed by the barrier alone.
        shard.write(By::write(volume), 0, &block).await.unwrap();
        probe.since();
        shard.barrier().await.unwrap();
        assert!(matches!(probe.since(), [(1..), 0]));
    });
}
