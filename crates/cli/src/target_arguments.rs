//! What can be written about what is expected of a volume on the command line.

use clap::Args;

/// `volume set`: what is expected of a volume.
#[derive(Args, Debug)]
pub struct Targets {
    /// Operations a second that are expected of it, or none; it is told when it gets less and asks for more
    #[arg(long, value_name = "NUMBER|none", group = "what")]
    pub target_iops: Option<String>,
    /// Bytes a second that are expected of it, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub target_bandwidth: Option<String>,
    /// Time within which 99 of 100 operations are expected to end, like 2ms or 500us, or none
    #[arg(long, value_name = "TIME|none", group = "what")]
    pub target_latency: Option<String>,
}
