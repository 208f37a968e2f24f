//! Confirmation of destructive commands.

use crate::Failure;
use std::io::{IsTerminal, Write};

/// The query of an operation that hosts' sessions, or exports, would prevent.
pub fn query_of(force: bool) -> &'static [(&'static str, &'static str)] {
    match force {
        true => &[("force", "true")],
        false => &[],
    }
}

/// Asks the user to type `name`. `what` says what will be lost.
///
/// # Errors
/// When the user types something else, or there is no terminal and no `yes`.
pub fn confirm(what: &str, name: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::refused(format!(
            "{what}; cannot ask for confirmation without a terminal: add --yes to continue"
        )));
    }
    let mut error = std::io::stderr();
    let asked = write!(error, "{what}.\nType {name} to continue: ").and_then(|()| error.flush());
    asked.map_err(|error| Failure::output(&error))?;
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::Failed(format!("cannot read the confirmation: {error}")))?;
    if line.trim() == name {
        Ok(())
    } else {
        Err(Failure::refused("not confirmed: nothing was changed"))
    }
}
