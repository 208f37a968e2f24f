//! What leaves the fast tier, and how much of it.

use crate::shard::Shard;
use crate::shard::demote;
use crate::shard::probe::{Probe, run};
use crate::shard::yielding::Yielding;
use crate::space::Class;
use block::IoBuf;
use reactor::Handle;
use units::BLOCK;

const MIB: u64 = 1 << 20;
/// Rounds of the mover.
const ROUNDS: usize = 20;

/// A shard whose fast tier is full of clean copies, and how many there are.
async fn full(handle: &Handle, name: &str) -> (Probe, u64) {
    let probe = Probe::open(handle, name).await;
    let shard = &probe.shard;
    shard.begin_policy();
    shard.shared.space.set_capacity(1 << 16);
    let buf = IoBuf::zeroed(MIB as usize);
    let mut offset = 0;
    while shard.state.borrow().alloc.free_slots(Class::Fast) >= shard.reserve_slots() {
        shard.write(probe.volume, offset, &buf).await.unwrap();
        offset += MIB;
    }
    while shard.state.borrow().dirty_chunks.has_ready() {
        shard.demote_batch(0, demote::BATCH, true).await.unwrap();
    }
    let copies = copies(&probe);
    assert_eq!(copies, offset / BLOCK as u64);
    (probe, copies)
}

fn copies(probe: &Probe) -> u64 {
    let state = probe.shard.state.borrow();
    state
        .volumes
        .values()
        .map(|volume| volume.counts.shadow)
        .sum()
}

async fn rounds(probe: &Probe) {
    for _ in 0..ROUNDS {
        let mut yielding = Yielding::default();
        probe.shard.mover_round(&mut yielding).await.unwrap();
    }
}

#[test]
fn no_more_leaves_than_is_wanted_while_reads_keep_it_from_being_free() {
    run(|handle| async move {
        let (probe, before) = full(&handle, "kept").await;
        let shard = &probe.shard;
        let era = shard.state.borrow_mut().quarantine.begin_read();
        rounds(&probe).await;
        let left = before - copies(&probe);
        let reserve = shard.reserve_slots();
        assert!((1..reserve).contains(&left), "{left} of {before}");
        shard.end_read(era);
        shard.barrier().await.unwrap();
        let free = shard.state.borrow().alloc.free_slots(Class::Fast);
        assert!(free >= reserve, "{free}");
    });
}

#[test]
fn what_is_used_stays_when_room_is_wanted() {
    run(|handle| async move {
        let (probe, before) = full(&handle, "used").await;
        let shard = &probe.shard;
        let hot = before / 4;
        let mut buf = IoBuf::zeroed(BLOCK);
        for block in (0..8).flat_map(|_| 0..hot) {
            shard.read_now(probe.volume, block * BLOCK as u64, &mut buf);
        }
        let mut left = 0;
        while left < before / 2 {
            left += shard.evict(before / 8).await.unwrap();
        }
        let mut there = 0;
        for chunk in 0..(hot / 256) as u32 {
            let leaf = shard
                .leaf(probe.volume, chunk, false)
                .await
                .unwrap()
                .unwrap();
            there += Shard::shadows(&leaf, u16::MAX).count() as u64;
        }
        assert!(there * 10 >= hot * 9, "{there} of {hot}");
    });
}
