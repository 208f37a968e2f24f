//! The patterns that a few lines say.

use super::make::{Access, Pattern, Shape};
use super::random::Random;
use crate::law::{Order, Zipf};

/// Reads of every 100 requests, where writes are mixed in.
const READS_PERCENT: u64 = 70;
/// Requests of every 100 that go to what is hot.
const HOT_PERCENT: u64 = 90;
/// The hot set of `moving` is one of so many parts of the footprint: 5 %.
const HOT_PART: u64 = 20;
/// The exponent of zipf's law.
const EXPONENT: f64 = 0.99;
/// Places at which the hot set of `moving` is, one after the other.
const PLACES: u64 = 6;
/// Blocks of a MiB, and of a request of a scan.
const MIB: u64 = 256;
const SCAN: u64 = 64;

fn mixed(block: u64, random: &mut Random) -> Access {
    Access {
        block,
        blocks: 1,
        write: !random.percent(READS_PERCENT),
    }
}

fn read(block: u64, blocks: u64) -> Access {
    Access {
        block,
        blocks,
        write: false,
    }
}

pub(super) fn uniform(shape: Shape, _: &mut Random) -> Pattern {
    Box::new(move |random, _| mixed(random.below(shape.blocks), random))
}

pub(super) fn zipf(shape: Shape, random: &mut Random) -> Pattern {
    let law = Zipf::new(EXPONENT, shape.blocks);
    let order = Order::new(shape.blocks, random.below(shape.blocks));
    Box::new(move |random, _| mixed(order.at(law.rank(|| random.unit())), random))
}

/// The hot set is one range; the places do not overlap, and their order is always the same.
pub(super) fn moving(shape: Shape, _: &mut Random) -> Pattern {
    let hot = shape.blocks / HOT_PART;
    let stay = shape.requests.div_ceil(PLACES);
    Box::new(move |random, number| {
        let start = number / stay * shape.blocks / PLACES;
        let block = if random.percent(HOT_PERCENT) {
            start + random.below(hot)
        } else {
            random.below(shape.blocks)
        };
        mixed(block, random)
    })
}

pub(super) fn scattered(shape: Shape, random: &mut Random) -> Pattern {
    let hot = shape.blocks / MIB;
    // Where in its MiB the hot block is, other for each.
    let places = Order::new(MIB - 1, random.below(MIB - 1));
    Box::new(move |random, _| {
        let block = if random.percent(HOT_PERCENT) {
            let mib = random.below(hot);
            mib * MIB + places.at(mib)
        } else {
            random.below(shape.blocks)
        };
        mixed(block, random)
    })
}

/// The scan begins again at the end.
pub(super) fn scan(shape: Shape, random: &mut Random) -> Pattern {
    let law = Zipf::new(EXPONENT, shape.blocks);
    let order = Order::new(shape.blocks, random.below(shape.blocks));
    let mut position = 0;
    Box::new(move |random, number| {
        if number % 2 == 1 {
            return read(order.at(law.rank(|| random.unit())), 1);
        }
        let request = read(position, SCAN.min(shape.blocks - position));
        position = (position + request.blocks) % shape.blocks;
        request
    })
}

/// What is read once is beyond the footprint, in no order, over as many blocks as there are
/// requests.
pub(super) fn one_hit(shape: Shape, random: &mut Random) -> Pattern {
    let law = Zipf::new(EXPONENT, shape.blocks);
    let order = Order::new(shape.blocks, random.below(shape.blocks));
    let once = Order::new(shape.requests.max(1), random.below(shape.requests.max(1)));
    Box::new(move |random, number| {
        if random.percent(50) {
            return read(shape.blocks + once.at(number), 1);
        }
        read(order.at(law.rank(|| random.unit())), 1)
    })
}
