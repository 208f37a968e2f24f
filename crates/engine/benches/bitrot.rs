//! Bits that turn over on a pool's drives, one after the other, anywhere.
//!
//! `cargo bench -p convect-engine --bench bitrot [-- FLIPS [SEED]]` prints what became of them. It
//! stops where wrong data is read, or anything else is not as promised.

#[expect(dead_code, reason = "a benchmark uses its part")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use support::rot::{Scene, Tally};

/// Bits turned over between two openings.
const TOGETHER: u64 = 100;

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse::<u64>().ok());
    let flips = numbers.next().unwrap_or(100_000).max(TOGETHER * 2);
    let seed = numbers.next().unwrap_or(1);
    println!(
        "{:12} {:>8} {:>8} {:>8} {:>10} {:>12} {:>9} {:>10} {:>10}",
        "pool",
        "flips",
        "in data",
        "mended",
        "rewritten",
        "not needed",
        "counted",
        "I/O errors",
        "wrong data"
    );
    for mirrored in [true, false] {
        let mut scene = Scene::new(mirrored, false, seed);
        let mut tally = Tally::default();
        while tally.flips < flips / 2 {
            scene.round(TOGETHER, &mut tally);
        }
        println!(
            "{:12} {:>8} {:>8} {:>8} {:>10} {:>12} {:>9} {:>10} {:>10}",
            if mirrored { "mirrored" } else { "unmirrored" },
            tally.flips,
            tally.in_data,
            tally.mended,
            tally.rewritten,
            tally.left - tally.errors.min(tally.left),
            tally.counted,
            tally.errors,
            0
        );
    }
}
