//! Tables of the phases.

use super::phase::{Phase, Tier};
use crate::load::{Second, Series};
use crate::screen::{self, thousands};
use units::format_bytes;

fn millis(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

fn percent(part: f64) -> String {
    format!("{:.0}", 100.0 * part)
}

fn row_of_second(name: &str, number: usize, second: &Second, tier: &Tier) -> Vec<String> {
    vec![
        name.to_owned(),
        (number + 1).to_string(),
        thousands(second.count() as f64),
        millis(second.percentile_ns(50.0)),
        millis(second.percentile_ns(99.0)),
        millis(second.longest_ns),
        millis(second.stall_ns),
        percent(tier.used),
        percent(tier.dirty),
        format!("{}/s", format_bytes(tier.sunk)),
    ]
}

/// Every second of every phase.
pub fn seconds(phases: &[Phase]) -> String {
    let rows: Vec<Vec<String>> = phases
        .iter()
        .flat_map(|phase| {
            let seconds = phase.series.0.iter().zip(&phase.tier).enumerate();
            seconds.map(|(number, (second, tier))| row_of_second(phase.name, number, second, tier))
        })
        .collect();
    let head = [
        "phase",
        "second",
        "IOPS",
        "p50 ms",
        "p99 ms",
        "max ms",
        "stall ms",
        "fast full %",
        "dirty %",
        "sinks",
    ];
    screen::table(&head, &rows)
}

/// The raw file by the same client, the better of what was seen before and after.
pub struct Raw {
    pub iops: f64,
    pub p99_ns: u64,
}

impl Raw {
    pub fn better_of(measured: &[Series; 2]) -> Self {
        let both = measured
            .each_ref()
            .map(|series| (series.mean(), series.whole().percentile_ns(99.0)));
        Self {
            iops: both[0].0.max(both[1].0),
            p99_ns: both[0].1.min(both[1].1),
        }
    }
}

fn row_of_series(name: &str, series: &Series, raw: &Raw, bar: &str) -> Vec<String> {
    let whole = series.whole();
    let counts = series.0.iter().map(Second::count);
    let of_raw = |iops: f64| percent(iops / raw.iops.max(1.0));
    let p99_ns = whole.percentile_ns(99.0);
    vec![
        name.to_owned(),
        thousands(series.mean()),
        of_raw(series.mean()),
        of_raw(series.count(0) as f64),
        of_raw(counts.min().unwrap_or_default() as f64),
        millis(whole.percentile_ns(50.0)),
        millis(p99_ns),
        format!("{:.2}", p99_ns as f64 / raw.p99_ns.max(1) as f64),
        millis(whole.longest_ns),
        millis(whole.stall_ns),
        bar.to_owned(),
    ]
}

/// Each phase as a whole, beside the raw file.
pub fn summary(phases: &[Phase], raw: &[Series; 2], disks: u64) -> String {
    let better = Raw::better_of(raw);
    let exhausted = format!("{} IOPS, stall 100 ms", thousands(10_000.0 * disks as f64));
    let bar = |name: &str| match name {
        "fresh" => "90 % of raw, p99 1.5 times".to_owned(),
        "draining" => "80 % of raw, p99 twice".to_owned(),
        "exhausted" => exhausted.clone(),
        _ => String::new(),
    };
    let mut rows: Vec<Vec<String>> = phases
        .iter()
        .map(|phase| row_of_series(phase.name, &phase.series, &better, &bar(phase.name)))
        .collect();
    for (name, series) in ["raw file before", "raw file after"].iter().zip(raw) {
        rows.push(row_of_series(name, series, &better, ""));
    }
    let head = [
        "",
        "IOPS",
        "% of raw",
        "first second",
        "worst second",
        "p50 ms",
        "p99 ms",
        "times raw",
        "max ms",
        "stall ms",
        "bar",
    ];
    screen::table(&head, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Answer;

    fn series(counts: &[u64], latency_ns: u64) -> Series {
        let mut series = Series::default();
        for (second, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                let due_ns = second as u64 * 1_000_000_000;
                series.answered(Answer {
                    at_ns: due_ns + latency_ns,
                    due_ns,
                    bytes: 4096,
                });
            }
        }
        series
    }

    #[test]
    fn phases_are_held_against_the_better_of_both_measurements() {
        let raw = [series(&[50, 50], 4_000_000), series(&[20, 20], 1_000_000)];
        let better = Raw::better_of(&raw);
        assert_eq!(better.iops, 50.0);
        let row = row_of_series("fresh", &series(&[25, 75, 20], 2_000_000), &better, "bar");
        assert_eq!(row[1..5], ["40", "80", "50", "40"]);
        assert_eq!(row[7], "2.00");
    }
}
