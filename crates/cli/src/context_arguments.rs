//! Contexts on the command line.

use clap::Subcommand;

/// `context`.
#[derive(Subcommand, Debug)]
pub enum Context {
    /// Give a daemon on another host a name, which --server, --pin or --ca, and --token-file tell of
    #[command(after_help = ADD_AFTER)]
    Add {
        /// Its name
        name: String,
        /// The SHA-256 of the server's certificate, which its log tells
        #[arg(long, value_name = "sha256:...")]
        pin: Option<String>,
        /// Take the certificate that the server shows now, without asking
        #[arg(long)]
        yes: bool,
    },
    /// List the contexts; a star marks the one that commands are for
    List,
    /// Choose the one that commands are for; `local` is this host's socket
    Use {
        /// Its name
        name: String,
    },
    /// Forget one; the file of its token stays
    Remove {
        /// Its name
        name: String,
    },
}

const ADD_AFTER: &str = "\
Without --pin and --ca the certificate that the server shows is pinned, after its fingerprint was compared with what \
the daemon's log tells at its start. The token's file is named, not copied; without one CONVECT_TOKEN is taken.";
