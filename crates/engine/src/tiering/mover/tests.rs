//! Which data leaves the fast tier, and how much.

use crate::maintenance::upkeep::WritebackRate;
use crate::shard::probe::{Probe, run};
use crate::shard::state::Shard;
use crate::space::Class;
use crate::tiering::access_stats::By;
use crate::tiering::writeback;
use block::IoBuf;
use reactor::Handle;
use std::sync::atomic::Ordering;
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
        shard
            .write(By::write(probe.volume), offset, &buf)
            .await
            .unwrap();
        offset += MIB;
    }
    while shard.state.borrow().tier_index.has_ready() {
        shard.demote_batch(0, writeback::BATCH, true).await.unwrap();
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
        .map(|volume| volume.counts.clean)
        .sum()
}

async fn rounds(probe: &Probe) {
    for _ in 0..ROUNDS {
        let mut writeback_rate = WritebackRate::default();
        probe.shard.mover_round(&mut writeback_rate).await.unwrap();
    }
}

#[test]
fn no_more_leaves_than_is_wanted_while_reads_keep_it_from_being_free() {
    run(|handle| async move {
        let (probe, before) = full(&handle, "kept-back").await;
        let shard = &probe.shard;
        let read_epoch = shard.state.borrow_mut().deferred_frees.begin_read();
        rounds(&probe).await;
        let left = before - copies(&probe);
        let reserve = shard.reserve_slots();
        assert!((1..reserve).contains(&left), "{left} of {before}");
        shard.end_read(read_epoch);
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
            let (by, offset) = (By::read(probe.volume), block * BLOCK as u64);
            if let Err(looked) = shard.try_read(by, offset, &mut buf) {
                shard.read(by, offset, &mut buf, looked).await.unwrap();
            }
        }
        let mut left = 0;
        while left < before / 2 {
            left += shard.evict(before / 8).await.unwrap();
        }
        let mut there = 0;
        for chunk in 0..(hot / 256) as u32 {
            let map_page = shard
                .map_page(probe.volume, chunk, false)
                .await
                .unwrap()
                .unwrap();
            there += Shard::clean_copies(&map_page, u16::MAX).count() as u64;
        }
        assert!(there * 10 >= hot * 9, "{there} of {hot}");
    });
}

#[test]
fn the_ram_tier_holds_what_it_may_now() {
    run(|handle| async move {
        let (probe, copies) = full(&handle, "fit").await;
        let shard = &probe.shard;
        while self::copies(&probe) > 0 {
            shard.evict(copies).await.unwrap();
        }
        shard.barrier().await.unwrap();
        let read = async |offset: u64| {
            let mut buf = IoBuf::zeroed(BLOCK);
            let by = By::read(probe.volume);
            if let Err(looked) = shard.try_read(by, offset, &mut buf) {
                shard.read(by, offset, &mut buf, looked).await.unwrap();
            }
        };
        let held = || shard.state.borrow().ram.bytes();
        let wanted = 4 * MIB;
        for offset in (0..copies * BLOCK as u64).step_by(64 << 10) {
            if held() < 2 * wanted {
                read(offset).await;
            }
        }
        assert!(held() >= 2 * wanted, "{}", held());
        shard.shared.ram_bytes.store(wanted, Ordering::Relaxed);
        rounds(&probe).await;
        assert_eq!(held(), wanted);
        assert_eq!(shard.status().ram_limit, wanted);
        // What left is read again, in the place of something else, and nothing is taken in without a place.
        for offset in (0..2 * wanted).step_by(64 << 10) {
            read(offset).await;
        }
        assert_eq!(held(), wanted);
        shard.shared.ram_bytes.store(0, Ordering::Relaxed);
        rounds(&probe).await;
        read(0).await;
        assert_eq!(held(), 0);
        shard.shared.ram_bytes.store(2 * wanted, Ordering::Relaxed);
        rounds(&probe).await;
        for offset in (0..2 * wanted).step_by(64 << 10) {
            read(offset).await;
        }
        assert!(held() > wanted, "{}", held());
    });
}
