//! Laying a new pool, or a new vdrive, over drives: pure arithmetic and its refusals.

use super::{Result, error};
use crate::control::types::{ErrorCode, LayoutSpec, PoolSpec, Tier, VdriveSpec};
use format::{
    DATA_START, LayoutConfig, MetaConfig, PartConfig, TierConfig, VdriveConfig, data_end,
    pages_start,
};
use units::{BLOCK, DriveId, format_bytes};

const MIB: u64 = 1 << 20;
/// The metadata region takes this part of the pool's capacity: one page per chunk, and one and a half times that
/// for replaced pages.
const META_PER_MILLE: u64 = 6;

/// A drive that is to be part of a vdrive.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its id.
    pub id: DriveId,
    /// Its specification, for messages.
    pub spec: String,
    /// Size in bytes.
    pub size: u64,
}

/// Sizes that depend on the size of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Blocks of a group.
    pub group_blocks: u64,
    /// Blocks of a shard's journal.
    pub journal_blocks: u64,
    /// Minimum groups of the metadata region; `None`: by the number of shards.
    pub meta_groups: Option<u64>,
}

impl Scale {
    /// For a pool of `bytes`.
    pub fn of(bytes: u64) -> Self {
        match bytes {
            0..2_147_483_648 => Self {
                group_blocks: 512,
                journal_blocks: 1024,
                meta_groups: None,
            },
            2_147_483_648..8_589_934_592 => Self {
                group_blocks: 1024,
                journal_blocks: 2048,
                meta_groups: None,
            },
            8_589_934_592..274_877_906_944 => Self {
                group_blocks: 4096,
                journal_blocks: 8192,
                meta_groups: None,
            },
            _ => Self {
                group_blocks: 16384,
                journal_blocks: 32768,
                meta_groups: None,
            },
        }
    }
}

/// Rejects impossible layouts of a vdrive.
pub fn check_vdrive(spec: &VdriveSpec) -> Result<()> {
    let count = spec.drives.len();
    match spec.layout {
        _ if count == 0 => error(ErrorCode::Invalid, "a vdrive needs at least one drive"),
        LayoutSpec::Mirror if !(2..=3).contains(&count) => error(
            ErrorCode::Invalid,
            format!(
                "a mirror has 2 or 3 drives, not {count}: use concat or stripe, or other drives"
            ),
        ),
        LayoutSpec::Stripe { .. } if count < 2 => error(
            ErrorCode::Invalid,
            "a stripe needs at least 2 drives: use concat for one",
        ),
        LayoutSpec::Stripe { chunk }
            if !chunk.is_power_of_two() || !(BLOCK as u64..=MIB).contains(&chunk) =>
        {
            error(
                ErrorCode::Invalid,
                format!(
                    "the chunk size of a stripe is a power of two from 4 KiB to 1 MiB, not {}",
                    format_bytes(chunk)
                ),
            )
        }
        _ => Ok(()),
    }
}

/// Checks that a name is safe in files, URLs and shells.
pub fn check_name(kind: &str, name: &str) -> Result<()> {
    let fits = !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if fits {
        return Ok(());
    }
    error(
        ErrorCode::Invalid,
        format!(
            "'{name}' cannot be a {kind}'s name: use 1 to 64 letters, digits, '-', '_', '.', beginning with a letter"
        ),
    )
}

/// Refuses an unmirrored fast tier over a slow one, unless it was accepted.
pub fn check_redundancy(spec: &PoolSpec) -> Result<()> {
    let has_slow = spec.vdrives.iter().any(|vdrive| vdrive.tier == Tier::Slow);
    let bare = spec
        .vdrives
        .iter()
        .any(|vdrive| vdrive.tier == Tier::Fast && vdrive.layout != LayoutSpec::Mirror);
    if has_slow && bare && !spec.accept_unmirrored {
        return error(
            ErrorCode::Refused,
            "the fast tier is not mirrored: if one of its drives fails, data of the whole pool is lost; \
             mirror it, or use --accept-unmirrored to accept the risk",
        );
    }
    Ok(())
}

fn layout_config(layout: LayoutSpec) -> LayoutConfig {
    match layout {
        LayoutSpec::Concat => LayoutConfig::Concat,
        LayoutSpec::Mirror => LayoutConfig::Mirror,
        LayoutSpec::Stripe { chunk } => LayoutConfig::Stripe {
            chunk_blocks: chunk / BLOCK as u64,
        },
    }
}

/// The vdrive `id` over `drives`, each of which contributes the bytes from its `start` on.
pub fn vdrive(
    id: u8,
    spec: &VdriveSpec,
    drives: &[Planned],
    start: impl Fn(DriveId) -> u64,
    scale: Scale,
) -> Result<VdriveConfig> {
    let mut parts = Vec::new();
    for drive in drives {
        let offset = start(drive.id);
        let bytes = data_end(drive.size).saturating_sub(offset) / MIB * MIB;
        if bytes < 2 * scale.group_blocks * BLOCK as u64 {
            let least = offset + 2 * scale.group_blocks * BLOCK as u64 + 3 * MIB;
            return error(
                ErrorCode::Invalid,
                format!(
                    "{} of {} is too small: the minimum in this pool is {}",
                    drive.spec,
                    format_bytes(drive.size),
                    format_bytes(least)
                ),
            );
        }
        parts.push(PartConfig {
            drive: drive.id.to_string(),
            offset,
            blocks: bytes / BLOCK as u64,
            out: false,
            out_since: 0,
            out_why: String::new(),
            stale: String::new(),
        });
    }
    let tier = match spec.tier {
        Tier::Fast => TierConfig::Fast,
        Tier::Slow => TierConfig::Slow,
    };
    Ok(VdriveConfig {
        id,
        tier,
        layout: layout_config(spec.layout),
        parts,
        evacuating: false,
    })
}

/// The metadata region of a pool: on two drives of the fast tier where there are two (else of
/// the slow one).
pub fn meta(
    shards: u16,
    vdrives: &[(VdriveSpec, Vec<Planned>)],
    scale: Scale,
) -> Result<MetaConfig> {
    let total: u64 = vdrives
        .iter()
        .flat_map(|(_, drives)| drives)
        .map(|drive| drive.size)
        .sum();
    let mut candidates: Vec<&Planned> = Vec::new();
    for tier in [Tier::Fast, Tier::Slow] {
        if candidates.is_empty() {
            let of_tier = vdrives.iter().filter(|(spec, _)| spec.tier == tier);
            candidates = of_tier.flat_map(|(_, drives)| drives).take(2).collect();
        }
    }
    let smallest = candidates.iter().map(|drive| drive.size).min().unwrap_or(0);
    let groups = scale.meta_groups.unwrap_or(2 * u64::from(shards) + 2);
    let groups = scale.group_blocks * groups.max(u64::from(shards));
    let least = (pages_start(shards, scale.journal_blocks) + groups) * BLOCK as u64;
    let wanted = least + total / 1000 * META_PER_MILLE;
    let bytes = wanted.min(smallest / 4).max(least).next_multiple_of(MIB);
    if bytes > smallest / 2 {
        return error(
            ErrorCode::Invalid,
            format!(
                "the metadata of this pool needs {} on each of one or two drives of its fastest tier, \
                 and the smallest has {}: use bigger drives or fewer shards",
                format_bytes(bytes),
                format_bytes(smallest)
            ),
        );
    }
    let part = |drive: &&Planned| PartConfig {
        drive: drive.id.to_string(),
        offset: DATA_START,
        blocks: bytes / BLOCK as u64,
        out: false,
        out_since: 0,
        out_why: String::new(),
        stale: String::new(),
    };
    Ok(MetaConfig {
        parts: candidates.iter().map(part).collect(),
        journal_blocks: scale.journal_blocks,
    })
}

/// Blocks of `total` that volumes can fill: the rest is for writes in flight and for groups
/// that are partly used.
pub fn capacity(total: u64, shards: u16, group_blocks: u64) -> u64 {
    total.saturating_sub(total / 64 + 2 * u64::from(shards) * group_blocks)
}

/// Refuses a pool of more than 256 TiB (and a little for what is not a power of two).
pub fn check_total(total: u64) -> Result<()> {
    if total > (256 << 40) + (1 << 40) {
        return error(ErrorCode::Invalid, "a pool has at most 256 TiB");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn spec(tier: Tier, layout: LayoutSpec, count: usize) -> VdriveSpec {
        VdriveSpec {
            tier,
            layout,
            drives: vec!["ram:a".into(); count],
        }
    }

    fn planned(count: u128, size: u64) -> Vec<Planned> {
        (0..count)
            .map(|id| Planned {
                id: DriveId(id),
                spec: format!("ram:{id}"),
                size,
            })
            .collect()
    }

    #[test]
    fn what_a_vdrive_cannot_be_is_refused() {
        for (layout, count, fits) in [
            (LayoutSpec::Concat, 1, true),
            (LayoutSpec::Concat, 0, false),
            (LayoutSpec::Mirror, 1, false),
            (LayoutSpec::Mirror, 2, true),
            (LayoutSpec::Mirror, 4, false),
            (LayoutSpec::Stripe { chunk: 65536 }, 2, true),
            (LayoutSpec::Stripe { chunk: 65536 }, 1, false),
            (LayoutSpec::Stripe { chunk: 3000 }, 2, false),
            (LayoutSpec::Stripe { chunk: 2 << 20 }, 2, false),
        ] {
            assert_eq!(
                check_vdrive(&spec(Tier::Fast, layout, count)).is_ok(),
                fits,
                "{layout:?} {count}"
            );
        }
    }

    #[test]
    fn names_are_fit_for_files_and_shells() {
        for (name, fits) in [
            ("tank", true),
            ("a.b-c_1", true),
            ("", false),
            ("1a", false),
            ("a/b", false),
            ("a b", false),
        ] {
            assert_eq!(check_name("pool", name).is_ok(), fits, "{name}");
        }
    }

    #[test]
    fn metadata_lies_on_two_fast_drives_where_there_are_two() {
        let scale = Scale::of(100 * GIB);
        let fast = (
            spec(Tier::Fast, LayoutSpec::Mirror, 2),
            planned(2, 10 * GIB),
        );
        let slow = (
            spec(Tier::Slow, LayoutSpec::Concat, 3),
            planned(3, 30 * GIB),
        );
        let both = meta(2, &[slow.clone(), fast], scale).unwrap();
        assert_eq!(both.parts.len(), 2);
        assert_eq!(meta(2, &[slow], scale).unwrap().parts.len(), 2);
        let single = (
            spec(Tier::Fast, LayoutSpec::Concat, 1),
            planned(1, 10 * GIB),
        );
        assert_eq!(meta(2, &[single], scale).unwrap().parts.len(), 1);
        let tiny = (
            spec(Tier::Fast, LayoutSpec::Concat, 1),
            planned(1, 100 * MIB),
        );
        assert!(meta(2, &[tiny], scale).is_err());
    }

    #[test]
    fn an_unmirrored_fast_tier_wants_a_word() {
        let pool = |layout, accept_unmirrored| PoolSpec {
            name: "p".into(),
            vdrives: vec![
                spec(Tier::Fast, layout, 2),
                spec(Tier::Slow, LayoutSpec::Concat, 1),
            ],
            policy: Default::default(),
            shards: 0,
            force: false,
            accept_unmirrored,
        };
        assert!(check_redundancy(&pool(LayoutSpec::Concat, false)).is_err());
        assert!(check_redundancy(&pool(LayoutSpec::Concat, true)).is_ok());
        assert!(check_redundancy(&pool(LayoutSpec::Mirror, false)).is_ok());
    }
}
