//! Predicted extents are prefetched, but only while no request waits for the disk.

use crate::EngineConfig;
use crate::control::explain::Cause;
use crate::io::read::slow_path::Looked;
use crate::shard::probe::{Probe, run};
use crate::tiering::access_stats::By;
use crate::tiering::writeback;
use block::IoBuf;
use units::{BLOCK, EXTENT};

const MIB: u64 = 1 << 20;
/// From one place that the test uses to the next: far enough not to be taken for one region.
const APART: u64 = 100 * MIB;
const PLACES: u64 = 12;
/// Extents in RAM: fewer than places.
const IN_RAM: usize = 6;

/// A shard that predicts, with something at home at each place.
async fn probe(handle: &reactor::Handle, name: &str) -> Probe {
    let memory = EngineConfig {
        ram_tier: (IN_RAM * EXTENT) as u64,
        ..EngineConfig::default()
    };
    let probe = Probe::open_with(handle, name, &memory).await;
    let shard = &probe.shard;
    shard.begin_policy();
    for place in 0..PLACES {
        let buf = IoBuf::zeroed(MIB as usize);
        let write = shard.write(By::write(probe.volume), place * APART, &buf);
        write.await.unwrap();
    }
    let demoted = shard.demote_batch(PLACES, writeback::BATCH, false);
    demoted.await.unwrap();
    shard.evict(u64::MAX).await.unwrap();
    handle.spawn(shard.clone().sequence_prefetch_loop());
    probe
}

/// Reads all places in order, with some time after each; how many of them were on the slow tier alone.
async fn read_all(handle: &reactor::Handle, probe: &Probe, by: By) -> u64 {
    let missed = moves(probe, Cause::Missed);
    for place in 0..PLACES {
        let mut buf = IoBuf::zeroed(BLOCK);
        let read = (probe.shard).read(by, place * APART, &mut buf, Looked::Unknown);
        read.await.unwrap();
        // Extents evicted from RAM are not promoted.
        probe.shard.promote_nothing();
        handle.sleep(20_000_000).await;
    }
    moves(probe, Cause::Missed) - missed
}

fn moves(probe: &Probe, cause: Cause) -> u64 {
    probe.shard.move_counts()[cause as usize].moves
}

#[test]
fn what_followed_before_is_there_when_hosts_come_to_it_again() {
    run(|handle| async move {
        let probe = probe(&handle, "foresee-again").await;
        let by = By::read(probe.volume);
        assert_eq!(read_all(&handle, &probe, by).await, PLACES);
        assert_eq!(moves(&probe, Cause::Foreseen), 0);
        let missed = read_all(&handle, &probe, by).await;
        assert!(missed < PLACES / 2, "{missed}");
        assert!(moves(&probe, Cause::Foreseen) >= PLACES - missed);
    });
}

#[test]
fn what_is_bypassed_or_while_a_disk_is_busy_nothing_is_foreseen() {
    run(|handle| async move {
        let probe = probe(&handle, "foresee-busy").await;
        let by = By::read(probe.volume);
        for _ in 0..2 {
            read_all(&handle, &probe, by.bypassed(true)).await;
        }
        assert_eq!(moves(&probe, Cause::Foreseen), 0);
        let _stream = probe.shard.fills.stream_at(0, None).await;
        for _ in 0..2 {
            read_all(&handle, &probe, by).await;
        }
        assert_eq!(moves(&probe, Cause::Foreseen), 0);
    });
}
