//! Recording and eviction of maps.

use super::recorded::*;

fn key(name: &str) -> (String, String) {
    ("tank".to_owned(), name.to_owned())
}

/// Records a map of four cells of `v`.
fn note(recorded: &mut Recorded, at_s: u64, codes: [u16; 4]) {
    recorded.note(&key("v"), "serial", 4 << 20, at_s, codes.to_vec());
}

#[test]
fn recorded_map_is_returned_with_its_changes() {
    let mut recorded = Recorded::default();
    note(&mut recorded, 100, [0, 0, 0, 0]);
    note(&mut recorded, 110, [0, 1, 0, 0]);
    note(&mut recorded, 120, [0, 1, 0, 0]);
    note(&mut recorded, 130, [0, 1, 7, 0]);
    let was = recorded.was(&key("v"), "serial", 0, u64::MAX).unwrap();
    assert_eq!((was.at_s, was.last_s, was.size), (100, 130, 4 << 20));
    assert_eq!(was.codes, [0, 0, 0, 0]);
    assert_eq!(was.then, [(110, vec![(1, 1)]), (130, vec![(2, 7)])]);
    for (from_s, to_s, codes, then) in [
        (115, 125, [0, 1, 0, 0], vec![]),
        (110, 130, [0, 1, 0, 0], vec![(130, vec![(2, 7)])]),
        (500, 600, [0, 1, 7, 0], vec![]),
    ] {
        let was = recorded.was(&key("v"), "serial", from_s, to_s).unwrap();
        assert_eq!((was.codes, was.then), (codes.to_vec(), then), "{from_s}");
    }
    assert_eq!(recorded.was(&key("w"), "serial", 0, 1), None);
    assert_eq!(recorded.was(&key("v"), "another", 0, 1), None);
}

#[test]
fn frames_expire_after_an_hour_keeping_the_map() {
    let mut recorded = Recorded::default();
    for turn in 0..500 {
        note(&mut recorded, 1000 + turn * 20, [turn as u16, 0, 0, 0]);
    }
    let was = recorded.was(&key("v"), "serial", 0, u64::MAX).unwrap();
    assert_eq!(was.last_s - was.at_s, 3600);
    assert_eq!((was.then.len(), was.codes[0]), (180, 319));
    // After a gap, the earlier map is known, but not the changes in between.
    recorded.tidy(1_000_000, |_| true);
    let was = recorded.was(&key("v"), "serial", 0, u64::MAX).unwrap();
    assert_eq!((was.then, was.codes[0]), (vec![], 499));
}

#[test]
fn frames_are_bounded_by_interval() {
    let mut recorded = Recorded::default();
    for turn in 0..500 {
        note(&mut recorded, 1000 + turn, [turn as u16, 0, 0, 0]);
    }
    let was = recorded.was(&key("v"), "serial", 0, u64::MAX).unwrap();
    assert_eq!((was.then.len(), was.codes[0]), (360, 139));
}

#[test]
fn new_volume_size_or_clock_restarts_the_recording() {
    let mut recorded = Recorded::default();
    for (serial, size, at_s) in [
        ("a", 4 << 20, 100),
        ("b", 4 << 20, 110),
        ("b", 5 << 20, 120),
        ("b", 5 << 20, 50),
    ] {
        recorded.note(&key("v"), serial, size, at_s, vec![at_s as u16; 4]);
        let was = recorded.was(&key("v"), serial, 0, u64::MAX).unwrap();
        assert_eq!((was.at_s, was.size, was.then), (at_s, size, vec![]));
    }
}

#[test]
fn memory_is_bounded_and_the_oldest_frames_are_dropped() {
    let mut recorded = Recorded::default();
    for turn in 0..40u64 {
        for name in ["a", "b"] {
            let codes = vec![turn as u16; 1024];
            recorded.note(&key(name), "s", 1 << 40, 100 + turn * 10, codes);
        }
    }
    let counted = recorded.bytes();
    recorded.tidy(500, |_| true);
    assert_eq!(recorded.bytes(), counted, "incremental accounting");
    // Frames of one volume were dropped before those of the other.
    let old = recorded.was(&key("a"), "s", 0, u64::MAX).unwrap();
    recorded.fit(counted - 5000);
    assert!(recorded.bytes() <= counted - 5000);
    let kept = ["a", "b"].map(|name| recorded.was(&key(name), "s", 0, u64::MAX).unwrap());
    assert!(kept[0].at_s > old.at_s && kept[1].at_s > old.at_s);
    for was in kept {
        assert_eq!(usize::from(was.codes[0]), 39 - was.then.len());
    }
    // The latest maps are kept, whatever the limit.
    recorded.fit(0);
    let was = recorded.was(&key("b"), "s", 0, u64::MAX).unwrap();
    assert_eq!((was.at_s, was.then.len(), was.codes[7]), (490, 0, 39));
    recorded.tidy(500, |key| key.1 == "a");
    assert_eq!(recorded.was(&key("b"), "s", 0, u64::MAX), None);
}

#[test]
fn cells_are_a_power_of_two_and_at_least_a_chunk() {
    for (size, cells) in [
        (0, 1),
        (1 << 20, 1),
        (100 << 20, 64),
        (1 << 30, 1024),
        (1 << 48, 1024),
    ] {
        assert_eq!(cells_for(size), cells, "{size}");
    }
}
