//! Output: tables, or JSON of the API.

use crate::{Failure, colour, visible};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::de::DeserializeOwned;
use std::io::Write;

/// Prints lines to the standard output; terminal control characters are escaped
/// ([`visible::lines`]).
///
/// # Errors
/// When the output is closed.
pub fn print(text: &str) -> Result<(), Failure> {
    print_styled(&visible::lines(text))
}

/// Prints text with colours; untrusted text in it was escaped by [`read`].
///
/// # Errors
/// When the output is closed.
pub fn print_styled(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output(&error))
}

/// Parses a response and escapes terminal control characters in its texts ([`visible::answer`]).
///
/// # Errors
/// When the daemon has an incompatible version.
pub fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Failure> {
    let mut value = parse(answer)?;
    visible::answer(&mut value);
    serde_json::from_value(value).map_err(|error| unreadable(&error))
}

fn parse(answer: &[u8]) -> Result<serde_json::Value, Failure> {
    serde_json::from_slice(answer).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::Failed(format!(
        "cannot parse the daemon's response ({error}): use the convect client of its version"
    ))
}

/// Prints a response as JSON: indented, or in one line.
///
/// # Errors
/// When the output is closed, or the response is not JSON.
pub fn print_json(answer: &[u8], indented: bool) -> Result<(), Failure> {
    if answer.is_empty() {
        return Ok(());
    }
    let value = parse(answer)?;
    let text = match indented {
        true => format!("{value:#}\n"),
        false => format!("{value}\n"),
    };
    print(&text)
}

/// Headers of the columns with states.
const STATES: [&str; 3] = ["STATE", "HEALTH", "SEVERITY"];

/// A table without borders; columns whose header begins with `>` are right-aligned. A table with
/// states may have colours: it is printed by [`print_styled`].
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(head.iter().map(|name| name.trim_start_matches('>')));
    table.add_rows(&rows);
    for (index, name) in head.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, 2));
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let text = format!("{}\n", table.trim_fmt());
    match head.iter().position(|name| STATES.contains(name)) {
        Some(column) if colour::is_enabled() => with_colours(&text, &rows, column),
        _ => text,
    }
}

/// A table, its first line the header, with the states in `column` coloured.
fn with_colours(text: &str, rows: &[Vec<String>], column: usize) -> String {
    let head = std::iter::once(None);
    let cells = head
        .chain(rows.iter().map(Some))
        .chain(std::iter::repeat(None));
    let lines = text.lines().zip(cells);
    let coloured = lines.map(|(line, cells)| {
        let coloured = cells.and_then(|cells| colour::coloured(line, cells, column));
        coloured.unwrap_or_else(|| line.to_owned()) + "\n"
    });
    coloured.collect()
}

/// Name-value pairs, one per line.
pub fn facts(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    lines
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{:<width$} {value}\n", format!("{name}:")))
        .collect()
}
