//! Arguments of `drive`.

use clap::Subcommand;

/// `drive`.
#[derive(Subcommand, Debug)]
pub enum Drive {
    /// List the drives of the open pools and the block devices of this host
    List,
    /// Show a drive's properties, contents and health
    Show {
        /// The drive
        spec: String,
    },
    /// Switch on the locate LED of a drive's slot
    Locate {
        /// The drive
        spec: String,
        /// Switch it off
        #[arg(long)]
        off: bool,
    },
}
