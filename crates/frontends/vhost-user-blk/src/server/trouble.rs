//! Handling of guests or monitors that violate the protocol.

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

    /// Fails if a part of the memory was truncated: data read from there was zeroes, and written
    /// data is lost. The check is a single load, as the fault handler runs on the accessing thread.
    pub(super) fn check_memory(&self) -> Result<(), Broken> {
        match self.parts.cut.load(Ordering::Acquire) {
            true => Err(Broken("the guest's memory file was truncated".into())),
            false => Ok(()),
        }
    }

    /// Logs that the ring is no longer served, and ends the session if its memory is gone.
    pub(super) fn give_up(&mut self, reason: &str) {
        // A truncation may be the cause of the given reason.
        let is_cut = self.check_memory().err();
        let reason = is_cut.as_ref().map_or(reason, |Broken(cut)| cut);
        let queue = self.parts.index;
        self.parts.log.error(format_args!(
            "queue {queue} stopped until the guest resets the disk: {reason}"
        ));
        if is_cut.is_some() {
            return (self.parts.hang_up)();
        }
        let told = self.publish().and_then(|()| Ok(self.parts.bell.error()?));
        if let Err(Broken(why)) = told {
            self.parts.log.warn(format_args!("queue {queue}: {why}"));
        }
    }

    /// Waits for submitted operations, without answering them.
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
