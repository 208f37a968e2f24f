//! The regression corpus of the simulation: runs that once failed, which every check repeats.
//!
//! A line of the file is the arguments that repeat a run, then `#` and what was wrong. A seed means
//! another run once the workload has changed; the line then is one more seed, and costs as little.

use crate::command::Arguments;
use crate::memory::Lifo;
use crate::plan::Focus;
use crate::run::{Failure, Length, run};
use clap::{Parser, ValueEnum};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The arguments that repeat a run.
pub fn arguments(seed: u64, length: Length) -> String {
    let mut text = format!(
        "--seed {seed} --states {} --changes {} --cuts {}",
        length.states, length.changes, length.cuts
    );
    if length.groups {
        text.push_str(" --groups 1");
    }
    if length.plain {
        text.push_str(" --plain");
    }
    let focus = length
        .focus
        .and_then(|focus| Focus::to_possible_value(&focus));
    if let Some(focus) = focus {
        text.push_str(&format!(" --focus {}", focus.get_name()));
    }
    text
}

/// Runs what a file records, `threads` at a time, and prints a line for each. False when one fails, or
/// the file cannot be read, has a line that means nothing, or records nothing.
pub fn replay(file: &Path, threads: usize) -> bool {
    let runs = match std::fs::read_to_string(file) {
        Ok(text) => parse(&text),
        Err(error) => Err(error.to_string()),
    };
    let runs = match runs {
        Ok(runs) if !runs.is_empty() => runs,
        Ok(_) => return refuse(file, "it records no run"),
        Err(why) => return refuse(file, &why),
    };
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(&(seed, length)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (sum, text) = match run(seed, length) {
                Ok(outcome) => (0, format!("{} states", outcome.states)),
                Err(failure) => (1, format!("FAILED: {}", failure.wrong.0)),
            };
            failed.fetch_add(sum, Ordering::Relaxed);
            println!("regression {}: {text}", arguments(seed, length));
        }
        Lifo::forget_lists();
    };
    std::thread::scope(|scope| {
        (0..threads.max(1)).for_each(|_| drop(scope.spawn(work)));
    });
    failed.into_inner() == 0
}

fn refuse(file: &Path, why: &str) -> bool {
    eprintln!("error: the regression corpus {}: {why}", file.display());
    false
}

fn parse(text: &str) -> Result<Vec<(u64, Length)>, String> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let lines = lines.map(str::trim).filter(|line| !line.is_empty());
    let run = |line: &str| {
        let words = std::iter::once("sim").chain(line.split_whitespace());
        let arguments = Arguments::try_parse_from(words);
        let arguments = arguments.map_err(|error| format!("'{line}': {error}"))?;
        Ok((arguments.seed, arguments.length_of(arguments.seed)))
    };
    lines.map(run).collect()
}

/// Appends a failure to the file.
pub fn record(file: &Path, seed: u64, length: Length, failure: &Failure) {
    let what: String = failure.wrong.0.chars().take(120).collect();
    let what = what.replace(['\n', '\r'], " ");
    let line = format!("{}  # {what}\n", arguments(seed, length));
    let opened = OpenOptions::new().create(true).append(true).open(file);
    match opened.and_then(|mut opened| opened.write_all(line.as_bytes())) {
        Ok(()) => println!(
            "recorded in {}: commit it with the change that mends it",
            file.display()
        ),
        Err(error) => eprintln!("error: {} cannot be appended to: {error}", file.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Length = Length {
        states: 7,
        changes: 8,
        cuts: 3,
        healthy: false,
        groups: true,
        focus: Some(Focus::Rot),
        plain: true,
    };

    #[test]
    fn recorded_arguments_repeat_the_run() {
        let text = format!("# comment\n\n{}  # wrong\n", arguments(5, LENGTH));
        let runs = parse(&text).expect("a line of arguments");
        let [(seed, length)] = runs[..] else {
            panic!("one run: {runs:?}");
        };
        assert_eq!(arguments(seed, length), arguments(5, LENGTH));
    }

    #[test]
    fn line_that_is_no_run_is_refused() {
        assert!(parse("--sed 5").is_err());
    }
}
