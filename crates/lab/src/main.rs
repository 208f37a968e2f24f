//! `convect-lab`: demonstrations, benchmarks and torture of a daemon that it starts itself.
//!
//! Responsible for: workloads, measurements, and their presentation.
//! Leaves out: the engine. It is reached only as anybody reaches it: by the `convect` command
//! and through the front ends.

mod arguments;
mod breakdown;
mod chance;
mod compare;
mod content;
mod daemon;
mod demo;
mod failure;
mod fio;
mod first_writes;
mod guests;
mod hostile;
mod html;
mod idle;
mod increments;
mod interrupt;
mod iscsi;
mod load;
mod machine;
mod memory_pool;
mod moving;
mod nbd;
mod polling;
mod process;
mod promises;
mod replay;
mod rival;
mod scale;
mod scene;
mod scratch;
mod screen;
mod scrub_cost;
mod sessions;
mod snapshots;
mod storm;
mod tenants;
mod torture;
mod two_tiers;
mod viewers;
mod withheld;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::Result;
use std::process::ExitCode;

fn run(arguments: &Arguments) -> Result<()> {
    interrupt::watch()?;
    let convect = || daemon::find_binary(arguments.convect.as_deref());
    match &arguments.command {
        Command::Demo(with) => demo::run(&convect()?, with),
        Command::Torture(with) => torture::run(&convect()?, with),
        Command::Moving(with) => moving::run(&convect()?, with),
        Command::FirstWrites(with) => first_writes::run(&convect()?, with),
        Command::TwoTiers(with) => two_tiers::run(&convect()?, with),
        Command::Scale(with) => scale::run(&convect()?, with),
        Command::Idle(with) => idle::run(&convect()?, with),
        Command::ScrubCost(with) => scrub_cost::run(&convect()?, with),
        Command::Viewers(with) => viewers::run(&convect()?, with),
        Command::Snapshots(with) => snapshots::run(&convect()?, with),
        Command::Sessions(with) => sessions::run(&convect()?, with),
        Command::Increments(with) => increments::run(with),
        Command::Load(with) => load::command(with),
        Command::Compare(with) => compare::run(&convect()?, with),
        Command::Breakdown(with) => breakdown::run(&convect()?, with),
        Command::Polling(with) => polling::run(&convect()?, with),
        Command::Guests(with) => guests::run(&convect()?, with),
        Command::Promises(with) => promises::run(&convect()?, with),
        Command::Storm(with) => storm::run(&convect()?, with),
        Command::Hostile(with) => hostile::run(&convect()?, with),
        Command::Replay(with) => replay::run(arguments.convect.as_deref(), with),
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(if failure.is_interrupt() { 130 } else { 1 })
        }
    }
}
