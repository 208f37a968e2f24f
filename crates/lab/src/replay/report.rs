//! What a person sees of a replay.

use super::hits::Row;
use crate::screen;
use traces::{Request, SECTOR, Trace};
use units::format_bytes;

/// What is in a trace.
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

/// The policies at one size, each beside the bound.
pub fn print_size(percent: u8, capacity: usize, rows: &[Row]) {
    let bytes = format_bytes(capacity as u64 * units::BLOCK as u64);
    println!("\n{percent} % of the blocks in use: {capacity} blocks of 4 KiB, {bytes}");
    let share = |part: u64, row: &Row| part as f64 / row.uses.max(1) as f64 * 100.0;
    let hits = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.hits);
    let (low, high) = (hits("lru").unwrap_or(0), hits("belady").unwrap_or(0));
    let table: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let closed = match high > low {
                true => {
                    let closed = (row.hits as f64 - low as f64) / (high - low) as f64;
                    format!("{:.0}", closed * 100.0)
                }
                false => "-".to_owned(),
            };
            vec![
                row.name.to_owned(),
                format!("{:.2}", share(row.hits, row)),
                format!("{:.2}", share(row.admitted, row)),
                closed,
            ]
        })
        .collect();
    let head = ["policy", "hits %", "taken in %", "of the gap to belady %"];
    print!("{}", screen::table(&head, &table));
}
