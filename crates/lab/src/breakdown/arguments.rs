//! Arguments of `breakdown`.

use crate::compare::{Setup, System};
use crate::load::Blocks;
use clap::Args;

/// `breakdown`.
#[derive(Args, Debug)]
pub struct Breakdown {
    /// The server
    #[arg(long, default_value = "convect")]
    pub system: System,
    /// Sizes of requests with their weights
    #[arg(long, value_name = "SIZE[:WEIGHT],...", default_value = "4k")]
    pub blocks: Blocks,
    /// Reads of a hundred requests; the others are writes
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: u8,
    /// Requests outstanding on each queue
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// Queues: rings or connections
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4))]
    pub queues: u16,
    /// Seconds of the load
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Number of symbols to print per layer
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub symbols: usize,
    /// The servers.
    #[command(flatten)]
    pub setup: Setup,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
