//! Reading pages of the metadata region.

use super::state::{Shard, State, drive_error};
use crate::space::Class;
use block::{DriveError, ErrorKind, IoError};
use format::{Page, PageHeader, PagePtr, crc32c};

impl Shard {
    /// Reads a page and checks that it is the one that `ptr` and `header` say, on whichever leg
    /// of the metadata region has it.
    ///
    /// # Errors
    /// `Medium` when no copy is right, `Device` when none can be read.
    pub(super) async fn read_page(
        &self,
        ptr: PagePtr,
        header: PageHeader,
    ) -> Result<Page, IoError> {
        let meta = self.vdrive(ptr.place.vdrive())?;
        // A page that is replaced while it is read is not given to somebody else meanwhile.
        let era = self.state.borrow_mut().quarantine.begin_read();
        let read = meta
            .read(ptr.place.block(), 1, &|_, bytes| crc32c(bytes) == ptr.crc)
            .await;
        self.end_read(era);
        opened_page(&read.map_err(unreadable_page)?, header)
    }

    /// A read of data or of a page has ended.
    pub(super) fn end_read(&self, era: u64) {
        self.state.borrow_mut().quarantine.end_read(era);
        self.release_space();
    }

    /// Whether the metadata region has room for one more page beside those that wait to be
    /// written, and for writing all that changed a second time before the first is free.
    pub(super) fn has_room_for_pages(&self, state: &State) -> bool {
        // Recovery makes no pages that were not there before the crash.
        if self.background.get() == 0 {
            return true;
        }
        // Snapshots have trees of their own: the nodes above changed pages are many then.
        let nodes: usize = state.volumes.values().map(|layer| layer.tree.nodes()).sum();
        let needed = 3 * state.dirty_leaves.len() as u64 + 2 * nodes as u64 + 64;
        state.alloc.free_slots(Class::Meta) > needed
    }
}

pub(super) fn unreadable_page(error: DriveError) -> IoError {
    drive_error(error, "a page of the map cannot be read")
}

/// A page whose checksum is right, if it is the one that `header` says.
pub(super) fn opened_page(bytes: &[u8], header: PageHeader) -> Result<Page, IoError> {
    Page::open_verified(bytes, header).ok_or_else(|| {
        IoError::new(
            ErrorKind::Medium,
            "a page of the map is not the one that belongs there",
        )
    })
}
