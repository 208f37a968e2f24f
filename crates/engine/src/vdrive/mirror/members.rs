//! Which members of a pool's mirrors count: shared by all threads.
//!
//! Responsible for: taking members out, never the last one; what was written while a member was out; and
//! letting barriers wait until all of that is in the labels. Leaves out: writing the labels, which
//! the pool's keeper does, and bringing a member up to date.

use super::dirty_region_log::StaleMap;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use units::DriveId;
use units::mutation::{Mutation, is_on};

/// A part of a vdrive: the vdrive (0 is the metadata region) and the part's index.
pub type MemberId = (u8, usize);

/// State of a member. Parts of vdrives other than mirrors are always in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberState {
    /// It holds everything.
    In,
    /// It is neither read nor written: it lacks what the stale map tells.
    Out,
    /// It takes writes and is being resynced; nothing is read from it.
    Syncing,
}

/// One part of a vdrive, as all threads know it.
#[derive(Debug)]
pub struct Member {
    id: MemberId,
    mirrored: bool,
    state: AtomicU8,
    /// Times that it went out: what was begun for one absence does not count for the next.
    absences: AtomicU64,
    /// Generation of the first label that records its absence; 0 before there is one.
    since: AtomicU64,
    /// Its dirty-region log while it is not in.
    pub stale: StaleMap,
    told: Mutex<Told>,
}

/// Rarely used details of a member.
#[derive(Clone, Debug)]
struct Told {
    drive: DriveId,
    why: String,
}

impl Member {
    /// A part on `drive`; `mirrored` when other parts hold the same.
    pub fn new(id: MemberId, drive: DriveId, mirrored: bool, stale: StaleMap) -> Self {
        Self {
            id,
            mirrored,
            state: AtomicU8::new(0),
            absences: AtomicU64::new(0),
            since: AtomicU64::new(0),
            stale,
            told: Mutex::new(Told {
                drive,
                why: String::new(),
            }),
        }
    }

    /// Its present state.
    pub fn state(&self) -> MemberState {
        match self.state.load(Ordering::Acquire) {
            0 => MemberState::In,
            1 => MemberState::Out,
            _ => MemberState::Syncing,
        }
    }

    /// Whether it may be read.
    pub fn is_in(&self) -> bool {
        self.state() == MemberState::In || is_on(Mutation::SyncingRead) && self.takes_writes()
    }

    /// Whether it takes writes.
    pub fn takes_writes(&self) -> bool {
        self.state() != MemberState::Out
    }

    /// Number of times it went out.
    pub fn absences(&self) -> u64 {
        self.absences.load(Ordering::Acquire)
    }

    /// Generation of the first label that records its absence: `now` if none does yet.
    pub fn since(&self, now: u64) -> u64 {
        let known = self
            .since
            .compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
        known.err().unwrap_or(now)
    }

    /// Why it is not in; empty when it is.
    pub fn why(&self) -> String {
        locked(&self.told).why.clone()
    }

    /// The drive that it is on.
    pub fn drive(&self) -> DriveId {
        locked(&self.told).drive
    }

    fn set(&self, state: MemberState) {
        self.state.store(state as u8, Ordering::Release);
    }
}

/// Changes that labels lack.
#[derive(Default)]
struct Record {
    /// The keeper could not write what it had to.
    failed: bool,
    closed: bool,
    keeper: Option<Waker>,
    waiting: Vec<Waker>,
}

/// The members of a pool.
#[derive(Default)]
pub struct Members {
    table: Mutex<BTreeMap<MemberId, Arc<Member>>>,
    /// Changes that have to be in the labels before a barrier that relies on them is answered.
    wanted: AtomicU64,
    /// How many of those are.
    recorded: AtomicU64,
    /// Barriers wait for the labels: not before an opening makes something valid that a member may lack.
    enforced: AtomicBool,
    record: Mutex<Record>,
}

impl Members {
    /// Adds a part.
    pub fn add(&self, member: Arc<Member>) {
        locked(&self.table).insert(member.id, member);
    }

    /// Forgets the parts of a vdrive.
    pub fn forget(&self, vdrive: u8) {
        locked(&self.table).retain(|(known, _), _| *known != vdrive);
    }

    /// A part.
    pub fn get(&self, id: MemberId) -> Option<Arc<Member>> {
        locked(&self.table).get(&id).cloned()
    }

    /// Every part.
    pub fn all(&self) -> Vec<(MemberId, Arc<Member>)> {
        let table = locked(&self.table);
        table
            .iter()
            .map(|(id, member)| (*id, member.clone()))
            .collect()
    }

    /// Takes a member out, unless nothing else has what it holds; tells whether it is out now.
    /// With `forget`, nothing on it counts any more and all of it has to be copied.
    pub fn take_out(&self, id: MemberId, why: &str, forget: bool) -> bool {
        let table = locked(&self.table);
        let outcome = take_out(&table, id, why, forget);
        drop(table);
        if outcome == Some(true) {
            self.want();
        }
        outcome.is_some()
    }

    /// A drive failed a flush: it is unknown which writes since the last one it has.
    /// All of its members go out that others can stand in for.
    pub fn flush_failed(&self, id: MemberId, why: &str) {
        let table = locked(&self.table);
        let Some(drive) = table.get(&id).map(|member| member.drive()) else {
            return;
        };
        drop(table);
        self.take_drive_out(drive, why, true);
    }

    /// Takes out all members on a drive that others can stand in for; true when none is left in.
    pub fn take_drive_out(&self, drive: DriveId, why: &str, forget: bool) -> bool {
        let table = locked(&self.table);
        let of_drive: Vec<MemberId> = table
            .values()
            .filter(|member| member.drive() == drive)
            .map(|member| member.id)
            .collect();
        let outcomes: Vec<_> = of_drive
            .into_iter()
            .map(|id| take_out(&table, id, why, forget))
            .collect();
        drop(table);
        if outcomes.contains(&Some(true)) {
            self.want();
        }
        !outcomes.contains(&None)
    }

    /// Why the members on a drive cannot all go out: the first vdrive that nothing else holds.
    pub fn needed_on(&self, drive: DriveId) -> Option<u8> {
        let table = locked(&self.table);
        let needed = table
            .values()
            .find(|member| member.drive() == drive && member.is_in() && !has_other(&table, member));
        needed.map(|member| member.id.0)
    }

    /// A member that is out takes writes from now on.
    pub fn begin_sync(&self, id: MemberId) -> bool {
        let table = locked(&self.table);
        let Some(member) = table.get(&id) else {
            return false;
        };
        if member.state() == MemberState::Out {
            member.set(MemberState::Syncing);
        }
        member.state() == MemberState::Syncing
    }

    /// A member holds everything now, if it has not gone out since it had `absences`.
    pub fn end_sync(&self, id: MemberId, absences: u64) -> bool {
        let table = locked(&self.table);
        let Some(member) = table.get(&id) else {
            return false;
        };
        if member.state() != MemberState::Syncing || member.absences() != absences {
            return false;
        }
        member.stale.clear();
        member.since.store(0, Ordering::Release);
        locked(&member.told).why.clear();
        member.set(MemberState::In);
        true
    }

    /// Regions of a member up to and with `last`, of `count`, are up to date and durable on it, if it
    /// has not gone out since it had `absences`.
    pub fn synced_upto(&self, id: MemberId, absences: u64, last: u64, count: u64) {
        let table = locked(&self.table);
        let same = |member: &&Arc<Member>| {
            member.state() == MemberState::Syncing && member.absences() == absences
        };
        if let Some(member) = table.get(&id).filter(same) {
            member.stale.clear_upto(last, count);
        }
    }

    /// A member is on another drive from now on, which holds nothing of it yet.
    pub fn put_on(&self, id: MemberId, drive: DriveId) {
        if let Some(member) = locked(&self.table).get(&id) {
            member.stale.set_all();
            let mut told = locked(&member.told);
            told.drive = drive;
            told.why = "replaced".to_owned();
        }
    }

    // The labels.

    /// Something has changed that the labels have to tell.
    pub fn want(&self) {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        if let Some(keeper) = locked(&self.record).keeper.take() {
            keeper.wake();
        }
    }

    /// How many changes there have been.
    pub fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Acquire)
    }

    /// The labels tell of everything up to this change.
    pub fn recorded_upto(&self, change: u64) {
        self.recorded.fetch_max(change, Ordering::AcqRel);
        let mut record = locked(&self.record);
        record.failed = false;
        record.waiting.drain(..).for_each(Waker::wake);
    }

    /// The labels cannot tell what they have to: barriers fail.
    pub fn record_failed(&self) {
        let mut record = locked(&self.record);
        record.failed = true;
        record.waiting.drain(..).for_each(Waker::wake);
    }

    /// Barriers wait for the labels from now on, if they do not yet.
    pub fn enforce(&self) {
        if !self.enforced.swap(true, Ordering::AcqRel) {
            self.want();
        }
    }

    /// Waits until the labels tell of every change so far; false when they cannot.
    pub async fn recorded(&self) -> bool {
        if !self.enforced.load(Ordering::Acquire) {
            return true;
        }
        let target = self.wanted();
        poll_fn(|context| {
            if self.recorded.load(Ordering::Acquire) >= target {
                return Poll::Ready(true);
            }
            let mut record = locked(&self.record);
            if self.recorded.load(Ordering::Acquire) >= target {
                return Poll::Ready(true);
            }
            if record.failed || record.closed {
                return Poll::Ready(false);
            }
            record.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Whether the labels lack something, of a pool that is open.
    pub fn is_behind(&self) -> bool {
        !locked(&self.record).closed && self.recorded.load(Ordering::Acquire) < self.wanted()
    }

    /// For the keeper: waits for a change that the labels do not tell of; false when the pool has
    /// been closed.
    pub async fn changed(&self) -> bool {
        poll_fn(|context| {
            let mut record = locked(&self.record);
            if record.closed {
                return Poll::Ready(false);
            }
            let behind = self.recorded.load(Ordering::Acquire) < self.wanted();
            if behind && self.enforced.load(Ordering::Acquire) && !record.failed {
                return Poll::Ready(true);
            }
            record.keeper = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Whether the pool is closed.
    pub fn is_closed(&self) -> bool {
        locked(&self.record).closed
    }

    /// The pool is closed: the keeper ends.
    pub fn close(&self) {
        let mut record = locked(&self.record);
        record.closed = true;
        record.waiting.drain(..).for_each(Waker::wake);
        if let Some(keeper) = record.keeper.take() {
            keeper.wake();
        }
    }
}

fn has_other(table: &BTreeMap<MemberId, Arc<Member>>, member: &Member) -> bool {
    member.mirrored
        && table
            .range((member.id.0, 0)..=(member.id.0, usize::MAX))
            .any(|((_, part), other)| *part != member.id.1 && other.is_in())
}

/// None when the member stays, else whether the labels have to tell something new.
fn take_out(
    table: &BTreeMap<MemberId, Arc<Member>>,
    id: MemberId,
    why: &str,
    forget: bool,
) -> Option<bool> {
    let member = table.get(&id)?;
    if member.state() == MemberState::In && !has_other(table, member) {
        return None;
    }
    let mut news = member.state() != MemberState::Out;
    // The metadata region is small: all of it is copied.
    if forget || id.0 == 0 {
        news |= !member.stale.is_all();
        member.stale.set_all();
    }
    if member.state() != MemberState::Out {
        member.set(MemberState::Out);
        member.absences.fetch_add(1, Ordering::AcqRel);
        locked(&member.told).why = why.to_owned();
        tracing::warn!(
            vdrive = id.0,
            member = id.1,
            why,
            "a mirror's member is out"
        );
    }
    Some(news)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
