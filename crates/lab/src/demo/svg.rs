//! The charts of the report, as SVG that needs nothing else.

use super::outcome::{Outcome, Run};
use super::strip::{Shade, shade};
use crate::screen::thousands;
use api::v1::VolumeMap;
use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const LABELS: f64 = 210.0;
const ROW: f64 = 30.0;
const LINES_HEIGHT: f64 = 240.0;

fn open(height: f64, title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n"
    )
}

/// Horizontal bars with their numbers, one a label.
pub fn bars(title: &str, rows: &[(String, f64, &str)]) -> String {
    let most = rows.iter().map(|row| row.1).fold(1.0, f64::max);
    let room = WIDTH - LABELS - 90.0;
    let mut svg = open(rows.len() as f64 * ROW, title);
    for (index, (label, value, colour)) in rows.iter().enumerate() {
        let top = index as f64 * ROW;
        let middle = top + ROW * 0.62;
        let length = (value / most * room).max(1.0);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\">{label}</text>\
             <rect x=\"{LABELS}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"{:.0}\" \
             fill=\"{colour}\"/><text x=\"{:.0}\" y=\"{middle:.0}\">{}</text>",
            LABELS - 10.0,
            top + 5.0,
            ROW - 10.0,
            LABELS + length + 8.0,
            thousands(*value)
        );
    }
    svg + "</svg>\n"
}

/// Which part of each run was served from where.
pub fn shares(runs: &[&Run]) -> String {
    let room = WIDTH - LABELS - 20.0;
    let mut svg = open(runs.len() as f64 * ROW, "share served from each tier");
    for (index, run) in runs.iter().enumerate() {
        let top = index as f64 * ROW;
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
            LABELS - 10.0,
            top + ROW * 0.62,
            run.name
        );
        let mut left = LABELS;
        let parts = [run.shares.ram, run.shares.fast, run.shares.slow];
        for (part, (shade, name)) in parts.iter().zip(Shade::ALL) {
            let length = part * room;
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"{:.0}\" \
                 fill=\"{}\"><title>{name} {:.1} %</title></rect>",
                top + 5.0,
                ROW - 10.0,
                shade.colour(),
                part * 100.0
            );
            left += length;
        }
    }
    svg + "</svg>\n"
}

/// IOPS of every second of the runs in succession, with the slow tier and the raw file as levels.
pub fn seconds(outcome: &Outcome) -> String {
    let points: Vec<f64> = outcome
        .runs
        .iter()
        .flat_map(|run| run.figures.seconds.iter().copied())
        .collect();
    let raw = outcome.raw_same[0].iops.max(outcome.raw_same[1].iops);
    let slow = outcome.slow.figures.iops;
    let most = points.iter().copied().fold(raw, f64::max).max(1.0) * 1.05;
    let (left, right, bottom) = (70.0, WIDTH - 10.0, LINES_HEIGHT - 30.0);
    let x = |index: usize| {
        left + (right - left) * index as f64 / points.len().saturating_sub(1).max(1) as f64
    };
    let y = |value: f64| bottom - (bottom - 10.0) * value / most;
    let mut svg = open(LINES_HEIGHT, "IOPS of every second");
    for (value, name, colour) in [
        (raw, "raw file", "#2e8b57"),
        (slow, "slow tier", Shade::Slow.colour()),
    ] {
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"{colour}\" \
             stroke-dasharray=\"6 4\"/><text x=\"{right}\" y=\"{1:.1}\" text-anchor=\"end\" \
             fill=\"{colour}\">{name} {2}</text>",
            y(value),
            y(value) - 4.0,
            thousands(value)
        );
    }
    let line: Vec<String> = points
        .iter()
        .enumerate()
        .map(|(index, value)| format!("{:.1},{:.1}", x(index), y(*value)))
        .collect();
    let mut begin = 0;
    for run in &outcome.runs {
        let at = x(begin);
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"10\" y2=\"{bottom}\" class=\"axis\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            at + 4.0,
            bottom + 18.0,
            run.name
        );
        begin += run.figures.seconds.len();
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{left}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\" class=\"axis\"/>\
         <text x=\"{0}\" y=\"14\" text-anchor=\"end\">{1}</text>\
         <text x=\"{0}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\
         <polyline points=\"{2}\" fill=\"none\" stroke=\"#d62f2f\" stroke-width=\"2\"/>",
        left - 8.0,
        thousands(most),
        line.join(" ")
    );
    svg + "</svg>\n"
}

/// A volume's map as a strip.
pub fn strip(map: &VolumeMap) -> String {
    let width = WIDTH / map.cells.len().max(1) as f64;
    let mut svg = open(28.0, "map of the volume");
    for (index, cell) in map.cells.iter().enumerate() {
        let _ = write!(
            svg,
            "<rect x=\"{:.2}\" y=\"0\" width=\"{:.2}\" height=\"28\" fill=\"{}\"/>",
            index as f64 * width,
            width + 0.05,
            shade(cell).colour()
        );
    }
    svg + "</svg>\n"
}
