//! How a daemon is started on the command line.

use clap::Args;
use std::path::PathBuf;

/// `serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// The configuration; the default may be absent [default: /etc/convect/convect.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the daemon keeps which pools are open [default: /var/lib/convect]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Serve the web page and the interface by TLS to whoever has a token
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = daemon::parse_listen_address)]
    pub listen: Option<std::net::SocketAddr>,
    /// Serve metrics for Prometheus by TCP, without authentication, as /metrics alone
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = daemon::parse_metrics_address)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Let the address of the metrics be one that other hosts reach
    #[arg(long)]
    pub metrics_anywhere: bool,
}
