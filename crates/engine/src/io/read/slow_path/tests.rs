//! Reads that wait for a slow drive, ordered by their volumes' guarantees.

use super::Looked;
use crate::cache::fill::FillReason;
use crate::cache::fills::STREAMS;
use crate::cache::readahead::at_home;
use crate::shard::probe::{Probe, run};
use crate::tiering::access_stats::By;
use crate::tiering::writeback;
use block::IoBuf;
use futures_util::future::join_all;
use qos::Due;
use reactor::Handle;
use std::cell::Cell;
use std::rc::Rc;
use units::mutation::{Mutation, switch};
use units::{BLOCK, CHUNK, EXTENT};

const CHUNKS: u64 = 40;
const MS: u64 = 1_000_000;
/// Reads of other volumes that wait for the disk.
const OTHERS: u64 = 400;

/// A shard over a disk that alone has so many chunks.
async fn cold(handle: &Handle, name: &str) -> Probe {
    let probe = Probe::open_over_disk(handle, name).await;
    let shard = &probe.shard;
    for chunk in 0..CHUNKS {
        let by = By::write(probe.volume);
        let buf = IoBuf::zeroed(CHUNK);
        shard.write(by, chunk * CHUNK as u64, &buf).await.unwrap();
    }
    let demoted = shard.demote_batch(0, writeback::BATCH, false);
    demoted.await.unwrap();
    shard.evict(u64::MAX).await.unwrap();
    probe
}

/// Reads one block of the extent with this number, and nothing else.
async fn read(probe: &Probe, extent: u64, due: Due) {
    let by = By::read(probe.volume).bypassed(true).due(due);
    let mut buf = IoBuf::zeroed(BLOCK);
    let read = (probe.shard).read(by, extent * EXTENT as u64, &mut buf, Looked::Unknown);
    read.await.unwrap();
}

/// How many of many reads of level 5 that wait for the disk end before one of level 1 that comes after them, and
/// whether all end.
async fn overtaken_by(handle: &Handle, probe: &Rc<Probe>, level: u8) -> u64 {
    let ended = Rc::new(Cell::new(0));
    let before = Rc::new(Cell::new(0));
    let now = handle.now_ns();
    let others = (0..OTHERS).map(|number| {
        let (probe, ended) = (probe.clone(), ended.clone());
        async move {
            let extent = number * 7 % (CHUNKS * 16);
            read(&probe, extent, Due::new(5, now + 250 * MS)).await;
            ended.set(ended.get() + 1);
        }
    });
    let (late, seen, counted) = (probe.clone(), before.clone(), ended.clone());
    let handle = handle.clone();
    let one = async move {
        handle.yield_now().await;
        // As far as can be from where the head is by then.
        let due = Due::new(level, handle.now_ns() + 10 * MS);
        read(&late, CHUNKS * 16 - 1, due).await;
        seen.set(counted.get());
    };
    let all = join_all(others);
    futures_util::future::join(all, one).await;
    assert_eq!(ended.get(), OTHERS);
    before.get()
}

#[test]
fn a_read_of_level_1_does_not_wait_behind_hundreds_of_level_5() {
    run(|handle| async move {
        let probe = Rc::new(cold(&handle, "due-turns").await);
        // The drive has a dozen already, of which it takes the quickest first; one in sixteen goes to the eldest.
        let promised = overtaken_by(&handle, &probe, 1).await;
        assert!(promised <= 20, "{promised}");
        switch(Some(Mutation::TurnUndue));
        let ignored = overtaken_by(&handle, &probe, 1).await;
        switch(None);
        assert!(ignored >= 5 * promised, "{ignored} and {promised}");
    });
}

#[test]
fn what_level_1_waits_for_is_fetched_first_whoever_began_it() {
    run(|handle| async move {
        let probe = Rc::new(cold(&handle, "due-inherited").await);
        let shard = probe.shard.clone();
        let streams = join_all((0..STREAMS).map(|_| shard.fills.stream_at(0, None))).await;
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        // The last one delays no other, and the disk's head reaches it last.
        for chunk in 0..20 {
            let (shard, order, volume) = (shard.clone(), order.clone(), probe.volume);
            handle.spawn(async move {
                let map_page = shard.map_page(volume, chunk, false).await.unwrap().unwrap();
                let wanted = at_home(&map_page, u16::MAX);
                let why = FillReason::Dense(Due::new(5, u64::MAX));
                let fetch = shard.fetch_extents((volume, chunk), &map_page, u16::MAX, &wanted, why);
                fetch.await.unwrap();
                order.borrow_mut().push(chunk);
            });
        }
        handle.sleep(MS).await;
        let reader = probe.clone();
        let due = Due::new(1, handle.now_ns() + MS);
        let by = By::read(reader.volume).due(due);
        handle.spawn(async move {
            let mut buf = IoBuf::zeroed(BLOCK);
            let at = 19 * CHUNK as u64 + 5 * EXTENT as u64;
            let read = (reader.shard).read(by, at, &mut buf, Looked::Unknown);
            read.await.unwrap();
        });
        handle.sleep(MS).await;
        drop(streams.into_iter().next());
        while order.borrow().is_empty() {
            handle.sleep(MS).await;
        }
        assert_eq!(order.borrow()[0], 19);
    });
}
