//! libFuzzer over one row of the registry of targets, `CONVECT_FUZZ_TARGET` in the environment: one
//! binary for all targets, as most of the time of a build is that of linking and of what they share.
#![no_main]

use fuzz_targets::Target;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

/// The target that the environment asks for.
fn chosen() -> fn(&[u8]) {
    let name = std::env::var("CONVECT_FUZZ_TARGET").unwrap_or_default();
    let target = Target::find(&name).unwrap_or_else(|| {
        let names: Vec<_> = fuzz_targets::TARGETS
            .iter()
            .map(|target| target.name)
            .collect();
        panic!("CONVECT_FUZZ_TARGET is '{name}', not one of {names:?}")
    });
    target.run
}

/// Makes a write to a closed socket an error, as in programs that start in Rust's own `main`.
fn ignore_broken_pipes() {
    // SAFETY: the signal is ignored; no handler runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

fuzz_target!(
    init: {
        ignore_broken_pipes();
        TARGET.get_or_init(chosen);
    },
    |data: &[u8]| {
        TARGET.get_or_init(chosen)(data);
    }
);
