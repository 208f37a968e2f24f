//! Arguments of `convect snapshot schedule`.

use crate::list_arguments::NamedList;
use clap::Subcommand;

/// Subcommands of `convect snapshot schedule`.
#[derive(Subcommand, Debug)]
pub enum Schedule {
    /// Take snapshots of one or several volumes (atomically) at regular intervals and delete the
    /// oldest
    #[command(after_help = SCHEDULE_AFTER, override_usage = SCHEDULE_USAGE)]
    Set {
        /// Volumes and the schedule's name, which prefixes the names of its snapshots
        #[arg(value_name = "POOL/VOL@NAME", required = true)]
        schedules: Vec<String>,
        /// Interval: 1m to 366d
        #[arg(long, value_name = "SPAN")]
        every: String,
        /// Number of snapshots to keep per volume
        #[arg(long, value_name = "N")]
        keep: u32,
    },
    /// List snapshot schedules
    List(NamedList),
    /// Remove volumes from schedules; existing snapshots stay
    Remove {
        /// Volumes and the schedule's name
        #[arg(value_name = "POOL/VOL@NAME", required = true)]
        schedules: Vec<String>,
    },
}

const SCHEDULE_USAGE: &str = "\
convect snapshot schedule set [OPTIONS] --every <SPAN> --keep <N>
           <POOL/VOL@NAME>...";
const SCHEDULE_AFTER: &str = "\
Snapshots are due at multiples of the interval in UTC: 15m every quarter of an hour, 1d at midnight, 7d \
on Mondays. Snapshots that are held, cloned, exported or renamed are never deleted and do not count.";
