//! All manual pages.

use super::{command, configuration};
use crate::arguments::Arguments;
use crate::examples::examples;
use clap::{Command, CommandFactory};
use std::collections::BTreeMap;
use std::io;

fn add(
    into: &mut Vec<(String, String)>,
    command: &Command,
    path: &str,
    examples: &BTreeMap<&str, &str>,
) -> io::Result<()> {
    let lines = examples.get(path).copied().unwrap_or_default();
    let text = command::page(command, path, lines)?;
    into.push((format!("{}.1", command::name(path)), text));
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name());
        add(into, below, path.trim_start(), examples)?;
    }
    Ok(())
}

/// The pages: names of their files, and their sources.
///
/// # Errors
/// When one cannot be rendered.
pub fn pages() -> io::Result<Vec<(String, String)>> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let mut found = vec![("convect.toml.5".to_owned(), configuration::page())];
    add(&mut found, &command, "", &examples())?;
    Ok(found)
}
