//! Figures in words.

use units::format_bytes;

/// A latency with three significant digits.
pub fn time(ns: f64) -> String {
    let shown = |value: f64, unit: &str| match value {
        value if value < 10.0 => format!("{value:.2} {unit}"),
        value if value < 100.0 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    };
    match ns {
        ns if ns < 999_500.0 => shown(ns / 1e3, "µs"),
        ns if ns < 999_500_000.0 => shown(ns / 1e6, "ms"),
        ns => shown(ns / 1e9, "s"),
    }
}

/// A share of 0 to 1 in percent.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 1.0 => "under 1 %".to_owned(),
        share => format!("{share:.0} %"),
    }
}

/// A rate per second.
pub fn rate(of: f64) -> String {
    match of {
        of if of < 10.0 => format!("{of:.1}"),
        of => format!("{of:.0}"),
    }
}

/// Bytes.
pub fn bytes(of: f64) -> String {
    format_bytes(of as u64)
}
