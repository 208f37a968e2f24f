//! `convect latency`.

use crate::show::{print, print_json, read};
use crate::table::table;
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{Latency, SourceLatency};

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or("-".to_owned(), |seconds| format!("{:.3}", seconds * 1e3))
}

fn row(name: &str, source: &SourceLatency) -> Vec<String> {
    let count: u64 = source.counts.iter().sum();
    let mean = (count > 0).then(|| source.ns as f64 / 1e9 / count as f64);
    let times = [mean, source.p50_s, source.p99_s, source.p999_s].map(milliseconds);
    [name.to_owned(), count.to_string()]
        .into_iter()
        .chain(times)
        .collect()
}

fn latency_table(latency: &Latency) -> String {
    let head = ["FROM", ">READS", ">MEAN MS", ">P50", ">P99", ">P99.9"];
    let rows = [
        row("ram", &latency.ram),
        row("fast", &latency.fast),
        row("slow", &latency.slow),
    ];
    table(&head, rows)
}

/// Runs `convect latency`: read latency of a pool or volume by tier.
pub fn latency(client: &Client, json: bool, name: &str) -> Result<(), Failure> {
    let answer = if name.contains('/') {
        let (pool, volume) = object(name)?;
        client.get(Operation::VolumeLatency, &[pool, volume])?
    } else {
        client.get(Operation::PoolLatency, &[name])?
    };
    if json {
        return print_json(&answer, true);
    }
    print(&latency_table(&read(&answer)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tier_without_reads_has_no_latency() {
        let fast = SourceLatency {
            counts: vec![3, 1],
            ns: 8_000_000,
            p50_s: Some(0.001),
            p99_s: Some(0.004),
            p999_s: Some(0.004),
        };
        let latency = Latency {
            fast,
            ..Latency::default()
        };
        let shown = latency_table(&latency);
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[1], ["ram", "0", "-", "-", "-", "-"]);
        assert_eq!(lines[2], ["fast", "4", "2.000", "1.000", "4.000", "4.000"]);
    }
}
