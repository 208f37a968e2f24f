//! What is asked of where data lies, and of what moves it, on the command line.

use clap::Args;

/// What `explain` adds to its help.
pub const EXPLAIN_AFTER: &str = "\
What was moved of late is kept in memory, from when the pool was opened. `convect pool moves` counts by reason.";

/// `map`.
#[derive(Args, Debug)]
pub struct Map {
    /// The volume
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// How many parts
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub cells: usize,
    /// Print it again and again, every so many seconds
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1")]
    pub watch: Option<f64>,
    /// As it was so long ago, like 10m; the daemon knows the last hour, in up to 1,024 parts
    #[arg(long, value_name = "TIME", conflicts_with_all = ["watch", "cells"])]
    pub ago: Option<String>,
}

/// `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The volume
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// The number of a logical block of the volume, or a byte with a unit, like 512K or 1GiB
    pub lba: String,
}

/// `pool moves`.
#[derive(Args, Debug)]
pub struct Moves {
    /// The pool
    pub name: String,
    /// Print what was moved a second in each period of so many seconds
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "2")]
    pub watch: Option<f64>,
    /// End after so many periods
    #[arg(long, requires = "watch")]
    pub count: Option<u64>,
}
