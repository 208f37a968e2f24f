//! Other daemons on the command line.

use clap::Subcommand;
use std::path::PathBuf;

/// `server`.
#[derive(Subcommand, Debug)]
pub enum Server {
    /// Add another daemon to monitor
    #[command(after_help = ADD_AFTER)]
    Add {
        /// Its name here
        name: String,
        /// Its address, for this daemon and for browsers
        #[arg(value_name = "https://HOST:PORT")]
        url: String,
        /// File with a token of that daemon, readable by its owner only; - is the standard input
        #[arg(long, value_name = "FILE")]
        with_token: PathBuf,
        /// SHA-256 fingerprint of its certificate, as its log shows it
        #[arg(long, value_name = "sha256:...", required_unless_present = "trust")]
        pin: Option<String>,
        /// File of CA certificates (PEM), one of which signed its certificate
        #[arg(long, value_name = "FILE", conflicts_with = "pin")]
        trust: Option<PathBuf>,
    },
    /// List this daemon and the others
    List,
    /// Remove another daemon and its token
    Remove {
        /// Its name
        name: String,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
}

const ADD_AFTER: &str = "\
A token with the role viewer suffices: make it there with `convect token create NAME --role viewer`. The daemon keeps it \
for its user alone and shows it to nobody else. It asks the other one only while somebody looks.";
