//! The pool's description in its labels, kept up to date.
//!
//! Responsible for: writing labels one generation after the other, whoever asks, and writing at
//! once what barriers wait for: legs that went out and what they lack. Runs on the pool's first
//! loop. Leaves out: what a label looks like on a drive.

use super::labels::write_one;
use super::{Member, Result, lock};
use crate::control::types::{EngineError, ErrorCode};
use crate::vdrive::{DriveShared, LegState, Legs};
use format::{Label, PartConfig, PoolConfig, readdress};
use futures_util::future::join_all;
use reactor::Handle;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use units::{DriveId, PoolId};

/// Writes a pool's labels.
pub(crate) struct Keeper {
    pub pool: PoolId,
    pub name: String,
    pub config: Arc<Mutex<PoolConfig>>,
    pub generation: Arc<AtomicU64>,
    pub members: Arc<Mutex<Vec<Member>>>,
    pub legs: Arc<Legs>,
    /// A drive that is let go by hand: its own label tells that it does not count any more.
    pub leaving: Mutex<Option<DriveId>>,
    turn: Mutex<Turn>,
}

#[derive(Default)]
struct Turn {
    taken: bool,
    waiting: Vec<Waker>,
}

/// The right to write labels; given back when dropped.
pub(crate) struct Writing<'a>(&'a Keeper);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut turn = lock(&self.0.turn);
        turn.taken = false;
        turn.waiting.drain(..).for_each(Waker::wake);
    }
}

/// What one generation's labels came to.
struct Round {
    taken: BTreeSet<DriveId>,
    failure: Option<EngineError>,
}

impl Keeper {
    pub fn new(
        pool: PoolId,
        config: PoolConfig,
        generation: u64,
        members: Vec<Member>,
        legs: Arc<Legs>,
    ) -> Arc<Self> {
        Arc::new(Self {
            pool,
            name: config.name.clone(),
            config: Arc::new(Mutex::new(config)),
            generation: Arc::new(AtomicU64::new(generation)),
            members: Arc::new(Mutex::new(members)),
            legs,
            leaving: Mutex::default(),
            turn: Mutex::default(),
        })
    }

    /// Writes what barriers wait for, until the pool is closed.
    pub async fn run(self: Arc<Self>, handle: Handle) {
        while self.legs.changed().await {
            let writing = self.writing().await;
            // Somebody else's labels may have told of it meanwhile: the last before a close stays.
            if !self.legs.is_behind() {
                continue;
            }
            let config = lock(&self.config).clone();
            match self.write(&handle, config, false).await {
                Ok(true) => {}
                Ok(false) => self.legs.record_failed(),
                Err(failed) => {
                    tracing::error!(pool = self.name, error = %failed, "no label can be written");
                    self.legs.record_failed();
                }
            }
            drop(writing);
        }
    }

    /// Writes a new description, which counts once any drive has it: the newest label wins.
    ///
    /// # Errors
    /// When no drive took it: nothing has changed then.
    pub async fn save(&self, handle: &Handle, config: PoolConfig, exported: bool) -> Result<()> {
        let _writing = self.writing().await;
        self.write(handle, config, exported).await.map(drop)
    }

    /// Waits until nobody writes labels, and keeps it so.
    pub async fn writing(&self) -> Writing<'_> {
        poll_fn(|context| {
            let mut turn = lock(&self.turn);
            if std::mem::replace(&mut turn.taken, true) {
                turn.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Writing(self))
        })
        .await
    }

    /// One generation, and another one when drives failed it and went out for that. True when a
    /// pool that is opened from any drives that suffice is sure to see it.
    async fn write(&self, handle: &Handle, config: PoolConfig, exported: bool) -> Result<bool> {
        loop {
            let wanted = self.legs.wanted();
            let round = self.write_round(handle, &config, exported).await;
            if round.taken.is_empty() {
                return Err(round
                    .failure
                    .unwrap_or_else(|| EngineError::new(ErrorCode::Io, "no drive is left")));
            }
            if self.legs.wanted() != wanted && round.failure.is_some() {
                continue;
            }
            let sure = self.is_sure(&round.taken);
            if sure {
                self.legs.recorded_upto(wanted);
            }
            return Ok(sure);
        }
    }

    async fn write_round(&self, handle: &Handle, config: &PoolConfig, exported: bool) -> Round {
        let generation = self.generation.load(Ordering::Acquire) + 1;
        let mut config = config.clone();
        self.tell_legs(&mut config, generation);
        let leaving = *lock(&self.leaving);
        let members: Vec<_> = lock(&self.members)
            .iter()
            .filter(|member| !self.is_out(member.id) || leaving == Some(member.id))
            .filter_map(|member| Some((member.id, member.drive.clone()?, member.shared.clone())))
            .collect();
        // A drive that does not answer would hold up everything that is done to the pool.
        let silent = |shared: &DriveShared| shared.silent.load(Ordering::Relaxed);
        for (id, _, _) in members.iter().filter(|(_, _, shared)| silent(shared)) {
            self.legs.take_drive_out(*id, "it does not answer", false);
        }
        let mut round = Round {
            taken: BTreeSet::new(),
            failure: None,
        };
        let label = Label {
            pool: self.pool,
            drive: DriveId(0),
            generation,
            exported,
            config,
        };
        let bytes = match label.encode() {
            Ok(bytes) => bytes,
            Err(failed) => {
                let error = EngineError::new(ErrorCode::NoSpace, failed.to_string());
                round.failure = Some(error);
                return round;
            }
        };
        let asked = members.iter().filter(|(_, _, shared)| !silent(shared));
        let writes = asked.map(|(id, drive, shared)| {
            let own = readdress(&bytes, *id);
            async move {
                let written = write_one(handle, drive, generation, &own, shared).await;
                (*id, written)
            }
        });
        for (id, result) in join_all(writes).await {
            match result {
                Ok(()) if leaving == Some(id) => {}
                Ok(()) => drop(round.taken.insert(id)),
                Err(failed) if leaving == Some(id) => {
                    tracing::warn!(pool = self.name, error = %failed.error, "a drive that leaves does not know it");
                }
                Err(failed) => {
                    let error = failed.error;
                    tracing::warn!(pool = self.name, %error, "a label was not written");
                    self.legs.take_drive_out(id, &error.message, failed.flush);
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

    /// Writes down which legs are not in, since which generation, and what they lack.
    fn tell_legs(&self, config: &mut PoolConfig, generation: u64) {
        for ((vdrive, part), leg) in self.legs.all() {
            let Some(part) = part_of(config, vdrive, part) else {
                continue;
            };
            let out = leg.state() != LegState::In;
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
            part.out_since = leg.since(generation);
            part.out = true;
            part.out_why = leg.why();
            part.stale = leg.stale.text();
        }
    }

    /// Whether nothing on a drive counts: its label stays as it was when it went out.
    pub(super) fn is_out(&self, drive: DriveId) -> bool {
        let legs = self.legs.all();
        let mut of_drive = legs
            .iter()
            .filter(|(_, leg)| leg.drive() == drive)
            .peekable();
        of_drive.peek().is_some() && of_drive.all(|(_, leg)| leg.state() == LegState::Out)
    }

    /// Whether every leg that can stand in for an absent one has the label.
    fn is_sure(&self, taken: &BTreeSet<DriveId>) -> bool {
        let legs = self.legs.all();
        let absent: BTreeSet<u8> = legs
            .iter()
            .filter(|(_, leg)| !leg.is_in())
            .map(|((vdrive, _), _)| *vdrive)
            .collect();
        legs.iter()
            .filter(|((vdrive, _), leg)| absent.contains(vdrive) && leg.is_in())
            .all(|(_, leg)| taken.contains(&leg.drive()))
    }
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
