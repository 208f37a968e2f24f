//! The life of a shard's tasks: how many run, and whether they are to end.
//!
//! Owns the flag that closes the shard, which is set once and never taken back, and the number of tasks that its end
//! waits for. A task is counted from [`Task::begin`] until the [`Task`] that it keeps is dropped, so a task that
//! ends early or is dropped with its loop is never counted forever. Any part may ask whether the shard closes, and
//! does so between two pieces of work; only `Shard::close` closes.

use super::state::Shard;
use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

/// How many tasks run, and whether they are to end.
#[derive(Default)]
pub(crate) struct Lifecycle {
    closing: Cell<bool>,
    tasks: Cell<usize>,
}

impl Lifecycle {
    /// Whether tasks are to end.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Tasks are to end.
    pub fn close(&self) {
        self.closing.set(true);
    }

    /// Whether tasks of the shard's own run: not before recovery has ended.
    #[inline]
    pub fn has_tasks(&self) -> bool {
        self.tasks.get() > 0
    }
}

/// A task of the shard's own, for as long as this is kept.
pub(crate) struct Task(Rc<Shard>);

impl Task {
    /// Counts a task, which keeps what is returned until it ends.
    pub fn begin(shard: Rc<Shard>) -> Self {
        let tasks = &shard.lifecycle.tasks;
        tasks.set(tasks.get() + 1);
        Self(shard)
    }
}

impl Deref for Task {
    type Target = Rc<Shard>;

    fn deref(&self) -> &Rc<Shard> {
        &self.0
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let tasks = &self.lifecycle.tasks;
        tasks.set(tasks.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::Task;
    use crate::shard::probe::{Probe, run};

    #[test]
    fn a_task_counts_until_it_is_dropped() {
        run(|handle| async move {
            let shard = Probe::open(&handle, "tasks").await.shard.clone();
            assert!(!shard.lifecycle.has_tasks(), "nothing was started");
            let [one, two] = [(); 2].map(|()| Task::begin(shard.clone()));
            drop(one);
            assert!(shard.lifecycle.has_tasks());
            drop(two);
            assert!(!shard.lifecycle.has_tasks());
            shard.lifecycle.close();
            assert!(shard.lifecycle.is_closing());
        });
    }
}
