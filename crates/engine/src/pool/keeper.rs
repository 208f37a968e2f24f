//! The pool's description in its labels, kept up to date.
//!
//! Responsible for: writing labels one generation after the other, whatever the caller, and writing immediately
//! what barriers wait for: members that went out and what they lack. Frequent requests go to
//! the drives with metadata, without which no pool can be opened, and to the others soon after. Runs on
//! the pool's first loop. Leaves out: what a label looks like on a drive.

mod follow;

use super::labels::{LabelFailure, write_one};
use super::{PoolDrive, Result, lock};
use crate::control::types::{EngineError, ErrorCode};
use crate::shard::Marks;
use crate::vdrive::{DriveShared, MemberState, Members};
use drives::OpenDrive;
use format::{CheckpointMark, Label, PartConfig, PoolConfig, label_slots_for, readdress};
use futures_util::future::join_all;
use reactor::Handle;
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use units::mutation::{Mutation, is_on};
use units::{DriveId, PoolId};

/// Minimum time for which drives without metadata have an older label than the others: a label
/// moves a disk's heads to both of its ends.
const FOLLOW_AFTER_NS: u64 = 1_000_000_000;

/// Writes a pool's labels.
pub(crate) struct Keeper {
    pub pool: PoolId,
    pub name: String,
    pub config: Arc<Mutex<PoolConfig>>,
    pub generation: Arc<AtomicU64>,
    pub pool_drives: Arc<Mutex<Vec<PoolDrive>>>,
    pub members: Arc<Members>,
    /// Progress of the shards' metadata.
    marks: Arc<Marks>,
    /// A drive that is being taken offline manually: its own label records that it is out.
    pub leaving: Mutex<Option<DriveId>>,
    /// The newest label that each drive is known to have, by generation.
    labelled: Mutex<BTreeMap<DriveId, u64>>,
    /// The right to write to drives whose labels are older; taken before `turn`.
    following: Mutex<Turn>,
    /// A task is updating those labels.
    will_follow: AtomicBool,
    turn: Mutex<Turn>,
}

/// The labels that a pool was opened from.
pub(crate) struct Labelled {
    /// The newest generation of all; 0 for a new pool.
    pub generation: u64,
    /// The newest of each drive.
    pub drives: BTreeMap<DriveId, u64>,
}

/// Which drives a generation goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// The drives with metadata.
    Leading,
}

/// A drive that labels are written to, with its size in bytes when it joined.
type Target = (DriveId, (Arc<dyn OpenDrive>, u64), Arc<DriveShared>);

#[derive(Default)]
struct Turn {
    taken: bool,
    waiting: Vec<Waker>,
}

/// Exclusive right to a step that others wait for; released on drop.
struct Taken<'a>(&'a Mutex<Turn>);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut turn = lock(self.0);
        turn.taken = false;
        turn.waiting.drain(..).for_each(Waker::wake);
    }
}

async fn take(turn: &Mutex<Turn>) -> Taken<'_> {
    poll_fn(|context| {
        let mut state = lock(turn);
        if std::mem::replace(&mut state.taken, true) {
            state.waiting.push(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Taken(turn))
    })
    .await
}

/// Result of writing one generation of labels.
struct Round {
    taken: BTreeSet<DriveId>,
    /// Drives that were skipped, since they are out.
    left_out: BTreeSet<DriveId>,
    /// Drives whose turn is the next generation: this one would have gone over their newest label.
    passed_over: BTreeSet<DriveId>,
    failure: Option<EngineError>,
}

impl Keeper {
    pub fn new(
        pool: PoolId,
        config: PoolConfig,
        found: Labelled,
        pool_drives: Vec<PoolDrive>,
        members: Arc<Members>,
        marks: Arc<Marks>,
    ) -> Arc<Self> {
        Arc::new(Self {
            pool,
            name: config.name.clone(),
            config: Arc::new(Mutex::new(config)),
            generation: Arc::new(AtomicU64::new(found.generation)),
            pool_drives: Arc::new(Mutex::new(pool_drives)),
            members,
            marks,
            leaving: Mutex::default(),
            labelled: Mutex::new(found.drives),
            following: Mutex::default(),
            will_follow: AtomicBool::new(false),
            turn: Mutex::default(),
        })
    }

    /// Writes labels that barriers wait for, until the pool is closed.
    pub async fn run(self: Arc<Self>, handle: Handle) {
        while self.members.changed().await {
            let writing = self.level(&handle).await;
            // Another task's labels may have recorded it meanwhile: the last before a close stays.
            if !self.members.is_behind() {
                continue;
            }
            let config = lock(&self.config).clone();
            match self.write(&handle, config, false).await {
                Ok(true) => {}
                Ok(false) => self.members.record_failed(),
                Err(failed) => {
                    tracing::error!(pool = self.name, error = %failed, "no label can be written");
                    self.members.record_failed();
                }
            }
            drop(writing);
        }
    }

    /// Writes a new description to every drive. It is valid once any drive has it: the newest label
    /// wins.
    ///
    /// # Errors
    /// If it could not be written to any drive: nothing has changed then.
    pub async fn save(&self, handle: &Handle, config: PoolConfig, exported: bool) -> Result<()> {
        let _writing = self.level(handle).await;
        self.write(handle, config, exported).await.map(drop)
    }

    /// Writes a new description to the drives with metadata, and to the others within seconds.
    /// After any failure it does the same as [`Keeper::save`].
    ///
    /// # Errors
    /// If it could not be written to any drive: nothing has changed then.
    pub async fn save_soon(self: &Arc<Self>, handle: &Handle, config: PoolConfig) -> Result<()> {
        if self.members.all().iter().all(|(_, member)| member.is_in()) && !self.members.is_behind()
        {
            let _writing = take(&self.turn).await;
            let round = self.write_round(handle, &config, false, Scope::Leading);
            let round = round.await;
            // A drive that has metadata and an older label would be older than acknowledged writes.
            let all = round.passed_over.is_empty();
            if round.failure.is_none() && !round.taken.is_empty() && all {
                if !self.will_follow.swap(true, Ordering::AcqRel) {
                    handle.spawn(self.clone().follow(handle.clone()));
                }
                return Ok(());
            }
        }
        self.save(handle, config, false).await
    }

    /// Waits until no task writes labels to drives that the pool has no longer; none starts at all any more once the pool
    /// was closed.
    pub async fn settled(&self) {
        let _following = take(&self.following).await;
        drop(take(&self.turn).await);
    }

    fn note(&self, drive: DriveId, generation: u64) {
        lock(&self.labelled).insert(drive, generation);
    }

    fn label(&self, generation: u64, exported: bool, config: PoolConfig) -> Label {
        Label {
            pool: self.pool,
            drive: DriveId(0),
            generation,
            exported,
            config,
        }
    }

    /// Present drives of the pool that are valid, and those that are out.
    fn targets(&self) -> (Vec<Target>, BTreeSet<DriveId>) {
        let leaving = *lock(&self.leaving);
        let mut left_out = BTreeSet::new();
        let mut targets = Vec::new();
        for pool_drive in lock(&self.pool_drives).iter() {
            if self.is_out(pool_drive.id) && leaving != Some(pool_drive.id) {
                left_out.insert(pool_drive.id);
            } else if let Some(drive) = &pool_drive.drive {
                let drive = (drive.clone(), pool_drive.size);
                targets.push((pool_drive.id, drive, pool_drive.shared.clone()));
            }
        }
        (targets, left_out)
    }

    async fn write_to(
        &self,
        handle: &Handle,
        targets: &[Target],
        generation: u64,
        bytes: &[u8],
    ) -> Vec<(DriveId, std::result::Result<(), LabelFailure>)> {
        let writes = targets.iter().map(|(id, (drive, size), shared)| {
            let own = readdress(bytes, *id);
            async move {
                let drive = (drive, *size);
                let written = write_one(handle, drive, generation, &own, shared).await;
                (*id, written)
            }
        });
        join_all(writes).await
    }

    /// Writes one generation, and another one if drives failed and went out for that, or if a drive that has to
    /// get it could not be written. False if a later opening from any sufficient drives might not see
    /// it.
    async fn write(&self, handle: &Handle, config: PoolConfig, exported: bool) -> Result<bool> {
        loop {
            let wanted = self.members.wanted();
            let round = self
                .write_round(handle, &config, exported, Scope::All)
                .await;
            if round.taken.is_empty() {
                return Err(round
                    .failure
                    .unwrap_or_else(|| EngineError::new(ErrorCode::Io, "no drive is left")));
            }
            if self.members.wanted() != wanted && round.failure.is_some() {
                continue;
            }
            let lacking = self.lacking(&round.taken);
            // It is written now: no drive is skipped twice in a row except after a failure in between.
            if !lacking.is_disjoint(&round.passed_over) {
                continue;
            }
            if lacking.is_empty() {
                self.members.recorded_upto(wanted);
            }
            // A drive whose members came back meanwhile has an older label only for that: the next
            // round asks it, once no other label of its own is at risk.
            return Ok(lacking.is_subset(&round.left_out));
        }
    }

    async fn write_round(
        &self,
        handle: &Handle,
        config: &PoolConfig,
        exported: bool,
        scope: Scope,
    ) -> Round {
        // Before those of the drives: a valid drive then has every named checkpoint, or all of a later one.
        let marks = self.marks.all();
        let (mut pool_drives, mut left_out) = self.targets();
        pool_drives.retain(|(id, _, _)| scope == Scope::All || leads(config, *id));
        // A drive that does not respond would block all changes of the pool.
        let silent = |shared: &DriveShared| shared.silent.load(Ordering::Relaxed);
        for (id, _, _) in pool_drives.iter().filter(|(_, _, shared)| silent(shared)) {
            if self
                .members
                .take_drive_out(*id, "it is not responding", false)
            {
                left_out.insert(*id);
            }
        }
        pool_drives.retain(|(_, _, shared)| !silent(shared));
        let generation = self.next_generation(&pool_drives);
        let mut passed_over = BTreeSet::new();
        pool_drives.retain(|(id, _, _)| {
            let asked = !self.would_lose_its_newest(*id, generation);
            asked || !passed_over.insert(*id)
        });
        let mut config = config.clone();
        self.tell_members(&mut config, generation);
        self.tell_labelled(&mut config, &pool_drives, generation);
        tell_marks(&mut config, &marks);
        let leaving = *lock(&self.leaving);
        let mut round = Round {
            taken: BTreeSet::new(),
            left_out,
            passed_over,
            failure: None,
        };
        let label = self.label(generation, exported, config);
        let bytes = match label.encode() {
            Ok(bytes) => bytes,
            Err(failed) => {
                let error = EngineError::new(ErrorCode::NoSpace, failed.to_string());
                round.failure = Some(error);
                return round;
            }
        };
        let results = self.write_to(handle, &pool_drives, generation, &bytes);
        for (id, result) in results.await {
            match result {
                Ok(()) if leaving == Some(id) => {}
                Ok(()) => {
                    self.note(id, generation);
                    round.taken.insert(id);
                }
                Err(failed) if leaving == Some(id) => {
                    tracing::warn!(pool = self.name, error = %failed.error, "the label of a removed drive could not be updated");
                }
                Err(failed) => {
                    let error = failed.error;
                    tracing::warn!(pool = self.name, %error, "a label was not written");
                    self.members
                        .take_drive_out(id, &error.message, failed.flush);
                    round.failure = Some(error);
                }
            }
        }
        if !round.taken.is_empty() {
            self.generation.store(generation, Ordering::Release);
            *lock(&self.config) = label.config;
        }
        round
    }

    /// The next generation that at least one of these drives can take.
    fn next_generation(&self, pool_drives: &[Target]) -> u64 {
        let next = self.generation.load(Ordering::Acquire) + 1;
        let mut ids = pool_drives.iter().map(|(id, _, _)| *id);
        let nobody = !pool_drives.is_empty() && ids.all(|id| self.would_lose_its_newest(id, next));
        next + u64::from(nobody)
    }

    /// Whether a generation goes to the places of a drive where its newest label is. The other two may hold
    /// anything: a label that failed, or an older one. A power cut in the middle would then leave none; such a
    /// drive gets the next generation.
    fn would_lose_its_newest(&self, drive: DriveId, generation: u64) -> bool {
        let over = |own: &u64| label_slots_for(*own) == label_slots_for(generation);
        lock(&self.labelled).get(&drive).is_some_and(over)
    }

    /// Records which members are out, since which generation, and what they lack.
    fn tell_members(&self, config: &mut PoolConfig, generation: u64) {
        for ((vdrive, part), member) in self.members.all() {
            let Some(part) = part_of(config, vdrive, part) else {
                continue;
            };
            let out = member.state() != MemberState::In;
            if !out {
                *part = PartConfig {
                    out: false,
                    out_since: 0,
                    out_why: String::new(),
                    stale: String::new(),
                    ..part.clone()
                };
                continue;
            }
            part.out_since = member.since(generation);
            part.out = true;
            part.out_why = member.why();
            part.stale = member.stale.text();
        }
    }

    /// Records the labels of drives that do not get this one, or lack the previous one because of a failure.
    fn tell_labelled(&self, config: &mut PoolConfig, asked: &[Target], generation: u64) {
        let labelled = lock(&self.labelled);
        for known in &mut config.drives {
            let Ok(drive) = known.id.parse::<DriveId>() else {
                continue;
            };
            let is_asked = asked.iter().any(|(id, _, _)| *id == drive);
            match labelled.get(&drive) {
                Some(own)
                    if !is_asked || (*own + 1 < generation && !is_on(Mutation::FailedLabelled)) =>
                {
                    known.labelled = *own
                }
                _ if is_asked => known.labelled = 0,
                _ => {}
            }
        }
    }

    /// Whether all members on a drive are out: its label stays as it was then.
    pub(super) fn is_out(&self, drive: DriveId) -> bool {
        let members = self.members.all();
        let mut of_drive = members
            .iter()
            .filter(|(_, member)| member.drive() == drive)
            .peekable();
        of_drive.peek().is_some() && of_drive.all(|(_, member)| member.state() == MemberState::Out)
    }

    /// Drives without the label that have a member which can substitute an absent one.
    fn lacking(&self, taken: &BTreeSet<DriveId>) -> BTreeSet<DriveId> {
        let members = self.members.all();
        let absent: BTreeSet<u8> = members
            .iter()
            .filter(|(_, member)| !member.is_in())
            .map(|((vdrive, _), _)| *vdrive)
            .collect();
        members
            .iter()
            .filter(|((vdrive, _), member)| absent.contains(vdrive) && member.is_in())
            .map(|(_, member)| member.drive())
            .filter(|drive| !taken.contains(drive))
            .collect()
    }
}

/// Records the progress of the shards' metadata; for shards that are not opened yet, the last known one.
fn tell_marks(config: &mut PoolConfig, marks: &BTreeMap<u16, CheckpointMark>) {
    let count = usize::from(config.shards);
    config.checkpoints.resize(count, CheckpointMark::default());
    for (shard, known) in (0..).zip(&mut config.checkpoints) {
        if let Some(mark) = marks.get(&shard) {
            *known = *mark;
        }
    }
}

/// Whether a drive has metadata.
fn leads(config: &PoolConfig, drive: DriveId) -> bool {
    let drive = drive.to_string();
    config.meta.parts.iter().any(|part| part.drive == drive)
}

/// A part of a pool's description; vdrive 0 is the metadata region.
pub(crate) fn part_of(config: &mut PoolConfig, vdrive: u8, part: usize) -> Option<&mut PartConfig> {
    let parts = match vdrive {
        0 => &mut config.meta.parts,
        id => {
            &mut config
                .vdrives
                .iter_mut()
                .find(|known| known.id == id)?
                .parts
        }
    };
    parts.get_mut(part)
}

#[cfg(test)]
mod tests;
