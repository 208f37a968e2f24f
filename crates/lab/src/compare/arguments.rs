//! Arguments of `compare`.

use super::rows::Group;
use super::system::System;
use crate::arguments::size;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// When written data is moved to the slow tier.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// It stays on the fast tier until its space is needed
    FastFirst,
    /// It is written back to the slow tier soon
    SlowFirst,
}

impl Policy {
    /// As `convect pool create` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FastFirst => "fast-first",
            Self::SlowFirst => "slow-first",
        }
    }
}

/// The servers and where they are.
#[derive(Args, Debug)]
pub struct Setup {
    /// How much each server has
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub size: u64,
    /// The core that the servers are bound to
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub server_core: usize,
    /// The core that the client is bound to
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub client_core: usize,
    /// Convect's policy
    #[arg(long, default_value = "fast-first")]
    pub policy: Policy,
    /// Where the peers' files are: a file system in memory
    #[arg(long, value_name = "FOLDER", default_value = "/dev/shm")]
    pub memory_in: PathBuf,
}

/// `compare`.
#[derive(Args, Debug)]
pub struct Compare {
    /// Groups of rows, of all: in their own order
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub only: Vec<Group>,
    /// Only Convect, without the servers it is compared with
    #[arg(long)]
    pub alone: bool,
    /// Rounds in which all take their turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Seconds of each measurement, after one that does not count
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// Repeat measurements at most this many times while other processes use more than a tenth of a core; the quietest counts
    #[arg(long, value_name = "TIMES", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub again: u32,
    /// The servers.
    #[command(flatten)]
    pub setup: Setup,
    /// Write everything that was measured to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Compare {
    /// Whether this is to be measured.
    pub fn has(&self, group: Group) -> bool {
        self.only.is_empty() || self.only.contains(&group)
    }

    /// Whether this serves.
    pub fn wants(&self, system: System) -> bool {
        !self.alone || system.is_convect()
    }
}
