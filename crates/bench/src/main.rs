//! `convect-bench`: the engine in one process with its load, for counting instructions exactly.
//!
//! `convect-bench cases` runs fixed numbers of requests on loops of a simulation, `convect-bench shards` the same
//! load on each of several shards. Under callgrind both leave a dump for each case, which `scripts/instructions.sh`
//! reads; alone they print processor time and rates.
//!
//! Responsible for: exact repetition, independent of clock and machine.
//! Leaves out: front ends, the kernel, and loads as hosts make them (`lab`).

mod arguments;
mod callgrind;
mod cases;
mod failure;
mod generator;
mod loops;
mod scene;
mod shards;

use arguments::Command;
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// As the daemon has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = Command::parse(&words).and_then(|command| match command {
        Command::Cases(only) => cases::run(&only),
        Command::Shards(counts) => shards::run(&counts),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
