//! Medians, ratios, and how far apart the rounds are.

use super::rows::Group;
use super::system::System;
use crate::load::Figures;
use crate::screen::{self, thousands};
use serde::Serialize;

/// The measurements of a row.
#[derive(Serialize, Debug)]
pub struct Measured {
    pub name: String,
    pub group: Group,
    /// Held against each other for each core of the server; else as they are.
    pub by_core: bool,
    /// Of each system its rounds.
    pub systems: Vec<(System, Vec<Figures>)>,
}

/// Everything that was measured.
#[derive(Serialize, Default, Debug)]
pub struct Report {
    pub machine: String,
    pub rounds: u32,
    pub seconds: u64,
    /// Bytes of each server.
    pub size: u64,
    /// Convect's.
    pub policy: &'static str,
    /// Blocks copied and checksummed for a second of processor time, in each round.
    pub limit: Vec<f64>,
    pub rows: Vec<Measured>,
    /// Servers that failed, with reasons.
    pub missing: Vec<String>,
}

/// The middle, the least and the most of some figures.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(figures: impl Iterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = match figures.len() % 2 {
            0 => f64::midpoint(figures[middle - 1], figures[middle]),
            _ => figures[middle],
        };
        Some(Self {
            median,
            least,
            most,
        })
    }
}

fn by_core(figures: &Figures) -> f64 {
    figures.iops_per_server_core.unwrap_or(0.0)
}

impl Measured {
    fn judged(&self, figures: &Figures) -> f64 {
        match self.by_core {
            true => by_core(figures),
            false => figures.all.iops,
        }
    }

    /// How many times the second one's figure the first has, round by round.
    fn ratio(&self, first: &[Figures], second: &[Figures]) -> Option<Spread> {
        let pairs = first.iter().zip(second);
        let ratios = pairs.map(|(first, second)| self.judged(first) / self.judged(second));
        Spread::of(ratios.filter(|ratio| ratio.is_finite()))
    }

    fn lines(&self, limit: Option<Spread>) -> Vec<Vec<String>> {
        let mut lines = Vec::new();
        let first = self.systems.first().map(|(_, rounds)| &rounds[..]);
        for (number, (system, rounds)) in self.systems.iter().enumerate() {
            let spread = |figure: fn(&Figures) -> f64| Spread::of(rounds.iter().map(figure));
            let whole = |spread: Option<Spread>| {
                spread.map_or(String::new(), |spread| thousands(spread.median))
            };
            let short = |spread: Option<Spread>, digits: usize| {
                spread.map_or(String::new(), |spread| {
                    format!("{:.digits$}", spread.median)
                })
            };
            let core = spread(by_core).filter(|spread| spread.median > 0.0);
            let range = core.map_or(String::new(), |spread| {
                format!("{}-{}", thousands(spread.least), thousands(spread.most))
            });
            let ratio = match number {
                0 => None,
                _ => first.and_then(|first| self.ratio(first, rounds)),
            };
            let times = ratio.map_or(String::new(), |ratio| {
                format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.least, ratio.most)
            });
            // A request of another size is no such block.
            let of_limit = limit
                .zip(core)
                .filter(|_| number == 0 && self.name.contains("4 KiB"));
            let of_limit = of_limit.map_or(String::new(), |(limit, core)| {
                format!("{:.0}", 100.0 * core.median / limit.median)
            });
            lines.push(vec![
                if number == 0 {
                    self.name.clone()
                } else {
                    String::new()
                },
                system.name().to_owned(),
                whole(core),
                range,
                times,
                of_limit,
                whole(spread(|figures| figures.all.iops)),
                whole(spread(|figures| figures.all.mib_per_s)),
                short(spread(|figures| figures.server_cores.unwrap_or(0.0)), 2),
                short(spread(|figures| figures.other_cores), 2),
                short(spread(|figures| figures.all.latency.p50_us), 1),
                short(spread(|figures| figures.all.latency.p99_us), 1),
            ]);
        }
        lines
    }
}

/// For people.
pub fn show(report: &Report) -> String {
    let limit = Spread::of(report.limit.iter().copied());
    let mut text = String::new();
    if let Some(limit) = limit {
        text += &format!(
            "  a core copies and checksums {} random blocks of 4 KiB a second ({}-{})\n",
            thousands(limit.median),
            thousands(limit.least),
            thousands(limit.most)
        );
    }
    let head = [
        "",
        "",
        "IOPS a core",
        "of the rounds",
        "Convect is, times",
        "% of the limit",
        "IOPS",
        "MiB/s",
        "cores",
        "others",
        "p50 us",
        "p99 us",
    ];
    let lines: Vec<Vec<String>> = report
        .rows
        .iter()
        .flat_map(|row| row.lines(limit))
        .collect();
    if !lines.is_empty() {
        text += &screen::table(&head, &lines);
    }
    for missing in &report.missing {
        text += &format!("  left out: {missing}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(iops: f64, cores: f64) -> Figures {
        let mut figures = Figures {
            server_cores: Some(cores),
            iops_per_server_core: Some(iops / cores),
            ..Figures::default()
        };
        figures.all.iops = iops;
        figures
    }

    #[test]
    fn the_middle_of_the_rounds_is_told_and_how_far_they_are_apart() {
        let of = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(of(&[]), None);
        let spread = of(&[3.0, 1.0, 2.0]).expect("three");
        assert_eq!((spread.median, spread.least, spread.most), (2.0, 1.0, 3.0));
        assert_eq!(of(&[1.0, 2.0]).map(|spread| spread.median), Some(1.5));
    }

    #[test]
    fn ratios_are_of_the_same_round_and_by_the_core() {
        let row = |by_core| Measured {
            name: "4 KiB".to_owned(),
            group: Group::Vhost,
            by_core,
            systems: vec![
                (
                    System::Convect,
                    vec![figures(400.0, 0.5), figures(200.0, 0.5)],
                ),
                (
                    System::QemuVhost,
                    vec![figures(200.0, 1.0), figures(100.0, 1.0)],
                ),
            ],
        };
        let lines = row(true).lines(Spread::of([1_200.0].into_iter()));
        assert_eq!(lines[1][4], "4.00 (4.00-4.00)");
        assert_eq!((&lines[0][2][..], &lines[0][5][..]), ("600", "50"));
        assert_eq!(row(false).lines(None)[1][4], "2.00 (2.00-2.00)");
    }
}
