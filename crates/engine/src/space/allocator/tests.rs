//! Tests of the allocator by itself.

use super::super::VdriveSpace;
use super::*;
use crate::space::DeferredFrees;
use format::HOME_GROUPS;
use std::collections::BTreeSet;

fn is_used(space: &Allocator, place: Place) -> bool {
    let (key, bit) = space.key(place).expect("a place of the pool");
    space.slots.get(key).unwrap().bits[bit as usize / 64] >> (bit % 64) & 1 == 1
}

fn allocator(groups: u32) -> Allocator {
    let table = Arc::new(GroupTable::default());
    table.add(
        VdriveId(0),
        VdriveSpace {
            class: Class::Meta,
            base: 300,
            groups: 2,
        },
    );
    table.add(
        VdriveId(1),
        VdriveSpace {
            class: Class::Fast,
            base: 0,
            groups,
        },
    );
    table.add(
        VdriveId(2),
        VdriveSpace {
            class: Class::Slow,
            base: 0,
            groups,
        },
    );
    Allocator::new(table, 1024, 1)
}

#[test]
fn every_slot_is_handed_out_once() {
    let mut space = allocator(3);
    assert_eq!(space.free_slots(Class::Fast), 3072);
    let mut seen = BTreeSet::new();
    loop {
        let mut runs = Vec::new();
        let found = space.take_slots(Class::Fast, 100, &mut runs);
        assert_eq!(found, runs.iter().map(|run| run.count).sum::<usize>());
        for run in runs {
            (0..run.count as u64).for_each(|at| assert!(seen.insert(run.place.plus(at))));
        }
        if found < 100 {
            break;
        }
    }
    assert_eq!((seen.len(), space.free_slots(Class::Fast)), (3072, 0));
}

#[test]
fn freed_slots_come_back_once_their_record_is_durable() {
    let mut space = allocator(1);
    let mut runs = Vec::new();
    assert_eq!(space.take_slots(Class::Fast, 2000, &mut runs), 1024);
    let mut deferred_frees = DeferredFrees::default();
    deferred_frees.slots(runs[0].place.plus(10), 5);
    deferred_frees.seal(1);
    assert_eq!(space.take_slots(Class::Fast, 1, &mut runs), 0);
    space.release(&deferred_frees.release(1).expect("durable"));
    runs.clear();
    assert_eq!(space.take_slots(Class::Fast, 9, &mut runs), 5);
    assert_eq!(
        runs,
        [Run {
            place: Place::new(VdriveId(1), 10),
            count: 5
        }]
    );
}

#[test]
fn a_checkpoint_keeps_only_what_is_recorded() {
    let mut space = allocator(1);
    let mut runs = Vec::new();
    space.take_slots(Class::Fast, 4, &mut runs);
    space.recorded(runs[0].place);
    let mut more = Vec::new();
    space.take_slots(Class::Fast, 2, &mut more);
    let mut deferred_frees = DeferredFrees::default();
    deferred_frees.slots(runs[0].place.plus(1), 1);
    let home = space.take_home().expect("there is space");
    let holes = space.holes(&deferred_frees, &[]);
    let key = space.key(runs[0].place).unwrap().0;
    assert_eq!(space.slots_for_checkpoint(key, &holes)[0], 0b1101);
    let home_key = space.key(home).unwrap().0;
    let page = space
        .homes_for_checkpoint(home_key.homes_page(), &holes)
        .unwrap();
    assert_eq!(page[home_key.0 as usize % HOME_GROUPS], Some(0));
    // Written without them, both have to be written again once they are recorded.
    space.take_dirty_homes();
    assert!(!space.dirty_slots().contains(&key));
    space.recorded(home);
    space.recorded(more[0].place);
    assert_eq!(space.take_dirty_homes(), [home_key.homes_page()]);
    assert!(space.dirty_slots().contains(&key));
    let holes = space.holes(&deferred_frees, &[]);
    let page = space
        .homes_for_checkpoint(home_key.homes_page(), &holes)
        .unwrap();
    assert_eq!(page[home_key.0 as usize % HOME_GROUPS], Some(1));
}

#[test]
fn an_empty_group_is_given_up_by_the_second_checkpoint_after_it_was_touched() {
    let mut space = allocator(2);
    let home = space.take_home().unwrap();
    space.begin_checkpoint(1);
    space.give_home(home);
    assert_eq!(space.begin_checkpoint(2).1.len(), 0);
    let (_, homes) = space.begin_checkpoint(3);
    assert_eq!(homes.len(), 1);
    assert_eq!(space.table.free_groups(Class::Slow), 1);
    space.give_groups(&homes);
    assert_eq!(space.table.free_groups(Class::Slow), 2);
}

#[test]
fn replay_ends_in_the_state_that_the_records_say() {
    let mut space = allocator(2);
    let place = Place::new(VdriveId(1), 1020);
    assert!(space.replay_slots(place, 8, true));
    assert!(is_used(&space, place.plus(7)) && !is_used(&space, place.plus(8)));
    space.replay_slots(place, 8, false);
    assert!(!is_used(&space, place));
    assert_eq!(space.free_slots(Class::Fast), 2048);
    assert!(!space.replay_slots(Place::new(VdriveId(9), 1), 1, true));
}

#[test]
fn the_emptiest_groups_are_closed_as_far_as_the_others_can_take_them() {
    let mut space = allocator(5);
    let at = |group: u64| Place::new(VdriveId(1), group * 1024);
    for (group, used) in [(0, 1024), (1, 300), (2, 100), (3, 900), (4, 600)] {
        assert!(space.replay_slots(at(group), used, true));
    }
    // Those with 100 and 300 leave 1,024 - 900 and 1,024 - 600 for what they have; 600 more would not go anywhere.
    assert_eq!(space.close_slots(Class::Fast, 8), 400);
    let closed: Vec<bool> = (0..5).map(|group| space.is_leaving(at(group))).collect();
    assert_eq!(closed, [false, true, true, false, false]);
    let mut runs = Vec::new();
    assert_eq!(space.take_slots(Class::Fast, 1000, &mut runs), 548);
    assert!(!runs.iter().any(|run| space.is_leaving(run.place)));
    space.reopen();
    assert_eq!(space.take_slots(Class::Fast, 2000, &mut runs), 1648);
    assert_eq!(space.close_slots(Class::Fast, 8), 0);
}

#[test]
fn groups_of_pages_that_were_given_up_can_be_taken_again() {
    let mut space = allocator(1);
    let mut runs = Vec::new();
    assert_eq!(space.take_slots(Class::Meta, 1100, &mut runs), 1100);
    assert!(space.has_pages(948) && !space.has_pages(949));
    runs.drain(..).for_each(|run| space.give_back(run));
    // The one that pages come from is kept.
    let (slots, _) = space.begin_checkpoint(5);
    assert_eq!(slots.len(), 1);
    assert!(!space.has_pages(1025 + 1024));
    space.give_groups(&slots);
    assert!(space.has_pages(2048) && !space.has_pages(2049));
}

#[test]
fn slots_that_are_written_at_once_wait_for_no_record_and_others_do() {
    let mut space = allocator(1);
    let mut runs = Vec::new();
    assert_eq!(space.take_slots_at_once(Class::Fast, 3, &mut runs), 3);
    assert!(space.pending.is_empty());
    assert_eq!(space.take_slots(Class::Fast, 2, &mut runs), 2);
    let waits: Vec<_> = space.pending.keys().copied().collect();
    assert_eq!(waits, [runs[1].place]);
    // Both come back.
    runs.drain(..).for_each(|run| space.give_back(run));
    assert_eq!(space.free_slots(Class::Fast), 1024);
    assert!(space.pending.is_empty());
}
