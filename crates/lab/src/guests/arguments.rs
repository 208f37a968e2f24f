//! Arguments of `guests`.

use crate::arguments::size;
use clap::Args;

/// `guests`.
#[derive(Args, Debug)]
pub struct Guests {
    /// How often the two take their turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub rounds: u64,
    /// Seconds of a round that count, after one that does not
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Rates in percent of the usual ones
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rates: u32,
    /// How much each guest's volume has
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub size: u64,
    /// How the exports' rings wait: adaptive, busy or interrupt
    #[arg(long, value_name = "WAY", default_value = "adaptive", value_parser = ["adaptive", "busy", "interrupt"])]
    pub polling: String,
    /// The core that the daemon is bound to
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub server_core: usize,
    /// The core that the client is bound to
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub client_core: usize,
}
