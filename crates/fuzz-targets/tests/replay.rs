//! Runs every stored input through its target: `fuzz/corpus/NAME` and `fuzz/regressions/NAME`.
//!
//! The only test of its program, because the memory bounds of the targets count what the whole process
//! allocates.

use fuzz_targets::Target;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Wait after which an input has hung. Inputs take milliseconds; the rest is for machines under load.
const HANG: Duration = Duration::from_secs(60);

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The stored inputs of a target, in the order of their names.
fn inputs(target: &Target) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for kind in ["corpus", "regressions"] {
        // Most targets have no regressions; that each has a corpus is the test of src/target/tests.rs.
        let Ok(entries) = std::fs::read_dir(fuzz_folder().join(kind).join(target.name)) else {
            continue;
        };
        files.extend(entries.map(|entry| entry.expect("a readable folder").path()));
    }
    files.sort();
    files
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Panicked,
    Hung,
}

/// Runs a target on a thread of its own, whose name shows in the message of a panic.
fn run(target: Target, name: &str, bytes: Vec<u8>) -> Outcome {
    let (passed, outcome) = mpsc::sync_channel(1);
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
        (target.run)(&bytes);
        // The receiver exists until this arrives, or has timed out.
        let _ = passed.send(());
    });
    let thread = spawned.expect("a thread starts");
    match outcome.recv_timeout(HANG) {
        Ok(()) => {}
        // The sender was dropped by the panic.
        Err(RecvTimeoutError::Disconnected) => return Outcome::Panicked,
        Err(RecvTimeoutError::Timeout) => return Outcome::Hung,
    }
    // What the thread frees at its end must not count for the next input.
    thread.join().expect("it has passed");
    Outcome::Passed
}

#[test]
fn stored_inputs_pass() {
    let mut failed = Vec::new();
    let mut count = 0;
    for target in Target::all() {
        for path in inputs(target) {
            let bytes = std::fs::read(&path).expect("a readable input");
            let name = path.strip_prefix(fuzz_folder()).expect("below fuzz");
            let name = name.display().to_string();
            count += 1;
            match run(*target, &name, bytes) {
                Outcome::Passed => {}
                Outcome::Panicked => failed.push(format!("fuzz/{name}")),
                // Its thread cannot be ended and would disturb the rest.
                Outcome::Hung => panic!("fuzz/{name} did not end within {HANG:?}"),
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {count} inputs failed, see the panics above:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
