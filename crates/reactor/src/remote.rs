//! Reaching a loop from another thread.

use crate::Handle;
use std::future::Future;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type Job = Box<dyn FnOnce(&Handle) + Send>;

#[derive(Default)]
struct State {
    ready: Vec<usize>,
    jobs: Vec<Job>,
    sleeping: bool,
    stopping: bool,
}

/// Input of other threads for a loop: tasks to wake and jobs to run. The lock is held for a
/// push or a swap only.
pub(crate) struct Inbox {
    state: Mutex<State>,
    event: OwnedFd,
}

impl Inbox {
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        // SAFETY: plain system call; the descriptor has no other owner.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Arc::new(Self {
            state: Mutex::default(),
            event,
        }))
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        let wake = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut state);
            std::mem::take(&mut state.sleeping)
        };
        if wake {
            let one = 1u64;
            // SAFETY: eight bytes to a descriptor that lives as long as `self`.
            unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
        }
    }

    pub(crate) fn push_ready(&self, id: usize) {
        self.with(|state| state.ready.push(id));
    }

    /// Gives the job back when the loop has ended.
    fn push_job(&self, job: Job) -> bool {
        let mut taken = true;
        self.with(|state| {
            if state.stopping {
                taken = false;
            } else {
                state.jobs.push(job);
            }
        });
        taken
    }

    pub(crate) fn stop(&self) {
        self.with(|state| state.stopping = true);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopping
    }

    pub(crate) fn take(&self, ready: &mut Vec<usize>, jobs: &mut Vec<Job>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A loop takes all when it has none: the two exchange their memory, and nothing is copied.
        match ready.is_empty() {
            true => std::mem::swap(ready, &mut state.ready),
            false => ready.append(&mut state.ready),
        }
        if !state.jobs.is_empty() {
            jobs.append(&mut state.jobs);
        }
    }

    /// Tasks that were taken and did not run are ready before all others.
    pub(crate) fn put_back(&self, mut tasks: Vec<usize>) {
        self.with(|state| {
            tasks.append(&mut state.ready);
            state.ready = tasks;
        });
    }

    /// Whether something is to be run.
    pub(crate) fn has_ready(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !state.ready.is_empty() || !state.jobs.is_empty()
    }

    /// Marks the loop as about to wait for its event descriptor. False when there is work.
    pub(crate) fn may_sleep(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sleeping = state.ready.is_empty() && state.jobs.is_empty() && !state.stopping;
        state.sleeping
    }

    /// The loop is awake again, for whatever reason.
    pub(crate) fn awake(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .sleeping = false;
    }

    pub(crate) fn event_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }
}

/// A loop, as other threads see it.
#[derive(Clone)]
pub struct Remote(Arc<Inbox>);

impl Remote {
    pub(crate) fn new(inbox: Arc<Inbox>) -> Self {
        Self(inbox)
    }

    /// Runs `job` on the loop's thread, soon. False when the loop has ended: the job is dropped.
    pub fn run(&self, job: impl FnOnce(&Handle) + Send + 'static) -> bool {
        self.0.push_job(Box::new(job))
    }

    /// Makes a future on the loop's thread and runs it there as a task. False when the loop has
    /// ended.
    pub fn spawn<F: Future<Output = ()> + 'static>(
        &self,
        make: impl FnOnce(Handle) -> F + Send + 'static,
    ) -> bool {
        self.run(move |handle| handle.spawn(make(handle.clone())))
    }

    /// Asks the loop to end: its tasks are dropped after the present turn.
    pub fn stop(&self) {
        self.0.stop();
    }
}
