//! Decisions of the policy, as the owner of the data sees them.

use placement::{Blocks, Config, Extent, Leaving, Policy, split};

const VOLUME: u32 = 7;

fn config(fast_blocks: u64, ram_blocks: u64) -> Config {
    Config {
        fast_blocks,
        ram_blocks,
        margin: 9.0,
        seed: 1,
    }
}

fn blocks(number: u64, mask: u16) -> Blocks {
    let extent = Extent {
        volume: VOLUME,
        number,
    };
    Blocks { extent, mask }
}

/// An owner without data: executes everything immediately.
struct Owner {
    policy: Policy,
    promoted: u64,
    left: Vec<u64>,
    misses: u64,
}

impl Owner {
    fn new(config: Config) -> Self {
        Self {
            policy: Policy::new(config),
            promoted: 0,
            left: Vec::new(),
            misses: 0,
        }
    }

    /// Reads blocks of one extent; how many blocks the miss read, if it was one.
    fn read(&mut self, first: u64, count: u64) -> u64 {
        let part = split(VOLUME, first, first + count)
            .next()
            .expect("not empty");
        let mut fetched = 0;
        if self.policy.read(part).absent != 0 {
            self.misses += 1;
            let mut keep = Vec::new();
            let range = self
                .policy
                .fetch(VOLUME, first, first + count, None, &mut keep);
            keep.iter().for_each(|arrival| self.policy.arrived(arrival));
            fetched = range.end - range.start;
        }
        self.make_room();
        fetched
    }

    /// Reads blocks of one extent and takes those alone.
    fn read_alone(&mut self, part: Blocks) -> bool {
        let missed = self.policy.read(part).absent != 0;
        if missed {
            self.policy.came(part);
        }
        self.make_room();
        missed
    }

    fn make_room(&mut self) {
        while let Some(leaving) = self.policy.leave_ram() {
            self.promoted += u64::from(leaving.promote.count_ones());
        }
        while self.policy.fast_excess() > 0 {
            let victim = self.policy.victim().expect("something is there");
            self.left.push(victim.extent.number);
            self.policy.left_fast(Blocks {
                extent: victim.extent,
                mask: victim.fast,
            });
        }
    }
}

#[test]
fn what_was_never_seen_is_absent_and_is_in_ram_once_it_arrived() {
    let mut policy = Policy::new(config(1000, 100));
    assert_eq!(policy.read(blocks(5, 0b110)).absent, 0b110);
    policy.came(blocks(5, 0b110));
    let found = policy.read(blocks(5, 0b1111));
    assert_eq!((found.ram, found.fast, found.absent), (0b110, 0, 0b1001));
    assert_eq!(policy.leave_ram(), None);
}

#[test]
fn what_a_host_asked_for_is_promoted_into_an_empty_tier_when_ram_needs_its_room() {
    let mut policy = Policy::new(config(1000, 4));
    for number in [1, 2] {
        policy.read(blocks(number, 0b111));
        policy.came(blocks(number, 0b111));
    }
    let expected = Leaving {
        extent: blocks(1, 0).extent,
        promote: 0b111,
    };
    assert_eq!(policy.leave_ram(), Some(expected));
    assert_eq!(policy.read(blocks(1, 0b111)).fast, 0b111);
    assert_eq!(policy.leave_ram(), None);
}

#[test]
fn what_came_unasked_and_was_never_used_is_not_promoted() {
    let mut owner = Owner::new(config(100_000, 64));
    for number in 0..2_000 {
        owner.read(number * 1_000, 1);
    }
    // The last ones are in RAM still.
    assert!(
        (1_900..=2_000).contains(&owner.promoted),
        "{}",
        owner.promoted
    );
}

#[test]
fn blocks_that_were_used_before_are_promoted_with_the_one_that_is_asked_for() {
    let promoted = |used_before: bool| {
        let mut policy = Policy::new(config(100_000, 200));
        let all = blocks(1_000, u16::MAX);
        if used_before {
            policy.wrote(all);
            policy.left_fast(all);
        }
        let mut keep = Vec::new();
        policy.read(blocks(1_000, 1));
        policy.fetch(VOLUME, 16_000, 16_001, None, &mut keep);
        keep.iter().for_each(|arrival| policy.arrived(arrival));
        policy.came(blocks(5_000, u16::MAX));
        let leaving = std::iter::from_fn(|| {
            policy.came(blocks(5_001, u16::MAX));
            (5_002..5_020).for_each(|number| policy.came(blocks(number, u16::MAX)));
            policy.leave_ram()
        });
        let mut leaving = leaving.take(100).filter(|it| it.extent == all.extent);
        leaving.next().map(|it| it.promote)
    };
    assert_eq!(promoted(true), Some(u16::MAX));
    assert_eq!(promoted(false), Some(1));
}

#[test]
fn a_write_is_on_the_fast_tier_alone_until_it_sank() {
    let mut policy = Policy::new(config(1000, 100));
    policy.read(blocks(3, 0b11));
    policy.came(blocks(3, 0b11));
    policy.wrote(blocks(3, 0b10));
    let found = policy.read(blocks(3, 0b11));
    assert_eq!((found.ram, found.fast), (0b01, 0b10));
    assert_eq!(policy.dirty(blocks(3, 0).extent), 0b10);
    assert_eq!(policy.victim().map(|victim| victim.dirty), Some(0b10));
    policy.sank(blocks(3, 0b10));
    assert_eq!(policy.victim().map(|victim| victim.dirty), Some(0));
    assert!(policy.is_fast(blocks(3, 0b10)));
}

#[test]
fn what_is_discarded_is_nowhere() {
    let mut policy = Policy::new(config(1000, 100));
    policy.wrote(blocks(3, 0b1100));
    policy.discarded(blocks(3, 0b0100));
    assert_eq!(policy.read(blocks(3, 0b1100)).absent, 0b0100);
    policy.discarded(blocks(3, 0b1000));
    assert_eq!(policy.victim(), None);
}

#[test]
fn of_a_volume_that_is_gone_nothing_is_left_and_others_stay() {
    let mut policy = Policy::new(config(1000, 100));
    let other = Blocks {
        extent: Extent {
            volume: VOLUME + 1,
            number: 3,
        },
        mask: 0b1,
    };
    policy.wrote(blocks(3, 0b11));
    policy.came(blocks(70_000, 0b11));
    policy.wrote(other);
    policy.forget(VOLUME);
    assert_eq!(policy.explain(blocks(3, 0).extent).uses, 0);
    assert_eq!(policy.victim().map(|it| it.extent), Some(other.extent));
    assert_eq!(policy.read(blocks(3, 0b11)).absent, 0b11);
    assert_eq!(policy.read(blocks(70_000, 0b11)).absent, 0b11);
    assert_eq!(policy.read(other).fast, 0b1);
}

#[test]
fn a_flood_of_blocks_that_are_read_once_leaves_the_hot_ones() {
    let mut owner = Owner::new(config(1_000, 50));
    let hot = |use_: u64| blocks(use_ * 7919 % 400, 1);
    for use_ in 0..20_000 {
        owner.read_alone(hot(use_));
    }
    let (mut missed, promoted) = (0, owner.promoted);
    for use_ in 0..20_000 {
        missed += u32::from(owner.read_alone(hot(use_)));
        owner.read_alone(blocks(1_000 + use_, 1));
    }
    assert!(missed < 400, "{missed} of 20,000");
    // At first some of what is read once has been used again: that has to be forgotten.
    let promoted = owner.promoted - promoted;
    assert!(promoted < 15_000, "{promoted} of 20,000");
}

#[test]
fn a_set_that_moves_is_followed() {
    let mut owner = Owner::new(config(1_000, 50));
    let mut missed = 0;
    for use_ in 0..60_000u64 {
        let place = use_ / 20_000 * 10_000;
        let is_miss = owner.read_alone(blocks(place + use_ * 7919 % 800, 1));
        missed += u32::from(is_miss && use_ % 20_000 > 10_000);
    }
    assert!(missed < 3_000, "{missed} of 30,000");
}

#[test]
fn of_two_extents_used_alike_the_one_that_takes_more_room_leaves() {
    let mut owner = Owner::new(config(700, 0));
    for round in 0..40 {
        for number in 0..100 {
            let mask = if number % 2 == 0 { u16::MAX } else { 1 };
            owner.policy.wrote(blocks(number, mask));
            owner
                .policy
                .wrote(blocks(1_000 + round * 20 + number % 20, 0xff));
            owner.make_room();
        }
    }
    let of = |odd: u64| {
        owner
            .left
            .iter()
            .filter(|it| **it < 100 && **it % 2 == odd)
            .count()
    };
    assert!(of(0) > 5 * of(1).max(1), "{} {}", of(0), of(1));
}

#[test]
fn a_stream_is_read_ahead_and_scattered_reads_are_not() {
    let mut stream = Owner::new(config(10_000, 500));
    let mut scattered = Owner::new(config(10_000, 500));
    let (mut ahead, mut lone) = (0, 0);
    for number in 0..40_000u64 {
        ahead = ahead.max(stream.read(number, 1));
        let fetched = scattered.read(number * 2_654_435_761 % (1 << 34), 1);
        if number > 30_000 {
            lone = lone.max(fetched);
        }
    }
    assert!(ahead >= 64, "{ahead}");
    assert!(stream.misses < 2_000, "{} misses", stream.misses);
    assert!(lone <= 16, "{lone}");
}

#[test]
fn a_head_that_comes_by_reads_on_and_one_that_is_far_does_not() {
    let mut policy = Policy::new(config(1_000, 100));
    let mut keep = Vec::new();
    let mut start = |head| {
        policy
            .fetch(VOLUME, 100_000, 100_001, head, &mut keep)
            .start
    };
    assert_eq!(start(Some(99_800)), 99_800);
    assert_eq!(start(Some(100_000)), 100_000);
    assert!(start(Some(99_000)) > 99_800);
    assert!(start(Some(100_500)) > 99_800);
}

#[test]
fn the_same_uses_and_seed_give_the_same_decisions() {
    let run = || {
        let mut owner = Owner::new(config(500, 50));
        for use_ in 0..20_000u64 {
            let block = use_ * use_ * 31 % 9_973;
            owner.read(block, 1);
        }
        (owner.left, owner.promoted, owner.misses)
    };
    assert_eq!(run(), run());
}

#[test]
fn an_extent_explains_itself() {
    let mut owner = Owner::new(config(960, 0));
    for _ in 0..3 {
        owner.policy.wrote(blocks(1, 1));
        (0..200).for_each(|number| owner.policy.wrote(blocks(100 + number, 1)));
    }
    let heat = owner.policy.explain(blocks(1, 0).extent);
    assert_eq!(heat.uses, 3);
    assert!(
        (170..=230).contains(&heat.idle_blocks),
        "{}",
        heat.idle_blocks
    );
    assert!(heat.worth > 0.0);
    let never = owner.policy.explain(blocks(9_999, 0).extent);
    assert_eq!((never.uses, never.worth), (0, 0.0));
}

#[test]
fn what_is_used_again_soon_after_it_left_ram_is_promoted_into_a_full_tier() {
    // What is hot comes once the tier is full. Between two uses of it comes more than RAM holds, so all of them would
    // have to wait, and less than RAM holds twice.
    let mut owner = Owner::new(config(4_000, 400));
    let mut missed = 0;
    for use_ in 0..80_000u64 {
        let part = match use_ % 2 {
            0 if use_ > 20_000 => blocks(use_ / 2 % 250, 1),
            _ => blocks(10_000 + use_, 1),
        };
        let is_miss = owner.read_alone(part);
        missed += u32::from(is_miss && use_ % 2 == 0 && use_ > 50_000);
    }
    assert!(missed < 150, "{missed} of 15,000");
}

#[test]
fn what_came_beside_an_extent_that_is_used_stays_in_ram_longer() {
    let mut policy = Policy::new(config(10_000, 256));
    let mut keep = Vec::new();
    policy.read(blocks(100, 1));
    policy.fetch(VOLUME, 1600, 1601, None, &mut keep);
    keep.iter().for_each(|arrival| policy.arrived(arrival));
    let came: Vec<u64> = keep.iter().map(|it| it.blocks.extent.number).collect();
    assert!(came.contains(&98) && came.contains(&102), "{came:?}");
    let mut left = Vec::new();
    for far in 1_000..1_010 {
        policy.read(blocks(100, 1));
        policy.read(blocks(far, u16::MAX));
        policy.came(blocks(far, u16::MAX));
        left.extend(std::iter::from_fn(|| policy.leave_ram()).map(|it| it.extent.number));
    }
    assert!(left.contains(&98) && left.contains(&102), "{left:?}");
    assert!(!(99..=101).any(|near| left.contains(&near)), "{left:?}");
}

/// Reads single blocks far from each other in the same order, `rounds` times: the misses of the last round, and the blocks
/// that were read of what was foreseen in it.
fn in_the_same_order(rounds: u64, order: impl Fn(u64, u64) -> u64) -> (u64, u64) {
    let mut policy = Policy::new(config(64, 640));
    let (mut keep, mut misses, mut foreseen) = (Vec::new(), 0, 0);
    for round in 0..rounds {
        (misses, foreseen) = (0, 0);
        for at in 0..1_000 {
            let first = order(round, at) * 10_000;
            let part = blocks(first / 16, 1);
            let found = policy.read(part);
            if found.is_new {
                policy.follow(part);
            }
            if found.absent != 0 {
                misses += 1;
                policy.came(part);
            }
            while let Some((volume, read)) = policy.foreseen(None, &mut keep) {
                assert_eq!(volume, VOLUME);
                for arrival in &keep {
                    let extent = arrival.blocks.extent.number;
                    assert!(read.contains(&(extent * 16)) && arrival.asked == 0);
                    assert!(!policy.is_fast(arrival.blocks));
                    foreseen += u64::from(arrival.blocks.mask.count_ones());
                    policy.arrived(arrival);
                }
            }
            while policy.leave_ram().is_some() {}
        }
    }
    (misses, foreseen)
}

#[test]
fn what_is_read_in_the_same_order_again_is_there_before_it_is_asked_for() {
    let (misses, foreseen) = in_the_same_order(4, |_, at| at);
    assert!(misses < 50, "{misses}");
    assert!((900..1_100).contains(&foreseen), "{foreseen}");
}

#[test]
fn what_comes_in_another_order_each_time_is_not_read_on_suspicion() {
    let shuffled =
        |round: u64, at: u64| at * [7, 11, 13, 17, 19, 23, 29, 31][round as usize] % 1_000;
    let (_, foreseen) = in_the_same_order(8, shuffled);
    assert!(foreseen < 50, "{foreseen}");
}
