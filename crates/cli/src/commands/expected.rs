//! Performance targets of a volume, for `convect volume set` and `show`.

use super::volume::limit;
use crate::Failure;
use crate::target_arguments::Targets as Words;
use api::v1::{Targets, VolumeChange};
use units::format_bytes;

/// Units of time, in nanoseconds.
const UNITS: [(&str, f64); 5] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

pub(super) fn iops(text: &str) -> Result<u64, Failure> {
    match (text, text.parse()) {
        ("none", _) => Ok(0),
        (_, Ok(number)) if number > 0 => Ok(number),
        _ => Err(Failure::Usage(format!(
            "'{text}' is not a number of IOPS: write one like 5000, or none"
        ))),
    }
}

pub(super) fn latency(text: &str) -> Result<u64, Failure> {
    if text == "none" {
        return Ok(0);
    }
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let ns = known.and_then(|(_, ns)| Some(number.parse::<f64>().ok()? * ns));
    match ns.filter(|ns| (1.0..1e18).contains(ns)) {
        Some(ns) => Ok(ns.round() as u64),
        None => Err(Failure::Usage(format!(
            "'{text}' is not a duration: write one like 2ms, 500us or 1.5s, or none"
        ))),
    }
}

/// Adds the requested targets to a change.
pub fn ask(words: &Words, change: VolumeChange) -> Result<VolumeChange, Failure> {
    Ok(VolumeChange {
        target_iops: words.target_iops.as_deref().map(iops).transpose()?,
        target_bandwidth: words.target_bandwidth.as_deref().map(limit).transpose()?,
        target_latency_ns: words.target_latency.as_deref().map(latency).transpose()?,
        ..change
    })
}

/// The targets in words; empty if there are none.
pub fn show(targets: Option<&Targets>) -> String {
    let Some(targets) = targets else {
        return String::new();
    };
    let iops = targets.iops.map(|iops| format!("{iops} IOPS"));
    let bytes = targets
        .bandwidth
        .map(|bytes| format!("{}/s", format_bytes(bytes)));
    let time = targets
        .latency_ns
        .map(|ns| format!("p99 below {} ms", ns as f64 / 1e6));
    let all: Vec<String> = [iops, bytes, time].into_iter().flatten().collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_require_a_unit() {
        for (text, ns) in [
            ("2ms", 2_000_000),
            ("500us", 500_000),
            ("1.5s", 1_500_000_000),
            ("4096ns", 4096),
            ("none", 0),
        ] {
            assert_eq!(latency(text).unwrap(), ns, "{text}");
        }
        for text in [
            "",
            "2",
            "ms",
            "0ms",
            "-1ms",
            "2 ms",
            "2m",
            "1e3ms",
            "99999999999s",
        ] {
            assert!(latency(text).is_err(), "{text}");
        }
    }

    #[test]
    fn iops_are_whole_numbers() {
        assert_eq!((iops("5000").unwrap(), iops("none").unwrap()), (5000, 0));
        for text in ["", "0", "-1", "1.5", "5k"] {
            assert!(iops(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_configured_targets_are_shown() {
        let targets = Targets {
            iops: Some(5000),
            bandwidth: None,
            latency_ns: Some(2_500_000),
        };
        assert_eq!(show(Some(&targets)), "5000 IOPS, p99 below 2.5 ms");
        assert_eq!(show(None), "");
    }
}
