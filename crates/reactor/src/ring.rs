//! io_uring: requests in flight and what to do when they end.

use crate::RingFile;
use block::{DmaBuf, DmaPool, DriveError, DriveOutcome, Sender};
use io_uring::{IoUring, opcode, squeue, types};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// Requests in the kernel at a time; more wait in a queue here.
const ENTRIES: u32 = 512;
/// Places in the ring's table of files; further files are named by their descriptors.
const FILES: u32 = 256;

enum Slot {
    Free,
    Drive {
        done: Sender<DriveOutcome>,
        buf: Option<DmaBuf>,
        len: u32,
        /// Held so that the descriptor stays open.
        file: Rc<RingFile>,
    },
    Poll {
        done: Sender<i32>,
    },
    /// The event descriptor that other threads wake the loop by.
    Event,
    /// A request whose end interests nobody.
    Ignored,
}

pub(crate) struct Ring {
    ring: RefCell<IoUring>,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u32>>,
    waiting: RefCell<VecDeque<squeue::Entry>>,
    in_kernel: Cell<u32>,
    event_armed: Cell<bool>,
    /// Free places in the table of files, the next one last.
    free_files: RefCell<Vec<u32>>,
    /// Addresses of the memory that is registered as buffer 0; empty when none is.
    registered: Range<usize>,
    /// Keeps that memory.
    _dma: DmaPool,
}

impl Ring {
    /// A ring that transfers to and from the arena of `dma` without preparing its pages each time.
    pub(crate) fn new(dma: &DmaPool) -> io::Result<Self> {
        let ring = IoUring::builder().setup_clamp().build(ENTRIES)?;
        // The kernel refuses a table above the limit of open files: then there is none.
        let files = match ring.submitter().register_files_sparse(FILES) {
            Ok(()) => FILES,
            Err(_) => 0,
        };
        let registered = dma
            .arena()
            .filter(|(start, len)| register(&ring, *start, *len));
        let registered =
            registered.map_or(0..0, |(start, len)| start as usize..start as usize + len);
        Ok(Self {
            ring: RefCell::new(ring),
            registered,
            _dma: dma.clone(),
            slots: RefCell::default(),
            free: RefCell::default(),
            waiting: RefCell::default(),
            in_kernel: Cell::new(0),
            event_armed: Cell::new(false),
            free_files: RefCell::new((0..files).rev().collect()),
        })
    }

    fn slot(&self, slot: Slot) -> u32 {
        let mut slots = self.slots.borrow_mut();
        if let Some(index) = self.free.borrow_mut().pop() {
            slots[index as usize] = slot;
            return index;
        }
        slots.push(slot);
        slots.len() as u32 - 1
    }

    fn push(&self, entry: squeue::Entry) {
        if self.in_kernel.get() >= ENTRIES || !self.waiting.borrow().is_empty() {
            self.waiting.borrow_mut().push_back(entry);
            return;
        }
        self.in_kernel.set(self.in_kernel.get() + 1);
        let mut ring = self.ring.borrow_mut();
        // SAFETY: the memory that the entry names is owned by its slot until it ends.
        while unsafe { ring.submission().push(&entry) }.is_err() {
            // A full queue empties by being submitted; a busy kernel says so and is asked again
            // by the loop, which reaps in between.
            if ring.submit().is_err() {
                self.in_kernel.set(self.in_kernel.get() - 1);
                drop(ring);
                self.waiting.borrow_mut().push_back(entry);
                return;
            }
        }
    }

    /// Puts a descriptor into the table of files; `None` when the table has no room for it.
    pub(crate) fn register_file(&self, fd: i32) -> Option<u32> {
        let index = self.free_files.borrow_mut().pop()?;
        let added = self
            .ring
            .borrow()
            .submitter()
            .register_files_update(index, &[fd]);
        if added.is_err() {
            self.free_files.borrow_mut().push(index);
            return None;
        }
        Some(index)
    }

    /// Takes a file out of the table. A place that the kernel does not clear stays unused.
    pub(crate) fn unregister_file(&self, index: u32) {
        let cleared = self
            .ring
            .borrow()
            .submitter()
            .register_files_update(index, &[-1]);
        if cleared.is_ok() {
            self.free_files.borrow_mut().push(index);
        }
    }

    /// Number of the registered buffer that `buf` lies in.
    pub(crate) fn registered_buffer(&self, buf: &DmaBuf) -> Option<u16> {
        let start = buf.as_raw() as usize;
        let within = self.registered.contains(&start) && start + buf.len() <= self.registered.end;
        within.then_some(0)
    }

    /// Starts a drive request; `len` is how many bytes it has to move.
    pub(crate) fn drive(
        &self,
        entry: squeue::Entry,
        file: Rc<RingFile>,
        buf: Option<DmaBuf>,
        len: u32,
        done: Sender<DriveOutcome>,
    ) {
        let index = self.slot(Slot::Drive {
            done,
            buf,
            len,
            file,
        });
        self.push(entry.user_data(u64::from(index)));
    }

    /// Starts to wait for events of a descriptor; returns the number to cancel it by.
    pub(crate) fn poll_fd(&self, fd: i32, events: u32, done: Sender<i32>) -> u32 {
        let index = self.slot(Slot::Poll { done });
        self.push(
            opcode::PollAdd::new(types::Fd(fd), events)
                .build()
                .user_data(u64::from(index)),
        );
        index
    }

    /// Stops waiting; the request still ends by itself, with an error that nobody hears.
    pub(crate) fn cancel(&self, index: u32) {
        let own = self.slot(Slot::Ignored);
        self.push(
            opcode::AsyncCancel::new(u64::from(index))
                .build()
                .user_data(u64::from(own)),
        );
    }

    pub(crate) fn arm_event(&self, fd: i32) {
        if !self.event_armed.replace(true) {
            let index = self.slot(Slot::Event);
            let entry = opcode::PollAdd::new(types::Fd(fd), libc::POLLIN as u32).build();
            self.push(entry.user_data(u64::from(index)));
        }
    }

    /// Hands what is queued to the kernel and, if `wait`, waits for an event at most
    /// `timeout_ns`. Interruptions and a busy kernel are no errors.
    pub(crate) fn enter(&self, wait: bool, timeout_ns: Option<u64>) -> io::Result<()> {
        let mut ring = self.ring.borrow_mut();
        let result = match (wait, timeout_ns) {
            (true, Some(ns)) => {
                let time = types::Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32);
                let arguments = types::SubmitArgs::new().timespec(&time);
                ring.submitter().submit_with_args(1, &arguments)
            }
            (true, None) => ring.submit_and_wait(1),
            (false, _) => {
                if ring.submission().is_empty() {
                    return Ok(());
                }
                ring.submit()
            }
        };
        match result.map_err(|error| (error.raw_os_error(), error)) {
            Ok(_) | Err((Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN), _)) => {
                Ok(())
            }
            Err((_, error)) => Err(error),
        }
    }

    /// Ends what the kernel has ended; returns how many. `event` clears the event descriptor.
    pub(crate) fn reap(&self, mut event: impl FnMut()) -> usize {
        let mut count = 0;
        loop {
            let next = self.ring.borrow_mut().completion().next();
            let Some(entry) = next else { break };
            count += 1;
            self.in_kernel.set(self.in_kernel.get() - 1);
            let index = entry.user_data() as usize;
            let slot = std::mem::replace(&mut self.slots.borrow_mut()[index], Slot::Free);
            self.free.borrow_mut().push(index as u32);
            match slot {
                Slot::Drive {
                    done,
                    buf,
                    len,
                    file,
                } => {
                    drop(file);
                    done.send((buf, moved(entry.result(), len)));
                }
                Slot::Poll { done } => done.send(entry.result()),
                Slot::Event => {
                    self.event_armed.set(false);
                    event();
                }
                Slot::Ignored | Slot::Free => {}
            }
        }
        while self.in_kernel.get() < ENTRIES {
            let Some(entry) = self.waiting.borrow_mut().pop_front() else {
                break;
            };
            self.in_kernel.set(self.in_kernel.get() + 1);
            let mut ring = self.ring.borrow_mut();
            // SAFETY: as in `push`.
            if unsafe { ring.submission().push(&entry) }.is_err() {
                self.in_kernel.set(self.in_kernel.get() - 1);
                self.waiting.borrow_mut().push_front(entry);
                break;
            }
        }
        count
    }

    /// Drive requests whose memory the kernel may still write to.
    pub(crate) fn drives_in_flight(&self) -> usize {
        self.slots
            .borrow()
            .iter()
            .filter(|slot| matches!(slot, Slot::Drive { .. }))
            .count()
    }
}

/// Makes memory known to the kernel as buffer 0. It may refuse by the limit of locked memory:
/// then transfers prepare their pages one by one.
fn register(ring: &IoUring, start: *mut u8, len: usize) -> bool {
    let buffer = libc::iovec {
        iov_base: start.cast(),
        iov_len: len,
    };
    // SAFETY: the ring holds the pool that the memory belongs to.
    unsafe { ring.submitter().register_buffers(&[buffer]) }.is_ok()
}

fn moved(result: i32, len: u32) -> Result<(), DriveError> {
    if result < 0 {
        Err(DriveError::Os(-result))
    } else if result as u32 == len {
        Ok(())
    } else {
        Err(DriveError::Short {
            wanted: len,
            moved: result as u32,
        })
    }
}
