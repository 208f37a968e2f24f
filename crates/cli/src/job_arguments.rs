//! Arguments of `convect job`.

use crate::list_arguments::ListOptions;
use clap::Subcommand;

/// Subcommands of `convect job`.
#[derive(Subcommand, Debug)]
pub enum Job {
    /// List jobs, newest first
    List(ListOptions),
    /// Show a job
    Show {
        /// Number of the job
        id: u64,
    },
    /// Wait until a job has finished
    Wait {
        /// Number of the job
        id: u64,
    },
    /// Cancel a job; completed work is kept
    Cancel {
        /// Number of the job
        id: u64,
    },
    /// Pause a job until it is resumed, even across restarts of the daemon
    Pause {
        /// Number of the job
        id: u64,
    },
    /// Resume a paused job
    Resume {
        /// Number of the job
        id: u64,
    },
}
