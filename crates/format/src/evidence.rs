//! What the labels of a pool's drives record about each other: which drive is older than it must be, which was used without the
//! others, which is shorter than when it joined.
//!
//! The newest label names for every drive the label that it has at least ([`DriveConfig::oldest_label`]): a drive with an
//! older one was restored to an earlier state. Where a mirror has another member that is up to date, the old one is out and
//! is copied again; where none has, what was flushed since is gone, and that is for a person to decide. An import and the tools
//! for pools that are not in use judge by this. Leaves out: what is on drives beside their labels.

use crate::config::LegId;
use crate::{DriveConfig, Label, LayoutConfig, PartConfig, PoolConfig};
use std::collections::{BTreeMap, BTreeSet};
use units::BLOCK;

/// A drive that is there.
#[derive(Clone, Copy, Debug)]
pub struct DriveEvidence<'a> {
    /// Its specification.
    pub spec: &'a str,
    /// Its size now, in bytes.
    pub size: u64,
    /// Its newest label.
    pub label: &'a Label,
}

/// A drive whose newest label is older than the newest label of the pool says it must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldDrive {
    /// Its id.
    pub drive: String,
    /// Its specification.
    pub spec: String,
    /// Generation of its newest label.
    pub generation: u64,
    /// Generation of the label that it had at least.
    pub expected: u64,
    /// No up-to-date drive holds what it holds: what was written since is lost.
    pub alone: bool,
}

/// A drive that has fewer bytes than when it joined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShortDrive {
    /// Its id.
    pub drive: String,
    /// Its specification.
    pub spec: String,
    /// Bytes that are gone.
    pub missing: u64,
    /// Its size now, in bytes.
    pub size: u64,
    /// Vdrives lack blocks; else only labels at the end are gone.
    pub cut: bool,
}

/// The verdict on the labels.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Evidence {
    /// Drives that took writes without the others, which did so, too.
    pub own_way: Vec<String>,
    /// Drives that were restored to an earlier state.
    pub old: Vec<OldDrive>,
    /// Drives that were truncated.
    pub short: Vec<ShortDrive>,
}

impl Evidence {
    /// Whether this drive lacks blocks of vdrives.
    pub fn is_cut(&self, drive: &str) -> bool {
        let mut short = self.short.iter();
        short.any(|short| short.cut && short.drive == drive)
    }

    /// Old drives that no other is in for.
    pub fn lost(&self) -> impl Iterator<Item = &OldDrive> {
        self.old.iter().filter(|old| old.alone)
    }
}

/// The record of a drive's own label about its use without the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// The pool's map of what changed tells all that it lacks.
    Known,
    /// It is older than when it went out, as from a backup: it lacks more.
    Older,
    /// It took writes of its own.
    OwnWay,
}

impl History {
    /// Compares `label` with the pool's newest description.
    pub fn of(newest: &PoolConfig, label: &Label) -> Self {
        let drive = label.drive.to_string();
        let mut history = Self::Known;
        let own = |id: LegId| label.config.parts().find(|(known, _)| *known == id);
        let known = newest.drives.iter().find(|known| known.id == drive);
        for (id, part) in newest
            .parts()
            .filter(|(_, part)| part.drive == drive && part.out)
        {
            let knows = own(id).is_some_and(|(_, part)| part.out);
            if part.out_since > 0 && label.generation >= part.out_since && !knows {
                return Self::OwnWay;
            }
            if known.is_some_and(|known| label.generation < known.oldest_label(part.out_since)) {
                history = Self::Older;
            }
        }
        history
    }
}

impl DriveConfig {
    /// Bytes that a drive of `size` bytes lacks, if any; `end`: first byte behind its parts.
    fn shortage(&self, spec: &str, size: u64, end: u64) -> Option<ShortDrive> {
        (size < self.size).then(|| ShortDrive {
            drive: self.id.clone(),
            spec: spec.to_owned(),
            missing: self.size - size,
            size,
            cut: size < end,
        })
    }
}

impl PoolConfig {
    /// First byte behind the parts on a drive; 0 when it has none.
    pub fn parts_end(&self, drive: &str) -> u64 {
        let of_drive = self.parts().filter(|(_, part)| part.drive == drive);
        let end = |part: &PartConfig| {
            let bytes = part.blocks.saturating_mul(BLOCK as u64);
            part.offset.saturating_add(bytes)
        };
        of_drive.map(|(_, part)| end(part)).max().unwrap_or(0)
    }

    /// Bytes that a drive of the pool with `size` bytes lacks compared with when it joined.
    pub fn shortage(&self, drive: &str, spec: &str, size: u64) -> Option<ShortDrive> {
        let known = self.drives.iter().find(|known| known.id == drive)?;
        known.shortage(spec, size, self.parts_end(drive))
    }

    /// Judges the drives that are there by this description, the newest, of `generation`. Parts of mirrors that are older
    /// than others are marked as out and lacking everything.
    pub fn judge(&mut self, generation: u64, drives: &[DriveEvidence<'_>]) -> Evidence {
        let mut evidence = Evidence::default();
        let mut here: BTreeMap<String, u64> = BTreeMap::new();
        let mut behind: BTreeMap<String, OldDrive> = BTreeMap::new();
        let mut older = BTreeSet::new();
        for drive in drives {
            let (id, own) = (drive.label.drive.to_string(), drive.label.generation);
            let Some(known) = self.drives.iter().find(|known| known.id == id) else {
                continue;
            };
            match History::of(self, drive.label) {
                History::OwnWay => evidence.own_way.push(drive.spec.to_owned()),
                History::Older => {
                    older.insert(id.clone());
                }
                History::Known => {}
            }
            let expected = known.oldest_label(generation);
            if own < expected {
                let old = OldDrive {
                    drive: id.clone(),
                    spec: drive.spec.to_owned(),
                    generation: own,
                    expected,
                    alone: false,
                };
                behind.insert(id.clone(), old);
            }
            if known.offline {
                continue;
            }
            let shortage = known.shortage(drive.spec, drive.size, self.parts_end(&id));
            evidence.short.extend(shortage);
            if !evidence.is_cut(&id) {
                here.insert(id, own);
            }
        }
        let mut counted = BTreeSet::new();
        let meta = (LayoutConfig::Mirror, &mut self.meta.parts);
        let data = self.vdrives.iter_mut();
        let data = data.map(|vdrive| (vdrive.layout, &mut vdrive.parts));
        for (layout, parts) in std::iter::once(meta).chain(data) {
            let lost = match layout {
                LayoutConfig::Mirror => judge_mirror(parts, &here, &behind, &older),
                _ => parts.iter().map(|part| part.drive.clone()).collect(),
            };
            for drive in &lost {
                let old = behind.get_mut(drive);
                old.into_iter().for_each(|old| old.alone = true);
            }
            counted.extend(lost);
            let aside = parts.iter().filter(|part| part.out_why == OLDER);
            counted.extend(aside.map(|part| part.drive.clone()));
        }
        let old = behind.into_values();
        evidence.old = old.filter(|old| counted.contains(&old.drive)).collect();
        evidence
    }
}

/// Why a member of a mirror is out that is older than the others.
const OLDER: &str = "it is older than the pool's other drives";

/// Marks members as out that others are newer than; returns the drives that hold what no newer one does.
fn judge_mirror(
    parts: &mut [PartConfig],
    here: &BTreeMap<String, u64>,
    behind: &BTreeMap<String, OldDrive>,
    older: &BTreeSet<String>,
) -> Vec<String> {
    // An up-to-date member is newer than any label.
    let rank = |part: &PartConfig| match behind.contains_key(&part.drive) {
        true => here.get(&part.drive).copied(),
        false => here.get(&part.drive).map(|_| u64::MAX),
    };
    let counting = parts.iter().filter(|part| !part.out);
    let best = counting.filter_map(rank).max();
    let mut lost = Vec::new();
    for part in parts {
        if part.out && older.contains(&part.drive) {
            "all".clone_into(&mut part.stale);
        }
        let (Some(best), Some(rank)) = (best, rank(part)) else {
            continue;
        };
        if part.out {
            continue;
        }
        if rank < best {
            part.out = true;
            OLDER.clone_into(&mut part.out_why);
            "all".clone_into(&mut part.stale);
        } else {
            lost.push(part.drive.clone());
        }
    }
    lost
}

#[cfg(test)]
mod tests;
