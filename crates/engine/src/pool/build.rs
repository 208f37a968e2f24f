//! Making the shards of a pool that is being created or opened.

use super::labels::on_loop;
use super::pool_drives::PoolDrive;
use super::{Result, ShardHandle, error};
use crate::control::types::{EngineConfig, ErrorCode, SpacePolicy};
use crate::shard::{LeftTail, PoolShared, Shard, ShardConfig, ShardPort};
use crate::space::{Class, GroupTable, VdriveSpace};
use crate::vdrive::{Layout, Member, Members, Missing, PartIo, StaleMap, VdriveIo, region_blocks};
use block::DriveQueue;
use format::{
    LayoutConfig, PartConfig, Policy, PoolConfig, TierConfig, VdriveConfig, journal_start,
    pages_start,
};
use reactor::{Handle, Remote};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use units::{DriveId, PoolId, ShardId, VdriveId};

/// One vdrive as its shards need it; the metadata region is number 0.
#[derive(Clone)]
pub(crate) struct Blueprint {
    pub id: u8,
    pub layout: LayoutConfig,
    pub parts: Vec<PartConfig>,
    pub pool_drives: Vec<PoolDrive>,
    pub members: Vec<Arc<Member>>,
    pub table: Arc<Members>,
}

impl Blueprint {
    /// Builds it for a vdrive of the pool; adds parts that are missing in `table`.
    pub fn new(
        id: u8,
        layout: LayoutConfig,
        parts: &[PartConfig],
        pool_drives: &[PoolDrive],
        table: &Arc<Members>,
        group_blocks: u64,
    ) -> Result<Self> {
        let mut mine = Vec::new();
        let mut members = Vec::new();
        let lengths: Vec<u64> = parts.iter().map(|part| part.blocks).collect();
        let region = region_blocks(Layout::new(layout, &lengths).blocks(), group_blocks);
        let mirrored = layout == LayoutConfig::Mirror && parts.len() > 1;
        for (index, part) in parts.iter().enumerate() {
            let Some(pool_drive) = drive_of(part, pool_drives) else {
                return error(
                    ErrorCode::Damaged,
                    format!(
                        "the pool refers to a drive {} that it does not have",
                        part.drive
                    ),
                );
            };
            let member = table.get((id, index)).unwrap_or_else(|| {
                let stale = StaleMap::new(region);
                stale.load(&part.stale);
                let member = Arc::new(Member::new((id, index), pool_drive.id, mirrored, stale));
                if part.out_since > 0 {
                    member.since(part.out_since);
                }
                table.add(member.clone());
                member
            });
            members.push(member);
            mine.push(pool_drive.clone());
        }
        Ok(Self {
            id,
            layout,
            parts: parts.to_vec(),
            pool_drives: mine,
            members,
            table: table.clone(),
        })
    }

    /// The vdrive for the calling loop's thread.
    pub fn build(&self, handle: &Handle) -> std::io::Result<VdriveIo> {
        let blocks: Vec<u64> = self.parts.iter().map(|part| part.blocks).collect();
        let mut parts = Vec::new();
        for ((part, pool_drive), member) in
            self.parts.iter().zip(&self.pool_drives).zip(&self.members)
        {
            let queue: Rc<dyn DriveQueue> = match &pool_drive.drive {
                Some(drive) => drive.queue(handle)?,
                None => Rc::new(Missing),
            };
            let shared = pool_drive.shared.clone();
            parts.push(PartIo::new(
                handle,
                queue,
                &pool_drive.spec,
                part.offset,
                member.clone(),
                shared,
            ));
        }
        let layout = Layout::new(self.layout, &blocks);
        Ok(VdriveIo::new(
            VdriveId(self.id),
            layout,
            parts,
            self.table.clone(),
            handle.dma().clone(),
        ))
    }

    /// Its size in blocks.
    pub fn blocks(&self) -> u64 {
        let blocks: Vec<u64> = self.parts.iter().map(|part| part.blocks).collect();
        Layout::new(self.layout, &blocks).blocks()
    }
}

/// Every vdrive of a pool, the metadata region first.
pub(crate) fn blueprints(
    config: &PoolConfig,
    pool_drives: &[PoolDrive],
    table: &Arc<Members>,
) -> Result<Vec<Blueprint>> {
    let group = config.group_blocks;
    let mirror = LayoutConfig::Mirror;
    let meta = Blueprint::new(0, mirror, &config.meta.parts, pool_drives, table, group)?;
    let mut all = vec![meta];
    for vdrive in &config.vdrives {
        all.push(Blueprint::new(
            vdrive.id,
            vdrive.layout,
            &vdrive.parts,
            pool_drives,
            table,
            group,
        )?);
    }
    mark_absent(config, pool_drives, table);
    Ok(all)
}

/// The drive that a part is on, if the pool has it.
fn drive_of<'a>(part: &PartConfig, pool_drives: &'a [PoolDrive]) -> Option<&'a PoolDrive> {
    let id: DriveId = part.drive.parse().ok()?;
    pool_drives.iter().find(|pool_drive| pool_drive.id == id)
}

/// Members that are out according to a label, or whose drive is missing.
fn mark_absent(config: &PoolConfig, pool_drives: &[PoolDrive], members: &Members) {
    let meta = config.meta.parts.iter().enumerate().map(|part| (0, part));
    let data = config.vdrives.iter().flat_map(|vdrive| {
        let parts = vdrive.parts.iter().enumerate();
        parts.map(|part| (vdrive.id, part))
    });
    for (vdrive, (index, part)) in meta.chain(data) {
        let missing =
            drive_of(part, pool_drives).is_some_and(|pool_drive| pool_drive.drive.is_none());
        if part.out || missing {
            let why = match part.out_why.is_empty() {
                true => "its drive was missing when the pool was opened",
                false => &part.out_why,
            };
            members.take_out((vdrive, index), why, false);
        }
    }
}

/// The space of a vdrive in groups.
pub(crate) fn space_of(
    blueprint: &Blueprint,
    vdrive: Option<&VdriveConfig>,
    config: &PoolConfig,
) -> VdriveSpace {
    let (class, base) = match vdrive.map(|vdrive| vdrive.tier) {
        None => (
            Class::Meta,
            pages_start(config.shards, config.meta.journal_blocks),
        ),
        Some(TierConfig::Fast) => (Class::Fast, 0),
        Some(TierConfig::Slow) => (Class::Slow, 0),
    };
    let groups = blueprint.blocks().saturating_sub(base) / config.group_blocks;
    VdriveSpace {
        class,
        base,
        groups: groups as u32,
    }
}

/// The state that all shards share, with every group free.
pub(crate) fn shared(
    config: &PoolConfig,
    blueprints: &[Blueprint],
    members: &Arc<Members>,
) -> Arc<PoolShared> {
    let table = GroupTable::default();
    for blueprint in blueprints {
        let vdrive = config
            .vdrives
            .iter()
            .find(|vdrive| vdrive.id == blueprint.id);
        table.add(VdriveId(blueprint.id), space_of(blueprint, vdrive, config));
        if vdrive.is_some_and(|vdrive| vdrive.evacuating) {
            table.set_open(VdriveId(blueprint.id), false);
        }
    }
    let policy = match config.policy {
        Policy::FastFirst => SpacePolicy::FastFirst,
        Policy::SlowFirst => SpacePolicy::SlowFirst,
    };
    Arc::new(PoolShared::new(Arc::new(table), policy, members.clone()))
}

/// Maximum size of a shard's log of moves in bytes: some twenty thousand.
const LEDGER_MOST: u64 = 1 << 20;

/// Parameters for starting a shard of the pool.
pub(crate) fn shard_config(
    pool: PoolId,
    shard: ShardId,
    config: &PoolConfig,
    engine: &EngineConfig,
) -> ShardConfig {
    let shards = u64::from(config.shards);
    ShardConfig {
        pool,
        shard,
        group_blocks: config.group_blocks,
        shards: config.shards,
        journal_base: journal_start(config.shards, shard.0, config.meta.journal_blocks),
        journal_blocks: config.meta.journal_blocks,
        ram_bytes: engine.ram_tier / shards,
        spare_groups: engine.spare_groups,
        map_pages: (engine.map_cache / shards * 7 / 8 / 4352).max(16) as usize,
        summaries: (engine.map_cache / shards / 8) as usize,
        ledger: (engine.map_cache / shards / 128).min(LEDGER_MOST) as usize,
    }
}

/// Every vdrive for the calling loop's thread.
pub(crate) fn vdrives(
    blueprints: &[Blueprint],
    handle: &Handle,
) -> std::io::Result<BTreeMap<VdriveId, Rc<VdriveIo>>> {
    let built = blueprints.iter().map(|blueprint| {
        let vdrive = blueprint.build(handle)?;
        Ok((vdrive.id, Rc::new(vdrive)))
    });
    built.collect()
}

/// Starts every shard on its thread, with its journal's left tail; none has loaded anything yet.
pub(crate) fn place_shards(
    id: PoolId,
    (config, blueprints, shared): (&PoolConfig, &[Blueprint], &Arc<PoolShared>),
    remotes: &[Remote],
    engine: &EngineConfig,
    left: Vec<LeftTail>,
) -> Result<Vec<ShardHandle>> {
    let mut shards = Vec::new();
    for (number, left) in (0..config.shards).zip(left) {
        let remote = remotes[usize::from(number) % remotes.len()].clone();
        let handle = ShardHandle {
            pool: id,
            id: ShardId(number),
            port: ShardPort::new(remote.clone()),
        };
        let shard_config = shard_config(id, ShardId(number), config, engine);
        let (blueprints, shared, installed) = (blueprints.to_vec(), shared.clone(), handle.clone());
        let made = on_loop(&remote, move |loop_handle| async move {
            let vdrives =
                vdrives(&blueprints, &loop_handle).map_err(|failed| failed.to_string())?;
            let shard = Shard::new(shard_config, loop_handle, shared, vdrives);
            shard.set_left(left);
            installed.install(shard);
            Ok::<(), String>(())
        })?;
        shards.push(handle);
        if let Err(failed) = made {
            shards.iter().for_each(ShardHandle::remove);
            return error(
                ErrorCode::Io,
                format!("the engine cannot attach to a drive: {failed}"),
            );
        }
    }
    Ok(shards)
}
