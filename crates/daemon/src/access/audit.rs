//! The audit log: append-only, each line chained to the previous one by a hash (docs/access.md).

use super::anchor::{Anchor, log_name};
use super::secret::sha256_hex;
use crate::lines::{Lines, clip};
use crate::state::StateFiles;
use api::v1::{AuditEntry, AuditList};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;

/// Size of a file in bytes at which the log rotates; only the previous file is kept.
const FILE_MAX: u64 = 16 << 20;
/// Maximum number of entries listed.
const TOLD_MAX: usize = 10_000;
/// Maximum length of a text in an entry, in bytes.
const TEXT_MAX: usize = 512;
/// Previous hash of the first line.
const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A line, without its hash.
#[derive(Serialize, Deserialize)]
struct Line {
    number: u64,
    at_s: u64,
    who: String,
    from: String,
    operation: String,
    subject: String,
    outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<u64>,
}

/// Contents of a new entry.
#[derive(Clone, Copy)]
pub struct Note<'a> {
    pub who: &'a str,
    pub from: &'a str,
    pub operation: &'a str,
    pub subject: &'a str,
    pub outcome: &'a str,
    pub of: Option<u64>,
}

/// The audit log of one daemon.
pub struct Audit {
    lines: Lines,
    last: String,
    told: VecDeque<AuditEntry>,
    broken_at: Option<u64>,
    /// The existing log was read; required before appending.
    loaded: bool,
    /// Number of the first entry in each file; 0 for an empty file.
    firsts: [u64; 2],
    /// Identity of the log.
    name: String,
}

impl Audit {
    /// A log that was not read yet.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            lines: Lines::new(files, "audit.log", FILE_MAX),
            last: BEGINNING.to_owned(),
            told: VecDeque::new(),
            broken_at: None,
            loaded: false,
            firsts: [0; 2],
            name: log_name(files.folder()),
        }
    }

    /// Reads the log and verifies the hash chain. A read error is retried before the next entry.
    pub fn load(&mut self) {
        if let Err(error) = self.try_load() {
            tracing::error!(
                "cannot read the audit log; changes are refused until it is readable: {error}"
            );
        }
    }

    fn try_load(&mut self) -> io::Result<()> {
        let loaded = self.lines.load()?;
        self.loaded = true;
        for (index, line) in loaded.lines.iter().enumerate() {
            let before = self.newest();
            self.take(line, index == 0);
            let file = usize::from(index >= loaded.older);
            if self.firsts[file] == 0 && self.newest() != before {
                self.firsts[file] = self.newest();
            }
        }
        if let Some(number) = self.broken_at {
            tracing::error!(
                "the audit log was modified from entry {number} on: {} does not match its hashes",
                self.lines.path().display()
            );
        }
        Ok(())
    }

    /// Adds a line that was read. Entries before the first line were rotated out.
    fn take(&mut self, line: &[u8], first: bool) {
        let next = self.told.back().map_or(1, |entry| entry.number + 1);
        let text = String::from_utf8_lossy(line);
        let read = text.split_once(' ').and_then(|(hash, json)| {
            let (before, json) = json.split_once(' ')?;
            let line: Line = serde_json::from_str(json).ok()?;
            let right = sha256_hex(&[before.as_bytes(), json.as_bytes()]) == hash;
            let follows = first || (before == self.last && line.number == next);
            Some((hash.to_owned(), line, right && follows))
        });
        // Otherwise the line was torn and terminated at a later start; a complete line would break
        // the chain here.
        if let Some((hash, line, right)) = read {
            if !right {
                self.broken_at.get_or_insert(line.number);
            }
            self.last.clone_from(&hash);
            self.tell(hash, line);
        }
    }

    fn tell(&mut self, hash: String, line: Line) {
        if self.told.len() == TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(AuditEntry {
            number: line.number,
            at_s: line.at_s,
            who: line.who,
            from: line.from,
            operation: line.operation,
            subject: line.subject,
            outcome: line.outcome,
            of: line.of,
            hash,
        });
    }

    /// Number of the newest entry.
    pub fn newest(&self) -> u64 {
        self.told.back().map_or(0, |entry| entry.number)
    }

    /// Appends an entry and returns its number. It survives a crash of the daemon immediately, and
    /// a power failure after the next [`Audit::flush`], some seconds later.
    ///
    /// # Errors
    /// When it cannot be written. The change must not be carried out then.
    pub fn write(&mut self, note: &Note<'_>, at_s: u64) -> io::Result<u64> {
        if !self.loaded {
            self.try_load()?;
        }
        let line = Line {
            number: self.newest() + 1,
            at_s,
            who: clip(note.who, TEXT_MAX),
            from: clip(note.from, TEXT_MAX),
            operation: clip(note.operation, TEXT_MAX),
            subject: clip(note.subject, TEXT_MAX),
            outcome: clip(note.outcome, TEXT_MAX),
            of: note.of,
        };
        let json = serde_json::to_string(&line)?;
        let hash = sha256_hex(&[self.last.as_bytes(), json.as_bytes()]);
        let rotations = self.lines.rotations();
        self.lines.append(&format!("{hash} {} {json}", self.last))?;
        let number = line.number;
        if self.lines.rotations() != rotations {
            self.firsts = [self.firsts[1], number];
        } else if self.firsts[1] == 0 {
            self.firsts[1] = number;
        }
        self.last.clone_from(&hash);
        self.tell(hash, line);
        Ok(number)
    }

    /// The anchor to store in the labels; nothing while the log is empty or known to be modified.
    pub fn anchor(&self) -> Option<Anchor> {
        let newest = self.told.back()?;
        let good = self.loaded && self.broken_at.is_none();
        good.then(|| Anchor::new(&self.name, newest.number, &newest.hash, self.firsts))
    }

    /// Compares the log with a stored anchor: neither its end nor its beginning may be missing.
    pub fn check(&mut self, anchor: &str) {
        let Some(anchor) = Anchor::read(anchor, &self.name) else {
            return;
        };
        if !self.loaded || anchor.number == 0 {
            return;
        }
        let oldest = self.told.front().map_or(0, |entry| entry.number);
        let kept = self.told.iter().find(|entry| entry.number == anchor.number);
        let broken = match kept {
            None if self.newest() < anchor.number => Some(self.newest() + 1),
            None if oldest <= anchor.number => Some(anchor.number),
            Some(entry) if entry.hash != anchor.hash => Some(anchor.number),
            _ if !anchor.allows(self.firsts) => Some(oldest.min(self.firsts[1])),
            _ => None,
        };
        if let Some(number) = broken {
            tracing::error!(
                "the audit log {} does not match the anchor in the pools' labels: of its entries \
                 up to {} some are missing, from {number} on",
                self.lines.path().display(),
                anchor.number
            );
            let first = self.broken_at.map_or(number, |known| known.min(number));
            self.broken_at = Some(first);
        }
    }

    /// Flushes the log, so that it survives a power failure.
    ///
    /// # Errors
    /// An I/O error.
    pub fn flush(&self) -> io::Result<()> {
        self.lines.flush()
    }

    /// Entries before one, newest first.
    pub fn list(&self, before: Option<u64>, limit: usize) -> AuditList {
        let before = before.unwrap_or(u64::MAX);
        let items = self.told.iter().rev().filter(|entry| entry.number < before);
        AuditList {
            items: items.take(limit).cloned().collect(),
            broken_at: self.broken_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::path::{Path, PathBuf};

    fn note(outcome: &str) -> Note<'_> {
        Note {
            who: "ci",
            from: "10.0.0.1",
            operation: "VolumeCreate",
            subject: "pool=tank\nname=v",
            outcome,
            of: None,
        }
    }

    fn opened(folder: &Path) -> Audit {
        let mut audit = Audit::new(&StateFiles::new(folder));
        audit.load();
        audit
    }

    fn filled(folder: &Path) -> PathBuf {
        let mut audit = opened(folder);
        for number in 1..=5 {
            let written = audit
                .write(&note(&format!("outcome {number}")), number)
                .unwrap();
            assert_eq!(written, number);
        }
        audit.lines.path()
    }

    #[test]
    fn log_continues_after_restart_and_verifies() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path());
        let mut audit = opened(folder.path());
        assert_eq!(audit.write(&note("later"), 9).unwrap(), 6);
        let list = opened(folder.path()).list(Some(6), 2);
        let numbers: Vec<u64> = list.items.iter().map(|entry| entry.number).collect();
        assert_eq!((numbers, list.broken_at), (vec![5, 4], None));
    }

    #[test]
    fn modified_removed_or_inserted_line_is_detected() {
        type Change = fn(&mut Vec<String>);
        let changes: [(Change, u64); 4] = [
            (
                |lines| lines[2] = lines[2].replace("outcome 3", "outcome 4"),
                3,
            ),
            (|lines| drop(lines.remove(2)), 4),
            (|lines| lines.insert(2, lines[1].clone()), 2),
            (|lines| lines.swap(1, 3), 4),
        ];
        for (change, at) in changes {
            let folder = tempfile::tempdir().unwrap();
            let path = filled(folder.path());
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            change(&mut lines);
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            assert_eq!(opened(folder.path()).list(None, 9).broken_at, Some(at));
        }
    }

    #[test]
    fn torn_line_does_not_break_the_chain() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 20]).unwrap();
        assert_eq!(opened(folder.path()).write(&note("again"), 9).unwrap(), 5);
        let list = opened(folder.path()).list(None, 9);
        assert_eq!((list.items.len(), list.broken_at), (5, None));
    }

    #[test]
    fn failed_write_consumes_no_number() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path());
        let mut audit = opened(folder.path());
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        audit.lines.file = Some((full, 0));
        assert!(audit.write(&note("lost"), 9).is_err());
        audit.lines.file = None;
        assert_eq!(audit.write(&note("kept"), 9).unwrap(), 6);
        assert_eq!(opened(folder.path()).list(None, 9).broken_at, None);
    }

    #[test]
    fn nothing_is_appended_to_an_unreadable_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let aside = folder.path().join("aside");
        std::fs::rename(&path, &aside).unwrap();
        // A directory: even root can neither read nor write it as a file.
        std::fs::create_dir(&path).unwrap();
        let mut audit = opened(folder.path());
        assert!(audit.write(&note("lost"), 9).is_err());
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
        assert_eq!(audit.write(&note("kept"), 9).unwrap(), 6);
        assert_eq!(opened(folder.path()).list(None, 9).broken_at, None);
    }

    #[test]
    fn truncated_log_is_detected_by_its_anchor() {
        type Change = fn(&mut Vec<String>);
        let changes: [(Change, Option<u64>); 6] = [
            (|_| {}, None),
            (|lines| lines.truncate(2), Some(3)),
            (|lines| lines.truncate(4), Some(5)),
            (Vec::clear, Some(1)),
            (|lines| drop(lines.drain(..2)), Some(3)),
            (|lines| lines[4] = "garbage".to_owned(), Some(5)),
        ];
        for (change, at) in changes {
            let folder = tempfile::tempdir().unwrap();
            let path = filled(folder.path());
            let anchor = opened(folder.path()).anchor().unwrap().text();
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            change(&mut lines);
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            let mut audit = opened(folder.path());
            audit.check(&anchor);
            assert_eq!(audit.list(None, 9).broken_at, at);
            // Anchors of another daemon's log are ignored.
            let mut other = opened(tempfile::tempdir().unwrap().path());
            other.check(&anchor);
            assert_eq!(other.list(None, 9).broken_at, None);
        }
    }

    #[test]
    fn rotation_since_the_anchor_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let anchor = opened(folder.path()).anchor().unwrap().text();
        let long = OpenOptions::new().append(true).open(&path).unwrap();
        long.set_len(FILE_MAX).unwrap();
        let mut audit = opened(folder.path());
        audit.write(&note("in the next file"), 9).unwrap();
        let mut again = opened(folder.path());
        again.check(&anchor);
        assert_eq!(again.list(None, 9).broken_at, None);
        std::fs::remove_file(folder.path().join("audit.log.1")).unwrap();
        let mut cut = opened(folder.path());
        cut.check(&anchor);
        assert_eq!(cut.list(None, 9).broken_at, Some(6));
    }

    #[test]
    fn files_are_bounded_and_the_chain_spans_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = filled(folder.path());
        let mut audit = opened(folder.path());
        // A maximum-size line, with room for the previous content.
        let long = OpenOptions::new().append(true).open(&path).unwrap();
        long.set_len(FILE_MAX).unwrap();
        audit.write(&note("in the next file"), 9).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
        let list = opened(folder.path()).list(None, 9);
        assert_eq!((list.items.len(), list.broken_at), (6, None));
    }
}
