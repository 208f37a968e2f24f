//! A split ring as a driver drives it.

use crate::command::{Command, Done};
use crate::connection::Options;
use crate::memory::SharedMemory;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering, fence};
use std::time::{Duration, Instant};
use vhost::VringConfigData;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID, VIRTIO_BLK_T_IN,
    VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

const PAGE: usize = 4096;
/// A line of the processors' caches.
const LINE: usize = 64;
/// A slot's head: the request's header, the indirect table, then the status in a line of its own,
/// since the device writes that alone. With one segment that is two lines.
const TABLE_AT: usize = 16;
/// Another descriptor follows.
const NEXT: u16 = 1;
/// The device writes it.
const WRITE: u16 = 2;
/// It is a table of descriptors.
const INDIRECT: u16 = 4;

/// One ring with its slots. Each slot holds one request and its data.
pub struct ClientQueue {
    memory: Arc<SharedMemory>,
    base: usize,
    size: u16,
    indirect: bool,
    event_idx: bool,
    slot_bytes: usize,
    segments: usize,
    segment_bytes: usize,
    /// Every so many segments follow one another, then those between them.
    stride: usize,
    free: Vec<u16>,
    /// By slot: the type and the length that its descriptors are written for.
    built: Vec<Option<(u32, usize)>>,
    next_avail: u16,
    kicked_at: u16,
    last_used: u16,
    kick: EventFd,
    call: EventFd,
    error: EventFd,
}

fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}

/// Where the status is in a slot's head.
fn status_at(segments: usize) -> usize {
    (TABLE_AT + 16 * (segments + 2)).next_multiple_of(LINE)
}

/// Bytes of all slots' heads.
fn heads(size: u16, segments: usize) -> usize {
    pages(usize::from(size) * (status_at(segments) + LINE))
}

/// Waits until an event has happened.
fn readable(event: &EventFd, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut wait = libc::pollfd {
        fd: event.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which lives through the call.
    match unsafe { libc::poll(&raw mut wait, 1, left.as_millis() as i32) } {
        0 => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the device does not answer",
        )),
        _ => Ok(()),
    }
}

impl ClientQueue {
    /// Bytes of shared memory that a ring needs.
    pub(crate) fn bytes(options: &Options) -> usize {
        let size = options.queue_size;
        3 * pages(16 * usize::from(size))
            + heads(size, options.segments)
            + usize::from(size) * pages(options.slot_bytes)
    }

    pub(crate) fn new(
        memory: Arc<SharedMemory>,
        base: usize,
        options: &Options,
    ) -> io::Result<Self> {
        let (size, indirect) = (options.queue_size, options.indirect);
        let slots = if indirect { size } else { size / 3 };
        Ok(Self {
            memory,
            base,
            size,
            indirect,
            event_idx: options.event_idx,
            slot_bytes: pages(options.slot_bytes),
            segments: options.segments,
            segment_bytes: usize::MAX,
            stride: 1,
            free: (0..slots).rev().collect(),
            built: vec![None; usize::from(size)],
            next_avail: 0,
            kicked_at: 0,
            last_used: 0,
            kick: EventFd::new(EFD_NONBLOCK)?,
            call: EventFd::new(EFD_NONBLOCK)?,
            error: EventFd::new(EFD_NONBLOCK)?,
        })
    }

    /// For kicks, notifications and errors.
    pub(crate) fn events(&self) -> [&EventFd; 3] {
        [&self.kick, &self.call, &self.error]
    }

    pub(crate) fn addresses(&self) -> VringConfigData {
        VringConfigData {
            queue_max_size: self.size,
            queue_size: self.size,
            flags: 0,
            desc_table_addr: self.memory.user(self.base),
            used_ring_addr: self.memory.user(self.used()),
            avail_ring_addr: self.memory.user(self.avail()),
            log_addr: None,
        }
    }

    fn avail(&self) -> usize {
        self.base + pages(16 * usize::from(self.size))
    }

    fn used(&self) -> usize {
        self.avail() + pages(16 * usize::from(self.size))
    }

    fn head(&self, slot: u16) -> usize {
        let first = self.used() + pages(16 * usize::from(self.size));
        first + usize::from(slot) * (status_at(self.segments) + LINE)
    }

    fn status(&self, slot: u16) -> usize {
        self.head(slot) + status_at(self.segments)
    }

    /// Where the slots' data begin in the shared memory.
    pub(crate) fn data_start(&self) -> usize {
        let first = self.used() + pages(16 * usize::from(self.size));
        first + heads(self.size, self.segments)
    }

    fn data(&self, slot: u16) -> usize {
        self.data_start() + usize::from(slot) * self.slot_bytes
    }

    /// Splits data into segments of so many bytes; needs indirect descriptors.
    ///
    /// # Panics
    /// When a slot's data would take more segments than [`Options::segments`] says.
    pub fn set_segment_bytes(&mut self, bytes: usize) {
        assert!(self.slot_bytes.div_ceil(bytes) <= self.segments);
        self.segment_bytes = bytes;
        self.built.fill(None);
    }

    /// As [`Self::set_segment_bytes`], with only every `stride`th segment after the other and then those between them, so that
    /// no two that follow one another are side by side. A request's data have to be whole segments.
    pub fn set_segment_order(&mut self, bytes: usize, stride: usize) {
        self.set_segment_bytes(bytes);
        self.stride = stride;
    }

    /// Entries of the ring.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Bytes of data that a slot has.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Takes a free slot.
    pub fn take_slot(&mut self) -> Option<u16> {
        self.free.pop()
    }

    /// Puts bytes into a slot's data.
    pub fn fill(&self, slot: u16, bytes: &[u8]) {
        self.fill_at(slot, 0, bytes);
    }

    /// Puts bytes into a slot's data from `at` on.
    pub fn fill_at(&self, slot: u16, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.slot_bytes);
        self.memory.write(self.data(slot) + at, bytes);
    }

    /// Copies bytes out of a slot's data.
    pub fn fetch(&self, slot: u16, bytes: &mut [u8]) {
        self.fetch_at(slot, 0, bytes);
    }

    /// Copies bytes out of a slot's data from `at` on.
    pub fn fetch_at(&self, slot: u16, at: usize, bytes: &mut [u8]) {
        assert!(at + bytes.len() <= self.slot_bytes);
        self.memory.read(self.data(slot) + at, bytes);
    }

    /// The guest's address of a slot's data.
    pub fn guest_address(&self, slot: u16) -> u64 {
        self.memory.guest(self.data(slot))
    }

    fn put(&self, table: usize, index: usize, address: u64, len: u32, flags: u16, next: u16) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&next.to_le_bytes());
        self.memory.write(table + 16 * index, &bytes);
    }

    /// Writes a descriptor of the ring's table as it is, however wrong.
    pub fn raw_descriptor(&mut self, index: u16, address: u64, len: u32, flags: u16, next: u16) {
        self.built.fill(None);
        self.put(self.base, usize::from(index), address, len, flags, next);
    }

    /// Makes a chain available as it is, however wrong.
    pub fn raw_publish(&mut self, head: u16) {
        self.enter(head);
        self.publish();
    }

    /// Sets the ring's available index as it is, however wrong.
    pub fn raw_avail_index(&mut self, index: u16) {
        let at = self.memory.half(self.avail() + 2);
        at.store(index, Ordering::Release);
    }

    fn enter(&mut self, head: u16) {
        let at = self.avail() + 4 + 2 * usize::from(self.next_avail % self.size);
        self.memory.half(at).store(head, Ordering::Relaxed);
        self.next_avail = self.next_avail.wrapping_add(1);
    }

    /// Shows the device what was pushed, without waking it.
    pub fn publish(&self) {
        let index = self.memory.half(self.avail() + 2);
        index.store(self.next_avail, Ordering::Release);
    }

    /// Puts a request in a slot into the ring. The device sees it with the next [`Self::kick`] or
    /// [`Self::publish`].
    pub fn push(&mut self, slot: u16, command: Command) {
        let (kind, sector, len, writable) = self.prepare(slot, command);
        let head = self.head(slot);
        let mut header = [0; 16];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..].copy_from_slice(&sector.to_le_bytes());
        self.memory.write(head, &header);
        self.memory.write(self.status(slot), &[255]);
        if self.built[usize::from(slot)] != Some((kind, len)) {
            self.build(slot, len, writable);
            self.built[usize::from(slot)] = Some((kind, len));
        }
        self.enter(if self.indirect { slot } else { 3 * slot });
    }

    /// Writes the descriptors of a request in a slot.
    fn build(&self, slot: u16, len: usize, writable: bool) {
        let head = self.head(slot);
        let (table, first) = if self.indirect {
            (head + TABLE_AT, 0)
        } else {
            (self.base, 3 * usize::from(slot))
        };
        let mut index = first;
        let mut add = |address: u64, len: usize, flags: u16| {
            self.put(table, index, address, len as u32, flags, index as u16 + 1);
            index += 1;
        };
        add(self.memory.guest(head), 16, NEXT);
        let flags = NEXT | if writable { WRITE } else { 0 };
        for first in 0..self.stride {
            let mut at = first.saturating_mul(self.segment_bytes);
            while at < len {
                let part = self.segment_bytes.min(len - at);
                add(self.memory.guest(self.data(slot) + at), part, flags);
                at = at.saturating_add(self.segment_bytes.saturating_mul(self.stride));
            }
        }
        add(self.memory.guest(self.status(slot)), 1, WRITE);
        if self.indirect {
            let (bytes, address) = (16 * index as u32, self.memory.guest(table));
            self.put(self.base, usize::from(slot), address, bytes, INDIRECT, 0);
        }
    }

    /// Header and data of a command: type, sector, bytes of data, whether the device writes them.
    fn prepare(&self, slot: u16, command: Command) -> (u32, u64, usize, bool) {
        let range = |sector: u64, sectors: u32, flags: u32| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&sector.to_le_bytes());
            bytes[8..12].copy_from_slice(&sectors.to_le_bytes());
            bytes[12..].copy_from_slice(&flags.to_le_bytes());
            self.fill(slot, &bytes);
        };
        match command {
            Command::Read { sector, len } => (VIRTIO_BLK_T_IN, sector, len, true),
            Command::Write { sector, len } => (VIRTIO_BLK_T_OUT, sector, len, false),
            Command::Flush => (VIRTIO_BLK_T_FLUSH, 0, 0, false),
            Command::Identify => (VIRTIO_BLK_T_GET_ID, 0, 20, true),
            Command::Discard { sector, sectors } => {
                range(sector, sectors, 0);
                (VIRTIO_BLK_T_DISCARD, 0, 16, false)
            }
            Command::WriteZeroes {
                sector,
                sectors,
                unmap,
            } => {
                range(sector, sectors, u32::from(unmap));
                (VIRTIO_BLK_T_WRITE_ZEROES, 0, 16, false)
            }
            Command::Other { kind, len } => (kind, 0, len, false),
        }
    }

    /// Shows the device what was pushed, and wakes it if it wants that; true when it did.
    pub fn kick(&mut self) -> bool {
        self.publish();
        fence(Ordering::SeqCst);
        let wanted = if self.event_idx {
            let at = self.used() + 4 + 8 * usize::from(self.size);
            let event = self.memory.half(at).load(Ordering::Acquire);
            let new = self.next_avail.wrapping_sub(event).wrapping_sub(1);
            new < self.next_avail.wrapping_sub(self.kicked_at)
        } else {
            self.memory.half(self.used()).load(Ordering::Acquire) & 1 == 0
        };
        self.kicked_at = self.next_avail;
        if wanted {
            self.raw_kick();
        }
        wanted
    }

    /// Kicks, whether the device wants it or not.
    pub fn raw_kick(&self) {
        let _ = self.kick.write(1);
    }

    /// The device's index into the used ring.
    pub fn used_index(&self) -> u16 {
        self.memory.half(self.used() + 2).load(Ordering::Acquire)
    }

    /// Takes an answer if one is there.
    pub fn poll(&mut self) -> Option<Done> {
        if self.used_index() == self.last_used {
            return None;
        }
        let mut element = [0; 8];
        let at = self.used() + 4 + 8 * usize::from(self.last_used % self.size);
        self.memory.read(at, &mut element);
        self.last_used = self.last_used.wrapping_add(1);
        let (head, written) = element.split_at(4);
        let head = u32::from_le_bytes(head.try_into().expect("four bytes")) as u16;
        let slot = if self.indirect { head } else { head / 3 };
        let mut status = [0];
        self.memory.read(self.status(slot), &mut status);
        self.free.push(slot);
        Some(Done {
            slot,
            status: status[0],
            written: u32::from_le_bytes(written.try_into().expect("four bytes")),
        })
    }

    /// Asks to be notified of the next answer; true when one is there already.
    pub fn arm(&mut self) -> bool {
        if self.event_idx {
            self.used_event().store(self.last_used, Ordering::Release);
            fence(Ordering::SeqCst);
        }
        self.used_index() != self.last_used
    }

    /// The descriptor that becomes readable when the device notifies.
    pub fn notifications(&self) -> RawFd {
        self.call.as_raw_fd()
    }

    /// Takes the notifications that came.
    pub fn disarm(&self) {
        // Nothing to read means that none came.
        let _ = self.call.read();
    }

    /// Waits for an answer, asleep until the device notifies.
    ///
    /// # Errors
    /// `TimedOut` when none comes in time.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Done> {
        let deadline = Instant::now() + timeout;
        loop {
            self.arm();
            if let Some(done) = self.poll() {
                return Ok(done);
            }
            readable(&self.call, deadline)?;
            self.disarm();
        }
    }

    /// Waits until the device says that it can serve this ring no further.
    ///
    /// # Errors
    /// `TimedOut` when it does not in time.
    pub fn wait_for_error(&mut self, timeout: Duration) -> io::Result<()> {
        readable(&self.error, Instant::now() + timeout)?;
        self.error.read().map(|_| ())
    }

    /// Asks for no notification, for a caller that polls, or for all of them again. With event
    /// indexes one comes nevertheless each 65,536 answers.
    pub fn set_polling(&mut self, polling: bool) {
        if self.event_idx {
            let behind = self.last_used.wrapping_sub(u16::from(polling));
            self.used_event().store(behind, Ordering::Release);
        } else {
            let flags = self.memory.half(self.avail());
            flags.store(u16::from(polling), Ordering::Release);
        }
    }

    fn used_event(&self) -> &AtomicU16 {
        let at = self.avail() + 4 + 2 * usize::from(self.size);
        self.memory.half(at)
    }

    /// Sends one request in a slot and waits for its answer.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn call(&mut self, slot: u16, command: Command, timeout: Duration) -> io::Result<Done> {
        self.push(slot, command);
        self.kick();
        self.wait(timeout)
    }
}
