//! Performance targets of `convect volume set`.

use clap::Args;

/// Performance targets of `convect volume set`.
#[derive(Args, Debug)]
pub struct Targets {
    /// Target IOPS, or none; an alert is raised while demand exceeds what the volume gets
    #[arg(long, value_name = "NUMBER|none", group = "what")]
    pub target_iops: Option<String>,
    /// Target bandwidth in bytes per second, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub target_bandwidth: Option<String>,
    /// Target p99 latency, like 2ms or 500us, or none
    #[arg(long, value_name = "TIME|none", group = "what")]
    pub target_latency: Option<String>,
}
