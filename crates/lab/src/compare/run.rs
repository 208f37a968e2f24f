//! The rounds.

use super::arguments::Compare;
use super::limit::Limit;
use super::rows::{Group, Judged, ROWS, Row};
use super::stage::{Served, Stage};
use super::system::System;
use super::table::{Measured, Report, show};
use crate::failure::{Result, While};
use crate::load::{Blocks, Content, Figures, Load, Pattern, Watched, measure};
use crate::machine;
use crate::screen::Progress;
use std::path::Path;
use std::time::Duration;

/// Seconds that do not count.
const WARM_UP: u64 = 1;
/// Cores that others may take meanwhile.
const QUIET: f64 = 0.1;

fn load(with: &Compare, row: &Row, served: &Served) -> Load {
    Load {
        disks: vec![served.disk.clone()],
        first: 1.0,
        blocks: Blocks::of(row.block),
        read_percent: if row.writes { 0 } else { 100 },
        aim: match row.sequential {
            true => Pattern::Sequential,
            false => Pattern::Random,
        }
        .aim(0..with.setup.size, row.block, 1),
        queues: row.queues,
        depth: row.outstanding / row.queues,
        threads: 1,
        // A drive may interrupt one core alone: what has no server asks it from where the servers do.
        cores: vec![match served.pid {
            Some(_) => with.setup.client_core,
            None => with.setup.server_core,
        }],
        polling: true,
        rate: None,
        content: match row.group {
            Group::Null => Content::Zeroes,
            _ => Content::Random,
        },
        warm_up: WARM_UP,
        seconds: with.seconds,
        requests: None,
        seed: 1,
    }
}

/// The systems of a row that serve, and why others do not.
fn ready(
    stage: &mut Stage<'_>,
    with: &Compare,
    row: &Row,
    missing: &mut Vec<String>,
) -> Result<Vec<(System, Served)>> {
    let mut ready = Vec::new();
    for system in row.systems.iter().filter(|system| with.wants(**system)) {
        match stage.served(*system)? {
            Ok(served) => ready.push((*system, served)),
            Err(reason) => {
                let text = format!("{}: {reason}", system.name());
                if !missing.contains(&text) {
                    missing.push(text);
                }
            }
        }
    }
    Ok(ready)
}

/// A measurement, or several when others are busy meanwhile: then that at which they were least.
fn quietest(with: &Compare, row: &Row, served: &Served) -> Result<Figures> {
    let load = load(with, row, served);
    let watched = Watched { server: served.pid };
    let mut best: Option<Figures> = None;
    for _ in 0..=with.again {
        let figures = Figures::from(&measure(&load, watched, |_, _| Ok(true))?);
        if best.is_none_or(|best| figures.other_cores < best.other_cores) {
            best = Some(figures);
        }
        if figures.other_cores <= QUIET {
            break;
        }
    }
    Ok(best.unwrap_or_default())
}

fn row(stage: &mut Stage<'_>, with: &Compare, row: &Row, report: &mut Report) -> Result<()> {
    let ready = ready(stage, with, row, &mut report.missing)?;
    let mut rounds: Vec<Vec<Figures>> = vec![Vec::new(); ready.len()];
    let mut progress = Progress::new();
    for round in 1..=with.rounds {
        for ((system, served), rounds) in ready.iter().zip(&mut rounds) {
            if progress.is_due() {
                progress.draw(&format!(
                    "  {}, round {round}: {}",
                    row.name(),
                    system.name()
                ));
            }
            let doing = || format!("{} by {}", row.name(), system.name());
            rounds.push(quietest(with, row, served).during(doing)?);
        }
    }
    progress.clear();
    let systems = ready.iter().zip(rounds);
    report.rows.push(Measured {
        name: row.name(),
        group: row.group,
        by_core: row.judged == Judged::ByCore,
        systems: systems
            .map(|((system, _), rounds)| (*system, rounds))
            .collect(),
    });
    Ok(())
}

fn limit(with: &Compare, report: &mut Report) -> Result<()> {
    let limit = Limit::new(with.setup.size);
    for _ in 0..with.rounds {
        let time = Duration::from_secs(with.seconds);
        report
            .limit
            .push(limit.measure(with.setup.server_core, time)?);
    }
    Ok(())
}

fn rows(stage: &mut Stage<'_>, with: &Compare, report: &mut Report) -> Result<()> {
    if with.has(Group::Limit) {
        limit(with, report)?;
        write_json(with, report)?;
    }
    for one in ROWS.iter().filter(|row| with.has(row.group)) {
        row(stage, with, one, report)?;
        // What was measured is kept, whatever comes.
        write_json(with, report)?;
    }
    Ok(())
}

fn write_json(with: &Compare, report: &Report) -> Result<()> {
    let Some(path) = &with.json else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(report).during(|| "the figures".to_owned())?;
    std::fs::write(path, text).during(|| format!("cannot write {}", path.display()))
}

/// Measures everything that was requested, and prints it.
///
/// # Errors
/// When Convect does not serve, or a request fails.
pub fn run(convect: &Path, with: &Compare) -> Result<()> {
    let mut report = Report {
        machine: machine::describe(),
        rounds: with.rounds,
        seconds: with.seconds,
        size: with.setup.size,
        policy: with.setup.policy.name(),
        ..Report::default()
    };
    println!(
        "Servers on core {}, one client that polls on core {}; requests to {} of each; {} rounds of {} s\n  {}",
        with.setup.server_core,
        with.setup.client_core,
        units::format_bytes(with.setup.size),
        with.rounds,
        with.seconds,
        report.machine
    );
    let mut stage = Stage::new(convect, &with.setup)?;
    let measured = rows(&mut stage, with, &mut report);
    stage.explain(measured)?;
    stage.stop()?;
    print!("{}", show(&report));
    Ok(())
}
