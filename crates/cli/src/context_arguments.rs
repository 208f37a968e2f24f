//! Arguments of `convect context`.

use crate::list_arguments::ListOptions;
use clap::Subcommand;

/// Subcommands of `convect context`.
#[derive(Subcommand, Debug)]
pub enum Context {
    /// Add a context for the daemon given by --server, --pin or --ca, and --token-file
    #[command(after_help = ADD_AFTER)]
    Add {
        /// Name of the context
        name: String,
        /// SHA-256 fingerprint of the server's certificate, as printed in its log
        #[arg(long, value_name = "sha256:...")]
        pin: Option<String>,
        /// Trust the certificate that the server presents now, without confirmation
        #[arg(long)]
        yes: bool,
    },
    /// List contexts; an asterisk marks the current one
    List(ListOptions),
    /// Set the current context; `local` is the Unix socket of this host
    Use {
        /// Name of the context
        name: String,
    },
    /// Remove a context; its token file is kept
    Remove {
        /// Name of the context
        name: String,
    },
}

const ADD_AFTER: &str = "\
Without --pin or --ca, the certificate that the server presents is pinned after you have compared its \
fingerprint with the one that the daemon logs at startup. The context refers to the token file; it does not \
copy the token. Without --token-file, CONVECT_TOKEN is used.";
