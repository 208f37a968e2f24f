//! Performance targets of volumes: stored in the labels, monitored by the daemon.

use super::{Result, error};
use crate::control::types::{ErrorCode, Targets, TargetsChange};
use format::{TargetsConfig, VolumeConfig};

/// Upper limits: a billion operations and a TiB per second, and an hour.
const MOST: Targets = Targets {
    iops: 1_000_000_000,
    bandwidth: 1 << 40,
    latency_ns: 3_600_000_000_000,
};
/// The minimum latency target, in nanoseconds: latencies are counted from 4 µs on.
const LATENCY_LEAST_NS: u64 = 4096;

/// The requested targets of a volume.
///
/// # Errors
/// `Invalid` for a target out of range.
pub(super) fn changed(volume: &VolumeConfig, change: &TargetsChange) -> Result<TargetsConfig> {
    let before = volume.targets;
    let targets = TargetsConfig {
        iops: change.iops.unwrap_or(before.iops),
        bandwidth: change.bandwidth.unwrap_or(before.bandwidth),
        latency_ns: change.latency_ns.unwrap_or(before.latency_ns),
    };
    let wrong = |what: &str, value: u64, range: &str| {
        let name = &volume.name;
        let text = format!(
            "volume {name} cannot have a target of {value} {what}: choose {range}, or no target"
        );
        error(ErrorCode::Invalid, text)
    };
    if targets.iops > MOST.iops {
        return wrong("operations a second", targets.iops, "at most a billion");
    }
    if targets.bandwidth > MOST.bandwidth {
        return wrong("bytes a second", targets.bandwidth, "at most 1 TiB");
    }
    let latency = targets.latency_ns;
    if latency > 0 && !(LATENCY_LEAST_NS..=MOST.latency_ns).contains(&latency) {
        return wrong("ns for an operation", latency, "from 4.096 µs to an hour");
    }
    Ok(targets)
}

/// Targets of a volume.
pub(super) fn status(targets: &TargetsConfig) -> Targets {
    Targets {
        iops: targets.iops,
        bandwidth: targets.bandwidth,
        latency_ns: targets.latency_ns,
    }
}
