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

/// A cell as it is shown, in the colour of the state that it contains, if that has one.
pub fn of_state(shown: &str, state: &str) -> String {
    match colour_of(state) {
        Some(colour) => format!("\x1b[{colour}m{shown}\x1b[0m"),
        None => shown.to_owned(),
    }
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
    fn cut_cell_has_the_colour_of_the_whole_state() {
        assert_eq!(of_state("3 fai…", "3 failures: a"), "\x1b[31m3 fai…\x1b[0m");
        assert_eq!(of_state("running", "running"), "running");
    }
}
