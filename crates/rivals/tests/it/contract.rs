//! Properties of every policy of the table, and of Belady's optimum.

use crate::sequences;
use rivals::{Belady, Cache, Outcome, POLICIES};
use std::collections::BTreeSet;

const CAPACITIES: [usize; 7] = [0, 1, 2, 3, 10, 99, 100];

/// Runs a sequence through a cache and holds each answer against the entries that the answers
/// before add up to. How many hits there were.
#[track_caller]
fn check(name: &str, cache: &mut dyn Cache, capacity: usize, uses: &[u64]) -> usize {
    let mut entries = BTreeSet::new();
    let mut hits = 0;
    let mut gone = Vec::new();
    for (number, &key) in uses.iter().enumerate() {
        let place = format!("{name} of {capacity}, use {number} of key {key}");
        assert_eq!(
            cache.contains(key),
            entries.contains(&key),
            "{place}: before"
        );
        let was_there = entries.contains(&key);
        let outcome = cache.access(key, &mut gone);
        assert_eq!(outcome == Outcome::Hit, was_there, "{place}: {outcome:?}");
        hits += usize::from(was_there);
        if outcome == Outcome::Admitted {
            entries.insert(key);
        } else {
            assert_eq!(gone, [], "{place}: left for {outcome:?}");
        }
        assert!(!gone.contains(&key), "{place}: left for itself");
        for left in gone.drain(..) {
            assert!(
                entries.remove(&left),
                "{place}: {left} left and was not there"
            );
            assert!(!cache.contains(left), "{place}: {left} left and is there");
        }
        assert!(
            entries.len() <= capacity,
            "{place}: {} entries",
            entries.len()
        );
        assert_eq!(
            cache.contains(key),
            entries.contains(&key),
            "{place}: after"
        );
        if number % 97 == 0 {
            assert!(
                entries.iter().all(|key| cache.contains(*key)),
                "{place}: some are lost"
            );
        }
        if capacity == 0 {
            assert_eq!(outcome, Outcome::Bypassed, "{place}");
        }
    }
    hits
}

#[test]
fn every_policy_keeps_to_its_capacity_and_tells_what_comes_and_goes_and_none_beats_the_optimum() {
    for (sequence, uses) in sequences::all() {
        for capacity in CAPACITIES {
            let most = check("belady", &mut Belady::new(capacity, &uses), capacity, &uses);
            for row in POLICIES {
                let hits = check(row.name, &mut *(row.make)(capacity), capacity, &uses);
                assert!(
                    hits <= most,
                    "{}: {sequence} in {capacity}: {hits} hits of {most} possible",
                    row.name
                );
            }
        }
    }
}

#[test]
fn every_policy_fills_itself_and_keeps_all_that_fits() {
    for row in POLICIES {
        for capacity in [1, 2, 10, 100] {
            let uses: Vec<u64> = (0..capacity as u64).cycle().take(20 * capacity).collect();
            let hits = check(row.name, &mut *(row.make)(capacity), capacity, &uses);
            // All but the first use of each, and two more uses where they are counted first.
            assert!(
                hits >= 17 * capacity,
                "{} of {capacity}: {hits} hits",
                row.name
            );
        }
    }
}

#[test]
fn a_run_repeats() {
    for row in POLICIES {
        for (sequence, uses) in sequences::all() {
            let run = || {
                let mut cache = (row.make)(50);
                let mut gone = Vec::new();
                let outcomes: Vec<_> = uses
                    .iter()
                    .map(|key| cache.access(*key, &mut gone))
                    .collect();
                (outcomes, gone)
            };
            assert_eq!(run(), run(), "{}: {sequence}", row.name);
        }
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<_> = POLICIES.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), POLICIES.len());
}
