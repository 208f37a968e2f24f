//! A real database beside the storm: PostgreSQL under pgbench, its files on ext4 on a volume that is exported as a file by
//! FUSE.
//!
//! Leaves out: whether its commits are kept, which `tests/e2e/postgres.sh` checks.

use crate::failure::{Failure, Result, While};
use crate::process::{Process, describe};
use crate::scratch::Scratch;
use crate::tenants::{POOL, Stage};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The volume, and the policy's owner.
pub const VOLUME: &str = "postgres";
const VOLUME_BYTES: u64 = 2 << 30;
/// Its tables, in multiples of 15 MiB or so.
const SCALE: &str = "20";
/// Connections that pgbench has, on how many threads.
const CLIENTS: &str = "8";
const THREADS: &str = "2";
/// Little memory of its own, so that it reads from the volume.
const SETTINGS: &str = "-c listen_addresses='' -c shared_buffers=32MB -c max_wal_size=256MB";
const USER: &str = "postgres";
/// Where Debian has its programs, by version.
const PROGRAMS: &str = "/usr/lib/postgresql";

/// pgbench's report of a run.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Transactions {
    /// Transactions a second.
    pub per_second: f64,
    /// Mean latency of one in milliseconds.
    pub latency_ms: f64,
}

/// A database that runs. It ends with its value, before the daemon.
pub struct Postgres {
    programs: PathBuf,
    place: Scratch,
    loop_device: Option<String>,
    is_mounted: bool,
    is_started: bool,
}

fn programs() -> Result<PathBuf> {
    let versions = fs::read_dir(PROGRAMS).into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    let found = folders
        .filter(|folder| folder.join("pgbench").is_file())
        .max();
    found.ok_or_else(|| {
        Failure::new(format!(
            "there is no pgbench below {PROGRAMS}: install postgresql, or leave out --postgres"
        ))
    })
}

/// Runs a program and gives what it printed.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.during(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(Failure::new(format!(
            "{name} failed with {}: {}",
            describe(output.status),
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String> {
    output(Command::new(program).args(arguments))
}

impl Postgres {
    /// Creates the volume, a file system, a cluster and its tables.
    ///
    /// # Errors
    /// When this is not root, a program is missing, or one fails.
    pub fn start(stage: &Stage) -> Result<Self> {
        let place = Scratch::new("postgres", 1 << 20)?;
        // The database refuses to run as root, and its user has to reach the mount point.
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755))?;
        let mut database = Self {
            programs: programs()?,
            place,
            loop_device: None,
            is_mounted: false,
            is_started: false,
        };
        database.mount(stage)?;
        database.initialize()?;
        Ok(database)
    }

    fn path(&self, name: &str) -> String {
        self.place.join(name).display().to_string()
    }

    fn mount(&mut self, stage: &Stage) -> Result<()> {
        stage.volume(VOLUME, VOLUME_BYTES)?;
        for folder in ["files", "mnt", "run"] {
            fs::create_dir(self.place.join(folder))?;
        }
        let (files, volume) = (self.path("files"), format!("{POOL}/{VOLUME}"));
        let create = ["export", "create", VOLUME, &volume, "fuse"];
        stage
            .daemon
            .run(&[&create[..], &["--mount", &files]].concat())?;
        let file = self.place.join("files").join(VOLUME);
        let file = file.display().to_string();
        let device = run("losetup", &["--find", "--show", "--direct-io=on", &file])?;
        self.loop_device = Some(device.clone());
        run("mkfs.ext4", &["-q", "-F", &device])?;
        run("mount", &[&device, &self.path("mnt")])?;
        self.is_mounted = true;
        fs::create_dir(self.place.join("mnt/data"))?;
        run("chown", &[USER, &self.path("mnt/data"), &self.path("run")]).map(|_| ())
    }

    /// A program of the database's, as its user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("runuser");
        command
            .args(["-u", USER, "--"])
            .arg(self.programs.join(program))
            .current_dir(self.place.path())
            .env("PGHOST", self.path("run"))
            .env("PGDATABASE", "bench");
        command
    }

    fn initialize(&mut self) -> Result<()> {
        let (data, log) = (self.path("mnt/data"), self.path("run/log"));
        let sockets = format!("{SETTINGS} -c unix_socket_directories={}", self.path("run"));
        output(
            self.command("initdb")
                .args(["-D", &data, "--auth=trust", "-E", "UTF8"]),
        )?;
        // What it starts keeps running, and must not hold our end of a pipe.
        let mut start = self.command("pg_ctl");
        start
            .args([
                "-D", &data, "-w", "-t", "120", "-l", &log, "-o", &sockets, "start",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.is_started = true;
        let status = start.status().during(|| "cannot run pg_ctl".to_owned())?;
        if !status.success() {
            let text = fs::read_to_string(&log).unwrap_or_default();
            return Err(Failure::new(format!("the database does not start: {text}")));
        }
        output(self.command("createdb").arg("bench"))?;
        output(self.command("pgbench").args(["-i", "-q", "-s", SCALE])).map(|_| ())
    }

    /// Runs transactions for a number of seconds.
    ///
    /// # Errors
    /// If pgbench fails, or after an interrupt.
    pub fn bench(&self, seconds: u64) -> Result<Transactions> {
        let said = self.place.join("run/said");
        let mut command = self.command("pgbench");
        command
            .args([
                "-n",
                "-c",
                CLIENTS,
                "-j",
                THREADS,
                "-T",
                &seconds.to_string(),
            ])
            .stdin(Stdio::null())
            .stdout(File::create(&said)?)
            .stderr(Stdio::null());
        let mut process = Process::start("pgbench", &mut command)?;
        let status = process.wait(|| Ok(()))?;
        let text = fs::read_to_string(&said)?;
        match parse(&text) {
            Some(seen) if status.success() => Ok(seen),
            _ => Err(Failure::new(format!(
                "pgbench ended with {}: {text}",
                describe(status)
            ))),
        }
    }

    fn stop(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_started) {
            let data = self.path("mnt/data");
            let mut stop = self.command("pg_ctl");
            output(stop.args(["-D", &data, "-w", "-m", "immediate", "stop"]))?;
        }
        if std::mem::take(&mut self.is_mounted) {
            run("umount", &[&self.path("mnt")])?;
        }
        match self.loop_device.take() {
            Some(device) => run("losetup", &["-d", &device]).map(|_| ()),
            None => Ok(()),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Err(failure) = self.stop() {
            eprintln!("the database is left behind: {failure}");
        }
    }
}

fn number(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let (_, rest) = line.split_once('=')?;
    rest.split_whitespace().next()?.parse().ok()
}

/// pgbench's final output.
fn parse(text: &str) -> Option<Transactions> {
    Some(Transactions {
        per_second: number(text, "tps")?,
        latency_ms: number(text, "latency average")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_prints_is_understood() {
        let text = "transaction type: <builtin: TPC-B (sort of)>\nnumber of clients: 8\n\
                    latency average = 3.214 ms\ninitial connection time = 11.2 ms\n\
                    tps = 2489.111 (without initial connection time)\n";
        let expected = Transactions {
            per_second: 2489.111,
            latency_ms: 3.214,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("pgbench: error: connection failed"), None);
    }
}
