//! Arguments of `load`.

use super::{Arrivals, Blocks, Disk, Pattern};
use crate::arguments::size;
use clap::Args;

/// `load`.
#[derive(Args, Debug)]
pub struct Generate {
    /// vhost-user-blk:SOCKET, nbd+unix:///EXPORT?socket=PATH, iscsi://ADDRESS:PORT/TARGET/LUN, or file:PATH (io_uring, O_DIRECT)
    pub disk: Disk,
    /// Sizes of requests with their weights, as 4k or 4k:60,64k:40
    #[arg(long, value_name = "SIZE[:WEIGHT],...", default_value = "4k")]
    pub blocks: Blocks,
    /// Reads of a hundred requests; the others are writes
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: u8,
    /// random, sequential, zipf:EXPONENT, or hot:PERCENT:PERCENT (of the range, of the requests)
    #[arg(long, default_value = "random")]
    pub pattern: Pattern,
    /// Requests outstanding on each queue
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// Queues: rings or connections
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub queues: u16,
    /// Threads that the queues are divided among
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
    /// Processors that the threads are bound to, in turn
    #[arg(long, value_name = "NUMBER,...", value_delimiter = ',')]
    pub cores: Vec<usize>,
    /// Look for answers all the time instead of sleeping until there is one
    #[arg(long)]
    pub polling: bool,
    /// Requests a second, whatever the disk does; latency then counts from when each was due
    #[arg(long, value_name = "IOPS", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rate: Option<u64>,
    /// How they arrive
    #[arg(long, value_name = "HOW", default_value = "even", requires = "rate")]
    pub arrivals: Arrivals,
    /// Seconds that count
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Seconds before those
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub warm_up: u64,
    /// How much of the disk is used, from its beginning on; all of it if not given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub range: Option<u64>,
    /// Write all of the range before
    #[arg(long)]
    pub fill: bool,
    /// Fill the range, and check every byte that is read: what is written carries its place, version and a checksum
    #[arg(long)]
    pub verify: bool,
    /// Nothing on the disk is needed any more
    #[arg(long)]
    pub overwrite: bool,
    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The server's process, whose processor time is reported
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
