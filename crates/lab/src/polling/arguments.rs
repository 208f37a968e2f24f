//! Arguments of `polling`.

use crate::arguments::size;
use clap::Args;

/// `polling`.
#[derive(Args, Debug)]
pub struct Waiting {
    /// Rounds in which the three take their turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Seconds of each measurement, after one that does not count
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Exports with a client that has sent one request and sends no other
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub exports: u32,
    /// How much the volume under load has
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = size)]
    pub size: u64,
    /// The core that the daemon is bound to
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub server_core: usize,
    /// The core that the client is bound to
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub client_core: usize,
}
