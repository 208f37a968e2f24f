//! In-flight memory, which outlives the daemon and records unanswered requests, in the split ring
//! layout of the vhost-user specification, section "Inflight I/O tracking".
//!
//! After the queues' parts follows a byte of our own: whether the guest had disabled its write
//! cache, which the next daemon could not know otherwise.
//!
//! The monitor keeps the memory and passes it to the daemon that it connects to next. It can modify
//! it, so its content is validated like other untrusted input.

use crate::config::QUEUE_SIZE_MAX;
use crate::shared::Mapping;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use vhost::vhost_user::message::VhostUserInflight;

const VERSION: u16 = 1;
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;
/// Bytes after the queues' parts.
const TRAILER_BYTES: usize = 64;
/// Maximum number of queues of a region.
const QUEUES_MAX: u16 = 256;

/// Size of a queue's part, in bytes.
fn part_bytes(queue_size: u16) -> usize {
    (HEADER_BYTES + ENTRY_BYTES * usize::from(queue_size)).next_multiple_of(64)
}

fn check(queues: u16, queue_size: u16) -> io::Result<usize> {
    if (1..=QUEUES_MAX).contains(&queues) && (1..=QUEUE_SIZE_MAX).contains(&queue_size) {
        return Ok(part_bytes(queue_size) * usize::from(queues) + TRAILER_BYTES);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "in-flight memory for {queues} queues of {queue_size} entries exceeds the supported limits"
        ),
    ))
}

/// The mapped memory of all queues.
pub(crate) struct InflightRegion {
    mapping: Mapping,
    start: usize,
    queues: u16,
    queue_size: u16,
}

impl InflightRegion {
    /// Creates a zeroed file without pages, large enough for every permitted region and sealed
    /// against resizing. A session uses one file for all requests, since the monitor may keep
    /// descriptors of it indefinitely.
    ///
    /// # Errors
    /// When no descriptor is available.
    pub(crate) fn create() -> io::Result<File> {
        let len = check(QUEUES_MAX, QUEUE_SIZE_MAX)?;
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: a system call with a constant name.
        let fd = unsafe { libc::memfd_create(c"convect-inflight".as_ptr(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(len as u64)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: a system call on a descriptor owned by `file`.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(file)
    }

    /// Zeroes a file of [`InflightRegion::create`], and describes the region of `queues` queues in
    /// it.
    ///
    /// # Errors
    /// When the number of queues or entries is not supported.
    pub(crate) fn begin(
        file: &File,
        queues: u16,
        queue_size: u16,
    ) -> io::Result<VhostUserInflight> {
        let len = check(queues, queue_size)?;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let all = i64::try_from(check(QUEUES_MAX, QUEUE_SIZE_MAX)?).unwrap_or(i64::MAX);
        // SAFETY: a system call on a descriptor owned by `file`.
        if unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, all) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(VhostUserInflight::new(len as u64, 0, queues, queue_size))
    }

    /// Maps memory passed back by a monitor; `cut` is set if it is truncated later.
    ///
    /// # Errors
    /// When it is not in-memory, too small, or misaligned.
    pub(crate) fn map(
        info: &VhostUserInflight,
        file: &File,
        cut: &Arc<AtomicBool>,
    ) -> io::Result<Arc<Self>> {
        let refused = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
        let needed = check(info.num_queues, info.queue_size)?;
        if info.mmap_size < needed as u64 {
            return Err(refused("the in-flight memory is too small for its queues"));
        }
        let start = usize::try_from(info.mmap_offset).map_err(|_| refused("in-flight offset"))?;
        let len = start
            .checked_add(needed)
            .filter(|_| start % ENTRY_BYTES == 0)
            .ok_or_else(|| refused("the offset of the in-flight memory is misaligned"))?;
        // Mapped from the beginning of the file, since the offset need not be page-aligned.
        Ok(Arc::new(Self {
            mapping: Mapping::new(file, 0, len as u64, cut)?,
            start,
            queues: info.num_queues,
            queue_size: info.queue_size,
        }))
    }

    fn trailer(&self) -> &AtomicU8 {
        let parts = part_bytes(self.queue_size) * usize::from(self.queues);
        // SAFETY: the trailer follows the parts within the mapping; it is accessed by atomics only.
        unsafe { AtomicU8::from_ptr(self.mapping.at().as_ptr().add(self.start + parts)) }
    }

    /// Whether the guest's write cache is enabled, as it is in new memory.
    pub(crate) fn writeback(&self) -> bool {
        self.trailer().load(Ordering::Acquire) == 0
    }

    /// Records whether the guest's write cache is enabled.
    pub(crate) fn set_writeback(&self, on: bool) {
        self.trailer().store(u8::from(!on), Ordering::Release);
    }

    /// The part of queue `index`, if it exists and is large enough for a ring of `size`.
    pub(crate) fn queue(self: &Arc<Self>, index: u16, size: u16) -> Option<InflightQueue> {
        (index < self.queues && size <= self.queue_size).then(|| InflightQueue {
            start: self.start + part_bytes(self.queue_size) * usize::from(index),
            region: self.clone(),
            size,
            counter: 0,
        })
    }
}

/// Where a ring resumes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Taken but unanswered requests, oldest first.
    pub(crate) heads: Vec<u16>,
    /// Next index of the available ring.
    pub(crate) next_avail: u16,
}

/// A queue's part: which descriptor chains are in flight.
pub(crate) struct InflightQueue {
    region: Arc<InflightRegion>,
    start: usize,
    size: u16,
    counter: u64,
}

impl InflightQueue {
    fn at(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < part_bytes(self.region.queue_size));
        // SAFETY: callers stay within the queue's part, which is within the mapping.
        unsafe { self.region.mapping.at().as_ptr().add(self.start + offset) }
    }

    fn half(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: within the part, and aligned since parts and offsets are; shared memory is
        // accessed by atomics only.
        unsafe { AtomicU16::from_ptr(self.at(offset).cast()) }
    }

    fn version(&self) -> &AtomicU16 {
        self.half(8)
    }

    fn desc_num(&self) -> &AtomicU16 {
        self.half(10)
    }

    fn last_batch_head(&self) -> &AtomicU16 {
        self.half(12)
    }

    fn used_idx(&self) -> &AtomicU16 {
        self.half(14)
    }

    fn entry(head: u16) -> usize {
        HEADER_BYTES + ENTRY_BYTES * usize::from(head)
    }

    fn inflight(&self, head: u16) -> &AtomicU8 {
        assert!(head < self.size, "chain head beyond the end of the ring");
        // SAFETY: within the part (checked above); shared memory is accessed by atomics only.
        unsafe { AtomicU8::from_ptr(self.at(Self::entry(head))) }
    }

    fn next(&self, head: u16) -> &AtomicU16 {
        assert!(head < self.size, "chain head beyond the end of the ring");
        self.half(Self::entry(head) + 6)
    }

    fn entry_counter(&self, head: u16) -> &AtomicU64 {
        assert!(head < self.size, "chain head beyond the end of the ring");
        // SAFETY: within the part (checked above), aligned to 8 since entries are aligned to 16.
        unsafe { AtomicU64::from_ptr(self.at(Self::entry(head) + 8).cast()) }
    }

    /// Determines where a ring with the used index `used` resumes. A new region resumes at `base`.
    pub(crate) fn recover(&mut self, used: u16, base: u16) -> Recovered {
        if self.version().load(Ordering::Acquire) != VERSION {
            self.desc_num().store(self.size, Ordering::Release);
            self.last_batch_head().store(0, Ordering::Release);
            self.used_idx().store(used, Ordering::Release);
            for head in 0..self.size {
                self.inflight(head).store(0, Ordering::Release);
            }
            self.version().store(VERSION, Ordering::Release);
            return Recovered {
                heads: Vec::new(),
                next_avail: base,
            };
        }
        // The last batch was added to the used ring, but some of its marks may not be cleared.
        let batch = used.wrapping_sub(self.used_idx().load(Ordering::Acquire));
        let mut head = self.last_batch_head().load(Ordering::Acquire);
        for _ in 0..batch.min(self.size) {
            if head >= self.size {
                break;
            }
            self.inflight(head).store(0, Ordering::Release);
            head = self.next(head).load(Ordering::Acquire);
        }
        self.used_idx().store(used, Ordering::Release);
        let mut open: Vec<(u64, u16)> = (0..self.size)
            .filter(|head| self.inflight(*head).load(Ordering::Acquire) != 0)
            .map(|head| (self.entry_counter(head).load(Ordering::Acquire), head))
            .collect();
        open.sort_unstable();
        self.counter = open
            .last()
            .map_or(0, |(counter, _)| counter.wrapping_add(1));
        Recovered {
            next_avail: used.wrapping_add(open.len() as u16),
            heads: open.into_iter().map(|(_, head)| head).collect(),
        }
    }

    /// A chain was taken from the available ring.
    pub(crate) fn begin(&mut self, head: u16) {
        self.entry_counter(head)
            .store(self.counter, Ordering::Release);
        self.counter = self.counter.wrapping_add(1);
        self.inflight(head).store(1, Ordering::Release);
    }

    /// A chain is about to be added to the used ring, in a batch that is published with one index
    /// update.
    pub(crate) fn ending(&mut self, head: u16) {
        let last = self.last_batch_head().load(Ordering::Relaxed);
        self.next(head).store(last, Ordering::Release);
        self.last_batch_head().store(head, Ordering::Release);
    }

    /// These chains are in the used ring, whose index is now `used`.
    pub(crate) fn ended(&mut self, heads: &[u16], used: u16) {
        for head in heads {
            self.inflight(*head).store(0, Ordering::Release);
        }
        self.used_idx().store(used, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region() -> (VhostUserInflight, File) {
        let file = InflightRegion::create().unwrap();
        let info = InflightRegion::begin(&file, 2, 8).unwrap();
        (info, file)
    }

    fn queue(info: &VhostUserInflight, file: &File) -> InflightQueue {
        InflightRegion::map(info, file, &Arc::default())
            .unwrap()
            .queue(1, 8)
            .unwrap()
    }

    #[test]
    fn new_region_resumes_at_the_given_base() {
        let (info, file) = region();
        assert_eq!(
            queue(&info, &file).recover(7, 9),
            Recovered {
                heads: vec![],
                next_avail: 9
            }
        );
    }

    #[test]
    fn open_requests_are_recovered_in_order() {
        let (info, file) = region();
        let mut first = queue(&info, &file);
        first.recover(65_534, 65_534);
        for head in [5, 2, 7, 0] {
            first.begin(head);
        }
        first.ending(2);
        first.ended(&[2], 65_535);
        drop(first);
        let recovered = queue(&info, &file).recover(65_535, 0);
        assert_eq!(recovered.heads, [5, 7, 0]);
        assert_eq!(recovered.next_avail, 2);
    }

    #[test]
    fn crash_between_used_ring_and_mark_answers_nothing_twice() {
        let (info, file) = region();
        let mut first = queue(&info, &file);
        first.recover(0, 0);
        first.begin(3);
        first.begin(4);
        first.ending(3);
        drop(first);
        // The used ring was updated to 1, but the mark was not cleared.
        let recovered = queue(&info, &file).recover(1, 0);
        assert_eq!(recovered.heads, [4]);
        assert_eq!(recovered.next_avail, 2);
    }

    #[test]
    fn crash_within_a_batch_answers_it_once_or_not_at_all() {
        let (info, file) = region();
        for published in [0, 3] {
            let mut first = queue(&info, &file);
            first.version().store(0, Ordering::Release);
            first.recover(0, 0);
            (3..7).for_each(|head| first.begin(head));
            [5, 3, 6].iter().for_each(|head| first.ending(*head));
            drop(first);
            let heads = queue(&info, &file).recover(published, 0).heads;
            let left: &[u16] = if published == 0 { &[3, 4, 5, 6] } else { &[4] };
            assert_eq!(heads, left);
        }
    }

    #[test]
    fn file_is_reused_zeroed() {
        let (info, file) = region();
        let mut first = queue(&info, &file);
        first.recover(0, 0);
        first.begin(1);
        let info = InflightRegion::begin(&file, 4, 16).unwrap();
        let region = InflightRegion::map(&info, &file, &Arc::default()).unwrap();
        for index in 0..4 {
            let recovered = region.queue(index, 16).unwrap().recover(0, 9);
            assert_eq!((recovered.heads, recovered.next_avail), (vec![], 9));
        }
    }

    #[test]
    fn corrupt_region_is_survived() {
        let (info, file) = region();
        let mut first = queue(&info, &file);
        first.recover(0, 0);
        first.begin(1);
        first.last_batch_head().store(60_000, Ordering::Release);
        first.used_idx().store(40_000, Ordering::Release);
        assert_eq!(first.recover(0, 0).heads, [1]);
    }

    #[test]
    fn region_larger_than_its_file_is_refused() {
        let (mut info, file) = region();
        info.mmap_offset = file.metadata().unwrap().len() - 64;
        assert!(InflightRegion::map(&info, &file, &Arc::default()).is_err());
        info.mmap_offset = u64::MAX - 15;
        assert!(InflightRegion::map(&info, &file, &Arc::default()).is_err());
        for (queues, size) in [(0, 8), (257, 8), (1, 0), (1, 4096)] {
            assert!(InflightRegion::begin(&file, queues, size).is_err());
        }
    }
}
