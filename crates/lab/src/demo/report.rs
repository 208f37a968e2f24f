//! The report: one HTML file that needs no other and no network.

use super::outcome::{Outcome, Run};
use super::strip::Shade;
use super::{svg, table};
use crate::html::{self, STYLE, escape};
use units::format_bytes;

fn legend() -> String {
    let key = |(shade, name): (Shade, &str)| {
        format!(
            "<span class=\"key\" style=\"background:{}\"></span>{name}",
            shade.colour()
        )
    };
    format!("<p>{}</p>\n", Shade::ALL.map(key).concat())
}

fn iops_bars(outcome: &Outcome) -> String {
    let raw = "#2e8b57";
    let mut rows = vec![(
        outcome.slow.name.clone(),
        outcome.slow.figures.iops,
        Shade::Slow.colour(),
    )];
    let runs = outcome.runs.iter();
    rows.extend(runs.map(|run| (run.name.clone(), run.figures.iops, Shade::Ram.colour())));
    let same = outcome.raw_same[0].iops.max(outcome.raw_same[1].iops);
    rows.push(("raw file, same client".to_owned(), same, raw));
    rows.push((
        "raw file, io_uring".to_owned(),
        outcome.raw_direct.iops,
        raw,
    ));
    svg::bars("IOPS", &rows)
}

/// The report.
pub fn html(outcome: &Outcome) -> String {
    let runs: Vec<&Run> = std::iter::once(&outcome.slow)
        .chain(&outcome.runs)
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Convect: a volume getting faster</title>\n<style>{STYLE}</style>\n\
         <h1>A volume getting faster</h1>\n\
         <p>4 KiB random reads, {depth} outstanding, on a hot region of {hot} of a volume of \
         {volume}, cold at the start; {seconds} s a run.</p>\n<p><small>{machine}</small></p>\n\
         <h2>IOPS</h2>\n{bars}<h2>IOPS of every second of the runs</h2>\n{lines}\
         <h2>Served from</h2>\n{legend}{shares}\
         <h2>The volume before the first run, and after the last</h2>\n{before}<p></p>{after}\
         <h2>Figures</h2>\n{table}\
         <p><small>x slow: times the slow tier alone. % of raw: of the fast drive's raw file, read \
         by the same client through qemu-nbd; the better of its two measurements counts.</small>\
         </p>\n</html>\n",
        depth = outcome.depth,
        hot = format_bytes(outcome.hot),
        volume = format_bytes(outcome.volume),
        seconds = outcome.seconds,
        machine = escape(&outcome.machine),
        bars = iops_bars(outcome),
        lines = svg::seconds(outcome),
        legend = legend(),
        shares = svg::shares(&runs),
        before = svg::strip(&outcome.map_before),
        after = svg::strip(&outcome.map_after),
        table = html::table(&table::HEAD, &table::rows(outcome)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Shares;
    use super::*;
    use crate::fio::Figures;
    use api::v1::{MapCell, VolumeMap};

    fn run(name: &str, iops: f64) -> Run {
        let figures = Figures {
            iops,
            mean_ns: 1e6,
            p99_ns: 2e6,
            seconds: vec![iops; 3],
            took: 3.0,
        };
        Run {
            name: name.to_owned(),
            figures,
            shares: Shares {
                ram: 0.5,
                fast: 0.25,
                slow: 0.25,
            },
        }
    }

    fn outcome() -> Outcome {
        let map = VolumeMap {
            size: 1,
            start: 0,
            cells: vec![MapCell {
                slow: 1,
                ..MapCell::default()
            }],
        };
        Outcome {
            machine: "a <machine>".to_owned(),
            volume: 8 << 30,
            hot: 410 << 20,
            seconds: 15,
            depth: 256,
            slow: run("slow tier alone", 1000.0),
            raw_direct: run("", 80_000.0).figures,
            raw_same: [run("", 40_000.0).figures, run("", 50_000.0).figures],
            runs: vec![run("run 1", 36_300.0)],
            map_before: map.clone(),
            map_after: map,
        }
    }

    #[test]
    fn the_report_holds_every_figure_and_needs_nothing_from_outside() {
        let html = html(&outcome());
        for figure in ["36,300", "1,000", "80,000", "50,000", "36.3", "73"] {
            assert!(html.contains(figure), "{figure} is missing");
        }
        assert!(html.contains("a &lt;machine&gt;"));
        let links = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!links.contains("http") && !links.contains("<script"));
    }

    #[test]
    fn the_better_raw_measurement_counts() {
        let outcome = outcome();
        assert_eq!(
            outcome.part_of_raw(&outcome.runs[0].figures),
            36_300.0 / 50_000.0
        );
        assert_eq!(outcome.times_slow(&outcome.runs[0].figures), 36.3);
    }
}
