//! Arguments of `hostile`.

use super::attackers::{self, Attacker};
use clap::Args;
use std::path::PathBuf;

/// `hostile`.
#[derive(Args, Debug)]
pub struct Hostile {
    /// Seconds that each attacker does its worst
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: u64,
    /// Attackers, of all: in their own order
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = attackers::find)]
    pub only: Vec<&'static Attacker>,
    /// Also fail when the 99th percentile of others' latency more than doubles; for machines that do nothing else
    #[arg(long)]
    pub judge_latency: bool,
    /// Where chance begins
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Also write all figures to a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// List the attackers and end
    #[arg(long)]
    pub list: bool,
}

impl Hostile {
    /// The attackers that are requested.
    pub fn attackers(&self) -> impl Iterator<Item = &'static Attacker> {
        let asked = |attacker: &&Attacker| {
            self.only.is_empty() || self.only.iter().any(|only| only.name == attacker.name)
        };
        attackers::ALL.iter().filter(asked)
    }
}
