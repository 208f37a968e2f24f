//! Journal space used by evacuation.

use crate::shard::probe::{Probe, run};
use crate::tiering::access_stats::By;
use crate::tiering::unreadable::UnreadableBlocks;
use block::IoBuf;
use futures_util::future::join;
use std::cell::Cell;
use units::CHUNK;

/// Pages of the ring: a chunk's blocks have a record each, eight times as many.
const RING: u64 = 32;
/// What a read or a write takes: hosts have a barrier meanwhile.
const TRANSFER_NS: u64 = 20_000;
/// Looks without a new record after which a checkpoint makes room.
const STILL: u32 = 1000;

#[test]
fn a_chunk_moves_within_the_journals_room_with_a_barrier_after_each_record() {
    run(|handle| async move {
        let probe = Probe::open(&handle, "evacuate").await;
        let (shard, volume) = (&probe.shard, probe.volume);
        let chunk = IoBuf::zeroed(CHUNK);
        shard.write(By::write(volume), 0, &chunk).await.unwrap();
        shard.checkpoint().await.unwrap();
        shard.state.borrow_mut().journal.shorten(RING);
        probe.take_time(TRANSFER_NS);
        let map_page = shard.map_page(volume, 0, false).await.unwrap().unwrap();
        let from = map_page.page.borrow().slot(0).vdrive();
        let ended = Cell::new(false);
        let evacuation = async {
            let mut unread = UnreadableBlocks::default();
            let moved = shard.evacuate_chunk(volume, 0, from, &mut unread).await;
            ended.set(true);
            moved
        };
        let (mut checkpoints, mut longest) = (0, 0);
        let hosts = async {
            let (mut made, mut still) = (0, 0);
            while !ended.get() {
                shard.barrier().await.unwrap();
                let now = shard.state.borrow().journal.made();
                longest = longest.max(shard.journal_length());
                still = if now == made { still + 1 } else { 0 };
                made = now;
                if still == STILL {
                    shard.checkpoint().await.unwrap();
                    checkpoints += 1;
                    still = 0;
                }
                handle.yield_now().await;
            }
        };
        let (moved, ()) = join(evacuation, hosts).await;
        assert_eq!(moved.unwrap(), CHUNK as u64);
        assert!(checkpoints > 0, "the ring was never full");
        let limit = shard.state.borrow().journal.mover_limit();
        assert!(longest <= limit, "{longest} pages, of {limit}");
    });
}
