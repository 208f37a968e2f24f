//! The load, and the table.

use super::arguments::Breakdown;
use super::layers::layer;
use super::perf::{Counting, Recording, Sampled};
use crate::compare::Stage;
use crate::failure::{Failure, Result, While};
use crate::load::{Content, Figures, Load, Pattern, Watched, measure};
use crate::machine;
use crate::scratch::Scratch;
use crate::screen::{self, thousands};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Seconds that do not count; they are sampled nevertheless.
const WARM_UP: u64 = 1;
/// Room for the samples.
const ROOM: u64 = 256 << 20;

/// A layer's part.
#[derive(Serialize, Clone, PartialEq, Debug)]
struct Part {
    layer: &'static str,
    /// Nanoseconds of processor time for a request.
    ns: f64,
    /// From 0 to 1.
    share: f64,
    /// Its symbols that take most, in nanoseconds for a request.
    symbols: Vec<(String, f64)>,
}

/// Everything that was found.
#[derive(Serialize, Debug)]
struct Found {
    figures: Figures,
    /// Nanoseconds of processor time for a request.
    ns: f64,
    /// Instructions for a request, where this machine counts them.
    instructions: Option<f64>,
    parts: Vec<Part>,
}

/// Groups symbols by layer; `ns` is what they come to together.
fn parts(sampled: &[Sampled], ns: f64, symbols: usize) -> Vec<Part> {
    let mut layers: BTreeMap<&'static str, Vec<&Sampled>> = BTreeMap::new();
    for one in sampled {
        let name = layer(&one.file, &one.symbol);
        layers.entry(name).or_default().push(one);
    }
    // What perf rounds to nothing is missing from the sum.
    let all: f64 = sampled.iter().map(|one| one.share).sum();
    let part = |share: f64| share / all.max(f64::MIN_POSITIVE);
    let mut parts: Vec<Part> = layers
        .into_iter()
        .map(|(layer, sampled)| {
            let share = part(sampled.iter().map(|one| one.share).sum());
            let first = sampled.iter().take(symbols);
            let first = first.map(|one| (one.symbol.clone(), ns * part(one.share)));
            Part {
                layer,
                ns: ns * share,
                share,
                symbols: first.collect(),
            }
        })
        .collect();
    parts.sort_by(|one, other| other.ns.total_cmp(&one.ns));
    parts
}

fn load(with: &Breakdown, disk: crate::load::Disk) -> Load {
    Load {
        disks: vec![disk],
        first: 1.0,
        blocks: with.blocks.clone(),
        read_percent: with.reads,
        aim: Pattern::Random.aim(0..with.setup.size, with.blocks.smallest(), 1),
        queues: with.queues,
        depth: with.depth,
        threads: 1,
        cores: vec![with.setup.client_core],
        polling: true,
        rate: None,
        // The only content that null drives give back.
        content: match with.system {
            crate::compare::System::ConvectNull => Content::Zeroes,
            _ => Content::Random,
        },
        warm_up: WARM_UP,
        seconds: with.seconds,
        requests: None,
        seed: 1,
    }
}

fn find(stage: &mut Stage<'_>, with: &Breakdown) -> Result<Found> {
    let served = stage.served(with.system)?.map_err(Failure::new)?;
    let none = || {
        Failure::new(format!(
            "{} is no server: take another --system",
            with.system.name()
        ))
    };
    let pid = served.pid.ok_or_else(none)?;
    let scratch = Scratch::new("breakdown", ROOM)?;
    let load = load(with, served.disk);
    let watched = Watched { server: Some(pid) };
    let all = WARM_UP + with.seconds;
    let recording = Recording::start(pid, all, scratch.path())?;
    let figures = Figures::from(&measure(&load, watched, |_, _| Ok(true))?);
    let sampled = recording.symbols()?;
    // Not beside the samples, which cost instructions of their own.
    let counting = Counting::start(pid, all, scratch.path())?;
    let counted = measure(&load, watched, |_, _| Ok(true))?;
    let requests = Figures::from(&counted).all.iops * all as f64;
    let instructions = counting.instructions()?;
    let ns = figures.iops_per_server_core.map_or(0.0, |iops| 1e9 / iops);
    Ok(Found {
        figures,
        ns,
        instructions: instructions.map(|count| count as f64 / requests.max(1.0)),
        parts: parts(&sampled, ns, with.symbols),
    })
}

fn show(found: &Found) -> String {
    let rows: Vec<Vec<String>> = found
        .parts
        .iter()
        .flat_map(|part| {
            let percent = format!("{:.1}", 100.0 * part.share);
            let head = vec![part.layer.to_owned(), format!("{:.0}", part.ns), percent];
            let symbols = part.symbols.iter().map(|(symbol, ns)| {
                let symbol: String = symbol.chars().skip(4).take(90).collect();
                vec![format!("    {symbol}"), format!("{ns:.0}"), String::new()]
            });
            std::iter::once(head).chain(symbols).collect::<Vec<_>>()
        })
        .collect();
    let mut text = found.figures.table();
    text += &format!(
        "  {:.0} ns of the server's processor time a request",
        found.ns
    );
    text += &match found.instructions {
        Some(count) => format!(", {} instructions\n\n", thousands(count)),
        None => "; this machine does not count instructions\n\n".to_owned(),
    };
    text + &screen::table(&["", "ns a request", "%"], &rows)
}

/// Runs the load and prints where the time goes.
///
/// # Errors
/// When the server does not serve, or `perf` fails.
pub fn run(convect: &Path, with: &Breakdown) -> Result<()> {
    let mut stage = Stage::new(convect, &with.setup)?;
    let found = find(&mut stage, with);
    let found = stage.explain(found)?;
    stage.stop()?;
    if with.json {
        let text = serde_json::to_string_pretty(&found).during(|| "the figures".to_owned())?;
        println!("{text}");
        return Ok(());
    }
    println!("  {}, {}", with.system.name(), machine::describe());
    print!("{}", show(&found));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_to_the_whole_and_the_greatest_is_first() {
        let sampled = |symbol: &str, share| Sampled {
            file: "convect".to_owned(),
            symbol: format!("[.] {symbol}"),
            share,
        };
        let sampled = [
            sampled("memmove", 0.4),
            sampled("memset", 0.1),
            sampled("crc_fast::checksum", 0.3),
        ];
        let parts = parts(&sampled, 1_000.0, 1);
        let names: Vec<_> = parts
            .iter()
            .map(|part| (part.layer, part.ns.round()))
            .collect();
        assert_eq!(names, [("copy", 625.0), ("checksum", 375.0)]);
        assert_eq!(parts[0].symbols, [("[.] memmove".to_owned(), 500.0)]);
    }
}
