//! A daemon of our own: configured, started, asked, killed, stopped.

use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::process::{Process, describe};
use api::v1::{Counters, Export, JobList, Pool, Snapshot, SnapshotList, Volume, VolumeMap, WhatIf};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout of a start, far above the expected time.
const START_TIME: Duration = Duration::from_secs(120);
/// How much of the daemon's log is shown when it fails, in lines.
const LOG_LINES: usize = 20;

/// A daemon in a folder.
pub struct Daemon {
    convect: PathBuf,
    folder: PathBuf,
    process: Option<Process>,
}

/// The `convect` command: the one given, or the one beside this program.
pub fn find_binary(given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("convect"),
    };
    match path.canonicalize() {
        Ok(path) if path.is_file() => Ok(path),
        _ => Err(Failure::new(format!(
            "there is no convect command at {}: build it (./dev build) or name it with --convect",
            path.display()
        ))),
    }
}

impl Daemon {
    /// Starts one whose socket, state and log are in `folder`. `config` is more TOML.
    pub fn start(convect: &Path, folder: &Path, config: &str) -> Result<Self> {
        let mut daemon = Self {
            convect: convect.to_owned(),
            folder: folder.to_owned(),
            process: None,
        };
        let text = format!(
            "socket = {:?}\nstate_dir = {:?}\n{config}",
            daemon.socket(),
            folder.join("state")
        );
        fs::write(daemon.folder.join("convect.toml"), text)?;
        daemon.launch()?;
        Ok(daemon)
    }

    /// The socket that the command line uses.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("convect.sock")
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("convect.log")
    }

    /// Its process number.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("a running daemon").pid()
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    fn died(&self, how: &str) -> Failure {
        Failure::new(format!(
            "the daemon ended with {how}; the end of its log:\n{}",
            self.log_tail()
        ))
    }

    /// Starts it again; returns how long it took until it said that it serves.
    pub fn launch(&mut self) -> Result<Duration> {
        let said = self.folder.join("convect.out");
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.log())?;
        let mut command = Command::new(&self.convect);
        command
            .args(["serve", "--config"])
            .arg(self.folder.join("convect.toml"))
            // A daemon of the user is left alone.
            .env_remove("CONVECT_SOCKET")
            .stdin(Stdio::null())
            .stdout(File::create(&said)?)
            .stderr(log);
        let begun = Instant::now();
        let mut process = Process::start("the daemon", &mut command)?;
        let ready = interrupt::wait_for(START_TIME, || {
            if let Some(status) = process.ended()? {
                return Err(self.died(&describe(status)));
            }
            Ok(fs::read_to_string(&said)?
                .lines()
                .any(|line| line == "ready"))
        })?;
        let took = begun.elapsed();
        self.process = Some(process);
        match ready {
            true => Ok(took),
            false => Err(Failure::new(format!(
                "the daemon does not serve after {START_TIME:?}; the end of its log:\n{}",
                self.log_tail()
            ))),
        }
    }

    /// An error when it ended by itself.
    pub fn check(&mut self) -> Result<()> {
        let ended = match &mut self.process {
            Some(process) => process.ended()?,
            None => None,
        };
        ended.map_or(Ok(()), |status| Err(self.died(&describe(status))))
    }

    /// The result, or the error: the daemon's end is more informative than its client's error.
    pub fn explain<T>(&mut self, measured: Result<T>) -> Result<T> {
        if measured.is_err() && !interrupt::asked() {
            self.check()?;
        }
        measured
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self) -> Result<()> {
        self.check()?;
        self.process
            .take()
            .map_or(Ok(()), |mut process| process.kill())
    }

    /// Ends it in order.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        let status = process.stop()?;
        if status.success() {
            Ok(())
        } else {
            Err(self.died(&describe(status)))
        }
    }

    /// A `convect` command for this daemon.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.convect);
        command
            .arg("--socket")
            .arg(self.socket())
            .arg("--json")
            .args(arguments);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command and gives what it printed.
    pub fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = self
            .command(arguments)
            .output()
            .during(|| "cannot run convect".to_owned())?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let error = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!(
            "`convect {}` failed with {}: {}",
            arguments.join(" "),
            describe(output.status),
            error.trim()
        )))
    }

    /// Runs a command that may take long, and calls `meanwhile` until it ends.
    pub fn run_long(
        &self,
        arguments: &[&str],
        meanwhile: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null());
        let mut process = Process::start("convect", &mut command)?;
        let status = process.wait(meanwhile)?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "`convect {}` failed with {}",
                arguments.join(" "),
                describe(status)
            ))),
        }
    }

    /// Asks for a change without the start of a command: a request of the interface.
    pub fn post(&self, path: &str, body: &impl Serialize) -> Result<()> {
        self.ask_for("POST", path, body)
    }

    /// The same of an object that there is.
    pub fn put(&self, path: &str, body: &impl Serialize) -> Result<()> {
        self.ask_for("PUT", path, body)
    }

    fn ask_for(&self, method: &str, path: &str, body: &impl Serialize) -> Result<()> {
        let asking = || format!("{method} {path}");
        let body = serde_json::to_string(body).during(asking)?;
        let mut stream = UnixStream::connect(self.socket())?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: convect\r\nConnection: close\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).during(asking)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).during(asking)?;
        match answer.starts_with("HTTP/1.1 2") {
            true => Ok(()),
            false => Err(Failure::new(format!("{method} {path}: {answer}"))),
        }
    }

    fn ask<T: DeserializeOwned>(&self, arguments: &[&str]) -> Result<T> {
        let answer = self.run(arguments)?;
        serde_json::from_slice(&answer)
            .during(|| format!("`convect {}` gave no such JSON", arguments.join(" ")))
    }

    /// A pool's state.
    pub fn pool(&self, pool: &str) -> Result<Pool> {
        self.ask(&["pool", "status", pool])
    }

    /// Counters of a pool.
    pub fn counters(&self, pool: &str) -> Result<Counters> {
        self.ask(&["pool", "iostat", pool])
    }

    /// Forecasts for other sizes of a pool's fast tier.
    pub fn what_if(&self, pool: &str) -> Result<WhatIf> {
        self.ask(&["pool", "what-if", pool])
    }

    /// The snapshots of a volume.
    pub fn snapshots(&self, volume: &str) -> Result<Vec<Snapshot>> {
        let list: SnapshotList = self.ask(&["snapshot", "list", volume])?;
        Ok(list.items)
    }

    /// A volume's state.
    pub fn volume(&self, volume: &str) -> Result<Volume> {
        self.ask(&["volume", "show", volume])
    }

    /// An export's state.
    pub fn export(&self, export: &str) -> Result<Export> {
        self.ask(&["export", "show", export])
    }

    /// Long work, newest first.
    pub fn jobs(&self) -> Result<JobList> {
        self.ask(&["job", "list"])
    }

    /// Where a volume lies.
    pub fn map(&self, volume: &str, cells: usize) -> Result<VolumeMap> {
        self.ask(&["map", volume, "--cells", &cells.to_string()])
    }
}
