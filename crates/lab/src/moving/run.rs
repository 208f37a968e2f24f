//! The order of the measurements, and the table.

use super::hot_set::HotSet;
use super::watch::{Watch, reached_after};
use crate::arguments::Moving;
use crate::chance::Chance;
use crate::demo::Shares;
use crate::failure::{Failure, Result};
use crate::load::{self, Load, Series, rows_of_ten};
use crate::machine;
use crate::rival::{Format, Rival};
use crate::scene::{Scene, Sizes};
use crate::screen::{self, Progress, thousands};
use std::path::Path;
use std::sync::Arc;
use units::{EXTENT, format_bytes};

const GIB: f64 = (1u64 << 30) as f64;
/// Seconds for which the raw file is read, before and after.
const RAW_SECONDS: u64 = 5;
/// Seconds for which a warm set is examined.
const END: usize = 3;
/// Default timeout for warming a set, in seconds per GiB.
const LIMIT_A_GIB: f64 = 120.0;

/// Result of a new set.
struct Move {
    name: &'static str,
    series: Series,
    promoted: u64,
    shares: Option<Shares>,
    /// Requests a second of the set before it, when that was warm.
    before: f64,
    /// Seconds a GiB in which it is to be fast again.
    bar: &'static str,
}

/// Everything that was measured.
struct Outcome {
    raw: [f64; 2],
    moves: Vec<Move>,
}

fn limit(with: &Moving) -> u64 {
    let usual = LIMIT_A_GIB * (with.hot as f64 / GIB).max(1.0);
    with.limit.unwrap_or(usual as u64).max(with.seconds)
}

/// Reads a set until it is warm, for `least` seconds or longer.
fn read(scene: &Scene, with: &Moving, name: &'static str, set: HotSet, least: u64) -> Result<Move> {
    let target = Load::all_over(scene.target(), false, 0..with.volume, limit(with));
    let load = Load {
        aim: Arc::new(move |chance, _| set.offset(chance)),
        ..target
    };
    let mut watch = Watch::new(&scene.daemon)?;
    let mut progress = Progress::new();
    let series = load::run(&load, |second, iops| {
        let warm = watch.is_warm()?;
        if progress.is_due() {
            let from = watch.shares.map_or(String::new(), |shares| shares.text());
            let (second, iops) = (second + 1, thousands(iops));
            progress.draw(&format!(
                "  {name:<24} {second:>4} s {iops:>8} IOPS  {from}"
            ));
        }
        Ok(second + 1 < least || !warm)
    })?;
    progress.clear();
    println!("  {name}, IOPS of each second:");
    print!(
        "{}",
        rows_of_ten(series.0.iter().map(|second| second.count() as f64))
    );
    Ok(Move {
        name,
        promoted: watch.promoted(),
        shares: watch.shares,
        series,
        before: f64::NAN,
        bar: "",
    })
}

fn read_raw(rival: &Rival, size: u64) -> Result<f64> {
    let load = Load::all_over(rival.target(), false, 0..size, RAW_SECONDS);
    let iops = load::run(&load, |_, _| Ok(true))?.mean();
    println!("  raw file, same client: {} IOPS", thousands(iops));
    Ok(iops)
}

fn measure(scene: &Scene, with: &Moving) -> Result<Outcome> {
    scene.fill(with.volume)?;
    scene.cool()?;
    let rival = Rival::serve(&scene.raw_file(), Format::Raw, scene.scratch.path())?;
    let raw_before = read_raw(&rival, with.hot)?;
    let (all, count) = (with.volume / EXTENT as u64, with.hot / EXTENT as u64);
    let old = HotSet::contiguous(all / 8, count);
    let near = HotSet::contiguous(all / 2, count);
    let far = HotSet::scattered(all, count, &near, &mut Chance::new(with.seed));
    let mut moves = vec![read(scene, with, "warm-up", old, 0)?];
    for (name, set, bar) in [("contiguous", near, "8"), ("scattered", far, "75")] {
        let before = moves.last().map_or(f64::NAN, |warm| warm.series.end(END));
        let moved = read(scene, with, name, set, with.seconds)?;
        moves.push(Move {
            before,
            bar,
            ..moved
        });
    }
    let raw = [raw_before, read_raw(&rival, with.hot)?];
    Ok(Outcome { raw, moves })
}

/// Seconds until 90 % of a goal, and for each GiB.
fn time_to(moved: &Move, goal: f64, hot: u64) -> [String; 2] {
    match reached_after(&moved.series, goal) {
        Some(after) => [
            after.to_string(),
            format!("{:.1}", after as f64 / (hot as f64 / GIB)),
        ],
        None if goal.is_nan() => [String::new(), String::new()],
        None => {
            let went = moved.series.0.len();
            [
                format!("over {went}"),
                format!("over {:.1}", went as f64 / (hot as f64 / GIB)),
            ]
        }
    }
}

fn row(moved: &Move, raw: f64, with: &Moving) -> Vec<String> {
    let percent = |part: fn(&Shares) -> f64| {
        let share = moved.shares.as_ref().map(part);
        share.map_or(String::new(), |share| format!("{:.1}", 100.0 * share))
    };
    let [raw_s, raw_each] = time_to(moved, raw, with.hot);
    let [warm_s, warm_each] = time_to(moved, moved.before, with.hot);
    vec![
        moved.name.to_owned(),
        raw_s,
        raw_each,
        warm_s,
        warm_each,
        moved.bar.to_owned(),
        thousands(moved.series.iops(0..with.seconds as usize)),
        thousands(moved.series.end(END)),
        percent(|shares| shares.ram),
        percent(|shares| shares.fast),
        percent(|shares| shares.slow),
        format_bytes(moved.promoted),
    ]
}

fn show(outcome: &Outcome, with: &Moving) {
    let raw = outcome.raw[0].max(outcome.raw[1]);
    let first = format!("first {} s", with.seconds);
    let head = [
        "moved to",
        "90 % of raw, s",
        "a GiB",
        "of the set before",
        "a GiB",
        "bar",
        &first,
        "at the end",
        "RAM %",
        "fast %",
        "slow %",
        "promoted",
    ];
    let rows: Vec<Vec<String>> = outcome
        .moves
        .iter()
        .map(|moved| row(moved, raw, with))
        .collect();
    println!("\n{}", screen::table(&head, &rows));
    println!(
        "  seconds until 90 % of the IOPS, of the raw file by the same client ({}; the better of its two\n  \
         measurements) and of the set that was warm before; IOPS of the first {} s (bar for 4 GiB, a minute:\n  \
         36,300) and of the last {END}; where the last second's reads came from",
        thousands(raw),
        with.seconds
    );
}

/// Fills a volume, cools it, and moves a hot set about in it.
pub fn run(convect: &Path, with: &Moving) -> Result<()> {
    if with.hot < EXTENT as u64 || with.hot > with.volume / 4 {
        return Err(Failure::new(format!(
            "a hot set of {} does not fit {} times into a volume of {}: take a larger --volume or a smaller \
             --hot, of 64 KiB or more",
            format_bytes(with.hot),
            4,
            format_bytes(with.volume)
        )));
    }
    let fast = with.fast.unwrap_or(2 * with.hot + (1 << 30));
    println!(
        "4 KiB random reads on a hot set of {} in a volume of {}; a fast file of {}, one modelled 7,200 rpm disk\n  {}",
        format_bytes(with.hot),
        format_bytes(with.volume),
        format_bytes(fast),
        machine::describe()
    );
    let sizes = Sizes {
        disks: 1,
        ..Sizes::whole(with.volume, fast, with.hot)
    };
    let mut scene = Scene::new(convect, "moving", sizes, &with.behind)?;
    let measured = measure(&scene, with);
    let outcome = scene.daemon.explain(measured)?;
    show(&outcome, with);
    scene.daemon.stop()
}
