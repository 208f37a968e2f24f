//! Durable marks: soon after a barrier, the drives record how far it went.
//!
//! A page of the journal says how far the journal was durable when it was made, so that the records of the last barrier are
//! covered by the next page alone, and recovery proves them one by one until then: a block of them that rotted
//! would pass for one that was not written. The journal's tail records it immediately; for a loss of power a page, mostly an empty
//! one, says it on the drives, a while after the last barrier ([`super::writer::WalWriter`] has the timer). No FLUSH waits
//! for it.

use crate::shard::state::{Shard, drive_error};
use block::{DriveError, IoError};
use units::VdriveId;

impl Shard {
    /// Writes the mark if it is due.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    pub(crate) async fn mark_if_due(&self) -> Result<(), IoError> {
        match self.wal.is_mark_due(self.handle.now_ns()) {
            true => self.mark().await,
            false => Ok(()),
        }
    }

    /// Writes a mark now, as a journal ends with one whose shard has nothing more to do.
    ///
    /// # Errors
    /// When a drive fails: the shard fails with it.
    pub(crate) async fn mark(&self) -> Result<(), IoError> {
        self.wal.begin_mark();
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
