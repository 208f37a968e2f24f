//! Arguments of `convect serve`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `convect serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// Configuration file; the default file is optional [default: /etc/convect/convect.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// State directory of the daemon [default: /var/lib/convect]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Serve the web page and the HTTP API over TLS at this address, to clients with a token
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = daemon::parse_listen_address)]
    pub listen: Option<std::net::SocketAddr>,
    /// Serve Prometheus metrics (/metrics only) at this address, without authentication
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = daemon::parse_metrics_address)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Allow a metrics address that other hosts can reach
    #[arg(long)]
    pub metrics_anywhere: bool,
}
