//! Bits that turn over anywhere on a pool's drives: repaired where there is a second copy, an I/O
//! error for exactly that block where there is none, and never wrong data.
//!
//! `./dev bench bitrot` does the same with 100,000 of them.

use crate::support::rot::{Scene, Tally};

fn run(mirrored: bool, in_place: bool) -> Tally {
    let mut scene = Scene::new(mirrored, in_place, 20_260_101);
    let mut tally = Tally::default();
    for _ in 0..10 {
        scene.round(100, &mut tally);
    }
    tally
}

#[test]
fn a_mirrored_pool_mends_every_bit_that_it_needs() {
    mends_all(false);
}

#[test]
fn a_mirrored_pool_in_memory_mends_every_bit_that_it_needs() {
    mends_all(true);
}

fn mends_all(in_place: bool) {
    let tally = run(true, in_place);
    assert_eq!((tally.flips, tally.errors), (1000, 0));
    assert!(tally.in_data > 300, "{tally:?}");
    assert!(tally.counted >= tally.in_data, "{tally:?}");
}

#[test]
fn an_unmirrored_pool_loses_exactly_the_blocks_that_rotted() {
    let tally = run(false, false);
    assert!(tally.in_data > 80, "{tally:?}");
    assert_eq!(tally.errors, tally.in_data);
    assert!(tally.counted >= tally.errors, "{tally:?}");
}
