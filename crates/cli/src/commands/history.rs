//! `convect history`.

use super::scrub::date;
use crate::event_arguments::History as Arguments;
use crate::show::{print, print_json, read};
use crate::table::table;
use crate::{Client, Failure};
use api::Operation;
use api::v1::History;
use daemon::Span;
use std::time::{SystemTime, UNIX_EPOCH};
use units::format_bytes;

/// Columns of a sparkline.
const WIDTH: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum rows of the table without `--all`.
const LINES: usize = 20;

/// The object selected by the arguments.
fn object(arguments: &Arguments) -> Result<String, Failure> {
    let of = &arguments.of;
    let vdrive = arguments.vdrive.map(|number| number.to_string());
    let named = [
        ("tier", &arguments.tier),
        ("vdrive", &vdrive),
        ("drive", &arguments.drive),
        ("export", &arguments.export),
        ("policy", &arguments.policy),
    ];
    let mut named = named
        .into_iter()
        .filter_map(|(kind, name)| Some((kind, name.as_deref()?)));
    match (named.next(), of.split_once('/')) {
        (Some((kind, name)), None) => Ok(format!("{kind}/{of}/{name}")),
        (Some((kind, _)), Some(_)) => Err(Failure::Usage(format!(
            "--{kind} applies to a pool: write POOL instead of '{of}'"
        ))),
        (None, Some(_)) => Ok(format!("volume/{of}")),
        (None, None) => Ok(format!("pool/{of}")),
    }
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "B" => format_bytes(value as u64),
        "B/s" => format!("{}/s", format_bytes(value as u64)),
        "s" => format!("{:.3} ms", value * 1000.0),
        "ratio" => format!("{:.1} %", value * 100.0),
        _ if value < 10.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// A sparkline of at most `width` bars, each the maximum of the values it represents.
fn sparkline(values: &[Option<f64>], width: usize) -> String {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let each = values.len().div_ceil(width).max(1);
    let bar = |part: &[Option<f64>]| {
        let greatest = part.iter().flatten().copied().reduce(f64::max)?;
        let share = if most > 0.0 { greatest / most } else { 0.0 };
        let index = (share * (BARS.len() - 1) as f64).round() as usize;
        BARS.get(index)
    };
    values
        .chunks(each)
        .map(|part| bar(part).unwrap_or(&' '))
        .collect()
}

fn summary(history: &History) -> String {
    let rows = history.series.iter().map(|series| {
        let known: Vec<f64> = series.values.iter().flatten().copied().collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let most = known.iter().copied().reduce(f64::max);
        let of =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| shown(value, &series.unit));
        vec![
            series.name.clone(),
            sparkline(&series.values, WIDTH),
            of(Some(mean).filter(|_| !known.is_empty())),
            of(most),
            of(series.values.iter().rev().find_map(|value| *value)),
        ]
    });
    let head = ["METRIC", "", ">MEAN", ">MAX", ">LAST"];
    table(&head, rows)
}

/// Metrics shown only in the summary, unless selected: a row has no space for all.
fn is_left_out(name: &str) -> bool {
    name.ends_with("share")
        || name.ends_with("_p50")
        || name.ends_with("_p999")
        || ["empty_bytes", "pool_served_bytes"].contains(&name)
}

/// The history reduced to the selected metrics.
fn with_some(mut history: History, all: bool) -> History {
    history
        .series
        .retain(|series| all || !is_left_out(&series.name));
    history
}

fn lines(history: &History, most: usize) -> String {
    let steps = history
        .series
        .first()
        .map_or(0, |series| series.values.len());
    // Skip steps without data.
    let known = |step: &usize| {
        let mut all = history.series.iter();
        all.any(|series| series.values.get(*step).is_some_and(Option::is_some))
    };
    let steps: Vec<usize> = (0..steps).filter(known).collect();
    let last = &steps[steps.len().saturating_sub(most)..];
    let rows = last.iter().map(|step| {
        let at_s = history.from_s + *step as u64 * history.step_s;
        let second = format!("{}:{:02}", date(at_s).trim_end_matches(" UTC"), at_s % 60);
        let values = history.series.iter().map(|series| {
            let value = series.values.get(*step).copied().flatten();
            value.map_or("-".to_owned(), |value| shown(value, &series.unit))
        });
        std::iter::once(second).chain(values).collect()
    });
    let names = history
        .series
        .iter()
        .map(|series| format!(">{}", series.name));
    let head: Vec<String> = std::iter::once("TIME (UTC)".to_owned())
        .chain(names)
        .collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table(&head, rows)
}

/// Runs `convect history`.
pub fn history(client: &Client, json: bool, arguments: &Arguments) -> Result<(), Failure> {
    let last = Span::parse(&arguments.last).map_err(Failure::Usage)?;
    let step = arguments.step.as_deref().map(Span::parse).transpose();
    let step = step.map_err(Failure::Usage)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.unwrap_or_default().as_secs();
    let object = object(arguments)?;
    let from = now_s.saturating_sub(last.0.as_secs()).to_string();
    let (to, step) = (
        now_s.to_string(),
        step.map(|step| step.0.as_secs().to_string()),
    );
    let asked = [
        ("object", Some(object.as_str())),
        ("from", Some(from.as_str())),
        ("to", Some(to.as_str())),
        ("step", step.as_deref()),
        ("series", arguments.series.as_deref()),
    ];
    let query: Vec<(&str, &str)> = asked
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let answer = client.call(Operation::History, &[], &query, None)?;
    if json {
        return print_json(&answer, true);
    }
    let history: History = read(&answer)?;
    let most = if arguments.all { usize::MAX } else { LINES };
    let above = format!(
        "{}, step {} s\n\n{}",
        history.object,
        history.step_s,
        summary(&history)
    );
    let some = with_some(history, arguments.series.is_some());
    print(&format!("{above}\n{}", lines(&some, most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparkline_shows_maxima_and_keeps_gaps() {
        let values = [Some(0.0), Some(7.0), None, Some(3.5)];
        assert_eq!(sparkline(&values, 10), "▁█ ▅");
        assert_eq!(sparkline(&values, 2), "█▅");
        assert_eq!(sparkline(&[Some(0.0)], 5), "▁");
        assert_eq!(sparkline(&[], 5), "");
    }

    #[test]
    fn object_names_by_kind() {
        let of = |of: &str| Arguments {
            of: of.to_owned(),
            tier: None,
            vdrive: None,
            drive: None,
            export: None,
            policy: None,
            last: "1h".to_owned(),
            step: None,
            series: None,
            all: false,
        };
        let some = |name: &str| Some(name.to_owned());
        let name = |arguments: Arguments| object(&arguments).ok();
        assert_eq!(name(of("tank")), some("pool/tank"));
        assert_eq!(name(of("tank/v")), some("volume/tank/v"));
        let tier = Arguments {
            tier: some("ram"),
            ..of("tank")
        };
        assert_eq!(name(tier), some("tier/tank/ram"));
        let vdrive = |pool: &str| Arguments {
            vdrive: Some(3),
            ..of(pool)
        };
        assert_eq!(name(vdrive("tank")), some("vdrive/tank/3"));
        assert_eq!(name(vdrive("tank/v")), None);
        let drive = Arguments {
            drive: some("file:/a"),
            ..of("tank")
        };
        assert_eq!(name(drive), some("drive/tank/file:/a"));
        let export = Arguments {
            export: some("e"),
            ..of("tank")
        };
        assert_eq!(name(export), some("export/tank/e"));
        let policy = Arguments {
            policy: some("gold"),
            ..of("tank")
        };
        assert_eq!(name(policy), some("policy/tank/gold"));
    }

    #[test]
    fn values_are_formatted_by_unit() {
        for (value, unit, text) in [
            (0.00125, "s", "1.250 ms"),
            (4096.0, "B/s", "4 KiB/s"),
            (1234.5, "1/s", "1234"),
            (0.5, "1/s", "0.50"),
        ] {
            assert_eq!(shown(value, unit), text);
        }
    }
}
