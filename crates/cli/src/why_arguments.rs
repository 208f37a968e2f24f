//! Arguments of `convect why`.

use clap::Args;

/// Text after the help of `why`.
pub const WHY_AFTER: &str = "\
Without options the last 5 minutes are examined. Times are UTC, as in all output. The past is examined by \
the recorded history: per second for an hour, per minute for a week, per hour for two years.";

/// Arguments of `convect why`.
#[derive(Args, Debug)]
pub struct Why {
    /// The volume
    #[arg(value_name = "POOL/VOL")]
    pub volume: String,
    /// Time when it was slow, as HH:MM, "YYYY-MM-DD HH:MM" (UTC) or seconds since 1970; 5 minutes
    /// before and after it are examined
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// How long to look back, like 10m or 1h; from --at, or now
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}
