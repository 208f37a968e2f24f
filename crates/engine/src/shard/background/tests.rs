//! Early barriers, on a drive whose flushes take longer the more was written.

use crate::shard::probe::{Probe, run};
use crate::tiering::access_stats::By;
use block::IoBuf;
use reactor::Handle;
use units::{BLOCK, CHUNK, VdriveId};

const MIB: u64 = 1 << 20;
/// A millisecond a MiB.
const PER_KIB_NS: u64 = 1_000_000 / 1024;

/// A shard that has learned what its fast drive's flushes take.
async fn learned(handle: &Handle, name: &str) -> Probe {
    let probe = Probe::open(handle, name).await;
    probe.slow_down(PER_KIB_NS);
    for round in 0..12 {
        write(&probe, round * 4 * MIB, 4 * MIB).await;
        probe.shard.barrier().await.unwrap();
        // With nothing to do: what one takes at least.
        let meta = probe.shard.vdrive(VdriveId(0)).unwrap();
        meta.flush().await.unwrap();
    }
    probe.since();
    probe
}

async fn write(probe: &Probe, from: u64, len: u64) {
    let buf = IoBuf::zeroed(256 << 10);
    for offset in (from..from + len).step_by(256 << 10) {
        let (volume, offset) = (probe.volume, offset % (64 * MIB));
        probe
            .shard
            .write(By::write(volume), offset, &buf)
            .await
            .unwrap();
        probe.shard.written().await.unwrap();
        // Drives in memory complete immediately: others would not get their turn. So it takes as long as on one of 1 GiB/s.
        probe.shard.loop_handle().sleep(250_000).await;
    }
}

#[test]
fn much_is_flushed_before_anybody_has_to_wait_for_it() {
    run(|handle| async move {
        let probe = learned(&handle, "early").await;
        handle.spawn(probe.shard.clone().commit_loop());
        write(&probe, 0, 16 * MIB).await;
        let [early, _] = probe.since();
        assert!(early >= 4, "{early} flushes while 16 MiB were written");
        probe.shard.lifecycle.close();
    });
}

#[test]
fn a_checkpoint_is_flushed_bit_by_bit() {
    run(|handle| async move {
        let probe = learned(&handle, "pages").await;
        probe.shard.checkpoint().await.unwrap();
        probe.since();
        probe.shard.checkpoint().await.unwrap();
        let [few, _] = probe.since();
        // Each of these has a page of 4 KiB.
        let block = IoBuf::zeroed(BLOCK);
        for chunk in 0..1024 {
            let offset = chunk * CHUNK as u64;
            let written = probe.shard.write(By::write(probe.volume), offset, &block);
            written.await.unwrap();
        }
        probe.shard.barrier().await.unwrap();
        probe.since();
        probe.shard.checkpoint().await.unwrap();
        let [many, _] = probe.since();
        assert!(
            many >= few + 2,
            "{many} flushes, {few} with nothing to write"
        );
    });
}
