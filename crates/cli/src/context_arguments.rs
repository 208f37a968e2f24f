//! Contexts on the command line.

use clap::Subcommand;

/// `context`.
#[derive(Subcommand, Debug)]
pub enum Context {
    /// Add a context for the daemon given by --server, --pin or --ca, and --token-file
    #[command(after_help = ADD_AFTER)]
    Add {
        /// Its name
        name: String,
        /// SHA-256 fingerprint of the server's certificate, as its log shows it
        #[arg(long, value_name = "sha256:...")]
        pin: Option<String>,
        /// Trust the certificate that the server presents now, without confirmation
        #[arg(long)]
        yes: bool,
    },
    /// List the contexts; a star marks the current one
    List,
    /// Set the current context; `local` is this host's socket
    Use {
        /// Its name
        name: String,
    },
    /// Remove a context; its token file stays
    Remove {
        /// Its name
        name: String,
    },
}

const ADD_AFTER: &str = "\
Without --pin and --ca the certificate that the server shows is pinned, after its fingerprint was compared with what \
the daemon's log tells at its start. The token's file is named, not copied; without one CONVECT_TOKEN is taken.";
