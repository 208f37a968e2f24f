//! What a ring's task does about a guest or monitor that broke the rules.

use super::{Broken, Server};
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;

impl Server {
    pub(super) fn log_malformed(&self, reason: &str) {
        let queue = self.parts.index;
        let log = &self.parts.log;
        log.warn(format_args!("queue {queue}: malformed request: {reason}"));
    }

    /// Fails when a part of the memory was cut off its file: what was read from there were zeroes, and what was written
    /// reaches nobody. The look is one load, as the thread finds out by the access itself.
    pub(super) fn check_memory(&self) -> Result<(), Broken> {
        match self.parts.cut.load(Ordering::Acquire) {
            true => Err(Broken("the guest's memory was cut off its file".into())),
            false => Ok(()),
        }
    }

    /// Says that the ring is served no more, and ends the session if its memory is gone.
    pub(super) fn give_up(&mut self, reason: &str) {
        // The first reason may follow from the other.
        let is_cut = self.check_memory().err();
        let reason = is_cut.as_ref().map_or(reason, |Broken(cut)| cut);
        let queue = self.parts.index;
        self.parts.log.error(format_args!(
            "queue {queue} is served no more until the guest resets the disk: {reason}"
        ));
        if is_cut.is_some() {
            return (self.parts.hang_up)();
        }
        let told = self.publish().and_then(|()| Ok(self.parts.bell.error()?));
        if let Err(Broken(why)) = told {
            self.parts.log.warn(format_args!("queue {queue}: {why}"));
        }
    }

    /// Waits for what the volume still has, without answering it.
    pub(super) async fn wait_for_device(&mut self) {
        self.refused = None;
        self.zeroing.clear();
        self.submitted -= self.arrived.len();
        self.arrived.clear();
        while self.submitted > 0 && !self.parts.control.abandoned() {
            let control = self.parts.control.clone();
            let completions = self.completions.clone();
            let ended = poll_fn(|context| {
                control.listen(context);
                if control.abandoned() {
                    return Poll::Ready(None);
                }
                completions.poll_next(context.waker()).map(Some)
            });
            if ended.await.is_some() {
                self.submitted -= 1;
            }
        }
    }
}
