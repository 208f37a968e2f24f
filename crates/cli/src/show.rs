//! Output: tables, or JSON of the API.

use crate::terminal::{self, fold};
use crate::{Failure, visible};
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

/// Name-value pairs, one per line; on a terminal long values continue below themselves.
pub fn facts(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    lines
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| {
            let line = format!("{:<width$} {value}", format!("{name}:"));
            fold(&line, width + 1, terminal::width()) + "\n"
        })
        .collect()
}
