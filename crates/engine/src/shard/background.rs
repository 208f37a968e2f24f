//! Background tasks of a shard: commits, checkpoints, moves.

use super::lifecycle::Task;
use super::state::Shard;
use crate::wal::log::COMMIT_PAGES;
use std::pin::Pin;
use std::rc::Rc;

/// Maximum time until a record is durable without a flush, in nanoseconds.
const COMMIT_NS: u64 = 250_000_000;
/// Time between checkpoints, in nanoseconds, when something has changed.
const CHECKPOINT_NS: u64 = 30_000_000_000;
/// Changed pages at which hosts wait for a checkpoint; one begins at half of that. Recovery loads
/// as many, and those of a checkpoint that had not ended.
pub(crate) const CHANGED_PAGES: usize = 16 * 1024;
/// Changed pages for which a checkpoint is made early when the metadata region is nearly full.
const SOME_CHANGED: usize = 64;
/// Interval of background checks while the shard is active, in nanoseconds.
const TICK_NS: u64 = 50_000_000;
/// The same while it is idle.
const IDLE_TICK_NS: u64 = 250_000_000;

/// One of the shard's own tasks.
type TaskOf = fn(Rc<Shard>) -> Pin<Box<dyn Future<Output = ()>>>;

impl Shard {
    /// Starts the shard's background tasks. It serves from now on.
    pub fn start(self: &Rc<Self>) {
        let begin = |task: TaskOf| (task, Task::begin(self.clone()));
        let tasks: [TaskOf; 7] = [
            |shard| Box::pin(shard.survey()),
            |shard| Box::pin(shard.commit_loop()),
            |shard| Box::pin(shard.checkpoint_loop()),
            |shard| Box::pin(shard.mover_loop()),
            |shard| Box::pin(shard.promote_loop()),
            |shard| Box::pin(shard.sequence_prefetch_loop()),
            |shard| Box::pin(shard.spare_loop()),
        ];
        let tasks = tasks.map(begin);
        self.moves.set_surveying(true);
        self.begin_policy();
        for (work, task) in tasks {
            self.handle.spawn(async move { work(task.clone()).await });
        }
        self.raise_soon();
    }

    /// Scans the nodes of every map for chunks that have data on the fast tier, so that
    /// the mover knows of those whose pages are not in memory.
    async fn survey(self: Rc<Self>) {
        let volumes: Vec<u32> = self.state.borrow().volumes.keys().copied().collect();
        for volume in volumes {
            if let Err(error) = self.survey_volume(volume).await {
                tracing::warn!(volume, %error, "a map could not be scanned");
            }
        }
        self.moves.set_surveying(false);
        self.moves.wake_mover();
    }

    async fn survey_volume(&self, volume: u32) -> Result<(), block::IoError> {
        let mut from = Some(0);
        while let Some(start) = from {
            if self.lifecycle.is_closing() {
                return Ok(());
            }
            let (last, need) = {
                let mut state = self.state.borrow_mut();
                let Some(entry) = state.volumes.get(&volume) else {
                    return Ok(());
                };
                let (keys, need) = entry.tree.scan(start, 1024);
                let hints: Vec<_> = keys
                    .iter()
                    .map(|key| (*key, entry.tree.ptr(*key).map_or(0, |ptr| ptr.hint)))
                    .collect();
                for (chunk, hint) in hints {
                    let (dirty, clean) = (hint & 1 != 0, hint & 2 != 0);
                    state.tier_index.found((volume, chunk), dirty, clean);
                }
                (keys.last().copied(), need)
            };
            match (last, need) {
                (Some(last), _) => from = last.checked_add(1),
                (None, Some((level, key, ptr))) => self.load(volume, level, key, ptr).await?,
                (None, None) => from = None,
            }
            self.handle.yield_now().await;
        }
        Ok(())
    }

    /// Changed pages at which hosts wait for a checkpoint.
    pub(crate) fn most_changed(&self) -> usize {
        CHANGED_PAGES.min(self.config.map_pages)
    }

    async fn commit_loop(self: Rc<Self>) {
        while !self.lifecycle.is_closing() {
            let wake = self.wal.until_asked();
            let (since, waiting) = {
                let state = self.state.borrow();
                (state.journal.since_ns(), state.journal.waiting())
            };
            let due = since.is_some_and(|since| {
                self.handle.now_ns() >= since + COMMIT_NS || self.flush_is_due()
            });
            if due || waiting >= COMMIT_PAGES {
                if self.barrier().await.is_err() {
                    return;
                }
                self.wal.committed(self.handle.now_ns());
            }
            if self.mark_if_due().await.is_err() {
                return;
            }
            let tick = if since.is_some() {
                TICK_NS
            } else {
                IDLE_TICK_NS
            };
            let tick = self
                .wal
                .until_mark(self.handle.now_ns())
                .map_or(tick, |mark| mark.min(tick));
            futures_util::future::select(wake, self.handle.sleep(tick)).await;
        }
    }

    async fn checkpoint_loop(self: Rc<Self>) {
        let mut last = self.handle.now_ns();
        while !self.lifecycle.is_closing() {
            let wake = self.checkpoints.until_asked();
            let (changed, pressing) = {
                let state = self.state.borrow();
                let journal = &state.journal;
                let pressing = journal.is_long()
                    || (!self.has_room_for_pages(&state)
                        && state.dirty_pages.waiting().len() > SOME_CHANGED)
                    || !self.may_change_pages(&state, self.reservations.held())
                    || state.dirty_pages.waiting().len() > self.most_changed() / 2;
                (
                    journal.has_records() || !state.dirty_pages.waiting().is_empty(),
                    pressing,
                )
            };
            let due = changed && self.handle.now_ns() >= last + CHECKPOINT_NS;
            // If none would free anything, waiters for room fail.
            if pressing && (changed || self.checkpoint_gives_room()) || due {
                if self.checkpoint().await.is_err() {
                    return;
                }
                last = self.handle.now_ns();
                // Waiters for its end go first: another one may already be urgent.
                self.handle.yield_now().await;
            }
            self.make_summaries();
            futures_util::future::select(wake, self.handle.sleep(IDLE_TICK_NS)).await;
        }
    }

    /// Ends the background tasks and makes everything durable.
    ///
    /// # Errors
    /// If a drive failed: data flushed before is safe nevertheless.
    pub async fn close(self: &Rc<Self>) -> Result<(), block::IoError> {
        self.lifecycle.close();
        self.moves.wake_mover();
        self.moves.wake_promoter();
        self.fills.wake_prefetcher();
        self.requests.wake();
        self.checkpoints.ask();
        self.wal.ask();
        self.space_waiters.wake();
        self.fills.wake();
        while self.lifecycle.has_tasks() || self.fills.ahead() > 0 {
            self.moves.wake_promoter();
            // What makes room in the journal may have ended before what waits for room there.
            let long = self.state.borrow().journal.is_long();
            if long && self.checkpoint().await.is_err() {
                break;
            }
            self.handle.sleep(5_000_000).await;
        }
        self.checkpoint().await?;
        self.mark().await
    }
}

#[cfg(test)]
mod tests;
