//! Merges beside checkpoints that follow one another, and others who take what room there is.

use super::KEPT_NS;
use crate::shard::probe::{Probe, run};
use crate::wal::log::Work;
use reactor::Handle;
use std::cell::Cell;
use std::rc::Rc;

/// A shard that has no more room in its journal, whose checkpoints are held; a merge waits for room, then another who
/// keeps it. Whether the two have it.
async fn scarce(handle: &Handle, name: &str) -> (Probe, [Rc<Cell<bool>>; 2]) {
    let probe = Probe::open(handle, name).await;
    let had: [Rc<Cell<bool>>; 2] = Default::default();
    let mut rooms = Vec::new();
    while let Some(room) = probe.shard.try_journal_room(Work::Mover).unwrap() {
        rooms.push(room);
    }
    probe.shard.pause_checkpoints().await.unwrap();
    let (shard, told) = (probe.shard.clone(), had[0].clone());
    handle.spawn(async move {
        let _room = shard.room_between_checkpoints().await.unwrap();
        told.set(!shard.checkpoints.is_taken());
    });
    let (shard, told, forever) = (probe.shard.clone(), had[1].clone(), handle.clone());
    handle.spawn(async move {
        let _room = shard.journal_room(Work::Mover).await.unwrap();
        told.set(true);
        forever.sleep(u64::MAX / 2).await;
    });
    handle.sleep(1_000_000).await;
    drop(rooms.pop());
    handle.sleep(1_000_000).await;
    // The others stay taken.
    rooms.into_iter().for_each(std::mem::forget);
    (probe, had)
}

#[test]
fn room_that_came_during_a_checkpoint_is_not_left_to_others() {
    run(|handle| async move {
        let (probe, [merge, other]) = scarce(&handle, "kept").await;
        probe.shard.resume_checkpoints();
        // As the loop does before the next one.
        handle.yield_now().await;
        probe.shard.pause_checkpoints().await.unwrap();
        handle.sleep(1_000_000).await;
        assert!(merge.get() && other.get(), "one after the other");
    });
}

#[test]
fn a_checkpoint_that_may_wait_for_that_room_gets_it() {
    run(|handle| async move {
        let (_probe, [merge, other]) = scarce(&handle, "given-back").await;
        assert!(!other.get(), "the merge has it");
        handle.sleep(2 * KEPT_NS).await;
        assert!(other.get() && !merge.get());
    });
}
