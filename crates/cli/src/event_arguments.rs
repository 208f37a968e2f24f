//! Events and alerts on the command line.

use clap::{Args, Subcommand};

/// Which events.
#[derive(Args, Debug)]
pub struct Which {
    /// Only those that matter at least so much
    #[arg(long, value_parser = ["info", "warning", "critical"])]
    pub severity: Option<String>,
    /// Only those of these codes (docs/events.md)
    #[arg(long, value_name = "CODE,...")]
    pub code: Option<String>,
    /// Only those of this pool
    #[arg(long)]
    pub pool: Option<String>,
}

/// `event`.
#[derive(Subcommand, Debug)]
pub enum Event {
    /// List what happened, newest first
    List {
        #[command(flatten)]
        which: Which,
        /// How many events, 1 to 1000
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: usize,
        /// Only those with a smaller number than this
        #[arg(long, value_name = "NUMBER")]
        before: Option<u64>,
    },
    /// Print what happens from now on, until Ctrl-C
    Watch,
}

/// `alert`.
#[derive(Subcommand, Debug)]
pub enum Alert {
    /// List what is wrong now; with nothing wrong it prints nothing
    List,
}
