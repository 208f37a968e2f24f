//! A split ring (virtio 1.2, section 2.7) with batched index accesses: the available index is read
//! when all known entries were taken, and the used index is written when a whole batch is in the
//! ring. Each such access transfers a cache line from the other side's CPU core.
//!
//! The `virtio-queue` crate, which validates the ring's setup, does both for every request.

use crate::guest::{Guest, GuestMap};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering, fence};
use virtio_queue::{Queue, QueueT};
use vm_memory::GuestAddress;

/// The driver disables interrupts (virtio 1.2, section 2.7.6).
const AVAIL_NO_INTERRUPT: u16 = 1;
/// The device disables kicks (section 2.7.8).
const USED_NO_NOTIFY: u16 = 1;
const AVAIL_ENTRY: usize = 2;
const USED_ENTRY: usize = 8;
/// Size of either ring's header: flags and index.
const HEAD: usize = 4;

/// A ring.
pub(crate) struct Ring {
    table: GuestAddress,
    size: u16,
    available: NonNull<u8>,
    used: NonNull<u8>,
    event_idx: bool,
    next_avail: u16,
    /// The available index when it was last read.
    seen_avail: u16,
    next_used: u16,
    /// The used index at the last decision on notifying the guest.
    told_used: u16,
    /// Keeps the rings mapped.
    _map: Arc<GuestMap>,
}

// SAFETY: the pointers lead into memory that the map keeps mapped for all threads.
unsafe impl Send for Ring {}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl Ring {
    /// A ring according to its setup.
    ///
    /// # Errors
    /// When a part of it is not in one memory region, or is misaligned in our address space.
    pub(crate) fn new(queue: &Queue, map: Arc<GuestMap>) -> io::Result<Self> {
        let (guest, size) = (Guest::new(map.clone()), queue.size());
        let entries = usize::from(size);
        let part = |address, len| {
            let at = guest.at(GuestAddress(address), len);
            at.ok_or_else(|| invalid("a part of a ring crosses memory regions"))
        };
        if !queue.is_valid(&**map) {
            return Err(invalid("a ring is outside of the shared memory"));
        }
        // The entries of both are followed by an event index.
        let available = part(queue.avail_ring(), HEAD + AVAIL_ENTRY * entries + 2)?;
        let used = part(queue.used_ring(), HEAD + USED_ENTRY * entries + 2)?;
        // Guest addresses were validated for alignment; memory regions are page-aligned on both
        // sides.
        if !available.cast::<u16>().is_aligned() || !used.cast::<u32>().is_aligned() {
            return Err(invalid("a part of a ring is misaligned"));
        }
        let mut ring = Self {
            table: GuestAddress(queue.desc_table()),
            size,
            available,
            used,
            event_idx: queue.event_idx_enabled(),
            next_avail: 0,
            seen_avail: 0,
            next_used: 0,
            told_used: 0,
            _map: map,
        };
        let used = ring.half(ring.used, 2).load(Ordering::Acquire);
        ring.next_used = u16::from_le(used);
        ring.told_used = ring.next_used;
        Ok(ring)
    }

    /// A 16-bit word at byte `offset` of one of the rings.
    fn half(&self, ring: NonNull<u8>, offset: usize) -> &AtomicU16 {
        // SAFETY: callers stay within the ring, which is mapped; rings are aligned to at least 2
        // (checked by `is_valid`), offsets are even, and guest memory is accessed by atomics only.
        unsafe { AtomicU16::from_ptr(ring.add(offset).cast().as_ptr()) }
    }

    /// Number of entries.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// The descriptor table.
    pub(crate) fn table(&self) -> GuestAddress {
        self.table
    }

    /// Index of the used ring.
    pub(crate) fn next_used(&self) -> u16 {
        self.next_used
    }

    /// Next index of the available ring.
    pub(crate) fn next_avail(&self) -> u16 {
        self.next_avail
    }

    /// Resumes at this index of the available ring.
    pub(crate) fn go_on(&mut self, next_avail: u16) {
        (self.next_avail, self.seen_avail) = (next_avail, next_avail);
    }

    /// Reads the available index, and returns [`Ring::available`].
    pub(crate) fn look(&mut self) -> u16 {
        let seen = self.half(self.available, 2).load(Ordering::Acquire);
        self.seen_avail = u16::from_le(seen);
        self.available()
    }

    /// Known entries of the available ring that were not taken; more than the ring size if the
    /// guest is faulty.
    pub(crate) fn available(&self) -> u16 {
        self.seen_avail.wrapping_sub(self.next_avail)
    }

    /// Position of an index in either ring.
    fn place(&self, number: u16) -> usize {
        // The size is a power of two, as validated by `Queue::try_set_size`.
        usize::from(number & (self.size - 1))
    }

    /// The head in an entry of the available ring.
    pub(crate) fn head(&self, number: u16) -> u16 {
        let at = HEAD + AVAIL_ENTRY * self.place(number);
        u16::from_le(self.half(self.available, at).load(Ordering::Relaxed))
    }

    /// Takes the head of the next available chain.
    ///
    /// # Errors
    /// When more entries are available than the ring has.
    pub(crate) fn take(&mut self) -> Result<Option<u16>, &'static str> {
        if self.next_avail == self.seen_avail {
            self.look();
            if self.next_avail == self.seen_avail {
                return Ok(None);
            }
        }
        if self.available() > self.size {
            return Err("more entries are available than the ring has");
        }
        let head = self.head(self.next_avail);
        self.next_avail = self.next_avail.wrapping_add(1);
        Ok(Some(head))
    }

    /// Adds a chain to the used ring, with the bytes written. The guest sees it after
    /// [`Ring::publish`].
    pub(crate) fn put(&mut self, head: u16, written: u32) {
        let at = HEAD + USED_ENTRY * self.place(self.next_used);
        // SAFETY: within the ring, which is mapped and aligned to 4; the guest does not read it
        // before the index is written, and races caused by a faulty guest only affect itself.
        unsafe {
            let at = self.used.add(at).cast::<u32>();
            at.write_volatile(u32::from(head).to_le());
            at.add(1).write_volatile(written.to_le());
        }
        self.next_used = self.next_used.wrapping_add(1);
    }

    /// Publishes the added entries to the guest.
    pub(crate) fn publish(&self) {
        let next = self.next_used.to_le();
        self.half(self.used, 2).store(next, Ordering::Release);
    }

    /// Whether the guest must be notified of entries published since the last call.
    pub(crate) fn wants_call(&mut self) -> bool {
        let told = std::mem::replace(&mut self.told_used, self.next_used);
        // The published index must be visible before the guest's flags are read.
        fence(Ordering::SeqCst);
        if !self.event_idx {
            let flags = self.half(self.available, 0).load(Ordering::Relaxed);
            return u16::from_le(flags) & AVAIL_NO_INTERRUPT == 0;
        }
        let at = HEAD + AVAIL_ENTRY * usize::from(self.size);
        let event = u16::from_le(self.half(self.available, at).load(Ordering::Relaxed));
        let since = self.next_used.wrapping_sub(told);
        self.next_used.wrapping_sub(event).wrapping_sub(1) < since
    }

    /// Disables kicks.
    pub(crate) fn disable_kicks(&self) {
        // With event indices the last one requested has passed: nothing to do.
        if !self.event_idx {
            let flags = self.half(self.used, 0);
            flags.store(USED_NO_NOTIFY.to_le(), Ordering::Relaxed);
        }
    }

    /// Enables kicks. True if requests have become available meanwhile, for which no kick may be
    /// sent.
    pub(crate) fn enable_kicks(&mut self) -> bool {
        if self.event_idx {
            let at = HEAD + USED_ENTRY * usize::from(self.size);
            let next = self.next_avail.to_le();
            self.half(self.used, at).store(next, Ordering::Relaxed);
        } else {
            self.half(self.used, 0).store(0, Ordering::Relaxed);
        }
        // The request for kicks must be visible before the index is read.
        fence(Ordering::SeqCst);
        self.look();
        self.seen_avail != self.next_avail
    }
}

#[cfg(test)]
mod tests;
