//! Arguments of `promises`.

use crate::arguments::{Behind, size};
use clap::{Args, Subcommand, ValueEnum};

/// `promises`.
#[derive(Args, Debug)]
pub struct Promises {
    /// The measurement.
    #[command(subcommand)]
    pub which: Promise,
}

/// The measurement.
#[derive(Subcommand, Debug)]
pub enum Promise {
    /// Floors of five levels that add up to 150 % of what the pool can do: who misses what
    Infeasible(Infeasible),
    /// Each of the five policies alone, beside a volume without one
    Alone(Alone),
    /// 4 KiB beside 256 KiB of one policy: the time that each gets
    Fairness(Fairness),
    /// 1,000 changes of policy a minute under load: how soon each has effect, and what policy 1 loses
    Live(Live),
    /// A scrub, a resync and demotion concurrently beside policy 1: its p99, and the work done by each
    Background(Background),
    /// The fast tier full and draining: policy 1's writes while level 3 floods
    Filling(Filling),
    /// 2,000 volumes with policies: memory of each, and the processor time of an idle daemon
    Many(Many),
}

/// Kinds of drives.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// Memory: the processor is the bottleneck
    Memory,
    /// A fast file with direct I/O before modelled disks
    File,
}

/// The pool.
#[derive(Args, Debug, Clone)]
pub struct Pool {
    /// Kind of its drives
    #[arg(long, default_value = "memory")]
    pub drives: Medium,
    /// Size of each volume, instead of 128 MiB in memory and 512 MiB otherwise: the pool then has several shards, and a
    /// volume is on all of them when it has more than 256 MiB for each
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub volume: Option<u64>,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

impl Pool {
    /// Size of each volume in bytes.
    pub fn volume_bytes(&self) -> u64 {
        self.volume.unwrap_or(match self.drives {
            Medium::Memory => 128 << 20,
            Medium::File => 512 << 20,
        })
    }
}

/// `infeasible`.
#[derive(Args, Debug)]
pub struct Infeasible {
    /// Seconds of the measurement, and half as many before to see what the pool can do
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=3600))]
    pub seconds: u64,
    /// Sum of the floors, in per cent of what the pool can do
    #[arg(long, value_name = "PERCENT", default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub percent: u32,
    /// The pool.
    #[command(flatten)]
    pub pool: Pool,
}

/// `alone`.
#[derive(Args, Debug)]
pub struct Alone {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Rounds: in each every policy is measured once, between two measurements without one
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// The pool.
    #[command(flatten)]
    pub pool: Pool,
}

/// `fairness`.
#[derive(Args, Debug)]
pub struct Fairness {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Rounds: each alone, and both together
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// The policy that both volumes have, by its name or number
    #[arg(long, value_name = "POLICY", default_value = "3")]
    pub policy: String,
    /// The pool.
    #[command(flatten)]
    pub pool: Pool,
}

/// `live`.
#[derive(Args, Debug)]
pub struct Live {
    /// Seconds of changes, and as many before without
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=3600))]
    pub seconds: u64,
    /// Changes a minute
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub changes: u32,
    /// The pool.
    #[command(flatten)]
    pub pool: Pool,
}

/// `background`.
#[derive(Args, Debug)]
pub struct Background {
    /// Seconds of each round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Rounds with background work, and as many without
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Requests a second of policy 1
    #[arg(long, value_name = "RATE", default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,
    /// Size of its volume
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub volume: u64,
    /// Data written while a drive is out, for the resync and demotion
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub bulk: u64,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

/// `filling`.
#[derive(Args, Debug)]
pub struct Filling {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Seconds in which the fast tier is to be filled, at most
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub filling: u64,
    /// Writes a second of policy 1
    #[arg(long, value_name = "RATE", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,
    /// Size of its volume
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub volume: u64,
    /// Size of the volume that is flooded
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = size)]
    pub flood: u64,
    /// Size of the fast drive
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
    pub fast: u64,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

/// `many`.
#[derive(Args, Debug)]
pub struct Many {
    /// Volumes
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub volumes: u32,
    /// Seconds for which the idle daemon is examined each time
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// How often all are given their policies, and have them taken away
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
}
