//! Commands executed without a task of their own: their completions go to one queue of the session,
//! which a single task processes in batches.

use crate::command::For;
use crate::session::Session;
use crate::tasks::{ORDERED, State};
use block::{Completion, IoBuf};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

impl Session {
    /// Starts the task that processes completions until the session ends.
    pub(super) fn answer_completions(self: &Rc<Self>) {
        let (completions, ended) = (self.completions.clone(), self.dropped.wait());
        // A weak reference, since the task waits for the session's end.
        let session = Rc::downgrade(self);
        self.handle.spawn(async move {
            let mut ended = pin!(ended);
            let mut arrived = VecDeque::new();
            loop {
                let next = poll_fn(|context| match ended.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(None),
                    Poll::Pending => completions.poll_next(context.waker()).map(Some),
                });
                let (Some(first), Some(session)) = (next.await, session.upgrade()) else {
                    return;
                };
                session.complete(first);
                completions.take(&mut arrived);
                for completion in arrived.drain(..) {
                    session.complete(completion);
                }
            }
        });
    }

    /// Whether a command with its turn and all of its data needs to wait for none before it.
    pub(super) fn may_begin_now(&self, attribute: u8) -> bool {
        attribute != ORDERED && !self.tasks.borrow().has_ordered()
    }

    /// Submits such a command if it needs no task; otherwise it is queued. Its tag identifies the
    /// operation and is unique while it runs.
    pub(super) fn begin_now(
        &self,
        tag: u32,
        (unit, cdb): (&For, &[u8; 16]),
        data: Box<[u8]>,
    ) -> State {
        let written = data.len() as u64;
        let data = match data.is_empty() {
            true => IoBuf::empty(),
            false => IoBuf::from_bytes(data),
        };
        let begun = match &self.normal {
            Some(normal) => {
                normal.place.account.add_written(written);
                let done = (u64::from(tag), &self.sink);
                (normal.luns).begin(unit.lun, (cdb, data), unit.generation, done)
            }
            None => Err(data),
        };
        match begun {
            Ok(direct) => State::Direct(direct),
            Err(data) => State::Waiting(data.into_bytes().unwrap_or_default()),
        }
    }

    fn complete(self: &Rc<Self>, completion: Completion) {
        let tag = completion.tag as u32;
        let mut tasks = self.tasks.borrow_mut();
        let Some((task, direct)) = tasks.remove_direct(tag) else {
            return;
        };
        self.count_commands(&tasks);
        drop(tasks);
        self.end(tag, task, direct.end(completion));
    }
}
