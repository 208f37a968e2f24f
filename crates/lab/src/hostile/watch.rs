//! The daemon's resource usage, sampled.

use crate::failure::Result;
use crate::machine;
use serde::Serialize;
use std::fs;
use std::path::Path;

/// Resource usage of a process at a moment.
#[derive(Serialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Resident bytes, without what it shares with guests and other processes.
    pub memory: u64,
    /// Threads.
    pub threads: u64,
    /// Descriptors.
    pub descriptors: u64,
    /// Bytes of its log.
    pub log: u64,
}

fn entries(path: &str) -> Result<u64> {
    Ok(fs::read_dir(path)?.count() as u64)
}

impl Taken {
    /// Of a process that logs there.
    ///
    /// # Errors
    /// When it has ended.
    pub fn now(pid: u32, log: &Path) -> Result<Self> {
        let shared = machine::shared_bytes(pid)?;
        Ok(Self {
            memory: machine::resident_bytes(pid)?.saturating_sub(shared),
            threads: entries(&format!("/proc/{pid}/task"))?,
            descriptors: entries(&format!("/proc/{pid}/fd"))?,
            log: fs::metadata(log).map_or(0, |file| file.len()),
        })
    }

    /// The greater of each.
    pub fn most(self, other: Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            threads: self.threads.max(other.threads),
            descriptors: self.descriptors.max(other.descriptors),
            log: self.log.max(other.log),
        }
    }
}
