//! `lab`: the laboratory's program, which is installed beside this one.

use crate::Failure;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = "convect-lab";

/// Becomes the laboratory's program, with these arguments; comes back only when it cannot.
pub fn lab(arguments: &[OsString]) -> Result<(), Failure> {
    let here = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("this program does not find itself: {error}")))?;
    let program = here.parent().unwrap_or(Path::new("/")).join(PROGRAM);
    let error = Command::new(&program).args(arguments).exec();
    let program = program.display();
    Err(Failure::Failed(match error.kind() {
        ErrorKind::NotFound => format!(
            "{program} is not there: the package installs it, and `./dev build` in a clone of the repository \
             makes it"
        ),
        _ => format!("{program} cannot be run: {error}"),
    }))
}
