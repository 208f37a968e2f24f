//! The complete command line: the declared arguments with the examples of each command.

use crate::arguments::Arguments;
use crate::examples::examples;
use clap::builder::StyledStr;
use clap::{Command, CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;

/// The program's command with everything beneath it.
pub fn grammar() -> Command {
    with_examples(Arguments::command(), "", &examples())
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

/// Adds the examples of the command that `path` selects, and of those beneath it.
fn with_examples(command: Command, path: &str, all: &BTreeMap<&str, &str>) -> Command {
    let command = match all.get(path) {
        Some(lines) => append(command, lines),
        None => command,
    };
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        with_examples(below, path.trim_start(), all)
    })
}

/// Ends a command's help with these lines.
fn append(command: Command, lines: &str) -> Command {
    let header = command.get_styles().get_header();
    let mut examples = format!("{header}Examples:{header:#}");
    for line in lines.lines() {
        let _ = write!(examples, "\n  {line}");
    }
    let behind = |text: &StyledStr| format!("{}\n\n{examples}", text.ansi());
    let long = command.get_after_long_help().map(behind);
    let any = command.get_after_help().map(behind);
    let command = command.after_help(any.unwrap_or(examples));
    match long {
        Some(long) => command.after_long_help(long),
        None => command,
    }
}
