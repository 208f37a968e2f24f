//! A block on its way through the tiers, and its explanation at each step.

use crate::EngineConfig;
use crate::control::explain::{Cause, CopyKind, Explanation, ExtentPlace, MoveStatus, Spot};
use crate::io::discard::WhenFull;
use crate::io::read::slow_path::Looked;
use crate::shard::probe::{Probe, run};
use crate::tiering::access_stats::By;
use crate::tiering::writeback;
use block::IoBuf;
use placement::{Blocks, Extent};
use units::{BLOCK, CHUNK, EXTENT};

const MIB: u64 = 1 << 20;
/// From one chunk that the test uses to the next: far enough not to be taken for one region.
const APART: u64 = 100 * MIB;
/// Extents in RAM.
const IN_RAM: u64 = 4;
/// Examines what runs by itself, a millisecond apart.
const LOOKS: usize = 10_000;

/// A shard with little RAM that serves.
async fn small(handle: &reactor::Handle, name: &str) -> Probe {
    let memory = EngineConfig {
        ram_tier: IN_RAM * EXTENT as u64,
        ..EngineConfig::default()
    };
    let probe = Probe::open_with(handle, name, &memory).await;
    probe.shard.begin_policy();
    probe
}

async fn explain(probe: &Probe, offset: u64) -> Explanation {
    let (chunk, block) = (offset / CHUNK as u64, offset % CHUNK as u64 / BLOCK as u64);
    let names = [(probe.volume, "v".to_owned())].into();
    let told = probe
        .shard
        .explain(probe.volume, chunk as u32, block as usize, &names);
    told.await.unwrap()
}

async fn read(probe: &Probe, offset: u64) {
    let mut buf = IoBuf::zeroed(BLOCK);
    let read = probe
        .shard
        .read(By::read(probe.volume), offset, &mut buf, Looked::Unknown);
    read.await.unwrap();
}

async fn write(probe: &Probe, offset: u64, len: u64) {
    let buf = IoBuf::zeroed(len as usize);
    probe
        .shard
        .write(By::write(probe.volume), offset, &buf)
        .await
        .unwrap();
}

/// Where it lies, as what, and what brought it there.
fn places(told: &Explanation) -> Vec<(Spot, CopyKind, Option<Cause>)> {
    let places = told.places.iter();
    places
        .map(|place| {
            assert_eq!(place.vdrive.is_none(), place.tier == Spot::Ram);
            assert_eq!(place.drives.len(), usize::from(place.tier != Spot::Ram));
            let came = place.came.as_ref().map(|came| came.cause);
            (place.tier, place.kind, came)
        })
        .collect()
}

fn newest(told: &Explanation) -> &MoveStatus {
    let ages: Vec<u64> = told.moves.iter().map(|known| known.ago_ns).collect();
    assert!(ages.is_sorted(), "{ages:?}");
    &told.moves[0]
}

fn moves(probe: &Probe, cause: Cause) -> u64 {
    let counts = probe.shard.move_counts();
    counts[cause as usize].moves
}

#[test]
fn a_block_is_told_of_on_its_way_through_all_tiers() {
    run(|handle| async move {
        let probe = small(&handle, "explain-way").await;
        let shard = &probe.shard;
        let told = explain(&probe, 0).await;
        assert_eq!((told.places.len(), told.moves.len()), (0, 0));
        assert!(told.log_is_whole && told.heat.is_none());

        for chunk in 0..=IN_RAM {
            write(&probe, chunk * APART, MIB).await;
        }
        let only = (Spot::Fast, CopyKind::Only, Some(Cause::Written));
        let told = explain(&probe, 0).await;
        assert_eq!(places(&told), [only]);
        assert_eq!(newest(&told).blocks, u16::MAX);
        assert_eq!(told.heat.unwrap().uses, 1);
        // What is written over is where it did.
        let written = moves(&probe, Cause::Written);
        write(&probe, 0, MIB).await;
        assert_eq!(moves(&probe, Cause::Written), written);

        shard
            .demote_batch(1, writeback::BATCH, false)
            .await
            .unwrap();
        let told = explain(&probe, 0).await;
        let copy = (Spot::Fast, CopyKind::Copy, Some(Cause::Written));
        let home = (Spot::Slow, CopyKind::Home, Some(Cause::SankSettled));
        assert_eq!(places(&told), [copy, home]);

        shard.evict(u64::MAX).await.unwrap();
        let told = explain(&probe, 0).await;
        assert_eq!(places(&told), [home]);
        let left = newest(&told);
        assert_eq!(left.cause, Cause::EvictedLeast);
        assert!(left.worth > 0.0 && left.wanted > 0.0, "{left:?}");

        read(&probe, 0).await;
        let told = explain(&probe, 0).await;
        let in_ram = (Spot::Ram, CopyKind::Copy, Some(Cause::Missed));
        assert_eq!(places(&told), [in_ram, home]);
        assert_eq!(newest(&told).displaced, None);

        handle.spawn(shard.clone().promote_loop());
        for chunk in 1..=IN_RAM {
            read(&probe, chunk * APART).await;
        }
        let told = explain(&probe, IN_RAM * APART).await;
        let displaced = newest(&told).displaced.clone();
        let first = ExtentPlace {
            volume: Some("v".into()),
            offset: 0,
        };
        assert_eq!(displaced, Some(first), "what came last took its place");
        let mut looks = 0..LOOKS;
        while moves(&probe, Cause::RoseRoom) == 0 && looks.next().is_some() {
            handle.sleep(1_000_000).await;
        }
        let told = explain(&probe, 0).await;
        let risen = (Spot::Fast, CopyKind::Copy, Some(Cause::RoseRoom));
        assert_eq!(places(&told), [risen, home]);
        let rose = newest(&told);
        assert!(rose.worth > 0.0 && rose.wanted == 0.0, "{rose:?}");
        assert!(rose.displaced.is_some(), "room had been made before");
        assert_eq!(rose.blocks & 1, 1, "what was asked for");

        shard.evict(u64::MAX).await.unwrap();
        shard
            .trim(By::write(probe.volume), 0, BLOCK as u64, WhenFull::Refuse)
            .await
            .unwrap();
        let told = explain(&probe, 0).await;
        assert_eq!(places(&told), []);
        let causes: Vec<Cause> = told.moves.iter().map(|known| known.cause).collect();
        let way = [
            Cause::Discarded,
            Cause::EvictedLeast,
            Cause::RoseRoom,
            Cause::Missed,
            Cause::EvictedLeast,
            Cause::SankSettled,
            Cause::Written,
        ];
        assert_eq!(causes, way);
        // Its neighbour has not left home, and the same log.
        assert_eq!(places(&explain(&probe, BLOCK as u64).await), [home]);
    });
}

#[test]
fn what_is_sent_down_says_so_and_what_holds_little_is_packed() {
    run(|handle| async move {
        let probe = small(&handle, "explain-cool").await;
        write(&probe, 0, MIB).await;
        write(&probe, APART, BLOCK as u64).await;
        probe
            .shard
            .demote_batch(1, writeback::BATCH, false)
            .await
            .unwrap();
        read(&probe, APART).await;
        probe.shard.cool().await.unwrap();
        let dense = explain(&probe, 0).await;
        let home = (Spot::Slow, CopyKind::Home, Some(Cause::SankSettled));
        assert_eq!(places(&dense), [home]);
        assert_eq!(newest(&dense).cause, Cause::EvictedCooled);
        let packed = (Spot::Slow, CopyKind::Packed, Some(Cause::PackedCooled));
        assert_eq!(places(&explain(&probe, APART).await), [packed]);
        read(&probe, APART).await;
        let told = explain(&probe, APART).await;
        let in_ram = (Spot::Ram, CopyKind::Copy, Some(Cause::Missed));
        assert_eq!(places(&told), [in_ram, packed]);
        // Nothing but a copy is lost with RAM.
        probe.shard.cool().await.unwrap();
        let told = explain(&probe, APART).await;
        assert_eq!(places(&told), [packed]);
        assert_eq!(newest(&told).cause, Cause::LeftCooled);
        for cause in [Cause::SankSettled, Cause::EvictedCooled] {
            let count = probe.shard.move_counts()[cause as usize];
            assert_eq!((count.moves, count.bytes), (16, MIB), "{cause:?}");
        }
    });
}

#[test]
fn of_a_dense_region_what_rises_unasked_has_saved_a_seek_once_it_is_used() {
    run(|handle| async move {
        let probe = small(&handle, "explain-dense").await;
        let shard = &probe.shard;
        write(&probe, 0, 4 * MIB).await;
        shard
            .demote_batch(4, writeback::BATCH, false)
            .await
            .unwrap();
        shard.evict(u64::MAX).await.unwrap();
        handle.spawn(shard.clone().promote_loop());
        // Enough misses within the chunk for all of it to be fetched.
        let mut looks = (0..LOOKS as u64).map(|look| look % 16);
        while moves(&probe, Cause::RoseDense) == 0
            && let Some(extent) = looks.next()
        {
            read(&probe, extent * EXTENT as u64).await;
            handle.sleep(1_000_000).await;
        }
        let mut state = shard.state.borrow_mut();
        let policy = state.access.policy();
        let uses = (0..64).map(|number| Extent {
            volume: probe.volume,
            number,
        });
        let saved: Vec<u32> = uses
            .map(|extent| {
                policy.used_by_host(Blocks { extent, mask: 1 });
                policy.take_seeks_saved()
            })
            .collect();
        assert!(saved.iter().sum::<u32>() > 0, "{saved:?}");
        assert!(saved.iter().all(|seeks| *seeks <= 1), "{saved:?}");
    });
}
