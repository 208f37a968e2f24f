//! Arguments of `convect map`, `explain` and `pool moves`.

use clap::Args;

/// Text after the help of `explain`.
pub const EXPLAIN_AFTER: &str = "\
Recent moves are kept in memory since the pool was opened. See `convect pool moves` for totals by reason.";

/// Arguments of `convect map`.
#[derive(Args, Debug)]
pub struct Map {
    /// The volume
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// Number of cells
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub cells: usize,
    /// Print the map every SECS seconds
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1")]
    pub watch: Option<f64>,
    /// Print the map of this long ago, like 10m; the last hour is kept, in up to 1,024 cells
    #[arg(long, value_name = "TIME", conflicts_with_all = ["watch", "cells"])]
    pub ago: Option<String>,
}

/// Arguments of `convect explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The volume
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// Logical block number, or byte offset with a unit, like 512K or 1GiB
    pub lba: String,
}

/// Arguments of `convect pool moves`.
#[derive(Args, Debug)]
pub struct Moves {
    /// The pool
    pub name: String,
    /// Print the rates of moves every SECS seconds
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "2")]
    pub watch: Option<f64>,
    /// Stop after N reports
    #[arg(long, requires = "watch")]
    pub count: Option<u64>,
}
