//! Asking before something is lost.

use crate::Failure;
use std::io::{IsTerminal, Write};

/// Asks for `name` on a terminal. `what` says what will be lost.
///
/// # Errors
/// When the person writes something else, or there is no terminal and no `yes`.
pub fn confirm(what: &str, name: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::Failed(format!(
            "{what}; there is no terminal to ask on: add --yes to go on"
        )));
    }
    let mut error = std::io::stderr();
    let asked = write!(error, "{what}.\nType {name} to go on: ").and_then(|()| error.flush());
    asked.map_err(|error| Failure::output(&error))?;
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::Failed(format!("cannot read the answer: {error}")))?;
    if line.trim() == name {
        Ok(())
    } else {
        Err(Failure::Failed(
            "not confirmed: nothing was done".to_owned(),
        ))
    }
}
