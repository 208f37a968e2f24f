//! The report, for people and for programs.

use super::doors;
use super::judge::{Seen, judge, times};
use crate::failure::{Result, While};
use crate::screen;
use serde::Serialize;
use std::fs;
use std::path::Path;
use units::format_bytes;

/// A phase with an attacker, beside the phases without one.
#[derive(Serialize)]
pub struct Row<'a> {
    /// The results.
    #[serde(flatten)]
    pub seen: &'a Seen,
    /// Each victim's p99, relative to that without an attacker.
    pub times: Vec<f64>,
    /// Exceeded limits.
    pub faults: Vec<String>,
}

/// The phases without an attacker that are nearest to one, before and after.
fn beside(all: &[Seen], index: usize) -> Option<[&Seen; 2]> {
    let is_base = |seen: &&Seen| seen.attacker.is_none();
    let before = all[..index].iter().rev().find(is_base);
    let after = all[index..].iter().find(is_base);
    Some([before.or(after)?, after.or(before)?])
}

/// A row for each phase.
pub fn rows(all: &[Seen], judge_latency: bool) -> Vec<Row<'_>> {
    let row = |(index, seen)| {
        let seen: &Seen = seen;
        let bases = beside(all, index).filter(|_| seen.attacker.is_some());
        let times = bases.map(|bases| {
            let all = 0..seen.victims.len();
            all.map(|index| times(seen, bases, index)).collect()
        });
        Row {
            seen,
            times: times.unwrap_or_default(),
            faults: judge(seen, bases.filter(|_| judge_latency)),
        }
    };
    all.iter().enumerate().map(row).collect()
}

fn cells(row: &Row<'_>) -> Vec<String> {
    let seen = row.seen;
    let mut cells = vec![seen.attacker.unwrap_or("nobody").to_owned()];
    cells.push(format!("{:.0}", seen.seconds));
    for (index, victim) in seen.victims.iter().enumerate() {
        let p99 = format!("{:.2}", victim.p99_us / 1e3);
        cells.push(match (&victim.lost, row.times.get(index)) {
            (Some(_), _) => "lost".to_owned(),
            (None, Some(times)) => format!("{p99} ({times:.1}x)"),
            (None, None) => p99,
        });
    }
    let above = seen.most.memory.saturating_sub(seen.idle_memory);
    let doors = seen.doors.iter();
    let open = doors.filter(|door| door.open_in_the_end).count();
    let logged = seen.most.log.saturating_sub(seen.before.log);
    cells.extend([
        format!("{open}/{}", doors::ALL.len()),
        format_bytes(above),
        format_bytes(seen.request_memory),
        seen.waiting.to_string(),
        format!("{} ({})", seen.most.threads, seen.after.threads),
        format!("{} ({})", seen.most.descriptors, seen.after.descriptors),
        format_bytes(logged),
        format!("{}/{}", seen.attack.deeds, seen.attack.refusals),
        match row.faults.is_empty() {
            true => "ok".to_owned(),
            false => "FAULT".to_owned(),
        },
    ]);
    cells
}

/// For people.
pub fn table(rows: &[Row<'_>]) -> String {
    let mut head = vec!["attacker", "s"];
    let victims = rows.first().map(|row| &row.seen.victims);
    head.extend(victims.into_iter().flatten().map(|victim| victim.protocol));
    head.extend([
        "doors", "memory", "requests", "waiting", "threads", "files", "log", "deeds", "",
    ]);
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    screen::table(&head, &cells)
}

/// Exceeded limits, a line each.
pub fn faults(rows: &[Row<'_>]) -> Vec<String> {
    let lines = rows.iter().flat_map(|row| {
        let name = row.seen.attacker.unwrap_or("nobody");
        row.faults
            .iter()
            .map(move |fault| format!("{name}: {fault}"))
    });
    lines.collect()
}

/// For programs.
///
/// # Errors
/// When it cannot be written.
pub fn write(rows: &[Row<'_>], path: &Path) -> Result<()> {
    let doing = || format!("the figures cannot be written to {}", path.display());
    let text = serde_json::to_vec_pretty(rows).during(doing)?;
    fs::write(path, text).during(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attacker_is_compared_with_the_phases_beside_it() {
        let phase = |attacker, seconds| Seen {
            attacker,
            seconds,
            ..Seen::default()
        };
        let all = [
            phase(None, 1.0),
            phase(Some("a"), 2.0),
            phase(None, 3.0),
            phase(Some("b"), 4.0),
        ];
        let found = |index| beside(&all, index).map(|bases| bases.map(|base| base.seconds));
        assert_eq!(found(1), Some([1.0, 3.0]));
        assert_eq!(found(3), Some([3.0, 3.0]));
        assert_eq!(beside(&all[1..2], 0).map(|_| ()), None);
    }
}
