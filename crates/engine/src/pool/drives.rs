//! Drives of a mirror that leave, return and are replaced.

use super::labels::on_loop;
use super::open::{Host, new_drive};
use super::shards::{ask_all, try_all};
use super::{Pool, PoolDrive, Result, error, labels, lock};
use crate::control::types::{EngineError, ErrorCode};
use crate::control::wait_for;
use crate::shard::Progress;
use crate::vdrive::{DriveShared, MemberId, MemberState};
use block::Drive;
use drives::OpenDrive;
use format::{DriveConfig, History, PoolConfig, data_end};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{DriveId, VdriveId};

/// Stale regions copied between two records of a member's progress.
const WINDOW: usize = 64;

/// A member that is being resynced, and its state at the start.
#[derive(Clone, Copy)]
struct Returning {
    id: MemberId,
    absences: u64,
    regions: u64,
}

impl Pool {
    fn find_drive(&self, text: &str) -> Option<PoolDrive> {
        let canonical = drives::canonical(text).ok();
        let is = |pool_drive: &&PoolDrive| {
            pool_drive.id.to_string() == text
                || pool_drive.spec == text
                || Some(&pool_drive.spec) == canonical.as_ref()
        };
        lock(&self.pool_drives).iter().find(is).cloned()
    }

    fn known_drive(&self, text: &str) -> Result<PoolDrive> {
        self.find_drive(text).map_or_else(
            || {
                let name = &self.name;
                error(
                    ErrorCode::NotFound,
                    format!("pool {name} has no drive {text}: see `convect pool status {name}`"),
                )
            },
            Ok,
        )
    }

    fn members_on(&self, drive: DriveId) -> Vec<MemberId> {
        let members = self.members.all();
        members
            .iter()
            .filter(|(_, member)| member.drive() == drive)
            .map(|(id, _)| *id)
            .collect()
    }

    fn refuse_needed(&self, pool_drive: &PoolDrive, advice: &str) -> Result<()> {
        match self.members.needed_on(pool_drive.id) {
            None => Ok(()),
            Some(vdrive) => {
                let what = match vdrive {
                    0 => "the pool's metadata".to_owned(),
                    id => format!("data of vdrive {id}"),
                };
                error(
                    ErrorCode::Refused,
                    format!(
                        "{} holds {what} that no other drive has: {advice}",
                        pool_drive.spec
                    ),
                )
            }
        }
    }

    /// Takes a drive out of its mirrors and closes it, until it is brought online.
    ///
    /// # Errors
    /// If no other drive has its data.
    pub fn offline_drive(&self, text: &str) -> Result<()> {
        let _changing = lock(&self.changing);
        let pool_drive = self.known_drive(text)?;
        self.refuse_resync(&pool_drive)?;
        self.refuse_needed(
            &pool_drive,
            "bring the other drive of its mirror online first",
        )?;
        if !self
            .members
            .take_drive_out(pool_drive.id, "taken offline manually", false)
        {
            return self.refuse_needed(
                &pool_drive,
                "bring the other drive of its mirror online first",
            );
        }
        let id = pool_drive.id.to_string();
        *lock(&self.keeper.leaving) = Some(pool_drive.id);
        let told = self.update(|config| {
            let mut drives = config.drives.iter_mut();
            drives
                .find(|known| known.id == id)
                .iter_mut()
                .for_each(|known| known.offline = true);
            Ok(())
        });
        *lock(&self.keeper.leaving) = None;
        told?;
        drop(pool_drive);
        self.let_drive_go(&id).map(ended)
    }

    fn refuse_resync(&self, pool_drive: &PoolDrive) -> Result<()> {
        if self.jobs.is_running("resync", &self.name, &pool_drive.spec) {
            let what = format!("{} is being resynced", pool_drive.spec);
            return Err(crate::control::busy(&what));
        }
        Ok(())
    }

    /// Stops new requests of the pool to the drive, which is returned.
    fn let_drive_go(&self, id: &str) -> Result<Option<Arc<dyn OpenDrive>>> {
        let (pool_drive, drive) = {
            let mut pool_drives = lock(&self.pool_drives);
            let mut pool_drives = pool_drives.iter_mut();
            let Some(pool_drive) = pool_drives.find(|pool_drive| pool_drive.id.to_string() == id)
            else {
                return Ok(None);
            };
            let drive = pool_drive.drive.take();
            (pool_drive.clone(), drive)
        };
        self.attach(&pool_drive).map(|()| drive)
    }

    /// Attaches all shards to the drive's parts through its present handle.
    fn attach(&self, pool_drive: &PoolDrive) -> Result<()> {
        self.tell_tails();
        let places = self.members_on(pool_drive.id);
        let PoolDrive {
            drive,
            shared,
            spec,
            ..
        } = pool_drive.clone();
        let attached = ask_all(&self.shards, move |shard| {
            let (drive, shared, places) = (drive.clone(), shared.clone(), places.clone());
            let spec = spec.clone();
            async move {
                places.iter().try_for_each(|(vdrive, part)| {
                    let drive = (&spec[..], drive.as_ref());
                    shard.attach((VdriveId(*vdrive), *part), drive, &shared)
                })
            }
        })?;
        let attached: std::result::Result<(), String> = attached.into_iter().collect();
        attached.map_err(|failed| {
            let text = format!("the engine cannot attach to {}: {failed}", pool_drive.spec);
            EngineError::new(ErrorCode::Io, text)
        })
    }

    /// Brings a drive online in its mirrors; returns the resync job. With
    /// `force` also one that was used without the others: all of it is overwritten.
    ///
    /// # Errors
    /// If it is missing, or is not the same drive.
    pub fn online_drive(self: &Arc<Self>, text: &str, force: bool) -> Result<u64> {
        let _changing = lock(&self.changing);
        let mut pool_drive = match self.find_drive(text) {
            Some(pool_drive) => pool_drive,
            None => self.moved_drive(text)?,
        };
        // A reference here would keep it open.
        pool_drive.drive = None;
        self.refuse_resync(&pool_drive)?;
        let members = self.members_on(pool_drive.id);
        let state = |id: &MemberId| self.members.get(*id).map(|member| member.state());
        if members.iter().all(|id| state(id) == Some(MemberState::In)) {
            return error(
                ErrorCode::Invalid,
                format!("{} is already online", pool_drive.spec),
            );
        }
        if members.iter().all(|id| state(id) == Some(MemberState::Out)) {
            self.reopen(&pool_drive, force)?;
        }
        let (id, spec) = (pool_drive.id, pool_drive.spec);
        self.update(|config| {
            let text = id.to_string();
            for known in config.drives.iter_mut().filter(|known| known.id == text) {
                known.offline = false;
                known.spec.clone_from(&spec);
            }
            Ok(())
        })?;
        self.start_resync(id)
    }

    /// A drive of the pool under a name that it did not have before.
    fn moved_drive(&self, text: &str) -> Result<PoolDrive> {
        let (spec, drive) = open_returning(text)?;
        let label = labels::read(&self.remote, &drive)?;
        let label = label.filter(|label| label.pool == self.id);
        let pool_drives = lock(&self.pool_drives);
        let pool_drive = label.and_then(|label| {
            pool_drives
                .iter()
                .find(|pool_drive| pool_drive.id == label.drive && pool_drive.drive.is_none())
        });
        match pool_drive {
            Some(pool_drive) => Ok(PoolDrive {
                spec,
                ..pool_drive.clone()
            }),
            None => error(
                ErrorCode::NotFound,
                format!(
                    "{text} is not a missing drive of pool {}: see `convect pool status {}`",
                    self.name, self.name
                ),
            ),
        }
    }

    /// Reopens a drive that is out: it may have been detached and attached.
    fn reopen(&self, pool_drive: &PoolDrive, force: bool) -> Result<()> {
        let id = pool_drive.id.to_string();
        self.let_drive_go(&id).map(ended)?;
        let (_, drive) = open_returning(&pool_drive.spec)?;
        let label = labels::read(&self.remote, &drive)?;
        let label = label.filter(|label| label.pool == self.id && label.drive == pool_drive.id);
        let Some(label) = label else {
            return error(
                ErrorCode::Refused,
                format!(
                    "{} is not the drive it was: it has another label or none; use `convect pool replace` to use it as a new drive",
                    pool_drive.spec
                ),
            );
        };
        let config = self.config();
        let size = Drive::info(&*drive).size;
        if let Some(short) = config
            .shortage(&id, &pool_drive.spec, size)
            .filter(|it| it.cut)
        {
            return error(
                ErrorCode::Refused,
                format!(
                    "{}: restore its size, or replace it with `convect pool replace`",
                    super::evidence::shortage(&short)
                ),
            );
        }
        let history = History::of(&config, &label);
        if history == History::OwnWay && !force {
            return error(
                ErrorCode::Refused,
                format!(
                    "{} was used separately from the pool's other drives: use --force to overwrite it with their data",
                    pool_drive.spec
                ),
            );
        }
        if history != History::Known {
            self.members_on(pool_drive.id)
                .iter()
                .filter_map(|id| self.members.get(*id))
                .for_each(|member| member.stale.set_all());
        }
        let returned = {
            let mut pool_drives = lock(&self.pool_drives);
            let known = pool_drives
                .iter_mut()
                .find(|known| known.id == pool_drive.id);
            let Some(known) = known else { return Ok(()) };
            known.drive = Some(drive);
            known.spec.clone_from(&pool_drive.spec);
            known.shared = DriveShared::new(known.shared.limits, known.shared.worn(0));
            known.clone()
        };
        self.attach(&returned)
    }

    /// Replaces a drive by a new one; returns the resync job.
    ///
    /// # Errors
    /// If no other drive has the old one's data, or the new one is too small or contains
    /// data.
    pub fn replace_drive(
        self: &Arc<Self>,
        host: &Host<'_>,
        old: &str,
        new: &str,
        force: bool,
    ) -> Result<u64> {
        let text = new.to_owned();
        let made = super::pool_drives::MadeFiles::make(std::iter::once(&text))?;
        self.replace_with(host, old, new, force)
            .inspect_err(|_| made.remove())
    }

    fn replace_with(
        self: &Arc<Self>,
        host: &Host<'_>,
        old: &str,
        new: &str,
        force: bool,
    ) -> Result<u64> {
        let _changing = lock(&self.changing);
        let old = self.known_drive(old)?;
        self.refuse_resync(&old)?;
        let advice =
            "only a drive of a mirror can be replaced: add a vdrive and remove this one instead";
        self.refuse_needed(&old, advice)?;
        let new = new_drive(host, new, force, &lock(&self.pool_drives).clone())?;
        self.refuse_small(&old, &new)?;
        if !self.members.take_drive_out(old.id, "being replaced", true) {
            return self.refuse_needed(&old, advice).and(Ok(0));
        }
        let (members, id) = (self.members_on(old.id), old.id.to_string());
        drop(self.let_drive_go(&id)?);
        members
            .iter()
            .for_each(|member| self.members.put_on(*member, new.id));
        lock(&self.pool_drives)
            .iter_mut()
            .filter(|pool_drive| pool_drive.id == old.id)
            .for_each(|pool_drive| *pool_drive = new.clone());
        let taken = self.attach(&new).and_then(|()| {
            // Its label is written with the others': it takes writes from here on.
            for member in &members {
                self.members.begin_sync(*member);
            }
            self.update(|config| {
                name_new_drive(config, &id, &new);
                Ok(())
            })
        });
        if let Err(failed) = taken {
            self.members
                .take_drive_out(new.id, "replacing it failed", true);
            members
                .iter()
                .for_each(|member| self.members.put_on(*member, old.id));
            let back = PoolDrive { drive: None, ..old };
            lock(&self.pool_drives)
                .iter_mut()
                .filter(|pool_drive| pool_drive.id == new.id)
                .for_each(|pool_drive| *pool_drive = back.clone());
            return self.attach(&back).and(Err(failed));
        }
        self.clear_labels(&[old]);
        self.start_resync(new.id)
    }

    fn refuse_small(&self, old: &PoolDrive, new: &PoolDrive) -> Result<()> {
        let config = self.config();
        let end = config.parts_end(&old.id.to_string());
        if data_end(new.size) < end {
            return error(
                ErrorCode::Invalid,
                format!(
                    "{} is too small: it must be at least as large as {}, {}",
                    new.spec,
                    old.spec,
                    units::format_bytes(old.size)
                ),
            );
        }
        Ok(())
    }

    /// Brings drives online whose members were out and that are present, after an opening.
    pub(super) fn resume_resyncs(self: &Arc<Self>) {
        let pool_drives = lock(&self.pool_drives).clone();
        for pool_drive in pool_drives
            .iter()
            .filter(|pool_drive| pool_drive.drive.is_some())
        {
            let members = self.members_on(pool_drive.id);
            let behind =
                |id: &MemberId| self.members.get(*id).is_some_and(|member| !member.is_in());
            if members.iter().any(behind)
                && let Err(failed) = self.start_resync(pool_drive.id)
            {
                tracing::warn!(drive = pool_drive.spec, error = %failed, "a drive could not be brought online");
            }
        }
    }

    /// From here on the drive's members take writes; the job resyncs them.
    fn start_resync(self: &Arc<Self>, drive: DriveId) -> Result<u64> {
        self.begin_resync(drive)
            .inspect_err(|failed| self.give_up(drive, &failed.message))
    }

    /// Takes members out again that are being resynced.
    fn give_up(&self, drive: DriveId, why: &str) {
        for id in self.members_on(drive) {
            let member = self.members.get(id);
            if member.is_some_and(|member| member.state() == MemberState::Syncing) {
                self.members.take_out(id, why, false);
            }
        }
    }

    fn begin_resync(self: &Arc<Self>, drive: DriveId) -> Result<u64> {
        let mut returning = Vec::new();
        let mut total = 0;
        for id in self.members_on(drive) {
            let Some(member) = self.members.get(id).filter(|member| !member.is_in()) else {
                continue;
            };
            let place = (VdriveId(id.0), id.1);
            let name = format!("pool {}", self.name);
            try_all(&self.shards, &name, move |shard| async move {
                shard.before_resync(place)
            })?;
            let absences = member.absences();
            if !self.members.begin_sync(id) {
                continue;
            }
            try_all(&self.shards, &name, move |shard| async move {
                shard.begin_resync(place).await
            })?;
            for bytes in ask_all(&self.shards, move |shard| async move {
                shard.resync_bytes(place)
            })? {
                total += bytes.unwrap_or(0);
            }
            returning.push(Returning {
                id,
                absences,
                regions: self.regions(id.0, member.stale.region_blocks()),
            });
        }
        let spec = self.spec_of(drive);
        let pool = self.clone();
        let work = move |progress: Arc<Progress>| {
            lock(&pool.resyncs).insert(drive, (progress.clone(), total));
            let result = pool.resync(&returning, &progress);
            lock(&pool.resyncs).remove(&drive);
            match &result {
                Ok(true) => {}
                Ok(false) => pool.give_up(drive, "the resync was cancelled"),
                Err(failed) => pool.give_up(drive, &failed.message),
            }
            result
        };
        self.start_job(("resync", &spec), (0, total), work)
    }

    fn spec_of(&self, drive: DriveId) -> String {
        let pool_drives = lock(&self.pool_drives);
        let pool_drive = pool_drives.iter().find(|pool_drive| pool_drive.id == drive);
        pool_drive.map_or_else(|| drive.to_string(), |pool_drive| pool_drive.spec.clone())
    }

    fn regions(&self, vdrive: u8, region: u64) -> u64 {
        let config = self.config();
        config
            .parts()
            .filter(|((known, _), _)| *known == vdrive)
            .map(|(_, part)| part.blocks)
            .min()
            .unwrap_or(0)
            .div_ceil(region)
    }

    fn resync(&self, returning: &[Returning], progress: &Arc<Progress>) -> Result<bool> {
        for member in returning {
            let Some(known) = self.members.get(member.id) else {
                continue;
            };
            for window in known.stale.regions(member.regions).chunks(WINDOW) {
                let (Some(first), Some(last)) = (window.first(), window.last()) else {
                    continue;
                };
                if !self.resync_window(member, (*first, *last), progress)? {
                    return Ok(false);
                }
                self.members
                    .synced_upto(member.id, member.absences, *last, member.regions);
                self.members.want();
            }
            self.flush_returning(member)?;
        }
        for member in returning {
            if self.members.get(member.id).is_some()
                && !self.members.end_sync(member.id, member.absences)
            {
                return error(
                    ErrorCode::Io,
                    "the drive failed again during its resync: see `convect pool status`",
                );
            }
        }
        self.members.want();
        let members = self.members.clone();
        let recorded = on_loop(
            &self.remote,
            move |_| async move { members.recorded().await },
        )?;
        if !recorded {
            return error(
                ErrorCode::Io,
                "the labels cannot be written: see `convect pool status`",
            );
        }
        Ok(true)
    }

    fn resync_window(
        &self,
        member: &Returning,
        (first, last): (u64, u64),
        progress: &Arc<Progress>,
    ) -> Result<bool> {
        let place = (VdriveId(member.id.0), member.id.1);
        let watched = progress.clone();
        let copied = ask_all(&self.shards, move |shard| {
            let watched = watched.clone();
            async move { shard.resync(place, first..=last, &watched).await }
        })?;
        for copied in copied {
            match copied {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(failed) => return error(super::shards::code_of(&failed), failed.to_string()),
            }
        }
        self.flush_returning(member)?;
        Ok(true)
    }

    fn flush_returning(&self, member: &Returning) -> Result<()> {
        let place = (VdriveId(member.id.0), member.id.1);
        let name = format!("pool {}", self.name);
        try_all(&self.shards[..1], &name, move |shard| async move {
            shard.flush_member(place).await
        })
    }

    /// Resync progress of a drive, in per cent.
    pub(super) fn synced_percent(&self, drive: DriveId) -> Option<u8> {
        let resyncs = lock(&self.resyncs);
        let (progress, total) = resyncs.get(&drive)?;
        let done = progress.done.load(Ordering::Relaxed);
        Some((done * 100 / (*total).max(1)).min(99) as u8)
    }
}

/// Waits until a drive's last request has ended, so that its lock is free; not for one that hangs.
fn ended(drive: Option<Arc<dyn OpenDrive>>) {
    if let Some(drive) = drive
        && !wait_for(|| Arc::strong_count(&drive) == 1)
    {
        let spec = block::Drive::info(&*drive).spec;
        tracing::error!(%spec, "a drive that was removed from its pool stays locked until its last request ends");
    }
}

fn open_returning(text: &str) -> Result<(String, Arc<dyn OpenDrive>)> {
    let spec = drives::canonical(text).map_err(|failed| super::pool_drives::open_error(&failed))?;
    let drive =
        drives::open(&spec).map_err(|failed| super::pool_drives::known_error(&spec, &failed))?;
    Ok((spec, drive))
}

fn name_new_drive(config: &mut PoolConfig, old: &str, new: &PoolDrive) {
    let data = config
        .vdrives
        .iter_mut()
        .flat_map(|vdrive| &mut vdrive.parts);
    for part in config.meta.parts.iter_mut().chain(data) {
        if part.drive == old {
            part.drive = new.id.to_string();
        }
    }
    for known in config.drives.iter_mut().filter(|known| known.id == old) {
        *known = DriveConfig {
            id: new.id.to_string(),
            spec: new.spec.clone(),
            size: Drive::info(&**new.drive.as_ref().expect("it was just opened")).size,
            offline: false,
            labelled: 0,
            wear: format::WearConfig::default(),
        };
    }
}
