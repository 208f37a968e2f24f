//! `convect why`: why a volume is slow, or was.

use super::scrub::date;
use crate::show::{print, print_json, read};
use crate::why_arguments::Why as Arguments;
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{Why, WhyFinding};
use daemon::Span;
use std::time::{SystemTime, UNIX_EPOCH};
use units::{Utc, format_bytes};

/// Columns of the output.
const WIDTH: usize = 80;
/// Seconds before and after a time that are examined.
const AROUND_S: u64 = 300;
const DAY_S: u64 = 86_400;

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// Seconds of a clock time like `15:00`.
fn of_clock(text: &str) -> Option<u64> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str, below: u64| {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = text.parse().ok().filter(|_| is_number)?;
        (number < below).then_some(number)
    };
    Some(number(hour, 24)? * 3600 + number(minute, 60)? * 60)
}

/// Seconds since 1970 of the beginning of a day like `2026-11-30`, at most a century ahead.
fn of_day(text: &str) -> Option<u64> {
    let mut parts = text.splitn(3, '-').map(str::parse::<u64>);
    let mut part = || parts.next()?.ok();
    let (year, month, day) = (part()?, part()?, part()?);
    let reached = |days: u64| {
        let utc = Utc::from_unix(days * DAY_S);
        (utc.year, utc.month, utc.day)
    };
    // Days increase with their dates: a binary search inverts the calendar.
    let (mut low, mut high) = (0, 60_000);
    while low < high {
        let middle = (low + high) / 2;
        match reached(middle) < (year, month, day) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    (reached(low) == (year, month, day)).then_some(low * DAY_S)
}

/// A time in seconds since 1970, of the last 24 hours if there is no day.
fn moment(text: &str, now_s: u64) -> Result<u64, Failure> {
    let wrong = || {
        Failure::Usage(format!(
            "'{text}' is not a time: write 15:00, \"2026-11-30 15:00\" (both UTC) or seconds since \
             1970"
        ))
    };
    if let Some(clock) = of_clock(text) {
        let today = now_s / DAY_S * DAY_S + clock;
        return Ok(match today > now_s {
            true => today.saturating_sub(DAY_S),
            false => today,
        });
    }
    if let Some((day, clock)) = text.split_once([' ', 'T']) {
        let of = of_day(day).zip(of_clock(clock.trim_end_matches('Z')));
        return of.map(|(day, clock)| day + clock).ok_or_else(wrong);
    }
    text.parse().map_err(|_| wrong())
}

/// The times to examine: from and to; the daemon's default without options.
fn times(arguments: &Arguments, now_s: u64) -> Result<Option<(u64, u64)>, Failure> {
    let at = arguments.at.as_deref().map(|text| moment(text, now_s));
    let since = arguments.since.as_deref().map(Span::parse);
    let since = since.transpose().map_err(Failure::Usage)?;
    let back = since.map(|span| span.0.as_secs());
    let (from_s, to_s) = match (at.transpose()?, back) {
        (None, None) => return Ok(None),
        (Some(at_s), None) => (at_s.saturating_sub(AROUND_S), (at_s + AROUND_S).min(now_s)),
        (at_s, Some(back)) => {
            let to_s = at_s.unwrap_or(now_s);
            (to_s.saturating_sub(back), to_s)
        }
    };
    if from_s >= to_s {
        return Err(Failure::Usage(
            "this time has not come yet, or is empty: choose an earlier one".to_owned(),
        ));
    }
    Ok(Some((from_s, to_s)))
}

/// Words in lines of at most [`WIDTH`] columns, behind `first` and then as many spaces; `end` ends
/// each line but the last.
fn wrapped(first: &str, text: &str, end: &str) -> String {
    let indent = first.chars().count();
    let room = WIDTH - end.chars().count();
    let (mut lines, mut line) = (String::new(), first.to_owned());
    let mut is_begun = false;
    for word in text.split(' ') {
        let length = line.chars().count() + usize::from(is_begun) + word.chars().count();
        if is_begun && length > room {
            lines += &format!("{line}{end}\n");
            line = " ".repeat(indent);
            is_begun = false;
        }
        if is_begun {
            line.push(' ');
        }
        line += word;
        is_begun = true;
    }
    lines + &line + "\n"
}

fn latency(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} µs"),
        us => format!("{:.2} ms", us / 1000.0),
    }
}

fn finding(number: usize, of: &WhyFinding) -> String {
    let share = match (of.share_percent, of.explained_us) {
        (Some(share), Some(us)) => format!(": {share:.0} %, {} an I/O", latency(us)),
        _ => String::new(),
    };
    let mut text = wrapped(&format!("{number}. "), &format!("{}{share}", of.title), "");
    for line in &of.evidence {
        text += &wrapped("   - ", line, "");
    }
    for action in &of.actions {
        text += &wrapped("   > ", &action.text, "");
        if let Some(command) = &action.command {
            text += &wrapped("       ", command, " \\");
        }
    }
    text
}

fn load(why: &Why) -> String {
    let Some(load) = &why.load else {
        return String::new();
    };
    let of = |name: &str, us: Option<f64>| {
        us.map_or_else(String::new, |us| format!(", {name} {}", latency(us)))
    };
    format!(
        "{:.0} IOPS, {}/s; mean {}{}{}{}",
        load.iops,
        format_bytes(load.bandwidth as u64),
        latency(load.mean_us),
        of("usually", load.usual_us),
        of("read p99", load.read_p99_us),
        of("write p99", load.write_p99_us)
    )
}

fn shown(why: &Why) -> String {
    let mut text = wrapped("", &why.headline, "");
    text += &format!("\nTime:  {} to {}\n", date(why.from_s), date(why.to_s));
    let load = load(why);
    if !load.is_empty() {
        text += &wrapped("Load:  ", &load, "");
    }
    if !why.findings.is_empty() {
        text += "\nCauses, by the latency that they explain\n";
    }
    for (index, of) in why.findings.iter().enumerate() {
        text += &finding(index + 1, of);
    }
    if !why.missing.is_empty() {
        text += "\nNot examined\n";
    }
    for line in &why.missing {
        text += &wrapped("- ", line, "");
    }
    text
}

/// Runs `convect why`.
pub fn why(client: &Client, json: bool, arguments: &Arguments) -> Result<(), Failure> {
    let (pool, volume) = object(&arguments.volume)?;
    let times = times(arguments, now_s())?;
    let times = times.map(|(from_s, to_s)| [from_s.to_string(), to_s.to_string()]);
    let query: Vec<(&str, &str)> = times
        .iter()
        .flat_map(|[from, to]| [("from", from.as_str()), ("to", to.as_str())])
        .collect();
    let answer = client.call(Operation::VolumeWhy, &[pool, volume], &query, None)?;
    match json {
        true => print_json(&answer, true),
        false => print(&shown(&read(&answer)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-12-01 16:30 UTC.
    const NOW_S: u64 = 1_796_142_600;

    fn asked(at: Option<&str>, since: Option<&str>) -> Result<Option<(u64, u64)>, Failure> {
        let arguments = Arguments {
            volume: "tank/v".to_owned(),
            at: at.map(str::to_owned),
            since: since.map(str::to_owned),
        };
        times(&arguments, NOW_S)
    }

    #[test]
    fn times_are_clock_times_days_or_seconds() {
        assert_eq!(date(NOW_S), "2026-12-01 16:30 UTC");
        let three = NOW_S - 5400;
        for text in [
            "15:00",
            "2026-12-01 15:00",
            "2026-12-01T15:00Z",
            &three.to_string(),
        ] {
            assert_eq!(moment(text, NOW_S).ok(), Some(three), "{text}");
        }
        // A clock time that has not come yet is of yesterday.
        assert_eq!(moment("17:00", NOW_S).ok(), Some(NOW_S + 1800 - DAY_S));
        for wrong in [
            "",
            "25:00",
            "15:60",
            "15",
            "3 pm",
            "2026-02-30 15:00",
            "+1:00",
            "-5",
        ] {
            let is_number = wrong.parse::<u64>().is_ok();
            assert!(is_number || moment(wrong, NOW_S).is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_range_is_around_a_time_or_before_it() {
        let range = |at, since| asked(at, since).ok().flatten();
        assert_eq!(range(None, None), None);
        let three = NOW_S - 5400;
        assert_eq!(range(Some("15:00"), None), Some((three - 300, three + 300)));
        assert_eq!(range(None, Some("1h")), Some((NOW_S - 3600, NOW_S)));
        assert_eq!(
            range(Some("15:00"), Some("1h")),
            Some((three - 3600, three))
        );
        // Up to now.
        assert_eq!(range(Some("16:29"), None), Some((NOW_S - 360, NOW_S)));
        assert!(asked(None, Some("long")).is_err());
        assert!(asked(None, Some("0s")).is_err());
        assert!(asked(Some("2030-01-01 00:00"), None).is_err());
    }

    #[test]
    fn lines_are_wrapped_at_80_columns_between_words() {
        let text = wrapped("   - ", &"word ".repeat(40), "");
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("     word"))
        );
        let command = wrapped("       ", &"convect ".repeat(20), " \\");
        let lines: Vec<&str> = command.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{command}");
        assert!(lines[0].ends_with(" \\") && !lines[lines.len() - 1].ends_with('\\'));
    }
}
