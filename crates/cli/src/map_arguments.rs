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
    /// Number of cells
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub cells: usize,
    /// Print it again every so many seconds
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1")]
    pub watch: Option<f64>,
    /// As it was this long ago, like 10m; the last hour is kept, in up to 1,024 cells
    #[arg(long, value_name = "TIME", conflicts_with_all = ["watch", "cells"])]
    pub ago: Option<String>,
}

/// `explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The volume
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// The number of a logical block of the volume, or an offset with a unit, like 512K or 1GiB
    pub lba: String,
}

/// `pool moves`.
#[derive(Args, Debug)]
pub struct Moves {
    /// The pool
    pub name: String,
    /// Print the rates of moves every so many seconds
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "2")]
    pub watch: Option<f64>,
    /// Stop after so many reports
    #[arg(long, requires = "watch")]
    pub count: Option<u64>,
}
