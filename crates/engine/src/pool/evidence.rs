//! Evidence on the drives of a pool before it is opened, and refusal to open a pool that has lost writes.
//!
//! Responsible for: copies of a drive, drives that were used separately, drives and metadata that were restored to an earlier
//! state, truncated drives, and drives that are missing. Labels are judged in `format`. Leaves out: drives that
//! have lost their labels (`stale_drive.rs`).

use super::scan::Found;
use super::{Pool, PoolDrive, Result, error, lock};
use crate::control::import::{ImportOptions, MissingDrives};
use crate::control::types::{EngineError, ErrorCode, OldStatus};
use crate::pool::shards::ask_all;
use block::Drive;
use format::{
    CheckpointMark, DriveEvidence, Evidence, LayoutConfig, OldConfig, PartConfig, PoolConfig,
    ShortDrive,
};
use std::collections::BTreeMap;
use units::format_bytes;
use units::mutation::{Mutation, is_on};

/// How to handle a pool with outdated drives.
const OLD_ADVICE: &str = "attach the drives in their latest state (an image, a snapshot of the storage, the other members of \
     a mirror), or use --accept-old to open the pool as it is: later writes are lost, and the pool reports so until \
     it has been scrubbed";

/// Judges the pool's drives by its newest description, of `generation`, and records in it which members of mirrors do not
/// count.
///
/// # Errors
/// Names the drives that the pool is not opened with as they are.
pub(super) fn weigh(
    config: &mut PoolConfig,
    generation: u64,
    mine: &[Found],
    options: &ImportOptions,
) -> Result<Evidence> {
    refuse_twins(mine)?;
    if is_on(Mutation::LegBehind) {
        let data = config.vdrives.iter_mut().map(|vdrive| &mut vdrive.parts);
        for parts in std::iter::once(&mut config.meta.parts).chain(data) {
            parts.iter_mut().for_each(|part| part.out = false);
        }
        return Ok(Evidence::default());
    }
    let drives = mine.iter().map(|found| DriveEvidence {
        spec: &found.spec,
        size: Drive::info(&*found.drive).size,
        label: &found.label,
    });
    let drives: Vec<_> = drives.collect();
    if is_on(Mutation::OldForgotten) {
        config.old.clear();
    }
    let before = is_on(Mutation::OlderCounts).then(|| config.clone());
    let mut evidence = config.judge(generation, &drives);
    if let Some(before) = before {
        *config = before;
    }
    let seen = match is_on(Mutation::SeenIgnored) {
        true => 0,
        false => options.seen,
    };
    if is_on(Mutation::ShortTaken) {
        evidence.short.clear();
    }
    if is_on(Mutation::OldTaken) {
        evidence.old.retain(|old| !old.alone);
    }
    if let Some(spec) = evidence.own_way.first() {
        return error(
            ErrorCode::Refused,
            format!(
                "{spec} and the pool's other drives were used separately (split brain): import one side alone with --degraded, inspect it, and bring the other side online with `convect pool online --force`, which overwrites it"
            ),
        );
    }
    let pool = &config.name;
    let mut old: Vec<String> = Vec::new();
    for drive in evidence.lost() {
        old.push(format!(
            "{} has label {} and had {} at least",
            drive.spec, drive.generation, drive.expected
        ));
    }
    if generation < seen {
        old.push(format!(
            "the newest label on its drives is {generation}, and this host has seen {seen}"
        ));
    }
    if !old.is_empty() && !options.accept_old {
        return error(
            ErrorCode::Refused,
            format!(
                "pool {pool} is in an earlier state: {}: {OLD_ADVICE}",
                old.join("; ")
            ),
        );
    }
    for old in &evidence.old {
        let (spec, generation, expected) = (&old.spec, old.generation, old.expected);
        let pool = pool.as_str();
        tracing::warn!(pool, %spec, generation, expected, "a drive was restored to an earlier state");
    }
    let mut accepted: Vec<OldConfig> = Vec::new();
    accepted.extend(evidence.lost().map(|old| OldConfig {
        drive: old.drive.clone(),
        shard: 0,
        generation: old.generation,
        expected: old.expected,
    }));
    if generation < seen {
        accepted.extend(drives.iter().map(|drive| OldConfig {
            drive: drive.label.drive.to_string(),
            shard: 0,
            generation: drive.label.generation,
            expected: seen,
        }));
    }
    accept(config, accepted);
    Ok(evidence)
}

/// Records the outdated state that the pool is opened with. A scrub that began before does not count.
fn accept(config: &mut PoolConfig, accepted: Vec<OldConfig>) {
    if accepted.is_empty() || is_on(Mutation::OldUnsaid) {
        return;
    }
    let known = &config.drives;
    let known: Vec<String> = known.iter().map(|drive| drive.id.clone()).collect();
    let is_known = |old: &OldConfig| old.drive.is_empty() || known.contains(&old.drive);
    for old in accepted.into_iter().filter(is_known) {
        config.accept_old(old);
    }
    config.old.retain(is_known);
    config.scrub.restart();
}

/// Refuses two drives that claim to be the same one: a copy was made beneath the pool.
fn refuse_twins(mine: &[Found]) -> Result<()> {
    for (index, one) in mine.iter().enumerate() {
        let twin = mine[..index]
            .iter()
            .find(|other| other.label.drive == one.label.drive);
        if let Some(twin) = twin.filter(|_| !is_on(Mutation::TwinTaken)) {
            return error(
                ErrorCode::Refused,
                format!(
                    "{} and {} are copies of the same drive: name only one of them",
                    twin.spec, one.spec
                ),
            );
        }
    }
    Ok(())
}

/// Part of a sentence about a truncated drive.
pub(super) fn shortage(short: &ShortDrive) -> String {
    format!(
        "{} is {} bytes shorter than when it joined ({} now)",
        short.spec,
        short.missing,
        format_bytes(short.size)
    )
}

/// Refuses to open without drives that cannot be substituted. `missing`: names of the missing ones.
pub(super) fn check_missing(
    config: &PoolConfig,
    pool_drives: &[PoolDrive],
    missing: &[String],
    short: &[ShortDrive],
    allowed: MissingDrives,
) -> Result<()> {
    let cut: Vec<String> = short
        .iter()
        .filter(|short| short.cut)
        .map(shortage)
        .collect();
    if missing.is_empty() && cut.is_empty() {
        return Ok(());
    }
    let gone = |drive: &str| {
        pool_drives
            .iter()
            .any(|pool_drive| pool_drive.drive.is_none() && pool_drive.id.to_string() == drive)
    };
    let lost = |parts: &[PartConfig], mirror: bool| {
        if mirror {
            parts.iter().all(|part| part.out || gone(&part.drive))
        } else {
            parts.iter().any(|part| gone(&part.drive))
        }
    };
    let mirror = |layout| layout == LayoutConfig::Mirror;
    let mut vdrives = config.vdrives.iter();
    let is_lost = (lost(&config.meta.parts, true)
        || vdrives.any(|vdrive| lost(&vdrive.parts, mirror(vdrive.layout))))
        && !is_on(Mutation::LostOpened);
    let (pool, names, cut) = (&config.name, missing.join(", "), cut.join(", "));
    let message = match (is_lost, missing.is_empty()) {
        (true, true) => format!(
            "pool {pool} cannot be opened: {cut}, and no other drive has the missing data: restore its size \
             and content, or copy the volumes out with `convect restore`"
        ),
        (true, false) => format!(
            "pool {pool} cannot be opened without {names}: no other drive has their data; attach them and name them with --drive{}",
            also(&cut)
        ),
        (false, true) => format!(
            "pool {pool}: {cut}; the pool can run without: use --degraded to open it, and replace the drive"
        ),
        (false, false) => format!(
            "pool {pool} is missing {names}; the pool can run without: use --degraded to open it; data written only to {names} would be lost{}",
            also(&cut)
        ),
    };
    match (is_lost, allowed) {
        (true, _) => error(ErrorCode::NotFound, message),
        (false, MissingDrives::Allow) => Ok(()),
        (false, _) => error(ErrorCode::Refused, message),
    }
}

fn also(cut: &str) -> String {
    match cut.is_empty() {
        true => String::new(),
        false => format!("; {cut}"),
    }
}

impl Pool {
    /// Compares the progress of the shards' metadata, after the replay of journals, with the newest label.
    ///
    /// # Errors
    /// If the label is ahead, unless old metadata is accepted: that is recorded.
    pub(super) fn check_marks(&self, accept_old: bool) -> Result<()> {
        let found = ask_all(&self.shards, |shard| async move { shard.found() })?;
        let found: BTreeMap<u16, CheckpointMark> = found.into_iter().collect();
        let told = self.config().checkpoints;
        let mut old = Vec::new();
        let mut texts = Vec::new();
        for (told, shard) in told.iter().zip(0..) {
            let Some(found) = found.get(&shard).filter(|found| told.is_beyond(found)) else {
                continue;
            };
            texts.push(format!(
                "shard {shard} is at checkpoint {} (opening {}) and was at {} (opening {}) at least",
                found.generation, found.epoch, told.generation, told.epoch
            ));
            old.push(OldConfig {
                drive: String::new(),
                shard,
                generation: found.generation,
                expected: told.generation,
            });
        }
        if old.is_empty() || is_on(Mutation::MarksIgnored) {
            return Ok(());
        }
        if !accept_old {
            return error(
                ErrorCode::Refused,
                format!(
                    "pool {}: its metadata is older than its newest label: {}: {OLD_ADVICE}",
                    self.name,
                    texts.join("; ")
                ),
            );
        }
        accept(&mut lock(&self.config), old);
        Ok(())
    }

    /// The outdated state that the pool was opened with, in words.
    pub(super) fn old_status(&self, config: &PoolConfig) -> Vec<OldStatus> {
        let status = |old: &OldConfig| {
            let (found, expected) = (old.generation, old.expected);
            if old.drive.is_empty() {
                let shard = old.shard;
                return Some(OldStatus {
                    drive: None,
                    message: format!(
                        "the metadata of shard {shard} is at checkpoint {found} and was at {expected} before"
                    ),
                });
            }
            let mut drives = config.drives.iter();
            let drive = drives.find(|drive| drive.id == old.drive)?;
            Some(OldStatus {
                drive: Some(drive.spec.clone()),
                message: format!(
                    "drive {} was restored to an earlier state: its label is {found} and was at least {expected} before",
                    drive.spec
                ),
            })
        };
        config.old.iter().filter_map(status).collect()
    }

    /// Drives that have fewer bytes than when they joined, and all that vdrives need.
    pub(super) fn short_messages(&self, config: &PoolConfig) -> Vec<String> {
        let pool_drives = lock(&self.pool_drives);
        let short = pool_drives.iter().filter_map(|pool_drive| {
            let drive = pool_drive.drive.as_ref()?;
            let size = Drive::info(&**drive).size;
            config.shortage(&pool_drive.id.to_string(), &pool_drive.spec, size)
        });
        let told = short.map(|short| {
            format!(
                "{}: the labels at its end are missing, and nothing is written there: restore its size, or replace it",
                shortage(&short)
            )
        });
        told.collect()
    }
}

/// The error of an import, with the reasons for skipping drives that it may lack.
pub(crate) fn because_of(
    failed: EngineError,
    passed_over: &[super::scan::PassedOver],
) -> EngineError {
    if passed_over.is_empty() {
        return failed;
    }
    let reasons: Vec<&str> = passed_over
        .iter()
        .map(|why| why.error.message.as_str())
        .collect();
    // A drive that is in use exists: the pool must not be opened without it.
    let mut passed = passed_over.iter();
    let busy = passed.find(|why| why.error.code == ErrorCode::Exists);
    let code = busy.map_or(failed.code, |busy| busy.error.code);
    EngineError::new(
        code,
        format!("{}; skipped: {}", failed.message, reasons.join("; ")),
    )
}
