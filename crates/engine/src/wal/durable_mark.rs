//! Marks: what a barrier made durable is known as durable soon after.
//!
//! A page of the journal says how far the journal was durable when it was made, so that the records of the last barrier are
//! covered by the next page alone, and recovery proves them one by one until then: a block of them that rotted
//! would pass for one that was not written. The journal's tail knows at once; for a loss of power a page, mostly an empty
//! one, says it on the drives, [`MARK_NS`] after the last barrier. No FLUSH waits for it.

use crate::shard::state::{Shard, drive_error};
use block::{DriveError, IoError};
use units::VdriveId;

/// Time from a barrier to its mark, in nanoseconds, if no other barrier comes meanwhile: its pages carry the mark.
const MARK_NS: u64 = 25_000_000;

impl Shard {
    /// A barrier that made records durable has ended.
    pub(crate) fn mark_soon(&self) {
        self.marking.due_ns.set(self.handle.now_ns() + MARK_NS);
        if !self.marking.awake.replace(true) {
            self.commit_wake.notify();
        }
    }

    /// Time until the next look at whether a mark is due, in nanoseconds; `None` while there is nothing to mark.
    pub(crate) fn until_mark(&self) -> Option<u64> {
        let now_ns = self.handle.now_ns();
        let due_ns = self.marking.due_ns.get();
        self.marking
            .awake
            .get()
            .then(|| due_ns.saturating_sub(now_ns).max(1))
    }

    /// Writes the mark if it is due. What is being made durable again carries it.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    pub(crate) async fn mark_if_due(&self) -> Result<(), IoError> {
        let now_ns = self.handle.now_ns();
        if !self.marking.awake.get() || now_ns < self.marking.due_ns.get() {
            return Ok(());
        }
        if self.barrier_running.get() {
            // Its end says when the next one is due.
            self.marking.due_ns.set(now_ns + MARK_NS);
            return Ok(());
        }
        self.mark().await
    }

    /// Writes a mark now, as a journal ends with one whose shard has nothing more to do.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    pub(crate) async fn mark(&self) -> Result<(), IoError> {
        self.marking.awake.set(false);
        let begun = self.state.borrow_mut().journal.begin_mark();
        let Some(empty) = begun else {
            return Ok(());
        };
        let marked = self.write_mark(empty).await;
        if let Err(error) = &marked {
            self.fail(error);
        }
        marked
    }

    async fn write_mark(&self, empty: Option<u64>) -> Result<(), IoError> {
        self.all_in_ring().await?;
        let meta = self.vdrive(VdriveId(0))?;
        let explain = |error| drive_error(error, "the journal cannot be made durable");
        meta.flush().await.map_err(explain)?;
        // As for a barrier.
        if !self.shared.members.recorded().await {
            return Err(explain(DriveError::Gone));
        }
        if let Some(sequence) = empty {
            self.state.borrow_mut().journal.end_mark(sequence);
            self.release_space();
        }
        Ok(())
    }
}
