//! What the libFuzzer binaries share: each runs one row of its table, the one that
//! `CONVECT_FUZZ_TARGET` in the environment names. One binary for each target would link the same code
//! eighteen times.

use fuzz_targets::Target;
use std::sync::OnceLock;

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

/// Chooses the target, before the first input.
///
/// # Panics
/// When the environment does not name one of `targets`.
pub fn choose(targets: &[Target]) {
    ignore_broken_pipes();
    let name = std::env::var("CONVECT_FUZZ_TARGET").unwrap_or_default();
    let target = targets.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| {
        let names: Vec<_> = targets.iter().map(|target| target.name).collect();
        panic!("CONVECT_FUZZ_TARGET is '{name}', not one of {names:?}")
    });
    CHOSEN.get_or_init(|| target.run);
}

/// Runs the chosen target on one input.
///
/// # Panics
/// When the input shows a bug, or no target was chosen.
pub fn run(data: &[u8]) {
    CHOSEN.get().expect("a target was chosen")(data);
}

/// Makes a write to a closed socket an error, as in programs that start in Rust's own `main`.
fn ignore_broken_pipes() {
    // SAFETY: the signal is ignored; no handler runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
