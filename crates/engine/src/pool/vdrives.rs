//! Adding vdrives to an open pool, and emptying and removing them.

use super::build::{Blueprint, space_of};
use super::open::{Host, new_drive};
use super::plan::{self, Planned, Scale};
use super::pool_drives::{MadeFiles, PoolDrive};
use super::shards::{ask_all, code_of};
use super::{Pool, Result, error, lock};
use crate::control::types::{EngineError, ErrorCode, Tier, VdriveSpec};
use crate::shard::{Evacuated, Progress, UnreadableBlocks};
use format::{DATA_START, DriveConfig, VdriveConfig};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::mutation::{Mutation, is_on};
use units::{BLOCK, VdriveId, format_bytes};

impl Pool {
    /// Usable capacity of the present vdrives.
    pub(super) fn update_capacity(&self) {
        let config = lock(&self.config);
        let blocks: u64 = config
            .vdrives
            .iter()
            .filter(|vdrive| !vdrive.evacuating)
            .filter_map(|vdrive| self.shared.groups.space(VdriveId(vdrive.id)))
            .map(|space| u64::from(space.groups) * config.group_blocks)
            .sum();
        let capacity = plan::capacity(blocks, config.shards, config.group_blocks);
        self.shared.space.set_capacity(capacity as i64);
        self.shared.space.full.store(false, Ordering::Relaxed);
    }

    /// Adds a vdrive.
    ///
    /// # Errors
    /// A sentence; the pool is unchanged.
    pub fn add_vdrive(&self, host: &Host<'_>, spec: &VdriveSpec, force: bool) -> Result<u8> {
        let made = MadeFiles::make(spec.drives.iter())?;
        self.add_over(host, spec, force)
            .inspect_err(|_| made.remove())
    }

    fn add_over(&self, host: &Host<'_>, spec: &VdriveSpec, force: bool) -> Result<u8> {
        let _changing = lock(&self.changing);
        plan::check_vdrive(spec)?;
        let config = self.config();
        let has_fast = config
            .vdrives
            .iter()
            .any(|vdrive| vdrive.tier == format::TierConfig::Fast);
        if spec.tier == Tier::Fast && !has_fast && !force {
            return error(
                ErrorCode::Refused,
                "the pool has no fast tier, and its metadata will stay on the slow one: use --force to add it nevertheless",
            );
        }
        let Some(id) =
            (1..=u8::MAX).find(|id| config.vdrives.iter().all(|vdrive| vdrive.id != *id))
        else {
            return error(ErrorCode::Invalid, "a pool has at most 255 vdrives");
        };
        let mut pool_drives = lock(&self.pool_drives).clone();
        let mut planned = Vec::new();
        for text in &spec.drives {
            let pool_drive = new_drive(host, text, force, &pool_drives)?;
            planned.push(Planned {
                id: pool_drive.id,
                spec: pool_drive.spec.clone(),
                size: pool_drive.size,
            });
            pool_drives.push(pool_drive);
        }
        plan::check_total(pool_drives.iter().map(|pool_drive| pool_drive.size).sum())?;
        let scale = Scale {
            group_blocks: config.group_blocks,
            journal_blocks: config.meta.journal_blocks,
            meta_groups: None,
        };
        let vdrive = plan::vdrive(id, spec, &planned, |_| DATA_START, scale)?;
        self.join_vdrive(vdrive, &planned, pool_drives)?;
        Ok(id)
    }

    fn join_vdrive(
        &self,
        vdrive: VdriveConfig,
        planned: &[Planned],
        pool_drives: Vec<PoolDrive>,
    ) -> Result<()> {
        let id = VdriveId(vdrive.id);
        let blueprint = Blueprint::new(
            vdrive.id,
            vdrive.layout,
            &vdrive.parts,
            &pool_drives,
            &self.members,
            self.config().group_blocks,
        )?;
        let (copy, closing) = (blueprint.clone(), || {
            EngineError::new(ErrorCode::Busy, "the pool is closing")
        });
        let built = ask_all(&self.shards, move |shard| {
            let blueprint = copy.clone();
            async move {
                let vdrive = blueprint
                    .build(shard.loop_handle())
                    .map_err(|failed| failed.to_string())?;
                shard.add_vdrive(Rc::new(vdrive));
                Ok::<(), String>(())
            }
        });
        let built = built.and_then(|all| {
            all.into_iter()
                .collect::<std::result::Result<(), _>>()
                .map_err(|failed| EngineError::new(ErrorCode::Io, failed))
        });
        let before = lock(&self.pool_drives).clone();
        let joined = built.and_then(|()| {
            *lock(&self.pool_drives) = pool_drives;
            self.tell_tails();
            self.update(|config| {
                config
                    .drives
                    .extend(planned.iter().map(|drive| DriveConfig {
                        id: drive.id.to_string(),
                        spec: drive.spec.clone(),
                        size: drive.size,
                        offline: false,
                        labelled: 0,
                        wear: format::WearConfig::default(),
                    }));
                config.vdrives.push(vdrive.clone());
                Ok(())
            })
        });
        if let Err(failed) = joined {
            *lock(&self.pool_drives) = before;
            self.members.forget(id.0);
            ask_all(
                &self.shards,
                move |shard| async move { shard.remove_vdrive(id) },
            )
            .map_err(|_| closing())?;
            return Err(failed);
        }
        let config = self.config();
        self.shared
            .groups
            .add(id, space_of(&blueprint, Some(&vdrive), &config));
        self.update_capacity();
        Ok(())
    }

    /// Starts to evacuate a vdrive; it is removed from the pool afterwards.
    ///
    /// # Errors
    /// If it cannot be removed, with the reason.
    pub fn remove_vdrive(self: &Arc<Self>, id: u8) -> Result<u64> {
        let _changing = lock(&self.changing);
        let config = self.config();
        let Some(vdrive) = config.vdrives.iter().find(|vdrive| vdrive.id == id) else {
            return error(
                ErrorCode::NotFound,
                format!(
                    "pool {} has no vdrive {id}: see `convect vdrive list {}`",
                    self.name, self.name
                ),
            );
        };
        if vdrive.evacuating {
            return Err(crate::control::busy(
                "the vdrive is already being evacuated",
            ));
        }
        let meta = config
            .meta
            .parts
            .iter()
            .find(|meta| vdrive.parts.iter().any(|part| part.drive == meta.drive));
        if let Some(meta) = meta {
            let spec = config
                .drives
                .iter()
                .find(|drive| drive.id == meta.drive)
                .map_or("?", |drive| &drive.spec);
            return error(
                ErrorCode::Refused,
                format!(
                    "vdrive {id} cannot be removed: drive {spec} holds the pool's metadata, which cannot be moved"
                ),
            );
        }
        self.check_room_without(id, &config)?;
        self.check_settings_without(id, &config)?;
        self.update(|config| {
            config
                .vdrives
                .iter_mut()
                .filter(|known| known.id == id)
                .for_each(|known| known.evacuating = true);
            Ok(())
        })?;
        self.start_evacuation(id)
    }

    fn check_room_without(&self, id: u8, config: &format::PoolConfig) -> Result<()> {
        let space = |vdrive: &VdriveConfig| {
            self.shared
                .groups
                .space(VdriveId(vdrive.id))
                .map_or(0, |space| u64::from(space.groups) * config.group_blocks)
        };
        let rest: u64 = config
            .vdrives
            .iter()
            .filter(|vdrive| vdrive.id != id && !vdrive.evacuating)
            .map(space)
            .sum();
        let rest = plan::capacity(rest, config.shards, config.group_blocks) as i64;
        let shared = &self.shared.space;
        let needed = shared.stored() + shared.promised();
        if needed > rest {
            let bytes = |blocks: i64| format_bytes(blocks.max(0) as u64 * BLOCK as u64);
            return error(
                ErrorCode::NoSpace,
                format!(
                    "vdrive {id} cannot be removed: the pool uses {} and the other vdrives have {}; add a vdrive first",
                    bytes(needed),
                    bytes(rest)
                ),
            );
        }
        Ok(())
    }

    pub(super) fn start_evacuation(self: &Arc<Self>, id: u8) -> Result<u64> {
        self.shared.groups.set_open(VdriveId(id), false);
        self.update_capacity();
        let used: u64 = self
            .shard_statuses()?
            .iter()
            .filter_map(|shard| shard.used.get(&VdriveId(id)))
            .sum();
        let pool = self.clone();
        self.start_job(
            ("evacuate", &format!("vdrive {id}")),
            (0, used * BLOCK as u64),
            move |progress| {
                let result = pool.empty_vdrive(id, &progress);
                let ended = matches!(result, Ok(true));
                if !ended && !pool.is_closing() {
                    pool.keep_vdrive(id)?;
                }
                result
            },
        )
    }

    fn is_closing(&self) -> bool {
        lock(&self.devices).is_empty() && !lock(&self.config).volumes.is_empty()
    }

    /// The vdrive stays: it provides space again.
    fn keep_vdrive(&self, id: u8) -> Result<()> {
        let _changing = lock(&self.changing);
        self.update(|config| {
            config
                .vdrives
                .iter_mut()
                .filter(|known| known.id == id)
                .for_each(|known| known.evacuating = false);
            Ok(())
        })?;
        self.shared.groups.set_open(VdriveId(id), true);
        self.update_capacity();
        Ok(())
    }

    fn empty_vdrive(&self, id: u8, progress: &Arc<Progress>) -> Result<bool> {
        let watched = progress.clone();
        let results = ask_all(&self.shards, move |shard| {
            let watched = watched.clone();
            async move { shard.evacuate(VdriveId(id), &watched).await }
        })?;
        let mut unread = UnreadableBlocks::default();
        for result in results {
            match result {
                Ok(Evacuated::Empty) => {}
                Ok(Evacuated::Cancelled) => return Ok(false),
                Ok(Evacuated::UnreadableBlocks(blocks)) => unread.add(blocks),
                Err(failed) => {
                    return error(
                        code_of(&failed),
                        format!(
                            "vdrive {id} could not be evacuated: {failed}; it stays in the pool"
                        ),
                    );
                }
            }
        }
        if unread.count > 0 {
            let blocks = self.name_unread(&unread);
            return error(
                ErrorCode::Damaged,
                format!(
                    "vdrive {id} still has blocks that cannot be moved, and stays in the pool: {blocks}"
                ),
            );
        }
        let taken = self.shared.groups.taken(VdriveId(id));
        if taken > 0 && !is_on(Mutation::EvacuatedEarly) {
            return error(
                ErrorCode::Busy,
                format!(
                    "vdrive {id} is evacuated, but some of its space is still in use: try again"
                ),
            );
        }
        self.remove_empty(id)?;
        Ok(true)
    }

    /// Blocks that cannot be read in words, with the volumes' names.
    pub(super) fn name_unread(&self, unread: &UnreadableBlocks) -> String {
        let config = self.config();
        unread.sentence(|id| format!("volume {}", config.layer_name(id)))
    }

    /// Removes an empty vdrive from the labels, the shards and the pool.
    fn remove_empty(&self, id: u8) -> Result<()> {
        let _changing = lock(&self.changing);
        let gone: Vec<String> = {
            let config = lock(&self.config);
            let vdrive = config.vdrives.iter().find(|vdrive| vdrive.id == id);
            vdrive.map_or_else(Vec::new, |vdrive| {
                vdrive.parts.iter().map(|part| part.drive.clone()).collect()
            })
        };
        self.update(|config| {
            config.vdrives.retain(|known| known.id != id);
            config.drives.retain(|drive| !gone.contains(&drive.id));
            Ok(())
        })?;
        ask_all(&self.shards, move |shard| async move {
            shard.remove_vdrive(VdriveId(id))
        })?;
        self.shared.groups.remove(VdriveId(id));
        self.members.forget(id);
        let mut leaving = Vec::new();
        lock(&self.pool_drives).retain(|pool_drive| {
            let stays = !gone.contains(&pool_drive.id.to_string());
            if !stays {
                leaving.push(pool_drive.clone());
            }
            stays
        });
        self.clear_labels(&leaving);
        self.update_capacity();
        Ok(())
    }
}
