//! fio with verification beside our own verifier, on a volume of its own.
//!
//! Two regions: on one fio writes and checks what it wrote while the daemon runs; on the other it
//! ends with a flush before the kill, and reads everything back after the restart.

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::process::{Process, describe};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// Size of fio's volume in bytes.
pub const VOLUME: u64 = 192 * MIB;
const LIVE: u64 = 128 * MIB;
const KEPT: u64 = 32 * MIB;
/// fio ends by itself when its server is gone; this is for when it does not.
const END_TIME: Duration = Duration::from_secs(300);

/// Where fio writes.
pub struct FioLoad {
    /// The export's socket.
    pub socket: PathBuf,
    /// Its name.
    pub export: &'static str,
    /// For fio's files.
    pub folder: PathBuf,
}

impl FioLoad {
    fn command(&self, words: &Path, arguments: &[&str]) -> Result<Command> {
        let uri = format!(
            "--uri=nbd+unix:///{}?socket={}",
            self.export,
            self.socket.display()
        );
        let mut command = Command::new("fio");
        command.args([
            "--name=verify",
            "--ioengine=nbd",
            &uri,
            "--bs=4k",
            "--rw=randwrite",
        ]);
        command.args([
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_state_save=0",
        ]);
        command
            .args(["--iodepth=16", "--output-format=terse"])
            .args(arguments);
        let log = File::create(words)?;
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    fn words(&self, name: &str) -> PathBuf {
        self.folder.join(format!("fio-{name}.log"))
    }

    /// Begins to write and check until the daemon is gone.
    pub fn start(&self) -> Result<Process> {
        let size = format!("--size={LIVE}");
        let arguments = [
            &size,
            "--verify_backlog=128",
            "--fsync=32",
            "--time_based",
            "--runtime=600",
        ];
        let mut command = self.command(&self.words("live"), &arguments)?;
        Process::start("fio", &mut command)
    }

    /// Ends a load whose daemon was killed: fio must not have read anything wrong.
    pub fn finish(&self, mut process: Process) -> Result<()> {
        let ended = interrupt::wait_for(END_TIME, || Ok(process.ended()?.is_some()))?;
        let words = fs::read_to_string(self.words("live")).unwrap_or_default();
        if !ended {
            return Err(Failure::new(format!(
                "fio did not notice the kill: {words}"
            )));
        }
        match words.contains("verify:") || words.contains("verify failed") {
            true => Err(Failure::new(format!(
                "fio read back something wrong: {words}"
            ))),
            false => Ok(()),
        }
    }

    fn kept(&self, name: &str, seed: u64, more: &[&str]) -> Result<()> {
        let (size, offset) = (format!("--size={KEPT}"), format!("--offset={LIVE}"));
        let seed = format!("--randseed={seed}");
        let mut arguments = vec![size.as_str(), &offset, &seed, "--randrepeat=1"];
        arguments.extend(more);
        let mut command = self.command(&self.words(name), &arguments)?;
        let mut process = Process::start("fio", &mut command)?;
        let status = process.wait(|| Ok(()))?;
        if status.success() {
            return Ok(());
        }
        let words = fs::read_to_string(self.words(name)).unwrap_or_default();
        Err(Failure::new(format!(
            "fio ({name}) ended with {}: {words}",
            describe(status)
        )))
    }

    /// Writes the kept region and flushes it.
    pub fn write_kept(&self, seed: u64) -> Result<()> {
        self.kept("write", seed, &["--do_verify=0", "--end_fsync=1"])
    }

    /// Checks the kept region.
    pub fn check_kept(&self, seed: u64) -> Result<()> {
        self.kept("check", seed, &["--verify_only"])
    }
}
