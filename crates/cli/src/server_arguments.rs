//! Arguments of `convect server`.

use crate::list_arguments::NamedList;
use clap::Subcommand;
use std::path::PathBuf;

/// Subcommands of `convect server`.
#[derive(Subcommand, Debug)]
pub enum Server {
    /// Add another daemon to monitor
    #[command(after_help = ADD_AFTER, override_usage = ADD_USAGE)]
    Add {
        /// Name of the server on this daemon
        name: String,
        /// Its address, as reached by this daemon and by browsers
        #[arg(value_name = "https://HOST:PORT")]
        url: String,
        /// File with a token of that daemon, readable by its owner only; - for the standard input
        #[arg(long, value_name = "FILE")]
        with_token: PathBuf,
        /// SHA-256 fingerprint of its certificate, as printed in its log
        #[arg(long, value_name = "sha256:...", required_unless_present = "trust")]
        pin: Option<String>,
        /// File of CA certificates (PEM), one of which signed its certificate
        #[arg(long, value_name = "FILE", conflicts_with = "pin")]
        trust: Option<PathBuf>,
    },
    /// List this daemon and the monitored ones
    List(NamedList),
    /// Remove a monitored daemon and its token
    Remove {
        /// Name of the server
        name: String,
        /// Skip confirmation
        #[arg(long)]
        yes: bool,
    },
}

const ADD_USAGE: &str = "\
convect server add [OPTIONS] --with-token <FILE>
           <--pin <sha256:...>|--trust <FILE>> <NAME> <https://HOST:PORT>";
const ADD_AFTER: &str = "\
A token with the role viewer suffices: create it there with `convect token create NAME --role viewer`. \
The token is stored readable by this daemon only and never shown. The other daemon is polled only while \
a client views it.";
