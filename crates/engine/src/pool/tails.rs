//! The tails of a pool's journals, in memory that outlives the daemon: which of them an opening uses, and when they are removed.
//!
//! A tail belongs to one opening. Each opening has a random id, which its label names; its tails are called by it, say which
//! drives they were used with, and are locked as long as it lasts. So an opening
//!
//! 1. takes the tails of the opening that the newest label names, if they are of these drives; those of other drives, from
//!    which these were copied, it leaves alone. Where they are in use, these are copies of drives of a pool that is open on
//!    this host, and the opening is refused;
//! 2. ends its recovery with checkpoints in a new epoch, which make the old tails void;
//! 3. makes tails of its own, then a label that names them, and uses them only then;
//! 4. removes all tails of these drives that no label names any longer.
//!
//! Killed before the label it finds the old tails again, of which those count whose shards have no new checkpoint yet;
//! killed after it, its own, and no record is in them that the drives lack.

use super::open::random_id;
use super::pool_drives::PoolDrive;
use super::shards::ask_all;
use super::{Pool, Result, error, lock};
use crate::control::types::ErrorCode;
use crate::control::wait_for;
use crate::shard::{LeftTail, TAIL_WORDS, Tail, TailDrive, TailHead, put_drives};
use block::{Lasting, LastingMemory, Left, OwnMemory};
use format::PoolConfig;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use units::mutation::{Mutation, is_on};
use units::{PoolId, ShardId};

/// Most tails of other openings examined per pool: each was left by a killed daemon.
const OTHERS: usize = 1024;

/// The tails of an open pool.
pub(crate) struct Tails {
    lasting: Lasting,
    pool: PoolId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// This opening's id; 0 before there is one.
    opening: u128,
    /// By shard; empty if the host has no such memory.
    memories: Vec<Option<Arc<dyn LastingMemory>>>,
    /// Names of tails that earlier openings left with these drives.
    left: BTreeSet<String>,
}

/// Tails of earlier openings, by shard, and their names.
pub(super) struct AllLeft {
    pub shards: Vec<LeftTail>,
    names: BTreeSet<String>,
}

/// Name of the memory of a shard's tail.
fn name_of(pool: PoolId, opening: u128, shard: ShardId) -> String {
    format!("{pool}-{opening:032x}-{shard}")
}

/// Drives that a tail is used with.
fn drives_of(pool_drives: &[PoolDrive]) -> Vec<TailDrive> {
    let here = pool_drives
        .iter()
        .filter(|pool_drive| pool_drive.drive.is_some());
    let identity = |pool_drive: &PoolDrive| {
        let is = drives::identity(&pool_drive.spec);
        is.map_or([0; 4], drives::DriveIdentity::words)
    };
    here.map(|pool_drive| (pool_drive.id, identity(pool_drive)))
        .collect()
}

/// Finds tails of earlier openings of these drives.
///
/// # Errors
/// `Refused` when the pool is open on this host, from other drives; `Io` when a tail cannot be read.
pub(super) fn find(
    lasting: &Lasting,
    pool: PoolId,
    config: &PoolConfig,
    pool_drives: &[PoolDrive],
) -> Result<AllLeft> {
    let here = drives_of(pool_drives);
    let mut all = AllLeft {
        shards: (0..config.shards).map(|_| LeftTail::default()).collect(),
        names: BTreeSet::new(),
    };
    let opening = u128::from_str_radix(&config.opening, 16).unwrap_or(0);
    let named = (0..config.shards).map(|shard| name_of(pool, opening, ShardId(shard)));
    let named: BTreeSet<String> = named.collect();
    let mut names: Vec<String> = named.iter().cloned().collect();
    let others = lasting.names(&format!("{pool}-")).into_iter();
    names.extend(others.filter(|name| !named.contains(name)).take(OTHERS));
    let mut strangers = 0;
    for name in names {
        let of_label = named.contains(&name);
        let memory = match lasting.find(&name, TAIL_WORDS) {
            Ok(Left::Memory(memory)) => memory,
            Ok(Left::InUse) if of_label => {
                return refuse_open(config, pool_drives);
            }
            Ok(Left::Nothing | Left::InUse) => continue,
            Err(failed) if of_label => return refuse_unreadable(config, &failed),
            Err(_) => continue,
        };
        let head = TailHead::read(memory.words());
        let Some(head) = head.filter(|head| name == name_of(pool, head.opening, head.shard)) else {
            // It was being made: nothing is in it, and no label names it.
            if !of_label {
                all.names.insert(name);
            }
            continue;
        };
        if head.pool != pool || !head.is_of(&here) && !is_on(Mutation::TailOfCopy) {
            strangers += u32::from(of_label);
            continue;
        }
        let Some(left) = all.shards.get_mut(usize::from(head.shard.0)) else {
            continue;
        };
        left.note(&head);
        if of_label {
            left.tail = Tail::new(memory);
        }
        all.names.insert(name);
    }
    if strangers > 0 {
        tracing::warn!(
            pool = config.name,
            tails = strangers,
            "this host last used the pool with other drives than these, and the journal tail with acknowledged, unflushed writes \
             belongs to those: it is kept, and the pool opens with the flushed data on these drives"
        );
    }
    Ok(all)
}

fn refuse_open<T>(config: &PoolConfig, pool_drives: &[PoolDrive]) -> Result<T> {
    let here = pool_drives
        .iter()
        .filter(|pool_drive| pool_drive.drive.is_some());
    let specs: Vec<&str> = here.map(|pool_drive| pool_drive.spec.as_str()).collect();
    error(
        ErrorCode::Refused,
        format!(
            "pool {} is already open on this host, from other drives than {}, which are copies of them: close that pool \
             first, or give the copies identities of their own with `convect reidentify`",
            config.name,
            specs.join(", ")
        ),
    )
}

fn refuse_unreadable<T>(config: &PoolConfig, failed: &std::io::Error) -> Result<T> {
    error(
        ErrorCode::Io,
        format!(
            "pool {}: the journal tail of its last opening cannot be read, and may contain acknowledged writes: \
             {failed}; mend that, or remove it to lose what was not flushed",
            config.name
        ),
    )
}

impl Tails {
    /// For a pool that is being opened or made.
    pub(super) fn new(lasting: Lasting, pool: PoolId, left: BTreeSet<String>) -> Self {
        let state = State {
            left,
            ..State::default()
        };
        Self {
            lasting,
            pool,
            state: Mutex::new(state),
        }
    }

    /// Removes them: all of their content is on the drives, or no longer needed.
    pub(super) fn forget(&self) {
        let state = lock(&self.state);
        for shard in 0..state.memories.len() {
            let shard = ShardId(shard as u16);
            self.lasting
                .forget(&name_of(self.pool, state.opening, shard));
        }
    }

    /// Removes those of earlier openings.
    pub(super) fn forget_left(&self) {
        let left = std::mem::take(&mut lock(&self.state).left);
        left.iter().for_each(|name| self.lasting.forget(name));
    }

    /// Closes them, so that another opening finds them: shards have released them.
    pub(super) fn close(&self) {
        let memories = std::mem::take(&mut lock(&self.state).memories);
        let is_free = |memory: &Arc<dyn LastingMemory>| Arc::strong_count(memory) == 1;
        if !wait_for(|| memories.iter().flatten().all(is_free)) {
            let pool = self.pool;
            tracing::error!(%pool, "the journal tail of a closed pool stays locked until its last request ends");
        }
    }
}

impl AllLeft {
    /// Nothing, for a new pool.
    pub(super) fn none(shards: u16) -> Self {
        Self {
            shards: (0..shards).map(|_| LeftTail::default()).collect(),
            names: BTreeSet::new(),
        }
    }

    /// Tails by shard, and their names.
    pub(super) fn split(self) -> (Vec<LeftTail>, BTreeSet<String>) {
        (self.shards, self.names)
    }
}

impl Pool {
    /// Creates the tails of this opening, after its recovery, and returns the opening's id for the label. Nothing is
    /// put into them yet.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub(super) fn make_tails(&self) -> Result<String> {
        let opening = random_id()?;
        let pool_drives = lock(&self.pool_drives).clone();
        // It need not outlive the process if the drives do not.
        let mut here = pool_drives
            .iter()
            .filter_map(|pool_drive| pool_drive.drive.as_ref());
        let lasts = here.any(|drive| drive.info().persistent);
        let make = |shard: ShardId| match lasts {
            true => {
                let name = name_of(self.id, opening, shard);
                self.tails.lasting.make(&name, TAIL_WORDS)
            }
            false => Some(Arc::new(OwnMemory::new(TAIL_WORDS)) as Arc<dyn LastingMemory>),
        };
        let memories: Vec<_> = self.shards.iter().map(|shard| make(shard.id)).collect();
        {
            let mut state = lock(&self.tails.state);
            state.opening = opening;
            state.memories.clone_from(&memories);
        }
        let drives = drives_of(&pool_drives);
        ask_all(&self.shards, move |shard| {
            let memory = memories.get(shard.index()).cloned().flatten();
            let drives = drives.clone();
            async move {
                if let Some(memory) = memory {
                    shard.begin_tail(&*memory, opening, drives);
                }
            }
        })?;
        Ok(format!("{opening:032x}"))
    }

    /// Uses them from now on: the label names them. Those of earlier openings are removed.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub(super) fn use_tails(&self) -> Result<()> {
        let memories = lock(&self.tails.state).memories.clone();
        ask_all(&self.shards, move |shard| {
            let memory = memories.get(shard.index()).cloned().flatten();
            async move { shard.use_tail(memory) }
        })?;
        if !is_on(Mutation::TailKept) {
            self.tails.forget_left();
        }
        Ok(())
    }

    /// The set of the pool's drives has changed.
    pub(super) fn tell_tails(&self) {
        let drives = drives_of(&lock(&self.pool_drives));
        for memory in lock(&self.tails.state).memories.iter().flatten() {
            put_drives(memory.words(), &drives);
        }
    }
}
