//! Other daemons on the command line.

use clap::Subcommand;
use std::path::PathBuf;

/// `server`.
#[derive(Subcommand, Debug)]
pub enum Server {
    /// Have the daemon look at another one, with a token of that
    #[command(after_help = ADD_AFTER)]
    Add {
        /// Its name here
        name: String,
        /// Where it listens, for this daemon and for browsers
        #[arg(value_name = "https://HOST:PORT")]
        url: String,
        /// A file with a token of it, for its owner alone; - is the standard input
        #[arg(long, value_name = "FILE")]
        with_token: PathBuf,
        /// The SHA-256 of its certificate, which its log tells
        #[arg(long, value_name = "sha256:...", required_unless_present = "trust")]
        pin: Option<String>,
        /// A file of certificates in PEM, of which one signed its certificate
        #[arg(long, value_name = "FILE", conflicts_with = "pin")]
        trust: Option<PathBuf>,
    },
    /// Show this daemon and the others
    List,
    /// Forget another one, with its token
    Remove {
        /// Its name
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const ADD_AFTER: &str = "\
A token with the role viewer suffices: make it there with `convect token create NAME --role viewer`. The daemon keeps it \
for its user alone and shows it to nobody else. It asks the other one only while somebody looks.";
