//! The report of an inspection.

use serde::Serialize;
use std::collections::BTreeMap;

/// Findings that are kept; more are only counted.
const FINDINGS: usize = 200;
/// Lost ranges of a volume that are kept; more are only counted.
const RANGES: usize = 1000;

/// How bad it is. The number is the exit status of `check` and `repair`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything that was examined is as it has to be.
    #[default]
    Whole = 0,
    /// Something is wrong and nothing is lost.
    Repairable = 1,
    /// Data is lost.
    Lost = 2,
}

/// One thing that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// How bad it is; `whole` for a remark.
    pub verdict: Verdict,
    /// A sentence.
    pub text: String,
}

/// A drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DriveReport {
    /// How it was opened, or was last.
    pub spec: String,
    /// Its id.
    pub id: String,
    /// Size in bytes.
    pub size: u64,
    /// `present`, `stale` (its label is older, as it may be), `old` (it was restored to an earlier state), `short` (it was
    /// truncated), `left` (it is no longer a drive of the pool) or `missing`.
    pub state: &'static str,
    /// Its labels: a generation, `empty`, `damaged`, `unreadable`, `gone` (beyond its end).
    pub labels: Vec<String>,
    /// Its roles: `metadata`, `vdrive 1 fast`, with `(out)` where it is not up to date.
    pub parts: Vec<String>,
}

/// A shard.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ShardReport {
    /// Its number.
    pub shard: u16,
    /// Generation of its checkpoint; none when there is none.
    pub checkpoint: Option<u64>,
    /// Epoch of its journal.
    pub epoch: u64,
    /// Pages of the journal that an opening would replay.
    pub journal_pages: u64,
    /// Records in them.
    pub journal_records: u64,
    /// Blocks whose writes a crash kept from the drives; they were never flushed.
    pub unfinished_blocks: u64,
    /// Pages of its trees.
    pub pages: u64,
    /// Pages of its trees that no drive has right.
    pub lost_pages: u64,
}

/// Consecutive bytes of a volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Range {
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct VolumeReport {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Blocks of 4 KiB that it stores, as far as its map could be read.
    pub blocks: u64,
    /// Bytes that cannot be read, or whose map cannot.
    pub lost_bytes: u64,
    /// Where they are, in order; of very many only some.
    pub lost: Vec<Range>,
    /// Ranges beyond those.
    pub lost_more: u64,
}

impl VolumeReport {
    /// Notes a range that is lost.
    pub(crate) fn lose(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.size);
        let len = end.saturating_sub(offset);
        if len == 0 {
            return;
        }
        self.lost_bytes += len;
        if let Some(last) = self.lost.last_mut()
            && last.offset + last.len == offset
        {
            last.len += len;
            return;
        }
        if self.lost.len() < RANGES {
            self.lost.push(Range { offset, len });
        } else {
            self.lost_more += 1;
        }
    }

    /// Puts the ranges in order and joins what touches.
    pub(crate) fn settle(&mut self) {
        self.lost.sort_unstable();
        let mut joined: Vec<Range> = Vec::new();
        for range in &self.lost {
            match joined.last_mut() {
                Some(last) if last.offset + last.len >= range.offset => {
                    last.len = (range.offset + range.len).max(last.offset + last.len) - last.offset;
                }
                _ => joined.push(*range),
            }
        }
        self.lost = joined;
    }
}

/// Copies that are wrong, or were: the same kind on the same drive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct MendKind {
    /// `label`, `checkpoint`, `journal page`, `map page`, `data block`, `bitmaps`.
    pub what: &'static str,
    /// The drive that is written to.
    pub drive: String,
}

/// Everything that an inspection found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// The pool's name.
    pub pool: String,
    /// Its id.
    pub id: String,
    /// Generation of its newest label.
    pub generation: u64,
    /// It was left in order by an export.
    pub exported: bool,
    /// How bad it is.
    pub verdict: Verdict,
    /// Its drives.
    pub drives: Vec<DriveReport>,
    /// Its shards.
    pub shards: Vec<ShardReport>,
    /// Its volumes.
    pub volumes: Vec<VolumeReport>,
    /// Shards of a pool that was not exported whose journals do not end with a mark: whether the last page was lost that
    /// was flushed is not known. A pool that was in use when it ended has them, unless nothing was written for a moment.
    pub unproven: Vec<u16>,
    /// Whether the content of every block was compared with its checksum.
    pub data_read: bool,
    /// Blocks of data whose content was compared.
    pub data_blocks: u64,
    /// Repairable or repaired copies, with their numbers.
    #[serde(serialize_with = "mends")]
    pub mends: BTreeMap<MendKind, u64>,
    /// Everything else that is not as it has to be, and remarks.
    pub findings: Vec<Finding>,
    /// Findings beyond those.
    pub findings_more: u64,
}

fn mends<S: serde::Serializer>(
    mends: &BTreeMap<MendKind, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Row<'a> {
        #[serde(flatten)]
        kind: &'a MendKind,
        count: u64,
    }
    serializer.collect_seq(mends.iter().map(|(kind, count)| Row {
        kind,
        count: *count,
    }))
}

impl Report {
    /// Notes a finding.
    pub(crate) fn find(&mut self, verdict: Verdict, text: impl Into<String>) {
        self.verdict = self.verdict.max(verdict);
        if self.findings.len() < FINDINGS {
            let text = text.into();
            self.findings.push(Finding { verdict, text });
        } else {
            self.findings_more += 1;
        }
    }

    /// Notes something that can be repaired, or was.
    pub(crate) fn mend(&mut self, what: &'static str, drive: String) {
        self.verdict = self.verdict.max(Verdict::Repairable);
        *self.mends.entry(MendKind { what, drive }).or_default() += 1;
    }

    /// Notes that part of a volume is lost.
    pub(crate) fn lose(&mut self, volume: u32, offset: u64, len: u64) {
        let known = self.volumes.iter_mut().find(|known| known.id == volume);
        if let Some(known) = known {
            let before = known.lost_bytes;
            known.lose(offset, len);
            if known.lost_bytes > before {
                self.verdict = Verdict::Lost;
            }
        }
    }

    /// How many copies can be repaired, or were.
    pub fn mend_count(&self) -> u64 {
        self.mends.values().sum()
    }

    /// Puts everything in order once all was examined.
    pub(crate) fn settle(&mut self) {
        self.volumes.iter_mut().for_each(VolumeReport::settle);
        self.findings
            .sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    }
}
