//! Shards on their threads.

use super::{Result, error};
use crate::control::types::{EngineError, ErrorCode};
use crate::shard::{Shard, ShardPort};
use futures_channel::oneshot::{Receiver, channel};
use futures_util::future::join_all;
use reactor::control;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use units::{PoolId, ShardId};

thread_local! {
    /// The shards that live on this thread.
    static LOCAL: RefCell<BTreeMap<(PoolId, ShardId), Rc<Shard>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Forgets every shard of the calling thread.
pub(crate) fn forget_local() {
    let shards = LOCAL.with_borrow_mut(std::mem::take);
    drop(shards);
}

/// A shard, from any thread.
#[derive(Clone)]
pub struct ShardHandle {
    /// Its pool.
    pub pool: PoolId,
    /// Its number.
    pub id: ShardId,
    /// Where operations go.
    pub port: Arc<ShardPort>,
}

impl ShardHandle {
    /// Puts a shard on the calling loop's thread.
    pub fn install(&self, shard: Rc<Shard>) {
        LOCAL.with_borrow_mut(|local| local.insert((self.pool, self.id), shard));
    }

    /// Runs `act` on the shard, on its thread. A task awaits the result, a thread uses [`control::receive`].
    pub fn ask<T, F, A>(&self, act: A) -> Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        A: FnOnce(Rc<Shard>) -> F + Send + 'static,
    {
        let key = (self.pool, self.id);
        let (give, take) = channel();
        self.port.remote.run(move |handle| {
            let Some(shard) = LOCAL.with_borrow(|local| local.get(&key).cloned()) else {
                return;
            };
            handle.spawn(async move {
                // The receiver is only gone if the calling task or thread has ended.
                let _ = give.send(act(shard).await);
            });
        });
        take
    }

    /// Forgets the shard: its tasks have ended.
    pub fn remove(&self) {
        let key = (self.pool, self.id);
        let (give, take) = channel();
        self.port.remote.run(move |_| {
            let shard = LOCAL.with_borrow_mut(|local| local.remove(&key));
            drop(shard);
            let _ = give.send(());
        });
        let _ = control::receive(take);
    }
}

/// Queries every shard and waits for all results.
pub(crate) fn ask_all<T, F, A>(shards: &[ShardHandle], act: A) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
    A: Fn(Rc<Shard>) -> F + Send + Clone + 'static,
{
    let waits: Vec<_> = shards.iter().map(|shard| shard.ask(act.clone())).collect();
    waits
        .into_iter()
        .map(|wait| control::receive(wait).map_err(|_| closed()))
        .collect()
}

/// As [`ask_all`], for a task.
pub(crate) async fn all<T, F, A>(shards: &[ShardHandle], act: A) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
    A: Fn(Rc<Shard>) -> F + Send + Clone + 'static,
{
    let waits = shards.iter().map(|shard| shard.ask(act.clone()));
    let answers = join_all(waits).await.into_iter();
    answers.map(|answer| answer.map_err(|_| closed())).collect()
}

/// The same for a query that can fail; returns the first error.
pub(crate) fn try_all<F, A>(shards: &[ShardHandle], what: &str, act: A) -> Result<()>
where
    F: Future<Output = std::result::Result<(), block::IoError>> + 'static,
    A: Fn(Rc<Shard>) -> F + Send + Clone + 'static,
{
    for result in ask_all(shards, act)? {
        if let Err(failed) = result {
            return error(code_of(&failed), format!("{what}: {failed}"));
        }
    }
    Ok(())
}

pub(crate) fn code_of(failed: &block::IoError) -> ErrorCode {
    match failed.kind {
        block::ErrorKind::NoSpace => ErrorCode::NoSpace,
        block::ErrorKind::Medium => ErrorCode::Damaged,
        _ => ErrorCode::Io,
    }
}

fn closed() -> EngineError {
    EngineError::new(ErrorCode::Busy, "the pool is closing")
}
