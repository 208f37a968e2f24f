//! The gate: each known bug is switched on, and has to be found.

use crate::run::{Failure, Length, run};
use std::time::{Duration, Instant};
use units::mutation::{Mutation, switch};

/// Bugs that are not found within the time yet: they are looked for a little, shown, and do not fail
/// the gate.
const NOT_YET: &[Mutation] = &[
    Mutation::CheckpointOneLeg,
    Mutation::LeafForgotten,
    Mutation::JournalEpoch,
    Mutation::EpochKept,
    Mutation::RunWhole,
    Mutation::FlushData,
    Mutation::FlushLeg,
    Mutation::ReuseUndurable,
    Mutation::ReuseRead,
    Mutation::HomeUnquiet,
    Mutation::DemotionRace,
    Mutation::PromotionRace,
    Mutation::DemotionFlush,
    Mutation::WriteKeepsHome,
    Mutation::PendingForgotten,
    Mutation::PendingKept,
];
/// Time for those.
const LITTLE: Duration = Duration::from_secs(5);

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
        let yet = !NOT_YET.contains(mutation);
        let limit = if yet { limit } else { limit.min(LITTLE) };
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
            None if !yet => println!(
                "{:<28} not found yet: {}",
                mutation.name(),
                mutation.about()
            ),
            None => {
                missed += 1;
                println!("{:<28} NOT FOUND: {}", mutation.name(), mutation.about());
            }
        }
    }
    println!(
        "{missed} of {} not found, besides those that are not found yet",
        Mutation::ALL.len()
    );
    missed == 0
}

fn look_for(mutation: Mutation, limit: Duration, length: Length) -> Option<Found> {
    let began = Instant::now();
    let found = (1..=SEEDS).find_map(|seed| {
        if began.elapsed() > limit {
            return Some(None);
        }
        switch(Some(mutation));
        let failure = run(seed, length).err();
        switch(None);
        // What fails without it, too, is another bug, and no proof.
        let failure = failure.filter(|_| run(seed, length).is_ok());
        failure.map(|failure| Some(Found { seed, failure }))
    });
    found.flatten()
}
