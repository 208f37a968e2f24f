//! The complete command line: the declared arguments, with examples and exit codes in the help.

use crate::arguments::Arguments;
use crate::examples::examples;
use crate::exit_codes::{ExitCodes, exit_codes};
use clap::builder::StyledStr;
use clap::{Command, CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;

/// Commands whose help lists their exit codes: the program's own, and those with a meaning of their own.
const WITH_EXIT_CODES: [&str; 4] = ["", "check", "repair", "restore"];

/// The program's command with everything beneath it.
pub fn grammar() -> Command {
    complete(Arguments::command(), "", &examples())
}

/// Parses a command line, which begins with the program's name.
///
/// # Errors
/// When it is malformed, or requests help or the version, which the error then contains.
pub fn parse_line(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = grammar();
    let mut matches = command.try_get_matches_from_mut(words)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Completes the help of the command that `path` selects, and of those beneath it.
fn complete(mut command: Command, path: &str, all: &BTreeMap<&str, &str>) -> Command {
    if WITH_EXIT_CODES.contains(&path) {
        command = append(command, &listed(exit_codes(path)));
    }
    if let Some(lines) = all.get(path) {
        let header = *command.get_styles().get_header();
        let mut text = format!("{header}Examples:{header:#}");
        for line in lines.lines() {
            let _ = write!(text, "\n  {line}");
        }
        command = append(command, &text);
    }
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        complete(below, path.trim_start(), all)
    })
}

fn listed(codes: ExitCodes) -> String {
    let codes = codes.iter().map(|(code, text)| format!("{code} {text}"));
    format!("Exit codes: {}.", codes.collect::<Vec<_>>().join("; "))
}

/// Adds a paragraph at the end of a command's help.
fn append(command: Command, text: &str) -> Command {
    let behind = |before: &StyledStr| format!("{}\n\n{text}", before.ansi());
    let long = command.get_after_long_help().map(behind);
    let any = command.get_after_help().map(behind);
    let command = command.after_help(any.unwrap_or_else(|| text.to_owned()));
    match long {
        Some(long) => command.after_long_help(long),
        None => command,
    }
}
