use super::*;
use crate::shard::probe::{Probe, run};
use std::rc::Rc;
use units::mutation::switch;

/// Bytes of a kind that are done in ten seconds, a MiB at a time and as fast as may be up to 1 GiB per second, while somebody
/// is hurt all the time or never.
async fn in_ten_seconds(upkeep: &Upkeep, kind: Kind, hurt: bool) -> u64 {
    let (handle, mut done) = (upkeep.handle.clone(), 0);
    let until_ns = handle.now_ns() + 10 * SECOND_NS;
    while handle.now_ns() < until_ns {
        if hurt {
            upkeep.hurt(handle.now_ns());
        }
        if upkeep.may(kind) {
            upkeep.did(kind, MIB);
            done += MIB;
        }
        handle.sleep(SECOND_NS / 1024).await;
    }
    handle.sleep(2 * HURT_NS).await;
    done
}

#[test]
fn each_kind_has_its_floor_while_somebody_is_hurt_and_is_free_else() {
    run(|handle| async move {
        let upkeep = Upkeep::new(&handle, Arc::default());
        for (kind, floor) in FLOORS {
            let free = in_ten_seconds(&upkeep, kind, false).await;
            assert!(free >= 9000 * MIB, "{kind:?}: {free}");
            let floors = in_ten_seconds(&upkeep, kind, true).await / (floor / 10);
            assert!((95..=110).contains(&floors), "{kind:?}: {floors}");
        }
        switch(Some(Mutation::UpkeepUndue));
        let ignored = in_ten_seconds(&upkeep, Kind::Resync, true).await;
        switch(None);
        assert!(ignored >= 9000 * MIB, "{ignored}");
    });
}

#[test]
fn who_waits_goes_on_once_nobody_is_hurt() {
    run(|handle| async move {
        let upkeep = Rc::new(Upkeep::new(&handle, Arc::default()));
        upkeep.hurt(handle.now_ns());
        // As much as takes the floor a minute.
        upkeep.wait(Kind::Promotion, 60 * MIB).await;
        let began = handle.now_ns();
        upkeep.wait(Kind::Promotion, MIB).await;
        assert!(handle.now_ns() - began < 2 * HURT_NS);
        assert!(!upkeep.is_hurt());
    });
}

#[test]
fn all_shards_of_a_pool_hear_that_somebody_is_hurt() {
    run(|handle| async move {
        let shared = Arc::new(HurtUntil::default());
        let [one, other] = [(); 2].map(|()| Upkeep::new(&handle, shared.clone()));
        one.hurt(handle.now_ns());
        assert!(other.is_hurt());
        handle.sleep(HURT_NS).await;
        assert!(!other.is_hurt());
    });
}

#[test]
fn throttles_go_down_to_the_least_while_somebody_is_hurt() {
    run(|handle| async move {
        let probe = Probe::open(&handle, "upkeep-throttle").await;
        let upkeep = &probe.shard.upkeep;
        let mut took = Vec::new();
        for hurt in [false, true] {
            let mut throttle = Throttle::scrub(upkeep, 640 * MIB);
            let began = handle.now_ns();
            for _ in 0..16 {
                if hurt {
                    upkeep.hurt(handle.now_ns());
                }
                throttle.wait(MIB).await;
            }
            took.push(handle.now_ns() - began);
        }
        assert!(took[1] >= 30 * took[0].max(1), "{took:?}");
    });
}
