//! `convect explain` and `convect pool moves`.

use super::watch::{ReportInterval, clear};
use crate::map_arguments::{Explain, Moves};
use crate::show::{facts, print, print_json, read};
use crate::table::table;
use crate::{Client, Failure, object};
use api::Operation;
use api::v1::{
    BlockPlace, Explanation, ExtentHeat, ExtentPlace, Move, MoveCount, MoveCountList, Volume,
};
use std::cmp::Reverse;
use std::time::Instant;
use units::{BLOCK, EXTENT, Utc, format_bytes};

/// A time stamp, to the second.
fn moment(at_s: u64) -> String {
    let utc = Utc::from_unix(at_s);
    format!(
        "{}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
        utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second
    )
}

/// Parses a logical block: its number, or a byte offset with a unit.
///
/// # Errors
/// When it is neither, or the daemon does not know the volume.
fn lba(client: &Client, (pool, volume): (&str, &str), text: &str) -> Result<u64, Failure> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let byte = units::parse_bytes(text).map_err(|_| {
        Failure::Usage(format!(
            "'{text}' is not a position in a volume: write a logical block number, or a byte \
             offset with a unit like 512K or 1GiB"
        ))
    })?;
    let answer = client.get(Operation::VolumeShow, &[pool, volume])?;
    let shown: Volume = read(&answer)?;
    Ok(byte / u64::from(shown.lba_size))
}

/// The kind of a location, in words.
fn kind(place: &BlockPlace) -> &'static str {
    match (place.tier.as_str(), place.kind.as_str()) {
        ("ram", _) => "RAM cache (copy)",
        ("fast", "only") => "fast tier (only copy)",
        ("fast", _) => "fast tier (clean copy)",
        (_, "packed") => "slow tier (packed with other blocks)",
        _ => "slow tier (home location)",
    }
}

fn extent(of: &ExtentPlace) -> String {
    let offset = format_bytes(of.offset);
    match &of.volume {
        Some(volume) => format!("the extent at {offset} of {volume}"),
        None => format!("the extent at {offset} of a deleted volume"),
    }
}

/// The reason of a move, with the figures that decided it.
fn why(of: &Move) -> String {
    let mut text = of.about.clone();
    if let (Some(worth), Some(wanted)) = (of.worth, of.wanted) {
        let what = match of.dropped && of.from == "fast" {
            true => "that of recent evictions",
            false => "the promotion threshold",
        };
        text += &format!(" (value {:.2}× {what})", worth / wanted);
    }
    text
}

/// Since when and why a block is at this location, and what it displaced.
fn since(told: &Explanation, place: &BlockPlace) -> Vec<String> {
    let Some(came) = &place.came else {
        let since = moment(place.log_since_s);
        return vec![match told.log_is_whole && place.tier != "ram" {
            true => format!("since before the pool was opened at {since}"),
            false => format!("since before {since}, the oldest log entry"),
        }];
    };
    let at = moment(came.at_s);
    let mut lines = vec![match came.reason == "merged" {
        true => format!("since before {at}, then {}", came.about),
        false => format!("since {at}: {}", why(came)),
    }];
    if let Some(displaced) = &came.displaced {
        let what = match came.to == "ram" {
            true => "displaced",
            false => "last eviction before:",
        };
        lines.push(format!("{what} {}", extent(displaced)));
    }
    lines
}

fn locations(told: &Explanation) -> String {
    if told.places.is_empty() {
        let gone = told.moves.iter().find(|known| known.to == "nowhere");
        let block = ((told.offset - told.extent) / BLOCK as u64) as u8;
        let gone = gone.filter(|known| known.blocks.contains(&block));
        let why = gone.map_or_else(String::new, |gone| {
            format!(": {} at {}", gone.about, moment(gone.at_s))
        });
        return format!("none: zeroes{why}\n");
    }
    let mut text = String::new();
    for place in &told.places {
        text += kind(place);
        text += "\n";
        for drive in &place.drives {
            let vdrive = place.vdrive.map_or_else(String::new, |id| id.to_string());
            text += &format!(
                "    vdrive {vdrive}: {} at byte {}\n",
                drive.drive, drive.byte
            );
        }
        for line in since(told, place) {
            text += &format!("    {line}\n");
        }
    }
    text
}

fn accesses(of: Option<&ExtentHeat>) -> String {
    let Some(of) = of else {
        return "not accessed since the pool was opened".to_owned();
    };
    let times = match of.uses {
        1 => "1 access".to_owned(),
        15 => "15 or more accesses".to_owned(),
        uses => format!("{uses} accesses"),
    };
    let idle = match of.idle_bytes {
        0 => "now".to_owned(),
        bytes => format!("{} of other I/O ago", format_bytes(bytes)),
    };
    let worth = match of.bar > 0.0 {
        true => format!("value {:.2}× that of recent evictions", of.worth / of.bar),
        false => "no evictions from the fast tier yet".to_owned(),
    };
    let rises = match of.wanted > 0.0 {
        true => format!("{:.2}× the promotion threshold", of.worth / of.wanted),
        false => "fast tier has free space".to_owned(),
    };
    format!("{times}, last {idle}; {worth}, {rises}")
}

/// Block numbers as ranges.
fn blocks(of: &[u8]) -> String {
    if of.len() == EXTENT / BLOCK {
        return "all".to_owned();
    }
    let runs = of.chunk_by(|one, next| one + 1 == *next);
    let runs = runs.map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

fn explained(name: &str, told: &Explanation) -> String {
    let inherited = match (told.inherited, &told.snapshot) {
        (false, _) => String::new(),
        (true, Some(snapshot)) => format!("shared with snapshot {snapshot}"),
        (true, None) => "shared with a deleted snapshot".to_owned(),
    };
    let number = |size: usize| told.offset / size as u64;
    let last = |first: u64, size: usize| first + size as u64 - 1;
    let mut text = facts(&[
        (
            "block",
            format!(
                "{} of {name}, bytes {} to {}",
                number(BLOCK),
                told.offset,
                last(told.offset, BLOCK)
            ),
        ),
        (
            "extent",
            format!(
                "{}, bytes {} to {}",
                number(EXTENT),
                told.extent,
                last(told.extent, EXTENT)
            ),
        ),
        ("snapshot", inherited),
        ("used", accesses(told.heat.as_ref())),
    ]);
    text += "\nLocation: ";
    text += &locations(told);
    if told.moves.is_empty() {
        return text;
    }
    text += "\nMoves of the extent, newest first\n";
    let rows = told.moves.iter().map(|known| {
        let to = match known.dropped {
            true => format!("{} (copy dropped)", known.to),
            false => known.to.clone(),
        };
        vec![
            moment(known.at_s),
            known.from.clone(),
            to,
            blocks(&known.blocks),
            why(known),
        ]
    });
    text + &table(&["TIME", "FROM", "TO", "BLOCKS", "REASON"], rows)
}

/// Runs `convect explain`: where a block is stored and why.
pub fn explain(client: &Client, json: bool, command: &Explain) -> Result<(), Failure> {
    let (pool, volume) = object(&command.volume)?;
    let lba = lba(client, (pool, volume), &command.lba)?.to_string();
    let query = [("lba", lba.as_str())];
    let answer = client.call(Operation::VolumeExplain, &[pool, volume], &query, None)?;
    match json {
        true => print_json(&answer, true),
        false => print(&explained(&command.volume, &read(&answer)?)),
    }
}

fn row(count: &MoveCount) -> Vec<String> {
    let to = match count.dropped {
        true => format!("{} (copy dropped)", count.to),
        false => count.to.clone(),
    };
    vec![
        count.from.clone(),
        to,
        count.moves.to_string(),
        format_bytes(count.bytes),
        count.about.clone(),
    ]
}

/// Runs `convect pool moves`: number of moves by reason, or their rates.
pub fn moves(client: &Client, json: bool, with: &Moves) -> Result<(), Failure> {
    let look = || client.get(Operation::PoolMoves, &[&with.name]);
    let mut answer = look()?;
    if with.watch.is_none() {
        if json {
            return print_json(&answer, true);
        }
        let list: MoveCountList = read(&answer)?;
        let occurred = list.items.iter().filter(|count| count.moves > 0);
        let head = ["FROM", "TO", ">MOVES", ">BYTES", "REASON"];
        return print(&table(&head, occurred.map(row)));
    }
    let pace = ReportInterval::new(with.watch)?;
    let mut looked = Instant::now();
    let mut left = with.count;
    while left != Some(0) && pace.next() {
        let next = look()?;
        let seconds = looked.elapsed().as_secs_f64();
        looked = Instant::now();
        if json {
            print_json(&next, false)?;
        } else {
            let rates = rates(&read(&answer)?, &read(&next)?, seconds);
            let head = ["FROM", "TO", ">MOVES/S", ">BYTES/S", "REASON"];
            clear(&pace)?;
            print(&table(&head, rates.iter().map(row)))?;
        }
        answer = next;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Rates of moves between two reports, highest first; reasons without moves are left out.
fn rates(before: &MoveCountList, after: &MoveCountList, seconds: f64) -> Vec<MoveCount> {
    let way = |count: &MoveCount| {
        let MoveCount {
            from,
            to,
            dropped,
            reason,
            ..
        } = count.clone();
        (from, to, dropped, reason)
    };
    // Counters of a reopened pool restart at 0.
    let rate = |before: u64, after: u64| {
        let grown = after.checked_sub(before).unwrap_or(after);
        (grown as f64 / seconds.max(0.001)).round() as u64
    };
    let mut rates: Vec<MoveCount> = after
        .items
        .iter()
        .map(|count| {
            let known = before.items.iter().find(|known| way(known) == way(count));
            let (moves, bytes) = known.map_or((0, 0), |known| (known.moves, known.bytes));
            MoveCount {
                moves: rate(moves, count.moves),
                bytes: rate(bytes, count.bytes),
                ..count.clone()
            }
        })
        .filter(|count| count.bytes > 0)
        .collect();
    rates.sort_by_key(|count| Reverse(count.bytes));
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn move_rates_are_sorted_descending() {
        let count = |reason: &str, dropped, moves, bytes| MoveCount {
            from: "fast".to_owned(),
            to: "slow".to_owned(),
            dropped,
            reason: reason.to_owned(),
            about: String::new(),
            moves,
            bytes,
        };
        let list = |items| MoveCountList { items };
        let before = list(vec![
            count("cooled", false, 10, 1000),
            count("cooled", true, 5, 500),
            count("pinned", false, 9, 900),
        ]);
        let after = list(vec![
            count("cooled", false, 12, 1200),
            count("cooled", true, 15, 1500),
            count("pinned", false, 9, 900),
            count("spared", false, 4, 40),
        ]);
        let told: Vec<_> = rates(&before, &after, 2.0)
            .into_iter()
            .map(|count| (count.reason, count.dropped, count.moves, count.bytes))
            .collect();
        let expected = [
            ("cooled", true, 5, 500),
            ("cooled", false, 1, 100),
            ("spared", false, 2, 20),
        ];
        let expected = expected
            .map(|(reason, dropped, moves, bytes)| (reason.to_owned(), dropped, moves, bytes));
        assert_eq!(told, expected);
        // The pool was reopened.
        let reopened = rates(&after, &list(vec![count("cooled", false, 1, 100)]), 1.0);
        assert_eq!((reopened[0].moves, reopened[0].bytes), (1, 100));
    }
}
