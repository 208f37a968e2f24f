//! The gate: each known bug is switched on, and has to be found.

use crate::command::worked;
use crate::memory::Lifo;
use crate::plan::Focus;
use crate::run::{Failure, Length, run};
use crate::schedules;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use units::mutation::{Mutation, switch};

/// Bugs that are not found within the time, whatever the engine's timing is: they are looked for a little, shown,
/// and do not fail the gate.
const NOT_YET: &[Mutation] = &[];
/// Bugs that the simulation does not look for. Those about policies delay operations and spoil nothing: tests of the engine find
/// them. Those about labels of drives that were truncated, or that failed: tests of the engine's keeper of labels
/// (`known_bugs_are_found`) find them.
const BY_TESTS: &[Mutation] = &[
    Mutation::LabelAtEnd,
    Mutation::FailedLabelled,
    Mutation::TurnUndue,
    Mutation::RoomUndue,
    Mutation::UpkeepUndue,
    Mutation::PlacementUndue,
];
/// Bugs of quality of service, which schedules of it find (`schedules`).
const BY_SCHEDULES: &[Mutation] = &[
    Mutation::QosTagKept,
    Mutation::QosLevelsFlat,
    Mutation::QosWholeFloor,
    Mutation::QosSizeBlind,
    Mutation::QosRestKept,
    Mutation::QosHeldUncounted,
    Mutation::QosWindowLeaks,
    Mutation::QosNothingKept,
    Mutation::QosNewestFirst,
    Mutation::QosDebtKept,
    Mutation::QosLateTicks,
    Mutation::QosPacedNever,
    Mutation::QosPacedForEver,
    Mutation::QosPacedForNothing,
    Mutation::QosPacedAll,
    Mutation::QosPacedLate,
];
/// Schedules that one of them is looked for in.
const SCHEDULES: u64 = 10_000;
/// Time for those, and states of a seed: a run is not stopped in its middle.
const LITTLE: Duration = Duration::from_secs(2);
const FEW: u64 = 1_000;

/// Bugs that `./dev check` looks for: each is found within a second or two, and together they need every part of
/// the oracle.
const TELLING: &[Mutation] = &[
    Mutation::CheckpointFlush,
    Mutation::JournalChecksum,
    Mutation::FlushData,
    Mutation::FlushJournal,
    Mutation::FuaIgnored,
    Mutation::ReuseUndurable,
    Mutation::DemotionRace,
    Mutation::RamStale,
    Mutation::MergeRace,
    Mutation::ReadUnchecked,
    Mutation::LegBehind,
    Mutation::CountOff,
    Mutation::WriteBehind,
    Mutation::MergeLeaks,
];

/// Seeds that are tried first, since they were found by search once. Others follow when the
/// workload is another one by now.
const FIRST: &[(Mutation, u64)] = &[
    (Mutation::JournalSequence, 2),
    (Mutation::DemotionRace, 2),
    (Mutation::RamStale, 2),
    (Mutation::ReadUnchecked, 2),
    (Mutation::FlushJournal, 2),
    (Mutation::DemotionFlush, 3),
    (Mutation::PromotionRace, 3),
    (Mutation::WriteKeepsHome, 3),
    (Mutation::TrimKeepsHome, 3),
    (Mutation::FlushData, 4),
    (Mutation::PartFreed, 3),
    (Mutation::MergeRace, 6),
    (Mutation::MergeRace, 33),
    (Mutation::TwinTaken, 24),
    (Mutation::DemotionHoards, 6),
    (Mutation::NodesUnnamed, 63),
    (Mutation::PendingKept, 6),
    (Mutation::ForkEarly, 6),
    (Mutation::ZeroesDropped, 6),
    (Mutation::WriteBehind, 8),
    (Mutation::LeafForgotten, 32),
    (Mutation::MergeForgotten, 8),
    (Mutation::MergeLeaks, 8),
    (Mutation::LegBehind, 9),
    (Mutation::PromiseTaken, 4),
    (Mutation::CheckpointOneLeg, 23),
    (Mutation::SnapshotUnreserved, 8),
    (Mutation::CheckpointAlone, 60),
    (Mutation::ReuseRead, 30),
    (Mutation::HomeUnquiet, 3),
    (Mutation::PendingForgotten, 3),
    (Mutation::FlushError, 33),
    (Mutation::HomeUnproven, 21),
    (Mutation::JournalEpoch, 14),
    (Mutation::EpochKept, 14),
    (Mutation::FlushOverlap, 56),
    (Mutation::KeptFree, 36),
    (Mutation::LabelPlace, 1),
    (Mutation::PagesUncounted, 6),
    (Mutation::DemotionSlot, 7),
    (Mutation::DigestKept, 2),
    (Mutation::OpeningAlone, 14),
    (Mutation::AnnouncedLost, 8),
    (Mutation::BusyShared, 3),
    (Mutation::RamUnproven, 2),
    (Mutation::MovedUnflushed, 4),
    (Mutation::OrphansKept, 2),
    (Mutation::ReservationLost, 1),
    (Mutation::MergeRam, 6),
    (Mutation::HomeValid, 6),
    (Mutation::FreeBusy, 5),
    (Mutation::EvacuatedEarly, 11),
    (Mutation::ReadDissolved, 2),
    (Mutation::PromotionHome, 2),
    (Mutation::ResyncUnsettled, 1),
    (Mutation::AbsentUnnoted, 1),
    (Mutation::ZeroRace, 1),
    (Mutation::GateUndrained, 76),
    (Mutation::GateFirst, 51),
    (Mutation::ScrubUnguarded, 1),
    (Mutation::BarrierAlone, 23),
    (Mutation::EvacuationRace, 8),
    (Mutation::ReceiveChanged, 2),
    (Mutation::ReceiveAny, 2),
    (Mutation::PromoteUnclaimed, 18),
    (Mutation::QuotaIgnored, 1),
    (Mutation::TrimBusy, 51),
    (Mutation::TrimLeaks, 1),
    (Mutation::ResyncJournal, 10),
    (Mutation::ResyncRegion, 50),
    (Mutation::SyncingRead, 10),
    (Mutation::StaleUnnoted, 6),
    (Mutation::ScrubStill, 3),
    (Mutation::QuotaBelow, 1),
    (Mutation::PromoteNewest, 2),
    (Mutation::ReceiveLingers, 2),
    (Mutation::HoldersUntold, 11),
    (Mutation::LeftOutUnchanged, 135),
    (Mutation::OpeningUnflushed, 17),
    (Mutation::PolicyUnsaved, 6),
    (Mutation::QosTagKept, 54),
    (Mutation::QosSizeBlind, 166),
    (Mutation::QosNothingKept, 803),
    (Mutation::QosDebtKept, 8780),
    (Mutation::QosPacedNever, 200),
    (Mutation::QosPacedForEver, 600),
    (Mutation::QosPacedForNothing, 1_000),
    (Mutation::QosPacedAll, 200),
    (Mutation::QosPacedLate, 6_800),
];

/// Bugs that show among races, though their focus has none. Among races are power cuts in openings after kills.
const WITH_RACES: &[Mutation] = &[Mutation::OpeningUnflushed, Mutation::LeftOutUnchanged];

/// The focus that shows a bug soon.
const FOCUS: &[(Mutation, Focus)] = &[
    (Mutation::LabelFlushAlone, Focus::Labels),
    (Mutation::FlushOverlap, Focus::Flushes),
    (Mutation::LabelPlace, Focus::Latent),
    (Mutation::CheckpointAlone, Focus::Legs),
    (Mutation::LegLast, Focus::Mends),
    (Mutation::RunWhole, Focus::Rot),
    (Mutation::KeptFree, Focus::Rot),
    (Mutation::DemotionSlot, Focus::Sinking),
    (Mutation::JournalEpoch, Focus::Lives),
    (Mutation::EpochKept, Focus::Lives),
    (Mutation::SnapshotUnreserved, Focus::Midway),
    (Mutation::AnnouncedLost, Focus::Midway),
    (Mutation::OpeningAlone, Focus::Returns),
    (Mutation::OpeningUnflushed, Focus::Returns),
    (Mutation::TwinTaken, Focus::Returns),
    (Mutation::HomeUnproven, Focus::Homes),
    (Mutation::ReuseRead, Focus::Reuse),
    (Mutation::PagesUncounted, Focus::Metadata),
    (Mutation::DigestKept, Focus::Pages),
    (Mutation::ScrubUnwritten, Focus::Scrubs),
    (Mutation::PromiseTaken, Focus::Limits),
    (Mutation::BusyShared, Focus::Evacuations),
    (Mutation::EvacuationRace, Focus::Evacuations),
    (Mutation::MovedUnflushed, Focus::Evacuations),
    (Mutation::PromotionHome, Focus::Promotions),
    (Mutation::MergeRam, Focus::Merges),
    (Mutation::RamUnproven, Focus::Races),
    (Mutation::ReadDissolved, Focus::ColdMerges),
    (Mutation::GateFirst, Focus::Resyncs),
    (Mutation::GateUndrained, Focus::Resyncs),
    (Mutation::ResyncUnsettled, Focus::Absences),
    (Mutation::AbsentUnnoted, Focus::Absences),
    (Mutation::BarrierAlone, Focus::Legs),
    (Mutation::TrimBusy, Focus::Homes),
    (Mutation::FreeBusy, Focus::SinkingDeletions),
    (Mutation::ZeroRace, Focus::Halves),
    (Mutation::HomeValid, Focus::Races),
    (Mutation::ScrubUnguarded, Focus::Mending),
    (Mutation::EvacuatedEarly, Focus::Departures),
    (Mutation::OrphansKept, Focus::Merges),
    (Mutation::ReceiveChanged, Focus::Control),
    (Mutation::ReceiveAny, Focus::Control),
    (Mutation::ReservationLost, Focus::Control),
    (Mutation::PromoteUnclaimed, Focus::Control),
    (Mutation::HoldersUntold, Focus::Control),
    (Mutation::QuotaIgnored, Focus::Control),
    (Mutation::QuotaBelow, Focus::Control),
    (Mutation::PromoteNewest, Focus::Control),
    (Mutation::ReceiveLingers, Focus::Control),
    (Mutation::ResyncJournal, Focus::Resyncs),
    (Mutation::ResyncRegion, Focus::Resyncs),
    (Mutation::SyncingRead, Focus::Resyncs),
    (Mutation::StaleUnnoted, Focus::Resyncs),
    (Mutation::ScrubStill, Focus::Scrubs),
    (Mutation::PolicyUnsaved, Focus::Policies),
    (Mutation::TailIgnored, Focus::Kills),
    (Mutation::TailLengthFirst, Focus::Kills),
    (Mutation::TailUnnamed, Focus::Kills),
    (Mutation::TailGoneEarly, Focus::Kills),
    (Mutation::TailOfCopy, Focus::Kills),
    (Mutation::TailOlder, Focus::Kills),
    (Mutation::TailMarkEarly, Focus::Kills),
    (Mutation::TailKept, Focus::Kills),
    (Mutation::TailAhead, Focus::Kills),
    (Mutation::OldTaken, Focus::Drives),
    (Mutation::OldUnsaid, Focus::Drives),
    (Mutation::MarksIgnored, Focus::Drives),
    (Mutation::ShortTaken, Focus::Drives),
    (Mutation::OlderCounts, Focus::Drives),
    (Mutation::SeenIgnored, Focus::Drives),
    (Mutation::OldForgotten, Focus::Drives),
    (Mutation::LostOpened, Focus::Drives),
];

/// Further seeds that a bug is looked for in: a number, so that a slow machine finds what a fast one does. Time bounds
/// only what hangs.
const SEEDS: usize = 60;

/// States of each of those others: many short runs find more than a long one.
const SHORT: u64 = 2_000;

/// States that are examined without the bug beyond those that showed it.
const FURTHER: u64 = 50;

/// How a bug was found.
struct Found {
    seed: u64,
    /// States of crashes that were examined until then, or schedules.
    states: u64,
    what: String,
    /// By a seed that is tried first, or there is none.
    is_by_first: bool,
}

/// The bugs whose names hold `only`; of these the most telling, if only those are wanted.
pub fn wanted(only: &str, quick: bool) -> Vec<Mutation> {
    let known = if quick { TELLING } else { Mutation::ALL };
    let holds =
        |mutation: &Mutation| mutation.name().contains(only) && !BY_TESTS.contains(mutation);
    known.iter().copied().filter(holds).collect()
}

/// Looks for each of the bugs for at most `limit`, `threads` at a time, in the seeds that are tried first
/// and in some from `from` on; prints a table. False when one was not found.
pub fn gate(
    wanted: &[Mutation],
    limit: Duration,
    length: Length,
    threads: usize,
    from: u64,
) -> bool {
    println!(
        "{:<28} {:>6} {:>9} {:>9}  found as",
        "known bug", "seed", "states", "seconds"
    );
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Found, but by no seed that is tried first, though there are some: those are of no use any longer.
    let stale = AtomicUsize::new(0);
    let work = || {
        while let Some(mutation) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = worked();
            // An explicit request for it alone is always run.
            let yet = NOT_YET.contains(mutation) && wanted.len() > 1;
            let (limit, states) = match yet {
                true => (limit.min(LITTLE), length.states.min(FEW)),
                false => (limit, length.states),
            };
            let found = match BY_SCHEDULES.contains(mutation) {
                true => look_in_schedules(*mutation, limit, from),
                false => look_for(*mutation, limit, Length { states, ..length }, from),
            };
            missed.fetch_add(usize::from(!yet && found.is_none()), Ordering::Relaxed);
            let is_stale = found.as_ref().is_some_and(|found| !found.is_by_first);
            stale.fetch_add(usize::from(is_stale), Ordering::Relaxed);
            show(*mutation, found.as_ref(), worked() - began);
        }
        Lifo::forget_lists();
    };
    std::thread::scope(|scope| {
        (0..threads.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    let missed = missed.into_inner();
    let stale = stale.into_inner();
    if stale > 0 {
        println!("{stale} found by another seed than those to be tried first: mend FIRST");
    }
    let excused = wanted.iter().filter(|mutation| NOT_YET.contains(mutation));
    println!(
        "{missed} of {} not found, besides {} that need not be yet",
        wanted.len(),
        excused.count()
    );
    missed == 0
}

fn show(mutation: Mutation, found: Option<&Found>, took: Duration) {
    let (name, seconds) = (mutation.name(), took.as_secs_f64());
    match found {
        Some(Found {
            seed,
            states,
            what,
            is_by_first,
        }) => {
            let mark = if *is_by_first { ' ' } else { '*' };
            let what: String = what.chars().take(100).collect();
            println!("{name:<28} {seed:>6} {states:>9} {seconds:>9.1} {mark}{what}");
        }
        None => println!(
            "{name:<28} NOT FOUND in {seconds:.0} s: {}",
            mutation.about()
        ),
    }
}

fn look_in_schedules(mutation: Mutation, limit: Duration, from: u64) -> Option<Found> {
    let began = worked();
    let first = FIRST.iter().filter(|first| first.0 == mutation);
    let first = first.map(|first| (first.1, true));
    let has_first = first.clone().next().is_some();
    let others = (from..from + SCHEDULES).map(|seed| (seed, !has_first));
    let seeds = first.chain(others);
    let mut seeds = seeds.take_while(|_| worked() - began < limit).zip(1..);
    seeds.find_map(|((seed, is_by_first), count)| {
        switch(Some(mutation));
        let wrong = schedules::run(seed).err();
        switch(None);
        let what = wrong.filter(|_| schedules::run(seed).is_ok())?;
        Some(Found {
            seed,
            states: count,
            what,
            is_by_first,
        })
    })
}

fn look_for(mutation: Mutation, limit: Duration, length: Length, from: u64) -> Option<Found> {
    let began = worked();
    // Who believes what is read believes a bad drive, too, and that is another bug.
    let focus = FOCUS.iter().find(|known| known.0 == mutation);
    let focus = focus.map(|known| known.1);
    let length = Length {
        // Its seeds were found with one.
        cuts: 1,
        healthy: mutation == Mutation::ReuseRead,
        // What is wrong between volumes takes many of them.
        groups: mutation == Mutation::SnapshotUnheld,
        focus,
        // What no race is needed for is found sooner without.
        plain: !focus.is_some_and(Focus::races) && !WITH_RACES.contains(&mutation),
        ..length
    };
    let first = FIRST.iter().filter(|first| first.0 == mutation);
    let first = first.map(|first| (first.1, length, true));
    let has_first = first.clone().next().is_some();
    let states = length.states.min(SHORT);
    let others = (from..).map(|seed| (seed, Length { states, ..length }, !has_first));
    // Those whose pool has no drives for it would only take time.
    let suits = |(seed, length, _): &(u64, Length, bool)| length.suits(*seed);
    let others = others.filter(suits).take(SEEDS);
    let mut seeds = first.filter(suits).chain(others);
    let found = seeds.find_map(|(seed, length, is_by_first)| {
        if worked() - began > limit {
            return Some(None);
        }
        switch(Some(mutation));
        let failure = run(seed, length).err();
        switch(None);
        // What fails without it, too, is another bug, and no proof.
        let as_far = |failure: &Failure| Length {
            states: (failure.outcome.states + FURTHER).min(length.states),
            ..length
        };
        let failure = failure.filter(|failure| run(seed, as_far(failure)).is_ok());
        failure.map(|failure| {
            Some(Found {
                seed,
                states: failure.outcome.states,
                what: failure.wrong.0,
                is_by_first,
            })
        })
    });
    found.flatten()
}
