//! The gate: each known bug is switched on, and has to be found.

use crate::run::{Failure, Length, run};
use std::time::{Duration, Instant};
use units::mutation::{Mutation, switch};

/// Seeds that a bug is looked for in, unless time runs out first.
const SEEDS: u64 = 10_000;

/// How a bug was found.
struct Found {
    seed: u64,
    failure: Failure,
}

/// Looks for every bug (or those whose names hold `only`) for at most `limit` each; prints a table.
/// False when one was not found.
pub fn gate(only: &str, limit: Duration, length: Length) -> bool {
    println!(
        "{:<28} {:>6} {:>9} {:>9}  found as",
        "known bug", "seed", "states", "seconds"
    );
    let mut missed = 0;
    let wanted = |mutation: &&Mutation| mutation.name().contains(only);
    for mutation in Mutation::ALL.iter().filter(wanted) {
        let began = Instant::now();
        match look_for(*mutation, limit, length) {
            Some(found) => {
                let seconds = began.elapsed().as_secs_f64();
                let what: String = found.failure.wrong.0.chars().take(100).collect();
                let states = found.failure.outcome.states;
                println!(
                    "{:<28} {:>6} {states:>9} {seconds:>9.1}  {what}",
                    mutation.name(),
                    found.seed
                );
            }
            None => {
                missed += 1;
                println!("{:<28} NOT FOUND: {}", mutation.name(), mutation.about());
            }
        }
    }
    println!("{missed} of {} not found", Mutation::ALL.len());
    missed == 0
}

fn look_for(mutation: Mutation, limit: Duration, length: Length) -> Option<Found> {
    let began = Instant::now();
    switch(Some(mutation));
    let found = (1..=SEEDS).find_map(|seed| {
        if began.elapsed() > limit {
            return Some(None);
        }
        run(seed, length)
            .err()
            .map(|failure| Some(Found { seed, failure }))
    });
    switch(None);
    found.flatten()
}
