//! Reading pages of the metadata region.

use crate::shard::state::{Shard, State, drive_error};
use block::{DriveError, ErrorKind, IoError};
use format::{Bounds, ChunkPage, OutOfBounds, Page, PageHeader, PagePtr, crc32c};
use units::mutation::{Mutation, is_on};

/// Pages that one piece of work changes at most: two chunks' and the nodes above them, once in the
/// checkpoint in progress and once in the next.
const WORK_PAGES: u64 = 20;
/// One part in this many of the metadata region is reserved for rewriting existing pages.
const REWRITE_PART: u64 = 8;
/// With less than one part in this many left besides, no snapshot is taken.
const SNAPSHOT_PART: u64 = 8;

impl Shard {
    /// Reads a page and checks that it is the one that `ptr` and `header` say, on whichever member
    /// of the metadata region has it.
    ///
    /// # Errors
    /// `Medium` when no copy is right, `Device` when none can be read.
    pub(crate) async fn read_page(
        &self,
        ptr: PagePtr,
        header: PageHeader,
    ) -> Result<Page, IoError> {
        self.check_ptr(ptr)?;
        let meta = self.vdrive(ptr.place.vdrive())?;
        // A page that is replaced while it is read is not reused meanwhile.
        let read_epoch = self.state.borrow_mut().deferred_frees.begin_read();
        let read = meta
            .read(ptr.place.block(), 1, &|_, bytes| crc32c(bytes) == ptr.crc)
            .await;
        self.end_read(read_epoch);
        opened_page(&read.map_err(unreadable_page)?, header)
    }

    /// Refuses a pointer from a drive that leads to where no page can be.
    ///
    /// # Errors
    /// `Medium`.
    pub(crate) fn check_ptr(&self, ptr: PagePtr) -> Result<(), IoError> {
        let state = self.state.borrow();
        state.alloc.check_page(ptr).map_err(out_of_bounds)
    }

    /// A read of data or of a page has ended.
    pub(crate) fn end_read(&self, read_epoch: u64) {
        self.state.borrow_mut().deferred_frees.end_read(read_epoch);
        self.release_space();
    }

    /// Whether a page that is not there yet may be made: the pages that checkpoints will take are
    /// there, and a part of the region is left in which pages that are there already are rewritten.
    pub(crate) fn has_room_for_pages(&self, state: &State) -> bool {
        // Recovery makes no pages that were not there before the crash.
        !self.lifecycle.has_tasks()
            || self.has_pages(state, self.reservations.held(), self.rewrite_pages(state))
    }

    /// Whether it might be, were nothing else in progress.
    pub(crate) fn has_room_alone(&self) -> bool {
        let state = self.state.borrow();
        self.has_pages(&state, 1, self.rewrite_pages(&state))
    }

    /// Whether one more piece of work beside `users` may change pages before a checkpoint has
    /// freed what those replace.
    pub(crate) fn may_change_pages(&self, state: &State, users: u64) -> bool {
        // Where neither a checkpoint nor the end of a read would free anything one piece of work at a time
        // continues: a pool that was filled by a version that kept no room.
        let changed = state.dirty_pages.unplaced();
        let waits = users > 0 || changed > 0 || state.deferred_frees.has_sealed();
        !self.lifecycle.has_tasks() || !waits || self.has_pages(state, users, 0)
    }

    /// Waits until a checkpoint has room for its pages, while there are some that were replaced and
    /// are not free yet: a read that hangs keeps back what was replaced since it began.
    ///
    /// # Errors
    /// Why the shard has failed.
    pub(super) async fn pages_for_checkpoint(&self) -> Result<(), IoError> {
        let mut durable = false;
        loop {
            let freed = self.reservations.until_freed();
            self.check()?;
            {
                let state = self.state.borrow();
                let kept_back = self.lifecycle.has_tasks() && state.deferred_frees.has_sealed();
                if !kept_back || self.has_pages(&state, self.reservations.held(), 0) {
                    return Ok(());
                }
            }
            match std::mem::replace(&mut durable, true) {
                true => freed.await,
                false => self.barrier().await?,
            }
        }
    }

    /// Whether there is room for the pages that follow from a snapshot.
    pub fn has_room_for_snapshot(&self) -> bool {
        let state = self.state.borrow();
        let share = state.alloc.page_share();
        let more = self.rewrite_pages(&state) + share / SNAPSHOT_PART;
        self.has_pages(&state, self.reservations.held(), more)
    }

    /// Whether `more` pages are free beside those that `users`, one more piece of work, the
    /// checkpoint in progress and the next one take before what they replace is free.
    fn has_pages(&self, state: &State, users: u64, more: u64) -> bool {
        if is_on(Mutation::PagesUncounted) {
            return true;
        }
        let map_pages = state.dirty_pages.unplaced();
        let nodes = state.dirty_pages.nodes().count();
        let entries = state.volumes.len().min(map_pages + nodes);
        let own = state.root.nodes();
        let twice = nodes + entries + own + state.alloc.dirty_pages();
        let wanted = (map_pages + 2 * twice) as u64 + (users + 1) * WORK_PAGES + more;
        state.alloc.has_pages(wanted)
    }

    /// Pages that there is room for beside those in which others are rewritten.
    pub(crate) fn page_room(&self, state: &State) -> u64 {
        state.alloc.page_share() - self.rewrite_pages(state)
    }

    fn rewrite_pages(&self, state: &State) -> u64 {
        state.alloc.page_share() / REWRITE_PART
    }
}

/// A drive's content has a valid checksum, but is invalid in this pool.
/// A chunk's page that was read from a drive.
///
/// # Errors
/// `Medium` when it says that data is where the pool has no space.
pub(crate) fn chunk_page(space: &impl Bounds, page: Page) -> Result<ChunkPage, IoError> {
    let page = ChunkPage::from_page(page);
    space.check_chunk(&page).map_err(out_of_bounds)?;
    Ok(page)
}

fn out_of_bounds(found: OutOfBounds) -> IoError {
    let text = format!("the map refers to {found}: run `convect check` to see what is intact");
    IoError::new(ErrorKind::Medium, text)
}

pub(crate) fn unreadable_page(error: DriveError) -> IoError {
    drive_error(error, "a map page cannot be read")
}

/// A page whose checksum is right, if it is the one that `header` says.
pub(crate) fn opened_page(bytes: &[u8], header: PageHeader) -> Result<Page, IoError> {
    Page::open_verified(bytes, header)
        .ok_or_else(|| IoError::new(ErrorKind::Medium, "a map page has another page's identity"))
}
