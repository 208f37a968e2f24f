use super::*;
use crate::Few;

/// A metadata region of 4 groups behind 512 blocks of journals, a fast vdrive of 8 groups, a slow one of 16.
struct Pool;

impl Bounds for Pool {
    fn space_of(&self, vdrive: VdriveId) -> Option<GroupSpace> {
        let (class, base, groups) = match vdrive.0 {
            0 => (SpaceClass::Meta, 512, 4),
            1 => (SpaceClass::Fast, 0, 8),
            2 => (SpaceClass::Slow, 0, 16),
            _ => return None,
        };
        Some(GroupSpace {
            class,
            base,
            groups,
        })
    }

    fn blocks_of_group(&self) -> u64 {
        512
    }
}

const LAST: u64 = (1 << Place::BLOCK_BITS) - 1;

fn at(vdrive: u8, block: u64) -> Place {
    Place::new(VdriveId(vdrive), block)
}

#[test]
fn slots_lie_in_groups_of_data() {
    for (place, count, fits) in [
        (at(1, 0), 1, true),
        (at(1, 4095), 1, true),
        (at(1, 4095), 2, false),
        (at(1, 4096), 1, false),
        (at(2, 8191), 1, true),
        (at(2, LAST), 1, false),
        (at(2, LAST), 256, false),
        (at(0, 600), 1, false),
        (at(3, 0), 1, false),
        (at(255, LAST), 1, false),
    ] {
        assert_eq!(Pool.has_slots(place, count), fits, "{place:?} {count}");
    }
}

#[test]
fn homes_lie_in_whole_chunks_of_the_slow_tier() {
    for (place, fits) in [
        (at(2, 0), true),
        (at(2, 8192 - 256), true),
        (at(2, 8192), false),
        (at(2, 1), false),
        (at(2, LAST - 255), false),
        (at(1, 256), false),
        (at(0, 512), false),
        (at(9, 0), false),
    ] {
        assert_eq!(Pool.has_home(place), fits, "{place:?}");
    }
}

#[test]
fn pages_lie_behind_the_journals() {
    for (place, fits) in [
        (at(0, 512), true),
        (at(0, 2559), true),
        (at(0, 2560), false),
        (at(0, 511), false),
        (at(0, LAST), false),
        (at(1, 600), false),
    ] {
        let ptr = PagePtr {
            place,
            ..PagePtr::default()
        };
        assert_eq!(Pool.check_page(ptr).is_ok(), fits, "{place:?}");
    }
}

#[test]
fn a_map_has_only_places_of_the_pool() {
    let page = |change: fn(&mut ChunkPage)| {
        let mut page = ChunkPage::new(2, 0);
        change(&mut page);
        Pool.check_chunk(&page).is_ok()
    };
    assert!(page(|_| ()));
    assert!(page(|page| page.set_slot(3, at(1, 7))));
    assert!(page(|page| {
        page.set_slot(3, at(1, 7));
        page.set_slot(4, at(2, 7));
    }));
    assert!(!page(|page| {
        page.set_slot(3, at(1, 7));
        page.set_slot(255, at(1, LAST));
    }));
    assert!(!page(|page| page.set_slot(3, at(0, 600))));
    assert!(page(|page| {
        page.set_home(at(2, 256));
        page.set_home_valid(255, true);
    }));
    assert!(!page(|page| page.set_home(at(2, LAST - 255))));
    assert!(!page(|page| page.set_home_valid(0, true)));
}

#[test]
fn every_place_of_a_record_is_held_against_the_pool() {
    let trim = |old: &[Place]| Record::Trim {
        volume: 2,
        chunk: 0,
        first: 0,
        count: old.len() as u16,
        old: Few::from_slice(old),
    };
    let moves = |new, old| Record::MoveHome {
        volume: 2,
        chunk: 0,
        new,
        old,
    };
    for (record, fits) in [
        (trim(&[at(1, 1), Place::NONE]), true),
        (trim(&[Place::NONE, at(1, LAST)]), false),
        (trim(&[at(0, 600)]), false),
        // Of a vdrive that left the pool.
        (trim(&[at(3, LAST)]), true),
        (moves(Place::NONE, at(3, LAST)), true),
        (moves(at(3, 0), Place::NONE), false),
        (moves(at(2, 0), at(2, 256)), true),
        (moves(Place::NONE, at(2, 256)), true),
        (moves(Place::NONE, at(2, LAST)), false),
        (moves(at(1, 0), at(2, 256)), false),
        (
            Record::Promote {
                volume: 2,
                chunk: 0,
                first: 0,
                count: 2,
                slot: at(1, 4095),
            },
            false,
        ),
    ] {
        assert_eq!(Pool.check_record(&record).is_ok(), fits, "{record:?}");
    }
}

#[test]
fn bitmaps_end_where_their_groups_do() {
    let mut bits = [0; WORDS];
    let key = |vdrive, group| GroupKey::new(VdriveId(vdrive), group);
    bits[7] = u64::MAX;
    assert!(Pool.check_slots(key(1, 7), &bits).is_ok());
    assert!(Pool.check_slots(key(1, 8), &bits).is_err());
    assert!(Pool.check_slots(key(4, 0), &bits).is_err());
    bits[8] = 1;
    assert!(Pool.check_slots(key(1, 7), &bits).is_err());
    let homes = |index: usize, bits| {
        let mut groups = [None; HOME_GROUPS];
        groups[index] = Some(bits);
        groups
    };
    let first = key(2, 0).homes_page();
    assert!(Pool.check_homes(first, &homes(15, 0b11)).is_ok());
    assert!(Pool.check_homes(first, &homes(15, 0b100)).is_err());
    assert!(Pool.check_homes(first, &homes(16, 0)).is_err());
    assert!(
        Pool.check_homes(key(1, 0).homes_page(), &homes(0, 1))
            .is_err()
    );
    assert!(Pool.check_homes(u32::MAX, &homes(127, 1)).is_err());
}
