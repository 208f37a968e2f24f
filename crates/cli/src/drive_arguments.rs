//! Arguments of `drive`.

use clap::Subcommand;

/// `drive`.
#[derive(Subcommand, Debug)]
pub enum Drive {
    /// List the drives of the open pools and the block devices of this host
    List,
    /// Show what a drive is, what it bears and how it is
    Show {
        /// The drive
        spec: String,
    },
    /// Switch on the light at a drive's slot, where there is one that the kernel knows
    Locate {
        /// The drive
        spec: String,
        /// Switch it off again
        #[arg(long)]
        off: bool,
    },
}
