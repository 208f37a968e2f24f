//! `perf`: samples of a process, and how many there were of each symbol.

use crate::failure::{Failure, Result, While};
use crate::process::{Process, describe};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Samples a second: no divisor of what a kernel does regularly.
const RATE: &str = "1999";

/// A symbol's part of all samples.
#[derive(Clone, PartialEq, Debug)]
pub struct Sampled {
    pub file: String,
    pub symbol: String,
    /// From 0 to 1.
    pub share: f64,
}

/// A running `perf record`.
pub struct Recording<'a> {
    process: Process,
    folder: &'a Path,
}

/// Counts a process's instructions for a while; none where this machine has no counter for them.
pub struct Counting<'a> {
    process: Process,
    folder: &'a Path,
}

fn start(arguments: &[&str], words: &Path) -> Result<Process> {
    let mut command = Command::new("perf");
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command.stderr(File::create(words)?);
    let doing = || "`perf` is needed (Debian's package linux-perf)".to_owned();
    Process::start("perf", &mut command).during(doing)
}

impl<'a> Recording<'a> {
    /// Begins to sample a process for a number of seconds.
    ///
    /// # Errors
    /// When there is no `perf`.
    pub fn start(pid: u32, seconds: u64, folder: &'a Path) -> Result<Self> {
        let (pid, seconds) = (pid.to_string(), seconds.to_string());
        let data = folder.join("perf.data").display().to_string();
        let arguments = [
            "record",
            "-e",
            "cpu-clock",
            "-F",
            RATE,
            "-p",
            &pid,
            "-o",
            &data,
            "--",
            "sleep",
            &seconds,
        ];
        let process = start(&arguments, &folder.join("perf.err"))?;
        Ok(Self { process, folder })
    }

    /// Waits for its end, and gives the symbols, those of most samples first.
    ///
    /// # Errors
    /// When `perf` fails.
    pub fn symbols(mut self) -> Result<Vec<Sampled>> {
        let status = self.process.wait(|| Ok(()))?;
        if !status.success() {
            let words = std::fs::read_to_string(self.folder.join("perf.err")).unwrap_or_default();
            let how = describe(status);
            return Err(Failure::new(format!(
                "perf failed with {how}: {}",
                words.trim()
            )));
        }
        let mut command = Command::new("perf");
        command.args(["report", "--stdio", "--no-children", "-g", "none"]);
        command.args(["-F", "overhead,dso,sym", "-t", ";", "-i"]);
        command.arg(self.folder.join("perf.data"));
        let output = command
            .output()
            .during(|| "cannot run perf report".to_owned())?;
        Ok(symbols(&String::from_utf8_lossy(&output.stdout)))
    }
}

impl<'a> Counting<'a> {
    /// Begins to count a process's instructions for a number of seconds.
    ///
    /// # Errors
    /// When there is no `perf`.
    pub fn start(pid: u32, seconds: u64, folder: &'a Path) -> Result<Self> {
        let (pid, seconds) = (pid.to_string(), seconds.to_string());
        let arguments = [
            "stat",
            "-x",
            ";",
            "-e",
            "instructions",
            "-p",
            &pid,
            "--",
            "sleep",
            &seconds,
        ];
        let process = start(&arguments, &folder.join("perf.stat"))?;
        Ok(Self { process, folder })
    }

    /// Waits for its end, and gives the count where there is one.
    ///
    /// # Errors
    /// When a person ends it.
    pub fn instructions(mut self) -> Result<Option<u64>> {
        self.process.wait(|| Ok(()))?;
        let text = std::fs::read_to_string(self.folder.join("perf.stat")).unwrap_or_default();
        Ok(text
            .split(';')
            .next()
            .and_then(|field| field.trim().parse().ok()))
    }
}

/// Lines of `5.00%;convect;[.] symbol`.
fn symbols(report: &str) -> Vec<Sampled> {
    let line = |line: &str| {
        let mut fields = line.splitn(3, ';').map(str::trim);
        let percent: f64 = fields.next()?.strip_suffix('%')?.parse().ok()?;
        Some(Sampled {
            file: fields.next()?.to_owned(),
            symbol: fields.next()?.to_owned(),
            share: percent / 100.0,
        })
    };
    report.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_read_between_notes() {
        let report = "# Samples: 3K\n\n    32.49%;libc.so.6;[.] __memmove\n 8.17%;convect;[.] <a as b>::c; d\n";
        let found = symbols(report);
        assert_eq!(found.len(), 2);
        assert_eq!((&found[0].file[..], found[0].share), ("libc.so.6", 0.3249));
        assert_eq!(found[1].symbol, "[.] <a as b>::c; d");
    }
}
