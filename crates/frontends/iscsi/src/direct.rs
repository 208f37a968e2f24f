//! Commands that run without a task of their own: their completions come to one queue of the session, and one
//! task answers as many as there are.

use crate::session::Session;
use crate::tasks::State;
use block::{Completion, IoBuf};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

impl Session {
    /// Has the completions of the session answered until it ends.
    pub(super) fn answer_completions(self: &Rc<Self>) {
        let (completions, ended) = (self.completions.clone(), self.dropped.wait());
        // It must not keep what it waits for the end of.
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

    /// Gives a command to its unit, if it needs no task; else its data back. Its tag is the operation's number:
    /// while it runs nobody else has that.
    pub(super) fn begin_direct(
        &self,
        tag: u32,
        (lun, cdb, data): (Option<u16>, &[u8; 16], IoBuf),
        generation: u64,
    ) -> Result<(), IoBuf> {
        let Some(normal) = &self.normal else {
            return Err(data);
        };
        let done = (u64::from(tag), &self.sink);
        let direct = normal.luns.begin(lun, (cdb, data), generation, done)?;
        if let Some(task) = self.tasks.borrow_mut().get_mut(tag) {
            task.state = State::Direct(direct);
        }
        Ok(())
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

