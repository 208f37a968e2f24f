//! The end of the log of changes, as pools' labels keep it: whoever changes the state folder alone cannot cut the log.

use super::secret::sha256_hex;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version of what is written.
const VERSION: u32 = 1;
/// Digits of a log's name that are kept.
const NAME_DIGITS: usize = 16;
/// Longest name of a host that is read, in bytes.
const HOST_MAX: u64 = 256;

/// The end of a log at some time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Anchor {
    version: u32,
    /// Which log it is: pools move from host to host.
    log: String,
    /// Number and hash of its newest entry.
    pub number: u64,
    /// See `number`.
    pub hash: String,
    /// Number of the first entry of the previous file and of the current one; 0 for a file without entries.
    pub firsts: [u64; 2],
}

impl Anchor {
    /// That of a log whose newest entry is so.
    pub fn new(log: &str, number: u64, hash: &str, firsts: [u64; 2]) -> Self {
        Self {
            version: VERSION,
            log: log.to_owned(),
            number,
            hash: hash.to_owned(),
            firsts,
        }
    }

    /// Reads what a label has; nothing where it is of another log, or of a newer daemon.
    pub fn read(text: &str, log: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(text).ok()?;
        (read.version == VERSION && read.log == log).then_some(read)
    }

    /// As a label has it.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether files that begin with these entries can be what became of those that there were: the same, or after a new
    /// file was begun once.
    pub fn allows(&self, firsts: [u64; 2]) -> bool {
        let rotated = firsts[0] == self.firsts[1] && firsts[1] > self.number;
        firsts == self.firsts || rotated
    }
}

/// The name of the log in a state folder of this host: the same at every start, and another one on every other host.
pub fn log_name(folder: &Path) -> String {
    let host = ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .iter()
        .find_map(|path| reactor::read_regular(Path::new(path), HOST_MAX).ok())
        .unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut name = sha256_hex(&[&host, b"\n", folder.as_os_str().as_encoded_bytes()]);
    name.truncate(NAME_DIGITS);
    name
}
