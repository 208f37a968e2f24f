//! Making a failing seed small: fewer changes of the pool, and other seeds that fail sooner.

use crate::regressions;
use crate::run::{Failure, Length, run};

/// Seeds that are tried for a shorter failure.
const TRIES: u64 = 40;

/// Prints the failure, the shortest one that was found nearby, and how to run each again. Returns the
/// shortest: its seed, its length and what is wrong.
pub fn explain(seed: u64, failure: &Failure, length: Length) -> (u64, Length, Failure) {
    println!("\nFAILED, seed {seed}: {}", failure.wrong.0);
    again(seed, length);
    let mut best = (seed, length, failure.clone());
    // Fewer changes first: what fails without them is easier to follow.
    while best.1.changes > 0 {
        let shorter = Length {
            changes: best.2.outcome.changes.min(best.1.changes).saturating_sub(1),
            ..best.1
        };
        match run(best.0, shorter) {
            Err(failure) => best = (best.0, shorter, failure),
            Ok(_) => break,
        }
    }
    let others = (0..TRIES).map(|add| seed.wrapping_mul(1000).wrapping_add(add));
    for other in others.filter(|other| length.suits(*other)) {
        if let Err(failure) = run(other, length)
            && failure.outcome.moments < best.2.outcome.moments
        {
            best = (other, length, failure);
        }
    }
    if best.0 != seed || best.1.changes != length.changes {
        println!("\nshorter, seed {}: {}", best.0, best.2.wrong.0);
        again(best.0, best.1);
    }
    best
}

fn again(seed: u64, length: Length) {
    println!(
        "run it again: cargo run --release -p sim -F program -- {}",
        regressions::arguments(seed, length)
    );
}
