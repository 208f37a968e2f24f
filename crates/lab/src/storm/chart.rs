//! Figures over time as lines: SVG that needs nothing else.

use crate::screen::thousands;
use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = HEIGHT - 28.0;
/// Points of a line at most: more are not seen.
const POINTS: usize = 400;
/// The smallest value of a logarithmic scale.
const LEAST: f64 = 0.01;

/// Values at equal distances in time.
pub struct Line {
    pub name: String,
    pub colour: &'static str,
    pub values: Vec<f64>,
}

/// How values are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0 on; of neighbours that share a point the mean counts.
    Linear,
    /// Of their orders of magnitude; of neighbours that share a point the largest counts.
    Logarithmic,
}

/// A chart.
pub struct Chart<'a> {
    /// Title of the values.
    pub title: &'a str,
    pub scale: Scale,
    /// How long all of it took, in seconds.
    pub seconds: f64,
    pub lines: &'a [Line],
    /// A level that is drawn across, with its name.
    pub level: Option<(f64, String)>,
}

fn thin(values: &[f64], scale: Scale) -> Vec<f64> {
    let each = values.len().div_ceil(POINTS).max(1);
    let points = values.chunks(each).map(|part| match scale {
        Scale::Linear => part.iter().sum::<f64>() / part.len() as f64,
        Scale::Logarithmic => part.iter().copied().fold(0.0, f64::max),
    });
    points.collect()
}

impl Chart<'_> {
    fn most(&self) -> f64 {
        let values = self.lines.iter().flat_map(|line| &line.values).copied();
        let level = self.level.as_ref().map(|(level, _)| *level);
        let most = values.chain(level).fold(1.0, f64::max);
        match self.scale {
            Scale::Linear => most * 1.05,
            Scale::Logarithmic => 10_f64.powf(most.log10().ceil()),
        }
    }

    fn height(&self, value: f64, most: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => value / most,
            Scale::Logarithmic => {
                let value = value.max(LEAST);
                (value / LEAST).log10() / (most / LEAST).log10()
            }
        };
        BOTTOM - (BOTTOM - TOP) * part
    }

    fn grid(&self, most: f64) -> Vec<f64> {
        match self.scale {
            Scale::Linear => vec![0.0, most / 2.0, most],
            Scale::Logarithmic => {
                let (least, most) = (LEAST.log10().round() as i32, most.log10().round() as i32);
                (least..=most).map(|power| 10_f64.powi(power)).collect()
            }
        }
    }

    fn points(&self, line: &Line, most: f64) -> String {
        let values = thin(&line.values, self.scale);
        let step = (RIGHT - LEFT) / values.len().saturating_sub(1).max(1) as f64;
        let points = values.iter().enumerate().map(|(index, value)| {
            let x = LEFT + step * index as f64;
            format!("{x:.1},{:.1}", self.height(*value, most))
        });
        points.collect::<Vec<_>>().join(" ")
    }

    /// The chart.
    pub fn svg(&self) -> String {
        let most = self.most();
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\n",
            self.title
        );
        for value in self.grid(most) {
            let y = self.height(value, most);
            let label = match value < 1.0 && value > 0.0 {
                true => value.to_string(),
                false => thousands(value),
            };
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"axis\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        for (x, second, anchor) in [(LEFT, 0.0, "start"), (RIGHT, self.seconds, "end")] {
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{second:.0} s</text>",
                BOTTOM + 20.0
            );
        }
        for line in self.lines {
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"><title>{}</title></polyline>",
                self.points(line, most),
                line.colour,
                line.name
            );
        }
        if let Some((level, name)) = &self.level {
            let y = self.height(*level, most);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" \
                 stroke-dasharray=\"6 4\"/><text x=\"{RIGHT}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                y - 4.0
            );
        }
        svg + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: &[Line], scale: Scale) -> String {
        let chart = Chart {
            title: "IOPS",
            scale,
            seconds: 60.0,
            lines,
            level: Some((50.0, "floor 50".to_owned())),
        };
        chart.svg()
    }

    #[test]
    fn a_long_line_is_thinned_and_its_peaks_stay_on_a_logarithmic_scale() {
        let mut values = vec![1.0; 4_000];
        values[1234] = 99.0;
        assert_eq!(thin(&values, Scale::Logarithmic).len(), POINTS);
        let peak = thin(&values, Scale::Logarithmic);
        assert_eq!(peak.into_iter().fold(0.0, f64::max), 99.0);
        let means = thin(&values, Scale::Linear);
        assert!(means.into_iter().fold(0.0, f64::max) < 11.0);
        assert_eq!(thin(&[], Scale::Linear).len(), 0);
    }

    #[test]
    fn lines_stay_within_the_chart_and_the_level_is_named() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let line = Line {
                name: "one".to_owned(),
                colour: "#123456",
                values: vec![0.0, 50.0, 100.0],
            };
            let svg = chart(&[line], scale);
            assert!(svg.contains("floor 50") && svg.contains("#123456"), "{svg}");
            let points = svg.split("points=\"").nth(1).unwrap();
            let points = points.split('"').next().unwrap();
            for point in points.split(' ') {
                let (x, y) = point.split_once(',').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!(
                    (0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y),
                    "{point}"
                );
            }
        }
        assert!(chart(&[], Scale::Linear).contains("</svg>"));
    }
}
