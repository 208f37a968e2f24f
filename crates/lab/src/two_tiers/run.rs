//! The measurements for each pair of drives, and the table.

use super::split::{Tried, best, search};
use super::stage::{POOLS, Stage};
use crate::arguments::TwoTiers;
use crate::demo::Shares;
use crate::failure::{Failure, Result};
use crate::fio::DEPTH;
use crate::load::{self, Load, Series, rows_of_ten};
use crate::machine;
use crate::screen::{self, Progress, thousands};
use std::path::Path;
use units::format_bytes;

/// Measurements of a pair.
struct Outcome {
    alone: [Series; 2],
    tried: Vec<Tried>,
    pool: Series,
    shares: Shares,
}

fn read(stage: &Stage, with: &TwoTiers, name: &str, pools: &[&str], first: f64) -> Result<Series> {
    let target = stage.target(pools[0]);
    let load = Load {
        disks: pools.iter().map(|pool| stage.target(pool).into()).collect(),
        first,
        ..Load::all_over(target, false, 0..with.used, with.seconds)
    };
    let mut progress = Progress::new();
    let series = load::run(&load, |second, iops| {
        if progress.is_due() {
            let (second, iops) = (second + 1, thousands(iops));
            progress.draw(&format!("  {name:<24} {second:>4} s {iops:>8} IOPS"));
        }
        Ok(true)
    })?;
    progress.clear();
    Ok(series)
}

fn measure(stage: &Stage, with: &TwoTiers) -> Result<Outcome> {
    let [fast, slow, both] = POOLS;
    let alone = [
        read(stage, with, "fast tier alone", &[fast], 1.0)?,
        read(stage, with, "slow tier alone", &[slow], 1.0)?,
    ];
    let rates = alone.each_ref().map(Series::mean);
    let tried = search(rates, |first| {
        let name = format!("{:.0} % to the fast one", 100.0 * first);
        Ok(read(stage, with, &name, &[fast, slow], first)?.mean())
    })?;
    let before = stage.daemon.counters(both)?;
    let pool = read(stage, with, "the pool of both", &[both], 1.0)?;
    let after = stage.daemon.counters(both)?;
    let shares = Shares::between(&before, &after)
        .ok_or_else(|| Failure::new("the pool counted no reads while it was read"))?;
    Ok(Outcome {
        alone,
        tried,
        pool,
        shares,
    })
}

fn row(name: String, iops: f64, of: [f64; 3]) -> Vec<String> {
    let [better, sum, best] = of;
    let times = format!("{:.2}", iops / better.max(1.0));
    let percent = |whole: f64| format!("{:.0}", 100.0 * iops / whole.max(1.0));
    vec![name, thousands(iops), times, percent(sum), percent(best)]
}

fn show(outcome: &Outcome, equal: bool) {
    let alone = outcome.alone.each_ref().map(Series::mean);
    let found = best(&outcome.tried).map_or(f64::NAN, |best| best.iops);
    let of = [alone[0].max(alone[1]), alone[0] + alone[1], found];
    let mut rows = vec![
        row("fast tier alone".to_owned(), alone[0], of),
        row("slow tier alone".to_owned(), alone[1], of),
    ];
    for tried in &outcome.tried {
        let name = format!("static split, {:.0} % to the fast one", 100.0 * tried.first);
        rows.push(row(name, tried.iops, of));
    }
    rows.push(row("the pool of both".to_owned(), outcome.pool.mean(), of));
    let head = [
        "",
        "IOPS",
        "times the better alone",
        "% of the sum",
        "% of the best split",
    ];
    println!("{}", screen::table(&head, &rows));
    println!(
        "  the pool's reads came {}; IOPS of each second:",
        outcome.shares.text()
    );
    print!(
        "{}",
        rows_of_ten(outcome.pool.0.iter().map(|second| second.count() as f64))
    );
    let (bar, seen) = match equal {
        true => (
            "1.80 times one alone",
            format!("{:.2}", outcome.pool.mean() / of[0].max(1.0)),
        ),
        false => (
            "95 % of the best static split",
            format!("{:.0} %", 100.0 * outcome.pool.mean() / found.max(1.0)),
        ),
    };
    println!("  bar: {bar}; seen: {seen}");
}

/// Makes the pools for each pair of drives, and reads them.
pub fn run(convect: &Path, with: &TwoTiers) -> Result<()> {
    println!(
        "4 KiB random reads, {DEPTH} outstanding, on {} that both tiers have; modelled SSDs limited in their rate\n  {}",
        format_bytes(with.used),
        machine::describe()
    );
    for rates in &with.rates {
        let [fast, slow] = rates.map(|rate| thousands(rate as f64));
        println!("\n  fast tier of {fast} requests a second, slow tier of {slow}");
        let mut stage = Stage::new(convect, *rates, with.used)?;
        let measured = measure(&stage, with);
        let outcome = stage.daemon.explain(measured)?;
        show(&outcome, rates[0] == rates[1]);
        stage.daemon.stop()?;
    }
    Ok(())
}
