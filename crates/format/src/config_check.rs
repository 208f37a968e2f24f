//! Refusing a description that no pool can have: the engine divides, counts and looks up by it.

use crate::config::RESERVATIONS_MAX;
use crate::{
    DATA_START, Layout, LayoutConfig, PartConfig, PoolConfig, VdriveConfig, VolumeConfig,
    pages_start,
};
use std::collections::{BTreeMap, BTreeSet};
use units::{BLOCK, CHUNK_BLOCKS, DriveId, Place};

/// Most shards of a pool.
const SHARDS_MAX: u16 = 64;
/// Blocks of a group.
const GROUP_BLOCKS: std::ops::RangeInclusive<u64> = 512..=16_384;
/// Most groups of a vdrive: as many as a group's key can tell apart.
const GROUPS_MAX: u64 = 1 << 24;
/// Blocks of a shard's journal.
const JOURNAL_BLOCKS: std::ops::RangeInclusive<u64> = 32..=1 << 24;
/// Levels at which it is warned that a pool fills: their number, and per cent.
const WARN_LEVELS: usize = 8;
const WARN_PERCENT: std::ops::RangeInclusive<u8> = 10..=100;
/// Numbers of volumes and layers are below this: the upper half is for readers of snapshots and for trees of shards.
pub const NUMBERS_MAX: u32 = 1 << 31;
/// Numbers that a description may have given out: it leaves more than any pool will.
const GIVEN_MAX: u32 = NUMBERS_MAX / 2;
/// Largest volume in bytes.
const VOLUME_MAX: u64 = 256 << 40;
/// Largest quota or reservation in bytes: beyond what any pool has.
const LIMIT_MAX: u64 = 1 << 60;
/// Longest name in bytes.
const NAME_MAX: usize = 255;

/// Says what is wrong unless the condition holds.
pub(crate) fn need(holds: bool, reason: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(reason()) }
}

/// Names become parts of paths and of messages; what is chosen again is held to stricter rules.
fn check_name(name: &str) -> Result<(), String> {
    let fits = (1..=NAME_MAX).contains(&name.len())
        && !name.chars().any(|c| c == '/' || c.is_control())
        && !name.starts_with('.');
    need(fits, || {
        let start: String = name.chars().take(32).collect();
        format!("{start:?} is not a valid name")
    })
}

/// Refuses levels, in per cent, that are not in order or make no sense.
///
/// # Errors
/// The fault, as half a sentence.
pub fn check_warn_at(levels: &[u8]) -> Result<(), String> {
    let fits = levels.len() <= WARN_LEVELS
        && levels.windows(2).all(|pair| pair[0] < pair[1])
        && levels.iter().all(|level| WARN_PERCENT.contains(level));
    need(fits, || {
        format!(
            "warnings at {levels:?} per cent, which are not at most {WARN_LEVELS} growing numbers from \
             {} to {}",
            WARN_PERCENT.start(),
            WARN_PERCENT.end()
        )
    })
}

/// The quota or reservation of a volume that is requested, in whole blocks (bytes); 0 stays none.
///
/// # Errors
/// The fault, as half a sentence.
pub fn whole_limit(what: &str, bytes: u64) -> Result<u64, String> {
    need(bytes <= LIMIT_MAX, || {
        format!("a {what} of {bytes} bytes, which is more than 1 EiB")
    })?;
    Ok(bytes.next_multiple_of(BLOCK as u64))
}

/// Ends of a part on its drive, in bytes.
fn extent(part: &PartConfig) -> Option<(u64, u64)> {
    let end = part
        .blocks
        .checked_mul(BLOCK as u64)?
        .checked_add(part.offset)?;
    (part.blocks > 0).then_some((part.offset, end))
}

impl PoolConfig {
    /// Checks what the rest of a pool relies on.
    ///
    /// # Errors
    /// The fault, as half a sentence.
    pub fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        need((1..=SHARDS_MAX).contains(&self.shards), || {
            format!("{} shards", self.shards)
        })?;
        let group = self.group_blocks;
        need(
            group.is_power_of_two() && GROUP_BLOCKS.contains(&group),
            || format!("groups of {group} blocks"),
        )?;
        self.check_parts()?;
        self.check_meta()?;
        let mut seen = BTreeSet::new();
        for vdrive in &self.vdrives {
            need(vdrive.id > 0 && seen.insert(vdrive.id), || {
                format!("two vdrives with number {}, or with number 0", vdrive.id)
            })?;
            vdrive.check(group)?;
        }
        // Number 0 is that of no volume and no layer: as a layer it would be its own parent.
        need((1..=GIVEN_MAX).contains(&self.next_volume), || {
            format!("{} as the next volume's number", self.next_volume)
        })?;
        let mut seen = BTreeSet::new();
        for volume in &self.volumes {
            need(
                seen.insert(volume.id) && (1..self.next_volume).contains(&volume.id),
                || {
                    format!(
                        "two volumes with number {}, or one that was never assigned",
                        volume.id
                    )
                },
            )?;
            volume.check()?;
        }
        self.check_layers()?;
        for schedule in &self.schedules {
            check_name(&schedule.name)?;
            need(schedule.every_s > 0 && schedule.keep > 0, || {
                format!(
                    "schedule {} every {} s that keeps {}",
                    schedule.name, schedule.every_s, schedule.keep
                )
            })?;
        }
        let old_max = self.drives.len() + usize::from(SHARDS_MAX);
        need(
            self.checkpoints.len() <= usize::from(SHARDS_MAX) && self.old.len() <= old_max,
            || "more checkpoints, or old drives, than possible".into(),
        )?;
        check_warn_at(&self.warn_at)?;
        let budget = self.promotion_budget;
        need(
            whole_limit("promotion budget", budget) == Ok(budget),
            || format!("a promotion budget of {budget} bytes"),
        )?;
        self.qos.check(self.next_volume)?;
        for group in &self.qos.groups {
            need(seen.insert(group.id), || {
                format!("group {} with the number of a volume", group.id)
            })?;
        }
        for receiving in &self.receiving {
            check_name(&receiving.snapshot)?;
        }
        for kept in &self.reservations {
            need(kept.state.len() <= RESERVATIONS_MAX, || {
                format!(
                    "reservations of volume {} of {} bytes",
                    kept.volume,
                    kept.state.len()
                )
            })?;
        }
        self.exports
            .iter()
            .try_for_each(|export| check_name(&export.name))
    }

    fn check_meta(&self) -> Result<(), String> {
        let meta = &self.meta;
        let parts = meta.parts.len();
        need((1..=2).contains(&parts), || {
            format!("a metadata region of {parts} parts")
        })?;
        need(JOURNAL_BLOCKS.contains(&meta.journal_blocks), || {
            format!("journals of {} blocks", meta.journal_blocks)
        })?;
        let least = pages_start(self.shards, meta.journal_blocks);
        need(meta.parts.iter().all(|part| part.blocks > least), || {
            "a metadata region that does not hold its journals".into()
        })?;
        let most = GROUPS_MAX.saturating_mul(self.group_blocks);
        need(meta.parts.iter().all(|part| part.blocks <= most), || {
            "a metadata region of more groups than supported".into()
        })
    }

    /// Parts are on drives of the pool, within them, and apart from each other.
    fn check_parts(&self) -> Result<(), String> {
        let mut drives = BTreeMap::new();
        for drive in &self.drives {
            let id = drive.id.as_str();
            let is_id = id.len() == 32 && id.parse::<DriveId>().is_ok();
            need(is_id && drives.insert(id, drive.size).is_none(), || {
                format!(
                    "a drive with the malformed or duplicate id {:?}",
                    id.chars().take(32).collect::<String>()
                )
            })?;
        }
        let all = self.vdrives.iter().flat_map(|vdrive| &vdrive.parts);
        let mut extents = Vec::new();
        for part in self.meta.parts.iter().chain(all) {
            let size = drives.get(part.drive.as_str());
            let extent = extent(part).filter(|(start, end)| {
                *start >= DATA_START
                    && start.is_multiple_of(BLOCK as u64)
                    && size.is_some_and(|size| end <= size)
            });
            let (start, end) = extent.ok_or("a part that is not on its drive")?;
            extents.push((part.drive.as_str(), start, end));
        }
        extents.sort_unstable();
        let apart = |pair: &[(&str, u64, u64)]| pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1;
        need(extents.windows(2).all(apart), || {
            "two overlapping parts".into()
        })
    }
}

impl VdriveConfig {
    fn check(&self, group_blocks: u64) -> Result<(), String> {
        let id = self.id;
        need(!self.parts.is_empty(), || {
            format!("vdrive {id} without a part")
        })?;
        // Parts are within drives: their sum does not overflow before there are 2,048 of 8 EiB.
        let total = self
            .parts
            .iter()
            .try_fold(0u64, |sum, part| sum.checked_add(part.blocks));
        need(
            total.is_some_and(|total| total >> Place::BLOCK_BITS == 0),
            || format!("vdrive {id} of more blocks than supported"),
        )?;
        if let LayoutConfig::Stripe { chunk_blocks } = self.layout {
            need(
                chunk_blocks.is_power_of_two() && chunk_blocks <= CHUNK_BLOCKS as u64,
                || format!("stripes of {chunk_blocks} blocks"),
            )?;
        }
        let parts: Vec<u64> = self.parts.iter().map(|part| part.blocks).collect();
        let blocks = Layout::new(self.layout, &parts).blocks();
        need(blocks / group_blocks <= GROUPS_MAX, || {
            format!("vdrive {id} of more groups than supported")
        })
    }
}

impl VolumeConfig {
    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        need(
            (1..=VOLUME_MAX).contains(&self.size) && self.size.is_multiple_of(BLOCK as u64),
            || format!("volume {} of {} bytes", self.name, self.size),
        )?;
        need([512, 4096].contains(&self.lba_size), || {
            format!(
                "volume {} with blocks of {} bytes",
                self.name, self.lba_size
            )
        })?;
        let limits = [("quota", self.quota), ("reservation", self.reservation)];
        for (what, bytes) in limits {
            need(whole_limit(what, bytes) == Ok(bytes), || {
                format!("volume {} with a {what} of {bytes} bytes", self.name)
            })?;
        }
        let knobs = self.knobs.check();
        knobs.map_err(|wrong| format!("volume {} with {wrong}", self.name))
    }
}
