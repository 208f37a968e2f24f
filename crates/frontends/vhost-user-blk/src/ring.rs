//! A split ring (virtio 1.2, section 2.7), of which the guest is told once a batch: its index of the available
//! ring is looked at when all that was seen is taken, and that of the used ring is moved when all of a batch is
//! in it. Each such look or move takes a line of memory from the other side's processor.
//!
//! The `virtio-queue` crate, which checks how the ring was set up, does both for every request.

use crate::guest::{Guest, GuestMap};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering, fence};
use virtio_queue::{Queue, QueueT};
use vm_memory::GuestAddress;

/// The driver wants no interrupts (virtio 1.2, section 2.7.6).
const AVAIL_NO_INTERRUPT: u16 = 1;
/// The device wants no kicks (section 2.7.8).
const USED_NO_NOTIFY: u16 = 1;
const AVAIL_ENTRY: usize = 2;
const USED_ENTRY: usize = 8;
/// Bytes before the entries of either ring: flags and index.
const HEAD: usize = 4;

/// A ring.
pub(crate) struct Ring {
    table: GuestAddress,
    size: u16,
    available: NonNull<u8>,
    used: NonNull<u8>,
    event_idx: bool,
    next_avail: u16,
    /// The index of the available ring when it was last looked at.
    seen_avail: u16,
    next_used: u16,
    /// The used index when it was last said whether the guest is to be notified.
    told_used: u16,
    /// What keeps the rings mapped.
    _map: Arc<GuestMap>,
}

// SAFETY: the pointers lead into memory that the map keeps mapped, for any thread.
unsafe impl Send for Ring {}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

impl Ring {
    /// A ring that was set up.
    ///
    /// # Errors
    /// When a part of it does not lie within one piece of the memory, or not where it is aligned in ours.
    pub(crate) fn new(queue: &Queue, map: Arc<GuestMap>) -> io::Result<Self> {
        let (guest, size) = (Guest::new(map.clone()), queue.size());
        let entries = usize::from(size);
        let part = |address, len| {
            let at = guest.at(GuestAddress(address), len);
            at.ok_or_else(|| invalid("a part of a ring does not lie within one memory region"))
        };
        if !queue.is_valid(&**map) {
            return Err(invalid("a ring does not lie within the shared memory"));
        }
        // An index for events follows the entries of either.
        let available = part(queue.avail_ring(), HEAD + AVAIL_ENTRY * entries + 2)?;
        let used = part(queue.used_ring(), HEAD + USED_ENTRY * entries + 2)?;
        // Their guest's addresses were seen to be aligned; memory regions begin at pages on both sides.
        if !available.cast::<u16>().is_aligned() || !used.cast::<u32>().is_aligned() {
            return Err(invalid("a part of a ring is not aligned"));
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

    /// A 16-bit word of one of the rings, `offset` bytes into it.
    fn half(&self, ring: NonNull<u8>, offset: usize) -> &AtomicU16 {
        // SAFETY: callers stay within the ring, which is mapped; rings are aligned to 2 at least (`is_valid`
        // has seen that), offsets are even, and memory that the guest shares is only reached by atomics.
        unsafe { AtomicU16::from_ptr(ring.add(offset).cast().as_ptr()) }
    }

    /// Its number of entries.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// The descriptor table.
    pub(crate) fn table(&self) -> GuestAddress {
        self.table
    }

    /// The index of the used ring.
    pub(crate) fn next_used(&self) -> u16 {
        self.next_used
    }

    /// The next entry of the available ring.
    pub(crate) fn next_avail(&self) -> u16 {
        self.next_avail
    }

    /// Goes on at this entry of the available ring.
    pub(crate) fn go_on(&mut self, next_avail: u16) {
        (self.next_avail, self.seen_avail) = (next_avail, next_avail);
    }

    /// Looks at what the guest has made available, as [`Ring::available`].
    pub(crate) fn look(&mut self) -> u16 {
        let seen = self.half(self.available, 2).load(Ordering::Acquire);
        self.seen_avail = u16::from_le(seen);
        self.available()
    }

    /// Entries of the available ring that were seen and not taken; more than the ring has when the guest is wrong.
    pub(crate) fn available(&self) -> u16 {
        self.seen_avail.wrapping_sub(self.next_avail)
    }

    /// Where an entry is in either ring, by its number.
    fn place(&self, number: u16) -> usize {
        // The size is a power of two: no queue takes another (`Queue::try_set_size`).
        usize::from(number & (self.size - 1))
    }

    /// The head in an entry of the available ring, by the entry's number.
    pub(crate) fn head(&self, number: u16) -> u16 {
        let at = HEAD + AVAIL_ENTRY * self.place(number);
        u16::from_le(self.half(self.available, at).load(Ordering::Relaxed))
    }

    /// Takes the head of the next chain that the guest has made available.
    ///
    /// # Errors
    /// When the guest says that it has made more available than the ring holds.
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

    /// Puts a chain into the used ring, in which so many bytes were written. The guest sees it after
    /// [`Ring::publish`].
    pub(crate) fn put(&mut self, head: u16, written: u32) {
        let at = HEAD + USED_ENTRY * self.place(self.next_used);
        // SAFETY: within the ring, which is mapped and aligned to 4; the guest does not look at it before its index is
        // moved, and whatever it sees else is its own affair.
        unsafe {
            let at = self.used.add(at).cast::<u32>();
            at.write_volatile(u32::from(head).to_le());
            at.add(1).write_volatile(written.to_le());
        }
        self.next_used = self.next_used.wrapping_add(1);
    }

    /// Lets the guest see what was put into the used ring.
    pub(crate) fn publish(&self) {
        let next = self.next_used.to_le();
        self.half(self.used, 2).store(next, Ordering::Release);
    }

    /// Whether the guest is to be notified of what was published since this was last asked.
    pub(crate) fn wants_call(&mut self) -> bool {
        let told = std::mem::replace(&mut self.told_used, self.next_used);
        // What was published comes before what is read.
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

    /// The guest need not kick.
    pub(crate) fn disable_kicks(&self) {
        // With event indices the one that was last asked for lies behind: nothing is to be said.
        if !self.event_idx {
            let flags = self.half(self.used, 0);
            flags.store(USED_NO_NOTIFY.to_le(), Ordering::Relaxed);
        }
    }

    /// The guest is to kick. True when it has made something available meanwhile, for which no kick may come.
    pub(crate) fn enable_kicks(&mut self) -> bool {
        if self.event_idx {
            let at = HEAD + USED_ENTRY * usize::from(self.size);
            let next = self.next_avail.to_le();
            self.half(self.used, at).store(next, Ordering::Relaxed);
        } else {
            self.half(self.used, 0).store(0, Ordering::Relaxed);
        }
        // What the guest is told comes before what is read.
        fence(Ordering::SeqCst);
        self.look();
        self.seen_avail != self.next_avail
    }
}

#[cfg(test)]
mod tests;
