//! Many desktops that are clones of one image, and start together.
//!
//! Three quarters of the footprint are the image, which all share; the rest is the desktops' own.
//! Each desktop reads the same sequence of runs, at its own pace, and begins it again when it is
//! through. Which desktop is next is chance.

use super::make::{Access, Pattern, Shape};
use super::random::Random;

const DESKTOPS: u64 = 100;
/// Requests of every 100 that write to a desktop's own part.
const WRITES_PERCENT: u64 = 10;
/// Blocks of 4 KiB that a read may have.
const SIZES: [u64; 5] = [1, 2, 4, 8, 16];
/// Reads that follow each other in place.
const RUN: usize = 8;

/// Reads of about as much as one desktop has requests for.
fn sequence(image: u64, reads: u64, random: &mut Random) -> Vec<(u64, u64)> {
    let mut sequence = Vec::new();
    let mut position = 0;
    for number in 0..reads.max(1) as usize {
        let blocks = SIZES[random.below(SIZES.len() as u64) as usize];
        if number.is_multiple_of(RUN) || position + blocks > image {
            position = random.below(image - blocks + 1);
        }
        sequence.push((position, blocks));
        position += blocks;
    }
    sequence
}

pub(super) fn vdi_boot(shape: Shape, random: &mut Random) -> Pattern {
    let image = shape.blocks / 4 * 3;
    let own = (shape.blocks - image) / DESKTOPS;
    let reads = shape.requests * (100 - WRITES_PERCENT) / 100 / DESKTOPS;
    let sequence = sequence(image, reads, random);
    let mut next = vec![0; DESKTOPS as usize];
    Box::new(move |random, _| {
        let desktop = random.below(DESKTOPS);
        if random.percent(WRITES_PERCENT) {
            return Access {
                block: image + desktop * own + random.below(own),
                blocks: 1,
                write: true,
            };
        }
        let next = &mut next[desktop as usize];
        let (block, blocks) = sequence[*next % sequence.len()];
        *next += 1;
        Access {
            block,
            blocks,
            write: false,
        }
    })
}
