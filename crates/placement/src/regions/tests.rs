//! What misses read.

mod disk;

use self::disk::{Disk, GIB};
use super::*;
use crate::hash::Random;
use std::collections::BTreeSet;

/// A miss, and what it fetches.
fn miss(regions: &mut Regions, volume: u32, chunk: u32, extent: usize) -> Vec<Fetch> {
    regions.missed(volume, chunk, extent);
    regions.fetch(volume, chunk, extent)
}

fn extents(fetches: &[Fetch]) -> u32 {
    fetches.iter().map(|fetch| fetch.extents.count_ones()).sum()
}

/// Extents that were read and not requested since: missed ones, and read-ahead.
#[derive(Default)]
struct Ram {
    asked: BTreeSet<u64>,
    ahead: BTreeSet<u64>,
}

impl Ram {
    fn use_of(&mut self, at: u64, regions: &mut Regions) {
        let before = Fresh {
            asked: self.asked.len(),
            ahead: self.ahead.len(),
        };
        if self.asked.remove(&at) {
            regions.used(false, before);
        } else if self.ahead.remove(&at) {
            regions.used(true, before);
        }
    }
}

/// Asks for extents at random until nearly all of `hot` are there; everything that was fetched is kept.
/// Returns misses, and extents read in vain.
fn read(regions: &mut Regions, hot: &[u64]) -> (usize, usize) {
    let (mut have, mut misses) = (BTreeSet::new(), 0);
    let (mut ram, wanted) = (Ram::default(), hot.iter().collect::<BTreeSet<_>>());
    let mut random = Random::new(7);
    for _ in 0..hot.len() * 8 {
        let at = hot[random.below(hot.len())];
        ram.use_of(at, regions);
        if !have.insert(at) {
            continue;
        }
        misses += 1;
        ram.asked.insert(at);
        let fetches = miss(regions, 1, (at / 16) as u32, (at % 16) as usize);
        for fetch in fetches {
            let bits = (0..16).filter(|bit| fetch.extents >> bit & 1 == 1);
            let bits = bits.map(|bit| u64::from(fetch.chunk) * 16 + bit);
            let new: Vec<u64> = bits.filter(|extent| have.insert(*extent)).collect();
            regions.fetched(new.len() as u32);
            ram.ahead.extend(new);
        }
    }
    let unused = have.iter().filter(|extent| !wanted.contains(extent));
    (misses, unused.count())
}

#[test]
fn a_lone_miss_fetches_its_extent() {
    let mut regions = Regions::new(0);
    for chunk in [5, 500, 50_000] {
        assert_eq!(
            miss(&mut regions, 1, chunk, 3),
            [Fetch { chunk, extents: 8 }]
        );
    }
}

#[test]
fn what_is_hot_in_one_piece_is_fetched_in_pieces_of_16_mib() {
    let hot: Vec<u64> = (4096..4096 + 16_384).collect();
    let (misses, unused) = read(&mut Regions::new(3 << 18), &hot);
    assert_eq!(unused, 0);
    assert!(misses < 500, "{misses} misses for a GiB");
}

#[test]
fn what_is_scattered_is_fetched_alone_once_fetching_ahead_did_not_pay() {
    let hot: Vec<u64> = (0..16_384).map(|part| part * 64).collect();
    let (misses, unused) = read(&mut Regions::new(0), &hot);
    assert!(misses > 16_000, "{misses}");
    assert!(unused < 16_384, "{unused}");
}

#[test]
fn pieces_that_lie_near_each_other_are_not_taken_for_a_region() {
    // An extent of 64 KiB in each 512 KiB; pieces of 256 KiB, one in each 8 MiB.
    let scattered: Vec<u64> = (0..16_384).map(|part| part * 8 + part % 7).collect();
    let pieces: Vec<u64> = (0..16_384).map(|part| part / 4 * 128 + part % 4).collect();
    for hot in [scattered, pieces] {
        let mut regions = Regions::new(0);
        let (_, unused) = read(&mut regions, &hot);
        assert!(unused < 3 * 16_384, "{unused}");
    }
}

#[test]
fn after_scattered_extents_what_is_hot_in_one_piece_is_known_again() {
    let mut regions = Regions::new(0);
    let scattered: Vec<u64> = (0..16_384).map(|part| part * 8 + part % 7).collect();
    read(&mut regions, &scattered);
    let hot: Vec<u64> = (1 << 20..(1 << 20) + 16_384).collect();
    let (misses, _) = read(&mut regions, &hot);
    assert!(misses < 2_000, "{misses}");
}

#[test]
fn fetching_ahead_stops_while_nobody_uses_it_and_is_tried_again() {
    let mut regions = Regions::new(0);
    let mut fetched = 0;
    for chunk in 0..100_000u32 {
        let misses = [0, 1, 9].map(|at| extents(&miss(&mut regions, 1, chunk * 16, at)));
        let ahead = misses.iter().map(|extents| extents - 1).sum();
        regions.fetched(ahead);
        fetched += u64::from(ahead);
    }
    let (spent, misses) = (fetched as f32 * COST, 300_000.0);
    assert!(
        (0.9..1.1).contains(&(spent / (LOAN - SOUND + misses * A_MISS))),
        "{spent}"
    );
    let ahead = |regions: &mut Regions, chunk: u32| {
        let misses = [0, 1, 9].map(|at| extents(&miss(regions, 1, chunk, at)));
        misses[2] - 1
    };
    assert_eq!(ahead(&mut regions, 1 << 24), 0);
    (0..200).for_each(|_| regions.used(true, Fresh::default()));
    assert!(ahead(&mut regions, 1 << 25) > 0);
}

#[test]
fn a_large_set_in_one_piece_is_there_hardly_later_than_a_disk_can_read_it() {
    let mut disk = Disk::new(8 * GIB, GIB / 4, 17 * GIB / 2);
    let hot: Vec<usize> = (0..4 * GIB).collect();
    // 29 s at 150 MB/s.
    let took = disk.read(&hot, 200.0);
    assert!(took < 55.0, "{took} s");
    assert!(disk.ahead < 4 * GIB, "{}", disk.ahead);
    let next: Vec<usize> = (4 * GIB..8 * GIB).collect();
    let took = disk.read(&next, 200.0);
    assert!(took < 55.0, "{took} s for the next one");
}

#[test]
fn after_a_set_in_one_piece_a_scattered_one_is_not_taken_for_that() {
    let mut disk = Disk::new(9 * GIB, GIB / 4, 3 * GIB);
    let hot: Vec<usize> = (0..GIB).collect();
    // It is used for a while once it is there.
    for _ in 0..50 {
        disk.read(&hot, 60.0);
    }
    let before = disk.ahead;
    let scattered: Vec<usize> = (0..GIB).map(|it| GIB + it * 8 + it % 7).collect();
    disk.read(&scattered, 60.0);
    let ahead = disk.ahead - before;
    assert!(ahead < GIB / 8, "{ahead}");
}

#[test]
fn of_a_set_that_the_fast_tier_cannot_hold_little_is_fetched_ahead_for_long() {
    let mut disk = Disk::new(4 * GIB, GIB / 4, 2 * GIB);
    let hot: Vec<usize> = (0..4 * GIB).collect();
    disk.read(&hot, 100.0);
    let before = disk.ahead;
    disk.read(&hot, 200.0);
    let ahead = disk.ahead - before;
    // The disk could read 29 GiB in that time.
    assert!(ahead < 8 * GIB, "{ahead}");
}

#[test]
fn another_volumes_misses_do_not_count() {
    let mut regions = Regions::new(0);
    miss(&mut regions, 1, 0, 0);
    assert_eq!(extents(&miss(&mut regions, 2, 0, 1)), 1);
    assert_eq!(extents(&miss(&mut regions, 1, 0, 1)), 4);
}

#[test]
fn memory_is_bounded() {
    for (fast_blocks, most) in [(0, 512), (1 << 40, 16_384)] {
        let mut regions = Regions::new(fast_blocks);
        (0..100_000).for_each(|chunk| drop(miss(&mut regions, 1, chunk * 64, 0)));
        assert_eq!((regions.recent.len(), regions.dense.len()), (most, most));
        regions.forget(1);
        assert!(regions.recent.is_empty() && regions.order.is_empty());
        assert!(regions.dense.is_empty());
    }
}

#[test]
fn extents_somewhere_in_each_seventh_part_are_fetched_alone() {
    let mut random = Random::new(3);
    let part = |part: u64| part * 7 + random.below(7) as u64;
    let hot: Vec<u64> = (0..16_384).map(part).collect();
    let (misses, unused) = read(&mut Regions::new(0), &hot);
    assert!(misses > 16_000, "{misses}");
    assert!(unused < 2_000, "{unused}");
}

#[test]
fn what_is_fetched_ahead_and_less_asked_for_than_its_number_is_not_as_hot() {
    let before = Fresh {
        asked: 100,
        ahead: 700,
    };
    let heat = |ahead: u32, asked: u32| {
        let mut regions = Regions::new(0);
        for _ in 0..10 {
            (0..ahead).for_each(|_| regions.used(true, before));
            (0..asked).for_each(|_| regions.used(false, before));
        }
        (regions.uses.heat(), regions.is_sound())
    };
    // As their numbers are, a seventh of that, and more.
    let ((even, sound), (seventh, unsound), (more, _)) = (heat(7, 1), heat(5, 5), heat(19, 1));
    assert!((0.8..1.2).contains(&even) && sound, "{even}");
    assert!((0.1..0.3).contains(&seventh) && !unsound, "{seventh}");
    assert!(more > 1.5, "{more}");
}

#[test]
fn what_was_learned_of_uses_fades_with_misses() {
    let mut regions = Regions::new(0);
    let before = Fresh {
        asked: 100,
        ahead: 100,
    };
    (0..200).for_each(|_| regions.used(false, before));
    assert!(regions.uses.heat() < 0.1);
    (0..30_000).for_each(|chunk| regions.missed(1, chunk * 64, 0));
    assert!(regions.uses.heat() > 0.9);
}
