//! Whether the output has colours, and the colours of states.

use clap::ColorChoice;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// Decided once, as the output is one for the whole process.
static ENABLED: OnceLock<bool> = OnceLock::new();

const GREEN: u8 = 32;
const YELLOW: u8 = 33;
const RED: u8 = 31;

/// Words in cells of states; among several the first of this list counts.
const WORDS: [(&str, u8); 21] = [
    ("failed", RED),
    ("failures", RED),
    ("failing", RED),
    ("missing", RED),
    ("absent", RED),
    ("full", RED),
    ("critical", RED),
    ("unreachable", RED),
    ("out", RED),
    ("degraded", YELLOW),
    ("warning", YELLOW),
    ("slow", YELLOW),
    ("offline", YELLOW),
    ("syncing", YELLOW),
    ("paused", YELLOW),
    ("cancelled", YELLOW),
    ("deleting", YELLOW),
    ("alerts", YELLOW),
    ("online", GREEN),
    ("ok", GREEN),
    ("well", GREEN),
];

/// Decides by the option `--color`: automatically means on a terminal, unless `NO_COLOR` is set and
/// not empty (no-color.org).
pub fn choose(choice: ColorChoice) {
    ENABLED.get_or_init(|| decide(choice));
}

/// Whether the standard output has colours.
pub fn is_enabled() -> bool {
    *ENABLED.get_or_init(|| decide(ColorChoice::Auto))
}

fn decide(choice: ColorChoice) -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => !plain && std::io::stdout().is_terminal(),
    }
}

fn colour_of(state: &str) -> Option<u8> {
    let is_in = |word: &str| state.split([' ', ',', ':']).any(|part| part == word);
    let known = WORDS.iter().find(|(word, _)| is_in(word));
    known.map(|(_, colour)| *colour)
}

/// A line of a table with its cell in `column` in the colour of the state that it contains; nothing
/// if that has no colour.
pub fn coloured(line: &str, cells: &[String], column: usize) -> Option<String> {
    let state = cells.get(column)?;
    let colour = colour_of(state)?;
    let mut at = 0;
    for cell in &cells[..column] {
        at += line[at..].find(cell.as_str())? + cell.len();
    }
    at += line[at..].find(state.as_str())?;
    let (before, rest) = line.split_at(at);
    let (shown, after) = rest.split_at(state.len());
    Some(format!("{before}\x1b[{colour}m{shown}\x1b[0m{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_of_a_state_is_coloured_by_its_worst_word() {
        for (state, colour) in [
            ("online", Some(GREEN)),
            ("online, slow", Some(YELLOW)),
            ("syncing 10 %", Some(YELLOW)),
            ("missing", Some(RED)),
            ("3 failures: no route", Some(RED)),
            ("running", None),
            ("", None),
        ] {
            assert_eq!(colour_of(state), colour, "{state}");
        }
    }

    #[test]
    fn only_the_cell_in_its_column_is_coloured() {
        let cells = ["online", "4 GiB", "", "online"].map(str::to_owned);
        let line = "online  4 GiB    online";
        let expected = "online  4 GiB    \x1b[32monline\x1b[0m";
        assert_eq!(coloured(line, &cells, 3).as_deref(), Some(expected));
        assert_eq!(coloured(line, &cells, 1), None);
        assert_eq!(coloured(line, &cells, 4), None);
    }
}
