//! Medians, and their limits.

use super::run::MODES;
use crate::screen::{self, thousands};

/// The most of busy polling's figures that another way may be away from them.
const NEAR: f64 = 0.05;
/// The most of busy polling's processor time at a part of its rate.
const PART_OF_TIME: f64 = 0.6;
/// Maximum share of a core while idle.
const IDLE_CORES: f64 = 0.01;

/// Result of a round.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cell {
    pub iops: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Cores that the daemon took.
    pub cores: f64,
}

/// A load, with the rounds of each way.
pub struct Row {
    pub name: String,
    pub rounds: [Vec<Cell>; MODES.len()],
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(0.0)
}

impl Row {
    /// The middle of the rounds of a way, figure by figure.
    pub fn median(&self, mode: usize) -> Cell {
        let of = |figure: fn(&Cell) -> f64| median(self.rounds[mode].iter().map(figure));
        Cell {
            iops: of(|cell| cell.iops),
            p50_us: of(|cell| cell.p50_us),
            p99_us: of(|cell| cell.p99_us),
            cores: of(|cell| cell.cores),
        }
    }

    /// The middle of the rounds' ratios of adaptive polling to busy polling.
    fn ratio(&self, figure: fn(&Cell) -> f64) -> f64 {
        let pairs = self.rounds[1].iter().zip(&self.rounds[0]);
        median(pairs.map(|(adaptive, busy)| figure(adaptive) / figure(busy)))
    }
}

fn judged(what: String, met: bool) -> String {
    format!("  {} {what}\n", if met { "met:   " } else { "MISSED:" })
}

/// Limits of adaptive polling; the rows are three of full speed, that of a part of it, and idleness.
fn judge(rows: &[Row]) -> String {
    let [_, full @ .., part, idle] = rows else {
        return String::new();
    };
    let mut text = String::new();
    for row in full {
        let (iops, p99) = (row.ratio(|cell| cell.iops), row.ratio(|cell| cell.p99_us));
        let what = format!(
            "{}: adaptive has {iops:.2} times busy's IOPS, {p99:.2} times its p99",
            row.name
        );
        text += &judged(what, iops >= 1.0 - NEAR && p99 <= 1.0 + NEAR);
    }
    let time = part.ratio(|cell| cell.cores);
    let what = format!(
        "{}: adaptive takes {time:.2} times busy's processor time",
        part.name
    );
    text += &judged(what, time <= PART_OF_TIME);
    let cores = idle.median(1).cores;
    let what = format!(
        "{}: adaptive takes {:.2} % of a core",
        idle.name,
        100.0 * cores
    );
    text + &judged(what, cores < IDLE_CORES)
}

/// For people.
pub fn show(rows: &[Row]) -> String {
    let head = ["", "", "IOPS", "p50 us", "p99 us", "daemon's cores"];
    let mut lines = Vec::new();
    for row in rows {
        for (number, mode) in MODES.iter().enumerate() {
            let cell = row.median(number);
            let name = if number == 0 { &row.name[..] } else { "" };
            let mut line = vec![name.to_owned(), (*mode).to_owned()];
            line.extend(match cell.iops > 0.0 {
                true => [
                    thousands(cell.iops),
                    format!("{:.1}", cell.p50_us),
                    format!("{:.1}", cell.p99_us),
                ],
                false => Default::default(),
            });
            line.push(format!("{:.3}", cell.cores));
            lines.push(line);
        }
    }
    screen::table(&head, &lines) + &judge(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with adaptive polling at given ratios to busy polling's IOPS, p99 and cores, and with given cores when idle.
    fn rows(iops: f64, p99_us: f64, cores: f64, idle: f64) -> Vec<Row> {
        let row = |cores| {
            let cell = |iops, p99_us, cores| {
                let cell = Cell {
                    iops,
                    p50_us: 1.0,
                    p99_us,
                    cores,
                };
                vec![cell; 3]
            };
            Row {
                name: "QD".to_owned(),
                rounds: [
                    cell(1.0, 1.0, 1.0),
                    cell(iops, p99_us, cores),
                    cell(1.0, 1.0, 1.0),
                ],
            }
        };
        vec![row(1.0), row(1.0), row(1.0), row(cores), row(idle)]
    }

    fn missed(iops: f64, p99_us: f64, cores: f64, idle: f64) -> usize {
        let text = show(&rows(iops, p99_us, cores, idle));
        assert_eq!(
            text.matches("met:").count() + text.matches("MISSED").count(),
            4
        );
        text.matches("MISSED").count()
    }

    #[test]
    fn each_bar_is_judged_by_itself() {
        assert_eq!(missed(0.96, 1.04, 0.59, 0.009), 0);
        assert_eq!(missed(0.94, 1.0, 0.5, 0.0), 2, "at both depths");
        assert_eq!(missed(1.0, 1.06, 0.5, 0.0), 2);
        assert_eq!(missed(1.0, 1.0, 0.61, 0.0), 1);
        assert_eq!(missed(1.0, 1.0, 0.5, 0.011), 1);
    }
}
