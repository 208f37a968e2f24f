//! A loop device over a file.

use crate::failure::{Failure, Result, While};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A loop device, taken away when this goes.
pub struct LoopDevice(PathBuf);

impl LoopDevice {
    /// Puts a free one over `file`, past the page cache.
    ///
    /// # Errors
    /// When there is none, or who calls may not.
    pub fn over(file: &Path) -> Result<Self> {
        let mut command = Command::new("losetup");
        command.args(["--find", "--show", "--direct-io=on"]);
        let output = command.arg(file).stdin(Stdio::null()).output();
        let output = output.during(|| "cannot run losetup".to_owned())?;
        let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.success() && !device.is_empty() {
            true => Ok(Self(device.into())),
            false => Err(Failure::new(format!(
                "no loop device over {}: {}; it takes root, or leave it out with --only",
                file.display(),
                String::from_utf8_lossy(&output.stderr).trim()
            ))),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let mut command = Command::new("losetup");
        let status = command.arg("--detach").arg(&self.0).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!(
                "{0} is still there: take it away with 'losetup --detach {0}'",
                self.0.display()
            );
        }
    }
}
