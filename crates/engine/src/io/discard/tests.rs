use super::*;
use crate::shard::probe::{Probe, run, turns};
use crate::tiering::access_stats::By;
use block::IoBuf;

/// Chunks of which one block each is written.
const CHUNKS: u64 = 300;
const ALL: u64 = CHUNKS * CHUNK as u64;

async fn sparse(handle: &reactor::Handle, name: &str) -> Probe {
    let probe = Probe::open(handle, name).await;
    let block = IoBuf::from_bytes(vec![7; BLOCK].into());
    for chunk in 0..CHUNKS {
        let by = By::write(probe.volume);
        let offset = chunk * CHUNK as u64;
        probe.shard.write(by, offset, &block).await.unwrap();
    }
    probe
}

#[test]
fn others_have_their_turns_while_much_is_looked_at_or_discarded() {
    run(|handle| async move {
        let probe = sparse(&handle, "turns").await;
        let (shard, volume) = (probe.shard.clone(), probe.volume);
        let status = async {
            let found = shard.status_of(volume, 0, ALL, None).await.unwrap();
            assert_eq!(found.len() as u64, 2 * CHUNKS);
        };
        assert!(turns(&probe, status).await >= CHUNKS / STATUS_TURN as u64);
        let discard = async {
            let by = By::write(volume);
            shard.trim(by, 0, ALL, WhenFull::Skip).await.unwrap();
        };
        assert!(turns(&probe, discard).await >= CHUNKS);
        let zeroes = async {
            let by = By::write(volume);
            shard.write_zeroes(by, 0, 16 * CHUNK as u64).await.unwrap();
        };
        assert!(turns(&probe, zeroes).await >= 16);
    });
}

#[test]
fn what_was_never_written_costs_no_turn() {
    run(|handle| async move {
        let probe = sparse(&handle, "holes").await;
        let (shard, volume) = (probe.shard.clone(), probe.volume);
        let beyond = 900 * CHUNK as u64 + 512;
        let hole = async {
            let by = By::write(volume);
            let len = 100 * CHUNK as u64;
            shard.trim(by, beyond, len, WhenFull::Refuse).await.unwrap();
            let found = shard.status_of(volume, beyond, len, None).await.unwrap();
            let state = AllocationState::Hole;
            assert_eq!(found, [StatusExtent { len, state }]);
        };
        assert!(turns(&probe, hole).await <= 4);
        // The path to the last existing page is also examined.
        let last = (CHUNKS - 1) * CHUNK as u64;
        let found = shard.status_of(volume, last + BLOCK as u64, CHUNK as u64, None);
        assert_eq!(found.await.unwrap().len(), 1);
    });
}
