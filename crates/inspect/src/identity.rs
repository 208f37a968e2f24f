//! New identities for a copy of a pool's drives, so that the copy is a pool of its own: of the pool, and of each drive.
//!
//! A copy made beneath the pool (of an array, a virtual machine, files) has the same ids as the original, and a
//! host that sees both cannot tell them apart. Only labels, checkpoints and journals contain the pool's id.
//! First the labels say which identities are being replaced, then checkpoints and journals follow, then labels that
//! do not say so any longer: after an interruption the same call continues where it was. Leaves out: everything else of
//! the description; exports and reservations stay as they are.

use crate::disk::{Disk, LabelState};
use crate::error::InspectError;
use crate::{Result, run};
use drives::OpenDrive;
use format::{
    DriveConfig, Evidence, Label, PAGE, PartConfig, PoolConfig, give_to_pool, journal_start,
    label_slots_for,
};
use reactor::Handle;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{BLOCK, DriveId, PoolId, SnapshotId};

/// Field of the description that says which identities are being replaced.
const MARK: &str = "replaces_identity";
/// Blocks read together.
const BATCH: u64 = 64;

/// The new identity of a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renewed {
    /// The pool's name.
    pub name: String,
    /// Its id before.
    pub old: PoolId,
    /// Its id now.
    pub new: PoolId,
    /// How each drive was opened, and its id now.
    pub drives: Vec<(String, DriveId)>,
}

/// Identities that replace others.
struct Plan {
    old: PoolId,
    new: PoolId,
    /// New ids of drives by their old ones.
    drives: BTreeMap<DriveId, DriveId>,
    /// The newest label's generation.
    generation: u64,
    exported: bool,
    config: PoolConfig,
}

/// Returns the pool on these drives, all of which have to be there, another id and each of them, too; with `name`
/// another name. `new_id` returns unused ids.
///
/// # Errors
/// When the drives are not all of one pool, or one cannot be written; the same call then ends what was begun.
pub async fn renew_identity(
    handle: &Handle,
    drives: &[Arc<dyn OpenDrive>],
    name: Option<&str>,
    new_id: &mut dyn FnMut() -> Result<u128>,
) -> Result<Renewed> {
    let mut disks = Vec::new();
    for drive in drives {
        disks.push(Disk::new(handle, drive).await?);
    }
    let mut plan = Plan::of(&disks, new_id)?;
    // What the last opening left in memory is not the copy's.
    plan.config.opening.clear();
    if let Some(name) = name {
        name.clone_into(&mut plan.config.name);
    }
    for (drive, disk) in plan.drives_of(&disks)? {
        let known = plan.config.drives.iter_mut();
        for known in known.filter(|known| known.id == drive.to_string()) {
            known.spec.clone_from(&disk.spec);
        }
    }
    let checked = plan.config.check();
    checked.map_err(|wrong| InspectError::new(format!("the copy would have {wrong}")))?;
    plan.mark();
    plan.write_labels(&disks, plan.generation + 1).await?;
    plan.rewrite_metadata(&disks).await?;
    plan.config.unknown.remove(MARK);
    // Two generations: no label of the old identity is left.
    for generation in [plan.generation + 2, plan.generation + 3] {
        plan.write_labels(&disks, generation).await?;
    }
    let now = plan.drives_of(&disks)?;
    Ok(Renewed {
        name: plan.config.name.clone(),
        old: plan.old,
        new: plan.new,
        drives: now
            .into_iter()
            .map(|(drive, disk)| (disk.spec.clone(), drive))
            .collect(),
    })
}

impl Plan {
    fn of(disks: &[Disk], new_id: &mut dyn FnMut() -> Result<u128>) -> Result<Self> {
        for disk in disks {
            for state in &disk.labels {
                if let LabelState::Unknown(why) = state {
                    return Err(InspectError::new(format!("{}: {why}", disk.spec)));
                }
            }
        }
        let newest = || disks.iter().filter_map(Disk::newest);
        let marked = newest().find_map(|label| Some((label, marked(&label.config)?)));
        if let Some((label, (old, drives))) = marked {
            return Ok(Self {
                old,
                new: label.pool,
                drives,
                generation: label.generation,
                exported: label.exported,
                config: label.config.clone(),
            });
        }
        let label = newest().max_by_key(|label| label.generation);
        let label = label.ok_or_else(|| {
            InspectError::new(
                "none of the drives has a pool's label: specify the drives of the copy",
            )
        })?;
        let mut judged = label.clone();
        let evidence = crate::pool::judge(&mut judged, disks);
        refuse_unlike(&evidence)?;
        let label = &judged;
        let mut drives = BTreeMap::new();
        for known in &label.config.drives {
            let old = known.id.parse().map_err(|_| {
                InspectError::new(format!(
                    "the pool has a drive with the malformed id {:?}",
                    known.id
                ))
            })?;
            drives.insert(old, DriveId(new_id()?));
        }
        let mut config = label.config.clone();
        config
            .drives
            .iter_mut()
            .for_each(|known| rename_drive(known, &drives));
        let parts = config
            .vdrives
            .iter_mut()
            .flat_map(|vdrive| &mut vdrive.parts);
        let parts = parts.chain(&mut config.meta.parts);
        parts.for_each(|part| rename_part(part, &drives));
        // What its snapshots hold is what the original's hold: they stay each other's bases.
        let epochs: BTreeMap<u32, u32> = config
            .layers
            .iter()
            .map(|layer| (layer.id, layer.epoch))
            .collect();
        for snapshot in config
            .snapshots
            .iter_mut()
            .filter(|known| known.origin.is_empty())
        {
            let id = SnapshotId {
                pool: label.pool,
                epoch: epochs
                    .get(&snapshot.layer)
                    .copied()
                    .unwrap_or(snapshot.layer),
                created_s: snapshot.created_s,
            };
            snapshot.origin = id.to_string();
        }
        Ok(Self {
            old: label.pool,
            new: PoolId(new_id()?),
            drives,
            generation: label.generation,
            exported: label.exported,
            config,
        })
    }

    fn mark(&mut self) {
        let drives = self.drives.iter();
        let drives: BTreeMap<String, String> = drives
            .map(|(old, new)| (old.to_string(), new.to_string()))
            .collect();
        let mark = json!({ "pool": self.old.to_string(), "drives": drives });
        self.config.unknown.insert(MARK.to_owned(), mark);
    }

    /// The drives with their new ids, whether or not their labels say so yet.
    fn drives_of<'a>(&self, disks: &'a [Disk]) -> Result<Vec<(DriveId, &'a Disk)>> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for disk in disks {
            let label = disk.newest();
            let id = label.and_then(|label| {
                let as_it_was = || self.drives.get(&label.drive).copied();
                match label.pool == self.new {
                    true => Some(label.drive),
                    false => as_it_was().filter(|_| label.pool == self.old),
                }
            });
            let is_member = |id: &DriveId| self.drives.values().any(|known| known == id);
            let Some(id) = id.filter(is_member) else {
                return Err(InspectError::new(format!(
                    "{} is not a drive of pool '{}' ({}): specify the drives of one pool only",
                    disk.spec, self.config.name, self.old
                )));
            };
            if !seen.insert(id) {
                return Err(InspectError::new(format!(
                    "{} and another are the same drive of pool '{}': specify the drives of one copy only",
                    disk.spec, self.config.name
                )));
            }
            found.push((id, disk));
        }
        if let Some(missing) = self.drives.values().find(|id| !seen.contains(id)) {
            let known = self.config.drives.iter();
            let mut known = known.filter(|known| known.id == missing.to_string());
            return Err(InspectError::new(format!(
                "the drive that was last {} is not among those specified: specify all drives of the copy",
                known.next().map_or("", |known| &known.spec)
            )));
        }
        Ok(found)
    }

    async fn write_labels(&self, disks: &[Disk], generation: u64) -> Result<()> {
        for (drive, disk) in self.drives_of(disks)? {
            let failed = |error: block::DriveError| {
                InspectError::new(format!("{}: writing a label failed: {error}", disk.spec))
            };
            let label = Label {
                pool: self.new,
                drive,
                generation,
                exported: self.exported,
                config: self.config.clone(),
            };
            let bytes = label.encode();
            let bytes = bytes.map_err(|error| InspectError::new(error.to_string()))?;
            for slot in label_slots_for(generation) {
                let Some(offset) = disk.places[slot] else {
                    continue;
                };
                disk.write(offset, &bytes).await.map_err(failed)?;
            }
            disk.flush().await.map_err(failed)?;
        }
        Ok(())
    }

    /// Checkpoints and journals, on every member of the metadata region.
    async fn rewrite_metadata(&self, disks: &[Disk]) -> Result<()> {
        let (shards, journal) = (self.config.shards, self.config.meta.journal_blocks);
        let end = journal_start(shards, shards, journal);
        let disks = self.drives_of(disks)?;
        for part in &self.config.meta.parts {
            let bears = |known: &&(DriveId, &Disk)| known.0.to_string() == part.drive;
            let Some((_, disk)) = disks.iter().find(bears) else {
                continue;
            };
            let failed = |error: block::DriveError| {
                InspectError::new(format!(
                    "{}: writing the metadata region failed: {error}",
                    disk.spec
                ))
            };
            let mut at = 0;
            while at < end.min(part.blocks) {
                let count = BATCH.min(end.min(part.blocks) - at);
                let offset = part.offset + at * BLOCK as u64;
                let read = disk.read(offset, count as usize * BLOCK).await;
                let mut bytes = read.map_err(failed)?;
                let mut is_changed = false;
                for page in bytes.chunks_exact_mut(PAGE) {
                    is_changed |= give_to_pool(page, self.old, self.new);
                }
                if is_changed {
                    disk.write(offset, &bytes).await.map_err(failed)?;
                }
                at += count;
            }
            disk.flush().await.map_err(failed)?;
        }
        Ok(())
    }
}

/// Refuses a copy whose drives are not of one moment, or not whole: new labels would say that they are.
fn refuse_unlike(evidence: &Evidence) -> Result<()> {
    if let Some(old) = evidence.lost().next() {
        return Err(InspectError::new(format!(
            "{} is older than the copy's other drives (label {}, at least {} expected): copy all drives again, at one point in time",
            old.spec, old.generation, old.expected
        )));
    }
    if let Some(short) = evidence.short.first() {
        return Err(InspectError::new(format!(
            "{} is {} bytes shorter than the drive that it is a copy of: copy the whole drive again",
            short.spec, short.missing
        )));
    }
    Ok(())
}

/// The identities that a description says are being replaced: the pool's, and drives' new ones by their old ones.
fn marked(config: &PoolConfig) -> Option<(PoolId, BTreeMap<DriveId, DriveId>)> {
    let mark = config.unknown.get(MARK)?;
    let pool = mark.get("pool")?.as_str()?.parse().ok()?;
    let drives = mark.get("drives")?.as_object()?.iter();
    let pair = |(old, new): (&String, &Value)| {
        let new = new.as_str()?.parse().ok()?;
        Some((old.parse().ok()?, new))
    };
    Some((pool, drives.map(pair).collect::<Option<_>>()?))
}

fn rename_drive(known: &mut DriveConfig, drives: &BTreeMap<DriveId, DriveId>) {
    known.labelled = 0;
    if let Some(new) = known.id.parse().ok().and_then(|old| drives.get(&old)) {
        known.id = new.to_string();
    }
}

fn rename_part(part: &mut PartConfig, drives: &BTreeMap<DriveId, DriveId>) {
    if let Some(new) = part.drive.parse().ok().and_then(|old| drives.get(&old)) {
        part.drive = new.to_string();
    }
}

/// As [`renew_identity`], of drives by name.
///
/// # Errors
/// As [`renew_identity`]'s; when a drive is in use.
pub fn renew(specs: &[String], name: Option<&str>) -> Result<Renewed> {
    let drives = run::open_drives(specs, crate::Mode::Mend)?;
    let reactor = run::reactor()?;
    let (handle, name) = (reactor.handle().clone(), name.map(str::to_owned));
    let ended = reactor.block_on(async move {
        let mut new_id = random_id;
        renew_identity(&handle, &drives, name.as_deref(), &mut new_id).await
    });
    ended.map_err(|error| InspectError::new(format!("the loop failed: {error}")))?
}

fn random_id() -> Result<u128> {
    reactor::control::entropy().map_err(|error| {
        InspectError::new(format!("the system returns no random numbers: {error}"))
    })
}
