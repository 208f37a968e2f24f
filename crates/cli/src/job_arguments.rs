//! Arguments of `job`.

use clap::Subcommand;

/// `job`.
#[derive(Subcommand, Debug)]
pub enum Job {
    /// List jobs, newest first
    List,
    /// Show a job
    Show {
        /// Its number
        id: u64,
    },
    /// Wait for a job to end
    Wait {
        /// Its number
        id: u64,
    },
    /// End a job; what it moved stays moved
    Cancel {
        /// Its number
        id: u64,
    },
    /// Have a job rest until it is told to go on, also when the daemon is restarted
    Pause {
        /// Its number
        id: u64,
    },
    /// Have a paused job go on
    Resume {
        /// Its number
        id: u64,
    },
}
