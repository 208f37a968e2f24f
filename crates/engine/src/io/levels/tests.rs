use super::*;
use crate::shard::probe::{Probe, run};
use crate::space::Class;
use crate::tiering::access_stats::By;
use crate::wal::log::Work;
use block::IoBuf;
use futures_util::future::join_all;
use qos::Tenant;
use reactor::Handle;
use std::rc::Rc;
use std::sync::Arc;
use units::mutation::switch;
use units::{BLOCK, CHUNK};

const MS: u64 = 1_000_000;
/// Writes of level 1.
const WRITES: u64 = 50;

fn due(level: u8) -> Due {
    Due::new(level, u64::MAX)
}

#[test]
fn the_highest_level_goes_first_and_of_one_level_who_came_first() {
    let line = Line::default();
    let [third, first, second] = [3, 1, 1].map(|level| line.join(due(level)));
    let next = |of: &InLine<'_>| of.is_next();
    assert_eq!([&third, &first, &second].map(next), [false, true, false]);
    assert!(!line.may_pass(due(1)) && !line.may_pass(due(4)));
    first.goes();
    second.goes();
    assert!(third.is_next());
    assert!(line.may_pass(due(2)) && !line.may_pass(due(3)) && !line.may_pass(Due::NONE));
    drop(third);
    assert!(line.is_empty() && line.may_pass(Due::NONE));
}

#[test]
fn of_a_hundred_one_is_who_has_waited_for_longest() {
    let line = Line::default();
    let patient = line.join(Due::NONE);
    let (mut other, mut before) = (line.join(due(1)), 0);
    while !patient.is_next() {
        assert!(other.is_next());
        let next = line.join(due(1));
        std::mem::replace(&mut other, next).goes();
        before += 1;
    }
    assert_eq!(before, ELDEST);
    // Others continue meanwhile: it may find no room immediately.
    assert!(other.is_next() && patient.is_next());
    other.goes();
    patient.goes();
    let patient = line.join(Due::NONE);
    let other = line.join(due(5));
    assert!(other.is_next() && !patient.is_next());
}

#[test]
fn each_level_leaves_a_part_of_the_reserve_to_those_above() {
    let left: Vec<u64> = (1..=5)
        .map(|level| left_to_others(800, due(level)))
        .collect();
    assert_eq!(left, [0, 20, 40, 60, 80]);
    assert_eq!(left_to_others(800, Due::NONE), 100);
}

/// The pool has a volume with a policy from now on.
fn promise(probe: &Probe) {
    let tenant = Tenant::new(Arc::new(format::built_in_policies().next().unwrap()), 1);
    let tenants = Arc::new(BTreeMap::from([(probe.volume, Arc::new(tenant))]));
    probe.shard.set_tenants(&tenants);
}

/// A shard with a policy whose fast tier is full, and the slow one takes its time.
async fn full(handle: &Handle, name: &str) -> Rc<Probe> {
    let probe = Probe::open_with_pages(handle, name).await;
    let shard = probe.shard.clone();
    shard.shared.space.set_capacity(1 << 16);
    promise(&probe);
    let buf = IoBuf::zeroed(CHUNK);
    let mut offset = 0;
    while shard.state.borrow().alloc.free_slots(Class::Fast) >= shard.reserve_slots() {
        let by = By::write(probe.volume);
        shard.write(by, offset, &buf).await.unwrap();
        offset += CHUNK as u64;
    }
    probe.take_time(2 * MS);
    shard.start();
    Rc::new(probe)
}

/// The longest latency of some sequential writes of level 1 while this many of level 3 are in flight at
/// any time; and how many of those end meanwhile.
async fn beside_a_flood(handle: &Handle, probe: &Rc<Probe>, floods: u64) -> (u64, u64) {
    let ended = Rc::new(Cell::new(0u64));
    let goes_on = Rc::new(Cell::new(true));
    let flood = (0..floods).map(|number| {
        let (probe, ended, goes_on) = (probe.clone(), ended.clone(), goes_on.clone());
        async move {
            let buf = IoBuf::zeroed(16 * BLOCK);
            let mut at = number;
            while goes_on.get() {
                let by = By::write(probe.volume).due(due(3));
                let offset = at % 1024 * 16 * BLOCK as u64;
                probe.shard.write(by, offset, &buf).await.unwrap();
                ended.set(ended.get() + 1);
                at += floods;
            }
        }
    });
    let (handle, probe) = (handle.clone(), probe.clone());
    let one = async {
        let mut longest = 0;
        // The flood has taken all free slots.
        handle.sleep(1_000 * MS).await;
        let before = ended.get();
        for number in 0..WRITES {
            let by = By::write(probe.volume).due(due(1));
            let began = handle.now_ns();
            let offset = (70 << 20) + number * BLOCK as u64;
            let write = probe.shard.write(by, offset, &IoBuf::zeroed(BLOCK)).await;
            write.unwrap();
            longest = longest.max(handle.now_ns() - began);
            handle.sleep(20 * MS).await;
        }
        goes_on.set(false);
        (longest, ended.get() - before)
    };
    futures_util::future::join(one, join_all(flood)).await.0
}

#[test]
fn who_floods_the_fast_tier_does_not_make_level_1_wait_for_room() {
    run(|handle| async move {
        let probe = full(&handle, "room-levels").await;
        let (promised, others) = beside_a_flood(&handle, &probe, 256).await;
        assert!(others > WRITES, "{others} of the flood went on");
        switch(Some(Mutation::RoomUndue));
        let (ignored, _) = beside_a_flood(&handle, &probe, 256).await;
        switch(None);
        assert!(ignored >= 4 * promised, "{ignored} and {promised}");
    });
}

#[test]
fn each_level_leaves_room_in_the_journal_to_those_above() {
    run(|handle| async move {
        let probe = Probe::open(&handle, "room-journal").await;
        let shard = &probe.shard;
        let has_room = || {
            let state = shard.state.borrow();
            let levels = (1..=5).map(due).chain([Due::NONE]);
            let has = levels.map(|due| shard.has_journal_room(&state, Work::Host(due)));
            has.collect::<Vec<_>>()
        };
        {
            let journal = &mut shard.state.borrow_mut().journal;
            let limit = journal.host_limit();
            journal.lengthen(limit - limit / 16);
        }
        assert_eq!(has_room(), [true; 6], "nobody has a policy");
        promise(&probe);
        assert_eq!(has_room(), [true, true, true, false, false, false]);
        switch(Some(Mutation::RoomUndue));
        assert_eq!(has_room(), [true; 6]);
        switch(None);
    });
}
