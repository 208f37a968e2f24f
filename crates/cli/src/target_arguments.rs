//! What can be written about what is expected of a volume on the command line.

use clap::Args;

/// `volume set`: what is expected of a volume.
#[derive(Args, Debug)]
pub struct Targets {
    /// Target IOPS, or none; an alert is raised while it gets less and asks for more
    #[arg(long, value_name = "NUMBER|none", group = "what")]
    pub target_iops: Option<String>,
    /// Target bandwidth in bytes a second, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub target_bandwidth: Option<String>,
    /// Target p99 latency, like 2ms or 500us, or none
    #[arg(long, value_name = "TIME|none", group = "what")]
    pub target_latency: Option<String>,
}
