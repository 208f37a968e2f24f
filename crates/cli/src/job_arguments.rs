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
    /// Wait until a job has ended
    Wait {
        /// Its number
        id: u64,
    },
    /// Cancel a job; what it has done so far stays done
    Cancel {
        /// Its number
        id: u64,
    },
    /// Pause a job until it is resumed, over restarts of the daemon too
    Pause {
        /// Its number
        id: u64,
    },
    /// Resume a paused job
    Resume {
        /// Its number
        id: u64,
    },
}
