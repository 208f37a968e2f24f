//! The end of the audit log, as anchored in the pools' labels: with access to the state folder
//! alone the log cannot be truncated unnoticed.

use super::secret::sha256_hex;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Format version.
const VERSION: u32 = 1;
/// Digits of a log's name.
const NAME_DIGITS: usize = 16;
/// Maximum length of a host's name that is read, in bytes.
const HOST_MAX: u64 = 256;

/// The end of a log at some point in time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Anchor {
    version: u32,
    /// Identity of the log, since pools move between hosts.
    log: String,
    /// Number and hash of its newest entry.
    pub number: u64,
    /// See `number`.
    pub hash: String,
    /// Number of the first entry in the previous and the current file; 0 for an empty file.
    pub firsts: [u64; 2],
}

impl Anchor {
    /// The anchor of a log with this newest entry.
    pub fn new(log: &str, number: u64, hash: &str, firsts: [u64; 2]) -> Self {
        Self {
            version: VERSION,
            log: log.to_owned(),
            number,
            hash: hash.to_owned(),
            firsts,
        }
    }

    /// Parses the anchor from a label; nothing if it belongs to another log or a newer version.
    pub fn read(text: &str, log: &str) -> Option<Self> {
        let read: Self = serde_json::from_str(text).ok()?;
        (read.version == VERSION && read.log == log).then_some(read)
    }

    /// The label's text.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether files beginning with these entries are a valid continuation: the same files, or
    /// after one rotation.
    pub fn allows(&self, firsts: [u64; 2]) -> bool {
        let rotated = firsts[0] == self.firsts[1] && firsts[1] > self.number;
        firsts == self.firsts || rotated
    }
}

/// The identity of the log in a state folder: stable on this host, different on every other.
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
