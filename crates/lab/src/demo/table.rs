//! The table of the measurements.

use super::outcome::{Outcome, Run};
use crate::fio::Figures;
use crate::screen::{table, thousands};

/// The head of the table.
pub const HEAD: [&str; 9] = [
    "", "IOPS", "mean ms", "p99 ms", "RAM %", "fast %", "slow %", "x slow", "% of raw",
];

fn timing(figures: &Figures) -> [String; 3] {
    let ms = |ns: f64| format!("{:.2}", ns / 1e6);
    [
        thousands(figures.iops),
        ms(figures.mean_ns),
        ms(figures.p99_ns),
    ]
}

fn ratios(outcome: &Outcome, figures: &Figures) -> [String; 2] {
    let times = outcome.times_slow(figures);
    let part = 100.0 * outcome.part_of_raw(figures);
    [format!("{times:.1}"), format!("{part:.0}")]
}

fn run_row(outcome: &Outcome, run: &Run) -> Vec<String> {
    let mut row = vec![run.name.clone()];
    row.extend(timing(&run.figures));
    let shares = [run.shares.ram, run.shares.fast, run.shares.slow];
    row.extend(shares.map(|share| format!("{:.1}", share * 100.0)));
    row.extend(ratios(outcome, &run.figures));
    row
}

fn raw_row(outcome: &Outcome, name: &str, figures: &Figures) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    row.extend(timing(figures));
    row.extend(["", "", ""].map(str::to_owned));
    row.extend(ratios(outcome, figures));
    row
}

/// The rows of the table.
pub fn rows(outcome: &Outcome) -> Vec<Vec<String>> {
    let mut rows = vec![run_row(outcome, &outcome.slow)];
    rows.extend(outcome.runs.iter().map(|run| run_row(outcome, run)));
    let [before, after] = &outcome.raw_same;
    rows.push(raw_row(outcome, "raw file, same client, before", before));
    rows.push(raw_row(outcome, "raw file, same client, after", after));
    rows.push(raw_row(outcome, "raw file, io_uring", &outcome.raw_direct));
    rows
}

/// The table as text.
pub fn text(outcome: &Outcome) -> String {
    table(&HEAD, &rows(outcome))
}
