//! `convect lab`: runs the separate program `convect-lab`, which is installed beside this one.

use crate::Failure;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "convect-lab";

/// Replaces the process by `convect-lab` with these arguments; returns only on failure.
pub fn lab(arguments: &[OsString]) -> Result<(), Failure> {
    let here = std::env::current_exe().map_err(|error| {
        Failure::Failed(format!(
            "cannot determine the path of this program: {error}"
        ))
    })?;
    let program = here.parent().unwrap_or(Path::new("/")).join(PROGRAM);
    let error = Command::new(&program).args(arguments).exec();
    let program = program.display();
    Err(Failure::Failed(match error.kind() {
        ErrorKind::NotFound => format!(
            "{program} is not installed: install the package, or run `./dev build` in a clone of \
             the repository"
        ),
        _ => format!("{program} cannot be run: {error}"),
    }))
}
