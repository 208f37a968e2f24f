//! Arguments of `convect drive`.

use crate::list_arguments::NamedList;
use clap::Subcommand;

/// Subcommands of `convect drive`.
#[derive(Subcommand, Debug)]
pub enum Drive {
    /// List the drives of the open pools and the block devices of this host
    List(NamedList),
    /// Show a drive's properties, contents and health
    Show {
        /// The drive
        spec: String,
    },
    /// Switch the locate LED of a drive's slot on
    Locate {
        /// The drive
        spec: String,
        /// Switch the LED off
        #[arg(long)]
        off: bool,
    },
}
