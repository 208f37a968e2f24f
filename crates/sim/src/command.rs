//! The command line, and a campaign: seeds in turn on several threads until there were enough states or seconds.

use crate::{forged, memory, plan, regressions, run, schedules, shrink};
use clap::{Parser, ValueEnum};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Runs the storage engine over simulated drives and examines what crashes leave.
#[derive(Parser, Debug)]
pub struct Arguments {
    /// The seed to run, or the first of several.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seeds to run.
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Crash states to examine, for each seed.
    #[arg(long, default_value_t = 10_000)]
    states: u64,
    /// Changes of the pool at most, for each seed.
    #[arg(long, default_value_t = 1000)]
    changes: u64,
    /// Power cuts at a moment that is examined, for each that the plan has.
    #[arg(long, default_value_t = 1)]
    cuts: u64,
    /// Begin no further seed after this many crash states in total
    #[arg(long, default_value_t = u64::MAX)]
    states_in_all: u64,
    /// Begin no further seed after this many seconds
    #[arg(long, default_value_t = u64::MAX)]
    seconds: u64,
    /// Threads; each runs seeds of its own.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Only take snapshots of eight volumes with dependent writes; begin no
    /// further seed after this many.
    #[arg(long)]
    groups: Option<u64>,
    /// Forge this many pools instead, beginning with the seed's, and run all operations on them
    #[arg(long)]
    forged: Option<u64>,
    /// Bend every plan towards one kind of fault, so that it shows sooner.
    #[arg(long)]
    focus: Option<plan::Focus>,
    /// Bend each seed's plan towards another kind of fault, in turn.
    #[arg(long, conflicts_with = "focus")]
    focus_each: bool,
    /// Have tasks go in the order in which they became ready, and drives answer in even times; nothing races on purpose.
    #[arg(long)]
    plain: bool,
    /// Run the failures that FILE records instead, each as its line says.
    #[arg(long, value_name = "FILE")]
    regressions: Option<std::path::PathBuf>,
    /// Run COUNT schedules of quality of service instead, from the seed on.
    #[arg(long, value_name = "COUNT")]
    schedules: Option<u64>,
    /// Append the arguments that repeat a failure to FILE.
    #[arg(long, value_name = "FILE")]
    record: Option<std::path::PathBuf>,
    /// Look for every known bug instead, or those whose names hold this text.
    #[cfg(any(debug_assertions, feature = "mutations"))]
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    gate: Option<String>,
    /// Look only for the known bugs that tell most for their time: one or two of each part of the engine.
    #[cfg(any(debug_assertions, feature = "mutations"))]
    #[arg(long, requires = "gate")]
    quick: bool,
}

impl Arguments {
    /// How long each seed runs, and what is bent in it.
    fn length(&self) -> run::Length {
        run::Length {
            states: self.states,
            changes: self.changes,
            cuts: self.cuts.max(1),
            healthy: false,
            groups: self.groups.is_some(),
            focus: self.focus,
            plain: self.plain,
        }
    }

    /// The same for one seed of several.
    pub fn length_of(&self, seed: u64) -> run::Length {
        let length = self.length();
        if !self.focus_each {
            return length;
        }
        let plan = plan::Plan::of(seed, &length);
        let all = plan::Focus::value_variants();
        let turn = (seed % all.len() as u64) as usize;
        let suiting = all.iter().cycle().skip(turn).take(all.len());
        let focus = suiting.copied().find(|focus| focus.suits(&plan));
        run::Length { focus, ..length }
    }
}

/// Does what the arguments of the process ask for.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(file) = &arguments.regressions {
        return match regressions::replay(file, arguments.threads) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
    }
    if let Some(count) = arguments.forged {
        return match forged::campaign(arguments.seed, count, arguments.threads) {
            Ok(tally) => {
                println!("{tally:?}");
                ExitCode::SUCCESS
            }
            Err(wrong) => {
                wrong.iter().for_each(|wrong| println!("{wrong}"));
                ExitCode::FAILURE
            }
        };
    }
    if let Some(count) = arguments.schedules {
        return match schedules::campaign(arguments.seed, count, arguments.threads) {
            Ok(tally) => {
                println!("{tally:?}");
                ExitCode::SUCCESS
            }
            Err(wrong) => {
                println!("FAILED: {wrong}");
                ExitCode::FAILURE
            }
        };
    }
    #[cfg(any(debug_assertions, feature = "mutations"))]
    if let Some(only) = &arguments.gate {
        let limit = Duration::from_secs(arguments.seconds.min(1200));
        let wanted = crate::gate::wanted(only, arguments.quick);
        let found = crate::gate::gate(
            &wanted,
            limit,
            arguments.length(),
            arguments.threads,
            arguments.seed,
        );
        return if found {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    campaign(&arguments)
}

/// Processor time of the calling thread so far: other load of the machine must not
/// decide what is found.
pub fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

#[derive(Default)]
struct Sums {
    seeds: AtomicU64,
    states: AtomicU64,
    shared: AtomicU64,
    moments: AtomicU64,
    operations: AtomicU64,
    cuts: AtomicU64,
    differences: AtomicU64,
    received: AtomicU64,
    groups: AtomicU64,
    between: AtomicU64,
    crashed_groups: AtomicU64,
    seconds: AtomicU64,
    worked_ms: AtomicU64,
}

impl Sums {
    fn add(&self, outcome: &run::Outcome) {
        self.seeds.fetch_add(1, Ordering::Relaxed);
        for (sum, more) in [
            (&self.states, outcome.states),
            (&self.shared, outcome.shared),
            (&self.moments, outcome.moments),
            (&self.operations, outcome.operations),
            (&self.cuts, outcome.cuts),
            (&self.differences, outcome.differences),
            (&self.received, outcome.received),
            (&self.groups, outcome.groups),
            (&self.between, outcome.between),
            (&self.crashed_groups, outcome.crashed_groups),
            (&self.seconds, outcome.seconds),
        ] {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }
}

fn campaign(arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let limit = Duration::from_secs(arguments.seconds);
    let (next, over) = (AtomicU64::new(arguments.seed), AtomicBool::new(false));
    let (sums, failed) = (Sums::default(), Mutex::new(None));
    let last = arguments.seed.saturating_add(arguments.seeds);
    let work = || {
        let enough = arguments.groups.unwrap_or(u64::MAX);
        let groups = || sums.groups.load(Ordering::Relaxed);
        let states = || sums.states.load(Ordering::Relaxed);
        let has_enough = || groups() >= enough || states() >= arguments.states_in_all;
        while !over.load(Ordering::Relaxed) && began.elapsed() < limit && !has_enough() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= last {
                return;
            }
            let length = arguments.length_of(seed);
            if !length.suits(seed) {
                println!("seed {seed}: left out, as its pool has no drives for that");
                continue;
            }
            match run::run(seed, length) {
                Ok(outcome) => {
                    sums.add(&outcome);
                    println!(
                        "seed {seed}: {} states, {} operations, {} power cuts, {} virtual s, trace {:016x}",
                        outcome.states,
                        outcome.operations,
                        outcome.cuts,
                        outcome.seconds,
                        outcome.trace
                    );
                }
                Err(failure) => {
                    over.store(true, Ordering::Relaxed);
                    if let Ok(mut known) = failed.lock() {
                        known.get_or_insert((seed, failure));
                    }
                }
            }
        }
    };
    let work = || {
        work();
        let worked = worked().as_millis() as u64;
        sums.worked_ms.fetch_add(worked, Ordering::Relaxed);
        memory::Lifo::forget_lists();
    };
    std::thread::scope(|scope| {
        (0..arguments.threads.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    let took = began.elapsed().as_secs_f64();
    let sum = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let states = sum(&sums.states);
    println!(
        "{} seeds, {states} crash states ({:.0} a second, {:.0} a second of one core's work), {} writes and flushes of drives, {} operations, {} power cuts, {} differences of snapshots, {} snapshots received, {} virtual seconds in {took:.0} s",
        sum(&sums.seeds),
        states as f64 / took,
        states as f64 * 1000.0 / sum(&sums.worked_ms).max(1) as f64,
        sum(&sums.moments),
        sum(&sums.operations),
        sum(&sums.cuts),
        sum(&sums.differences),
        sum(&sums.received),
        sum(&sums.seconds),
    );
    let shared = sum(&sums.shared);
    println!(
        "{} states were recovered by themselves; {shared} took over what was recovered of another one, in which all that recovery reads is the same",
        states - shared,
    );
    println!(
        "{} group snapshots whose order was looked at, {} of them between dependent writes; {} more in crash states, just taken",
        sum(&sums.groups),
        sum(&sums.between),
        sum(&sums.crashed_groups),
    );
    let Some((seed, failure)) = failed.lock().ok().and_then(|mut failed| failed.take()) else {
        return ExitCode::SUCCESS;
    };
    let (seed, length, failure) = shrink::explain(seed, &failure, arguments.length_of(seed));
    if let Some(file) = &arguments.record {
        regressions::record(file, seed, length, &failure);
    }
    ExitCode::FAILURE
}
