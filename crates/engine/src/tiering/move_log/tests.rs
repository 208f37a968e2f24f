//! The log of moves is bounded and has the latest ones.

use super::*;

fn extent(number: u64) -> Extent {
    Extent { volume: 3, number }
}

/// A move of blocks at a second.
fn moved(at_s: u64, number: u64, blocks: u16, cause: Cause) -> Move {
    Move::new(at_s * TOGETHER_NS, cause, extent(number), blocks)
}

/// One for four moves of each kind.
fn ledger() -> Ledger {
    let mut ledger = Ledger::new(16 * size_of::<Entry>() + 5, 7);
    assert_eq!((ledger.ram.most, ledger.tiers.most), (4, 12));
    ledger.tiers = Ring::new(4 * size_of::<Entry>(), 7);
    ledger
}

fn seconds(ledger: &Ledger, number: u64) -> Vec<u64> {
    let moves = ledger.of(extent(number), 9);
    moves.map(|known| known.at_ns / TOGETHER_NS).collect()
}

fn count(ledger: &Ledger, cause: Cause) -> (u64, u64) {
    let mut counts = ledger.counts();
    let found = counts.find(|known| known.cause == cause).unwrap();
    (found.moves, found.bytes / BLOCK as u64)
}

#[test]
fn what_it_takes_is_bounded_and_the_oldest_goes_first() {
    let mut ledger = ledger();
    assert!(ledger.is_whole() && ledger.since_ns(Spot::Slow) == 7);
    let memory = ledger.tiers.entries.capacity();
    for second in 1..=4 {
        ledger.note(moved(second, second % 2, 1, Cause::SankSettled));
    }
    assert!(ledger.is_whole(), "nothing was dropped yet");
    assert_eq!(seconds(&ledger, 1), [3, 1]);
    for second in 5..=9 {
        ledger.note(moved(second, second % 2, 1, Cause::SankSettled));
        let oldest = second - 4;
        assert_eq!(ledger.since_ns(Spot::Slow), oldest * TOGETHER_NS);
        let newest: Vec<u64> = (oldest + 1..=second).rev().collect();
        let of = |odd| newest.iter().copied().filter(move |known| known % 2 == odd);
        assert_eq!(seconds(&ledger, 1), of(1).collect::<Vec<_>>());
        assert_eq!(seconds(&ledger, 0), of(0).collect::<Vec<_>>());
    }
    assert!(!ledger.is_whole());
    assert_eq!(
        (ledger.tiers.entries.len(), ledger.tiers.entries.capacity()),
        (4, memory)
    );
    assert_eq!(
        count(&ledger, Cause::SankSettled),
        (9, 9),
        "counted all the same"
    );
}

#[test]
fn an_extent_is_told_from_those_of_other_chunks_and_layers() {
    let mut ledger = ledger();
    let far = (u64::from(u32::MAX) << 4) + 15;
    ledger.note(moved(1, far, 0b101, Cause::RoseRoom));
    let other = Extent {
        volume: 4,
        number: far,
    };
    assert_eq!(ledger.of(other, 9).count(), 0);
    assert_eq!(ledger.of(extent(far - 16), 9).count(), 0);
    let found = ledger.of(extent(far), 9).next().unwrap();
    assert_eq!(found, moved(1, far, 0b101, Cause::RoseRoom));
}

#[test]
fn what_happens_to_an_extent_within_a_second_is_one_move() {
    let mut ledger = ledger();
    for block in 0..16 {
        ledger.note(moved(1, 5, 1 << block, Cause::Written));
    }
    assert_eq!(ledger.of(extent(5), 9).next().unwrap().blocks, u16::MAX);
    ledger.note(moved(2, 5, 1, Cause::Written));
    ledger.note(moved(2, 5, 1, Cause::Discarded));
    ledger.note(moved(2, 6, 1, Cause::Discarded));
    assert_eq!(seconds(&ledger, 5), [2, 2, 1]);
    assert_eq!(count(&ledger, Cause::Written), (2, 17));
    // Also with what is at the ring's end.
    ledger.note(moved(3, 5, 1, Cause::Written));
    ledger.note(moved(3, 5, 2, Cause::Written));
    assert_eq!(seconds(&ledger, 5), [3, 2, 2]);
    assert_eq!(ledger.of(extent(5), 9).next().unwrap().blocks, 3);
}

#[test]
fn what_left_last_was_displaced_as_long_as_it_made_room() {
    let mut ledger = Ledger::new(1 << 12, 0);
    let displaced = |ledger: &Ledger, number| {
        let last = ledger.of(extent(number), 9).next().unwrap();
        last.displaced.map(|known| known.number)
    };
    ledger.note(moved(1, 10, 1, Cause::Written));
    assert_eq!(displaced(&ledger, 10), None);
    ledger.note(moved(2, 20, 0b11, Cause::EvictedLeast));
    ledger.note(moved(2, 21, 0b11, Cause::EvictedCooled));
    // Neither a copy in RAM nor a move within the tier takes of it.
    ledger.note(moved(3, 11, u16::MAX, Cause::Missed));
    ledger.note(moved(3, 12, u16::MAX, Cause::SparedFast));
    assert_eq!(displaced(&ledger, 12), None);
    ledger.note(moved(4, 13, 0b1, Cause::RoseRoom));
    assert_eq!(displaced(&ledger, 13), Some(20));
    ledger.note(moved(5, 14, 0b11, Cause::Written));
    ledger.note(moved(6, 15, 1, Cause::Written));
    assert_eq!(
        (displaced(&ledger, 14), displaced(&ledger, 15)),
        (Some(20), None)
    );
    ledger.note(moved(7, 16, 1, Cause::Missed).in_place_of(Some(extent(30))));
    assert_eq!(displaced(&ledger, 16), Some(30));
}

#[test]
fn the_figures_say_why_something_rose_or_did_not() {
    let grounds = |promote, worth, wanted| {
        let admission = Admission {
            promote,
            worth,
            wanted,
        };
        Grounds::from(admission).cause
    };
    assert_eq!(grounds(1, 2.0, 1.0), Cause::RoseWorth);
    assert_eq!(grounds(1, 2.0, 0.0), Cause::RoseRoom);
    assert_eq!(grounds(0, 0.5, 1.0), Cause::StayedLow);
    assert_eq!(grounds(0, 0.0, 0.0), Cause::StayedUnasked);
}

#[test]
fn what_comes_into_ram_and_goes_pushes_nothing_else_out() {
    let mut ledger = ledger();
    ledger.note(moved(1, 5, 1, Cause::Written));
    for second in 2..40 {
        let cause = [Cause::Missed, Cause::StayedLow][second as usize % 2];
        ledger.note(moved(second, 5, 1, cause));
    }
    ledger.note(moved(40, 5, 1, Cause::RoseRoom));
    assert_eq!(seconds(&ledger, 5), [40, 39, 38, 37, 36, 1]);
    let few = ledger.of(extent(5), 1);
    let few: Vec<Cause> = few.map(|known| known.grounds.cause).collect();
    assert_eq!(few, [Cause::RoseRoom, Cause::StayedLow]);
    assert!(ledger.is_whole());
    assert_eq!(ledger.since_ns(Spot::Ram), 35 * TOGETHER_NS);
    assert_eq!(ledger.since_ns(Spot::Fast), 7);
}
