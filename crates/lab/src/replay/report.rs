//! The output of a replay.

use super::cost::Tally;
use super::hits::{self, Row};
use crate::screen;
use traces::{Request, SECTOR, Trace};
use units::format_bytes;

/// Summary of a trace.
pub fn print_head(name: &str, trace: Option<&Trace>, requests: &[Request]) {
    let bytes = |write: bool| {
        let these = requests.iter().filter(|request| request.write == write);
        format_bytes(these.map(|it| u64::from(it.sectors) * SECTOR).sum())
    };
    let count = screen::thousands(requests.len() as f64);
    let form = trace.map_or("made from a seed".to_owned(), |it| it.format.to_string());
    println!("{name} ({form}): {count} requests");
    println!("{} read, {} written", bytes(false), bytes(true));
    if let Some(trace) = trace.filter(|trace| trace.ignored > 0) {
        println!("{} records are no reads or writes", trace.ignored);
    }
}

/// The size of the tables that follow.
pub fn print_size(percent: u8, capacity: usize) {
    let bytes = format_bytes(capacity as u64 * units::BLOCK as u64);
    println!("\n{percent} % of the blocks in use: {capacity} blocks of 4 KiB, {bytes}");
}

/// The policies in front of the model of the drives.
pub fn print_tiers(tallies: &[Tally]) {
    let rows: Vec<Vec<String>> = tallies
        .iter()
        .map(|tally| {
            vec![
                tally.name.clone(),
                format!("{:.1}", tally.hit_share() * 100.0),
                format!("{:.2}", tally.latency_ms()),
                format!("{:.2}", tally.disk_ms_each()),
                format!("{:.2}", tally.migrated_share()),
                format_bytes(tally.flash_written * units::BLOCK as u64),
            ]
        })
        .collect();
    let head = [
        "tiers",
        "hits %",
        "latency ms",
        "disk ms an I/O",
        "migrated B/B",
        "flash written",
    ];
    print!("{}", screen::table(&head, &rows));
}

/// The policies as caches of blocks that take in what is requested alone, each beside the bound.
pub fn print_hits(rows: &[Row]) {
    let share = |part: u64, row: &Row| part as f64 / row.uses.max(1) as f64 * 100.0;
    let table: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let closed = hits::gap_closed(rows, row.name)
                .map_or("-".to_owned(), |closed| format!("{:.0}", closed * 100.0));
            vec![
                row.name.to_owned(),
                format!("{:.2}", share(row.hits, row)),
                format!("{:.2}", share(row.admitted, row)),
                closed,
            ]
        })
        .collect();
    let head = [
        "4 KiB, on demand",
        "hits %",
        "taken in %",
        "of the gap to belady %",
    ];
    print!("{}", screen::table(&head, &table));
}
