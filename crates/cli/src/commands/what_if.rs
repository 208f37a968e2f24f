//! `convect pool what-if`.

use crate::show::{facts, print, print_json, read};
use crate::table::table;
use crate::{Client, Failure};
use api::Operation;
use api::v1::{Forecast, ForecastPoint, WhatIf};
use units::format_bytes;

fn share(of: f64) -> String {
    format!("{:.1} %", of * 100.0)
}

fn time(ns: Option<u64>) -> String {
    match ns {
        None => "-".to_owned(),
        Some(ns) if ns >= 1_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        Some(ns) => format!("{:.0} us", ns as f64 / 1e3),
    }
}

fn row(point: &ForecastPoint) -> Vec<String> {
    let size = match point.percent {
        100 => "current".to_owned(),
        percent => format!("{} times", percent as f64 / 100.0),
    };
    vec![
        size,
        format_bytes(point.bytes),
        point.hits.map_or("-".to_owned(), share),
        share(point.lru_hits),
        time(point.mean_ns),
    ]
}

fn volume(of: &Forecast) -> Vec<String> {
    let now = of.points.iter().find(|point| point.percent == 100);
    let mut cells = vec![
        of.volume.clone().unwrap_or_default(),
        now.map_or(String::new(), |now| format_bytes(now.bytes)),
        format_bytes(of.used_bytes),
    ];
    cells.extend(of.points.iter().map(|point| share(point.lru_hits)));
    cells
}

fn forecast_table(of: &WhatIf) -> String {
    let mut text = facts(&[
        ("uses", format!("{} 4 KiB blocks", of.pool.uses)),
        (
            "used",
            format!("about {}", format_bytes(of.pool.used_bytes)),
        ),
        ("fast-tier read", time(of.fast_ns)),
        ("slow-tier read", time(of.slow_ns)),
    ]);
    text.push('\n');
    let head = ["FAST TIER", ">SIZE", ">HITS", ">LRU HITS", ">MEAN LATENCY"];
    text += &table(&head, of.pool.points.iter().map(row));
    if of.volumes.is_empty() {
        return text;
    }
    text += "\nLRU hit rate by multiple of a volume's present fast-tier space\n";
    let times = of.pool.points.iter();
    let times: Vec<String> = times
        .map(|point| format!(">{} x", point.percent as f64 / 100.0))
        .collect();
    let mut head = vec!["VOLUME", ">FAST TIER", ">USES"];
    head.extend(times.iter().map(String::as_str));
    text + &table(&head, of.volumes.iter().map(volume))
}

/// Runs `convect pool what-if`: hit rates with other sizes of the fast tier.
pub fn what_if(client: &Client, json: bool, pool: &str) -> Result<(), Failure> {
    let answer = client.get(Operation::PoolWhatIf, &[pool])?;
    match json {
        true => print_json(&answer, true),
        false => print(&forecast_table(&read(&answer)?)),
    }
}
