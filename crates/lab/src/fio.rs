//! fio: one load, its figures, and its IOPS of each second.

use crate::failure::{Failure, Result, While};
use crate::process::{Process, describe};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// fio's target.
#[derive(Clone, Debug)]
pub enum Target {
    /// A file, by io_uring and O_DIRECT.
    File(PathBuf),
    /// An NBD export named by what stands before `?socket=`, over a Unix socket.
    Nbd { export: String, socket: PathBuf },
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// 4 KiB random reads.
    RandomRead,
    /// 4 KiB random writes.
    RandomWrite,
    /// 1 MiB writes one after the other.
    Fill,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its target.
    pub target: Target,
    /// Which requests.
    pub pattern: Pattern,
    /// Where its region begins, in bytes.
    pub offset: u64,
    /// How long its region is, in bytes.
    pub size: u64,
    /// How long it continues; a fill ends when it is through.
    pub seconds: u64,
    /// Requests after which it ends, whatever the time.
    pub requests: Option<u64>,
    /// Requests outstanding, over all connections.
    pub depth: u32,
    /// Connections (or threads).
    pub connections: u32,
    /// Bytes of the region that are used, in [`ZONES`] equal zones spread evenly over it; all of
    /// it when none is said.
    pub hot: Option<u64>,
}

/// Zones of a hot set: hot data lies all over a disk, and fio takes each as often as the others.
const ZONES: u64 = 20;

/// fio's results.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Requests a second, over the whole time.
    pub iops: f64,
    /// Mean latency in nanoseconds.
    pub mean_ns: f64,
    /// 99th percentile of the latency in nanoseconds.
    pub p99_ns: f64,
    /// Requests of each whole second.
    pub seconds: Vec<f64>,
    /// Seconds until the last request was answered.
    pub took: f64,
}

/// Requests outstanding in the measurements here.
pub const DEPTH: u32 = 256;
/// How much of fio's words is shown when it fails, in bytes.
const WORDS_MAX: usize = 2000;

impl Load {
    /// 4 KiB requests at the depth of the measurements.
    pub fn random(target: Target, pattern: Pattern, offset: u64, size: u64, seconds: u64) -> Self {
        Self {
            target,
            pattern,
            offset,
            size,
            seconds,
            requests: None,
            depth: DEPTH,
            connections: 2,
            hot: None,
        }
    }

    /// Fills `size` bytes from the beginning.
    pub fn fill(target: Target, size: u64) -> Self {
        let pattern = Pattern::Fill;
        Self {
            target,
            pattern,
            offset: 0,
            size,
            seconds: 0,
            requests: None,
            depth: 32,
            connections: 1,
            hot: None,
        }
    }

    fn arguments(&self, folder: &Path) -> Vec<String> {
        let set = |name: &str, value: &dyn std::fmt::Display| format!("--{name}={value}");
        let depth = self.depth / self.connections;
        let mut arguments = vec![
            set("name", &"lab"),
            set("offset", &self.offset),
            set("size", &self.size),
            set("iodepth", &depth),
            set("numjobs", &self.connections),
            "--group_reporting".to_owned(),
            set("output-format", &"json"),
            set("output", &folder.join("fio.json").display()),
            set("randrepeat", &0),
        ];
        let (requests, block) = match self.pattern {
            Pattern::RandomRead => ("randread", "4k"),
            Pattern::RandomWrite => ("randwrite", "4k"),
            Pattern::Fill => ("write", "1M"),
        };
        arguments.extend([set("rw", &requests), set("bs", &block)]);
        if self.pattern != Pattern::Fill {
            arguments.push("--norandommap".to_owned());
            arguments.push(set("runtime", &self.seconds));
            arguments.push(set("write_iops_log", &folder.join("fio").display()));
            arguments.extend(["--log_avg_msec=1000", "--per_job_logs=0"].map(str::to_owned));
        }
        match self.requests {
            Some(requests) => {
                let each = requests / u64::from(self.connections);
                arguments.push(set("number_ios", &each));
            }
            None if self.pattern != Pattern::Fill => arguments.push("--time_based".to_owned()),
            None => {}
        }
        if let Some(hot) = self.hot {
            let (used, pitch) = (hot / ZONES, self.size / ZONES);
            let zone = format!("{}/{used}:0/{}", 100 / ZONES, pitch - used);
            let zones = vec![zone; ZONES as usize].join(":");
            arguments.push(format!("--random_distribution=zoned_abs:{zones}"));
        }
        match &self.target {
            Target::File(path) => arguments.extend([
                set("ioengine", &"io_uring"),
                "--direct=1".to_owned(),
                set("filename", &path.display()),
            ]),
            Target::Nbd { export, socket } => {
                let uri = format!("nbd+unix:///{export}?socket={}", socket.display());
                arguments.extend([set("ioengine", &"nbd"), set("uri", &uri)]);
            }
        }
        arguments
    }
}

/// fio may print notes before its JSON.
fn read_json(text: &str) -> Result<Value> {
    let begin = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[begin..]).during(|| "fio's output is no JSON".to_owned())
}

fn figures(output: &Value, direction: &str) -> Result<Figures> {
    let part = &output["jobs"][0][direction];
    let number = |value: &Value| value.as_f64();
    let read = || {
        Some(Figures {
            iops: number(&part["iops"])?,
            mean_ns: number(&part["lat_ns"]["mean"])?,
            p99_ns: number(&part["clat_ns"]["percentile"]["99.000000"]).unwrap_or_default(),
            seconds: Vec::new(),
            took: number(&part["runtime"])? / 1000.0,
        })
    };
    read().ok_or_else(|| Failure::new("fio's output lacks its figures: another version?"))
}

/// Lines of `milliseconds, IOPS, ...`, one a job and second, in any order of jobs.
fn seconds(log: &str) -> Vec<f64> {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for line in log.lines() {
        let mut fields = line.split(',').map(str::trim);
        let time = fields.next().and_then(|field| field.parse::<u64>().ok());
        let iops = fields.next().and_then(|field| field.parse::<f64>().ok());
        if let (Some(time), Some(iops)) = (time, iops) {
            // A sample is written when its second ends, give or take some milliseconds.
            *sums.entry((time + 500) / 1000).or_default() += iops;
        }
    }
    sums.into_values().collect()
}

/// Runs a load; `folder` takes its files, `meanwhile` is called while it runs.
pub fn run(load: &Load, folder: &Path, meanwhile: impl FnMut() -> Result<()>) -> Result<Figures> {
    let words = folder.join("fio.err");
    let log = folder.join("fio_iops.log");
    // fio would add to the log of the load before.
    if log.exists() {
        fs::remove_file(&log)?;
    }
    let mut command = Command::new("fio");
    command.args(load.arguments(folder)).current_dir(folder);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&words)?);
    let mut process = Process::start("fio", &mut command)?;
    let status = process.wait(meanwhile)?;
    if !status.success() {
        let mut text = fs::read_to_string(&words).unwrap_or_default();
        text.truncate(text.floor_char_boundary(WORDS_MAX));
        return Err(Failure::new(format!(
            "fio failed with {}: {}",
            describe(status),
            text.trim()
        )));
    }
    let direction = if load.pattern == Pattern::RandomRead {
        "read"
    } else {
        "write"
    };
    let output = read_json(&fs::read_to_string(folder.join("fio.json"))?)?;
    let mut figures = figures(&output, direction)?;
    if load.pattern != Pattern::Fill {
        let log = fs::read_to_string(&log).unwrap_or_default();
        figures.seconds = seconds(&log);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_of_several_jobs_are_added_up() {
        let log = "1000, 10, 0, 4096, 0\n2000, 20, 0, 4096, 0\n1001, 1, 0, 4096, 0\n1999, 2, 0\n";
        assert_eq!(seconds(log), [11.0, 22.0]);
        assert_eq!(seconds("nonsense\n"), [] as [f64; 0]);
    }

    #[test]
    fn figures_are_found_behind_notes() {
        let text = "note: x\n{\"jobs\":[{\"read\":{\"iops\":5.5,\"runtime\":1500,\"lat_ns\":{\"mean\":7},\
                    \"clat_ns\":{\"percentile\":{\"99.000000\":9}}}}]}";
        let found = figures(&read_json(text).unwrap(), "read").unwrap();
        assert_eq!((found.iops, found.mean_ns, found.p99_ns), (5.5, 7.0, 9.0));
        assert_eq!(found.took, 1.5);
        assert!(figures(&read_json(text).unwrap(), "write").is_err());
    }
}
