//! A pool put together from the labels of its drives: which drive has which block.

use crate::Result;
use crate::disk::Disk;
use crate::error::InspectError;
use drives::OpenDrive;
use format::{
    Bounds, DriveEvidence, Evidence, GroupKey, GroupSpace, Label, Layout, LayoutConfig, PartConfig,
    PoolConfig, SpaceClass, TierConfig, pages_start,
};
use reactor::Handle;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{BLOCK, DriveId, Place, PoolId, VdriveId};

/// A range of a drive that a vdrive has.
#[derive(Clone, Debug)]
pub struct Part {
    /// Index among the drives that are here; none when it is missing.
    pub disk: Option<usize>,
    /// First byte on the drive.
    pub offset: u64,
    /// The newest label says that it is not up to date: it is not compared, and read last.
    pub out: bool,
    /// How the drive was opened last.
    pub spec: String,
}

/// A vdrive of the pool; number 0 is the metadata region.
#[derive(Clone, Debug)]
pub struct Vdrive {
    /// Its number.
    pub id: VdriveId,
    /// Its use.
    pub class: SpaceClass,
    /// Which part has which block.
    pub layout: Layout,
    /// Its parts.
    pub parts: Vec<Part>,
    /// First block of its first group.
    pub base: u64,
    /// Number of its groups.
    pub groups: u64,
}

impl Vdrive {
    /// The parts that have `block`, which is within it, and the byte on each one's drive.
    pub fn copies(&self, block: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
        let fragment = self.layout.fragment(block, 1);
        let parts = if self.layout.is_mirror() {
            0..self.parts.len()
        } else {
            fragment.part..fragment.part + 1
        };
        parts.map(move |part| {
            let byte = self.parts[part].offset + fragment.block * BLOCK as u64;
            (part, byte)
        })
    }
}

impl Bounds for Pool {
    fn space_of(&self, vdrive: VdriveId) -> Option<GroupSpace> {
        let known = self.vdrives.get(&vdrive)?;
        Some(GroupSpace {
            class: known.class,
            base: known.base,
            groups: u32::try_from(known.groups).ok()?,
        })
    }

    fn blocks_of_group(&self) -> u64 {
        self.config().group_blocks
    }
}

/// A pool that is not in use.
pub struct Pool {
    /// The drives that are here.
    pub disks: Vec<Disk>,
    /// Its id.
    pub id: PoolId,
    /// The newest label, with members of mirrors marked as out that it does not know to be old.
    pub label: Label,
    /// The same as it is on the drives.
    pub written: Label,
    /// Its vdrives, the metadata region first.
    pub vdrives: BTreeMap<VdriveId, Vdrive>,
    /// Drives that are here and bear no label: their specifications.
    pub unlabelled: Vec<String>,
    /// Evidence in the drives' labels.
    pub evidence: Evidence,
}

impl Pool {
    /// Reads labels and puts the pool together.
    ///
    /// # Errors
    /// When no drive has a label, or they are of two pools, or one is there twice.
    pub async fn open(handle: &Handle, drives: &[Arc<dyn OpenDrive>]) -> Result<Self> {
        let mut disks = Vec::new();
        let mut unlabelled = Vec::new();
        let mut unknown = None;
        for drive in drives {
            let disk = Disk::new(handle, drive).await?;
            for state in &disk.labels {
                if let crate::disk::LabelState::Unknown(why) = state {
                    unknown = Some(format!("{}: {why}", disk.spec));
                }
            }
            match disk.newest() {
                Some(_) => disks.push(disk),
                None => unlabelled.push(disk.spec.clone()),
            }
        }
        if let Some(unknown) = unknown {
            return Err(InspectError::new(unknown));
        }
        let newest = disks.iter().filter_map(Disk::newest);
        let Some(label) = newest.max_by_key(|label| label.generation).cloned() else {
            return Err(InspectError::new(format!(
                "{}: none of the drives has a readable label of a pool: specify more of its drives",
                unlabelled.join(", ")
            )));
        };
        check_members(&disks, &label)?;
        let written = label.clone();
        let mut label = label;
        let evidence = judge(&mut label, &disks);
        let vdrives = vdrives(&label.config, &disks)?;
        Ok(Self {
            disks,
            id: label.pool,
            label,
            written,
            vdrives,
            unlabelled,
            evidence,
        })
    }

    /// The description of the pool.
    pub fn config(&self) -> &PoolConfig {
        &self.label.config
    }

    /// The drive that has this block of a part (first byte on the drive), if it is here and as long as that.
    pub fn disk_with(&self, part: &Part, byte: u64) -> Option<usize> {
        let disk = part.disk?;
        let end = byte.checked_add(BLOCK as u64)?;
        (end <= self.disks[disk].size).then_some(disk)
    }

    /// Whether nothing is to be written to a drive: it was restored to an earlier state or truncated, and is evidence of that.
    pub fn is_kept(&self, disk: usize) -> bool {
        let own = self.disks.get(disk).and_then(Disk::newest);
        let id = own.map(|label| label.drive.to_string());
        let old = self.evidence.old.iter().map(|old| &old.drive);
        let short = self.evidence.short.iter().map(|short| &short.drive);
        old.chain(short).any(|drive| Some(drive) == id.as_ref())
    }

    /// The vdrive that has this place, if it is within one.
    pub fn vdrive_of(&self, place: Place) -> Option<&Vdrive> {
        let vdrive = self.vdrives.get(&place.vdrive())?;
        (place.block() < vdrive.layout.blocks()).then_some(vdrive)
    }

    /// The metadata region.
    pub fn meta(&self) -> &Vdrive {
        &self.vdrives[&VdriveId(0)]
    }

    /// The group that a place is in, and its block within the group.
    pub fn group_of(&self, place: Place) -> Option<(GroupKey, usize)> {
        let vdrive = self.vdrive_of(place)?;
        let block = place.block().checked_sub(vdrive.base)?;
        let size = self.config().group_blocks;
        let group = block / size;
        let within = (block % size) as usize;
        (group < vdrive.groups).then(|| (GroupKey::new(vdrive.id, group as u32), within))
    }

    /// The place of a block of a group.
    pub fn place_in(&self, key: GroupKey, block: usize) -> Option<Place> {
        let vdrive = self.vdrives.get(&key.vdrive())?;
        let first = vdrive.base + u64::from(key.group()) * self.config().group_blocks;
        Some(Place::new(key.vdrive(), first + block as u64))
    }

    /// Name of a volume, or its number when the pool does not name it.
    pub fn volume_name(&self, id: u32) -> String {
        self.config().layer_name(id)
    }

    /// A part as a person names it: vdrive and drive.
    pub fn part_name(&self, vdrive: VdriveId, part: usize) -> String {
        let known = self
            .vdrives
            .get(&vdrive)
            .and_then(|vdrive| vdrive.parts.get(part));
        let Some(part) = known else {
            return format!("vdrive {vdrive}");
        };
        let disk = part.disk.and_then(|disk| self.disks.get(disk));
        disk.map_or_else(|| part.spec.clone(), |disk| disk.spec.clone())
    }
}

/// Judges the drives by the newest label, and marks in it which members of mirrors do not count.
pub(crate) fn judge(label: &mut Label, disks: &[Disk]) -> Evidence {
    let drives = disks.iter().filter_map(|disk| {
        Some(DriveEvidence {
            spec: &disk.spec,
            size: disk.size,
            label: disk.newest()?,
        })
    });
    let drives: Vec<_> = drives.collect();
    label.config.judge(label.generation, &drives)
}

fn check_members(disks: &[Disk], label: &Label) -> Result<()> {
    for (index, disk) in disks.iter().enumerate() {
        let Some(own) = disk.newest() else { continue };
        if own.pool != label.pool {
            return Err(InspectError::new(format!(
                "{} belongs to pool '{}' ({}) and others belong to pool '{}' ({}): specify the drives of one pool only",
                disk.spec, own.config.name, own.pool, label.config.name, label.pool
            )));
        }
        let twin = disks[..index]
            .iter()
            .find(|other| other.newest().is_some_and(|other| other.drive == own.drive));
        if let Some(twin) = twin {
            return Err(InspectError::new(format!(
                "{} and {} have the same drive id, so one is a copy of the other: specify only one of them",
                twin.spec, disk.spec
            )));
        }
    }
    Ok(())
}

fn vdrives(config: &PoolConfig, disks: &[Disk]) -> Result<BTreeMap<VdriveId, Vdrive>> {
    if config.shards == 0 || config.group_blocks == 0 {
        return Err(InspectError::new(
            "the label describes a pool without shards or groups, which no version writes",
        ));
    }
    let base = pages_start(config.shards, config.meta.journal_blocks);
    let meta = vdrive(
        0,
        SpaceClass::Meta,
        LayoutConfig::Mirror,
        &config.meta.parts,
        base,
        config,
        disks,
    )?;
    let mut all = BTreeMap::from([(VdriveId(0), meta)]);
    for known in &config.vdrives {
        let class = match known.tier {
            TierConfig::Fast => SpaceClass::Fast,
            TierConfig::Slow => SpaceClass::Slow,
        };
        let made = vdrive(
            known.id,
            class,
            known.layout,
            &known.parts,
            0,
            config,
            disks,
        )?;
        all.insert(VdriveId(known.id), made);
    }
    Ok(all)
}

fn vdrive(
    id: u8,
    class: SpaceClass,
    layout: LayoutConfig,
    parts: &[PartConfig],
    base: u64,
    config: &PoolConfig,
    disks: &[Disk],
) -> Result<Vdrive> {
    let mut made = Vec::new();
    for part in parts {
        let known = config.drives.iter().find(|drive| drive.id == part.drive);
        let wanted: Option<DriveId> = part.drive.parse().ok();
        let mut all = disks.iter();
        let disk = all.position(|disk| disk.newest().map(|label| label.drive) == wanted);
        made.push(Part {
            disk,
            offset: part.offset,
            out: part.out,
            spec: known.map_or_else(|| part.drive.clone(), |drive| drive.spec.clone()),
        });
    }
    let blocks: Vec<u64> = parts.iter().map(|part| part.blocks).collect();
    if parts.is_empty() || matches!(layout, LayoutConfig::Stripe { chunk_blocks: 0 }) {
        return Err(InspectError::new(format!(
            "the label describes vdrive {id} without parts or stripes, which no version writes"
        )));
    }
    let layout = Layout::new(layout, &blocks);
    let groups = layout.blocks().saturating_sub(base) / config.group_blocks;
    Ok(Vdrive {
        id: VdriveId(id),
        class,
        layout,
        parts: made,
        base,
        groups,
    })
}
