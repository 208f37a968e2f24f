//! io_uring: requests in flight and the handling of their completions.

use crate::{RingFile, signals};
use block::{DmaBuf, DmaPool, DriveError, DriveOutcome, Sender};
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// Requests of drives in the kernel at a time; more wait in a queue here. Descriptors that are
/// waited for do not count: idle connections would leave no room, not even for being woken.
const ENTRIES: u32 = 512;
/// Requests that are handed to the kernel without waiting for more.
const TOGETHER: usize = 8;
/// The same in bytes: a drive takes longer to move as many than the kernel to be asked, and is not to wait while the next as
/// many are copied and checksummed.
const MUCH: u64 = 64 << 10;
/// With this few requests in the kernel, batching of submissions or completions gains nothing.
const FEW: u32 = 8;
/// Requests that are ended together: drives would wait for what comes of the first while the last are answered.
const REAPED: usize = 8;
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
    /// Signals of a descriptor, one after the other.
    Signals(Rc<signals::State>),
    /// The event descriptor that other threads wake the loop by.
    Event,
    /// A request whose completion is ignored.
    Ignored,
}

pub(crate) struct Ring {
    ring: RefCell<IoUring>,
    /// The purpose of each request, and the number of earlier users of its place: a request is named by
    /// both, so that a later one is not cancelled by mistake.
    slots: RefCell<Vec<(Slot, u32)>>,
    free: RefCell<Vec<u32>>,
    waiting: RefCell<VecDeque<squeue::Entry>>,
    /// Polls that a busy kernel did not take yet.
    polls: RefCell<VecDeque<squeue::Entry>>,
    /// Requests there that are not polls.
    in_kernel: Cell<u32>,
    /// Some of them the kernel does not know yet.
    prepared: Cell<bool>,
    /// Bytes that those have to move.
    prepared_bytes: Cell<u64>,
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
        let ring = build()?;
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
            polls: RefCell::default(),
            in_kernel: Cell::new(0),
            prepared: Cell::new(false),
            prepared_bytes: Cell::new(0),
            event_armed: Cell::new(false),
            free_files: RefCell::new((0..files).rev().collect()),
        })
    }

    /// Takes a place; returns the request's name.
    fn slot(&self, slot: Slot) -> u64 {
        let mut slots = self.slots.borrow_mut();
        let (index, turn) = match self.free.borrow_mut().pop() {
            Some(index) => {
                let place = &mut slots[index as usize];
                *place = (slot, place.1.wrapping_add(1));
                (index, place.1)
            }
            None => {
                slots.push((slot, 0));
                (slots.len() as u32 - 1, 0)
            }
        };
        u64::from(turn) << 32 | u64::from(index)
    }

    /// Hands over a request of a drive, or lets it wait for its turn.
    fn push(&self, entry: squeue::Entry) {
        let full = self.in_kernel.get() >= ENTRIES || !self.waiting.borrow().is_empty();
        if full || !self.try_push(&entry) {
            return self.waiting.borrow_mut().push_back(entry);
        }
        self.in_kernel.set(self.in_kernel.get() + 1);
        self.prepared.set(true);
        self.hand_over();
    }

    /// Submits queued requests to the kernel if there are many: the drive starts while more are prepared.
    fn hand_over(&self) {
        let mut ring = self.ring.borrow_mut();
        if ring.submission().len() >= TOGETHER || self.prepared_bytes.get() >= MUCH {
            self.prepared_bytes.set(0);
            // What the kernel does not take now, the loop hands over.
            let _ = ring.submit();
        }
    }

    /// Begins to wait for a descriptor, whatever else is in the kernel.
    fn push_poll(&self, entry: squeue::Entry) {
        if !self.try_push(&entry) {
            self.polls.borrow_mut().push_back(entry);
        }
    }

    /// False when the kernel is busy: it is asked again by the loop, which reaps in between.
    fn try_push(&self, entry: &squeue::Entry) -> bool {
        let mut ring = self.ring.borrow_mut();
        // SAFETY: the memory that the entry names is owned by its slot until it ends.
        while unsafe { ring.submission().push(entry) }.is_err() {
            // A full queue empties by being submitted.
            if ring.submit().is_err() {
                return false;
            }
        }
        true
    }

    /// Hands over what could not be handed over before.
    fn push_waiting(&self) {
        loop {
            let Some(entry) = self.polls.borrow_mut().pop_front() else {
                break;
            };
            if !self.try_push(&entry) {
                return self.polls.borrow_mut().push_front(entry);
            }
        }
        while self.in_kernel.get() < ENTRIES {
            let Some(entry) = self.waiting.borrow_mut().pop_front() else {
                break;
            };
            if !self.try_push(&entry) {
                return self.waiting.borrow_mut().push_front(entry);
            }
            self.in_kernel.set(self.in_kernel.get() + 1);
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

    /// Number of the registered buffer that `buf` is in.
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
        let name = self.slot(Slot::Drive {
            done,
            buf,
            len,
            file,
        });
        self.prepared_bytes
            .set(self.prepared_bytes.get() + u64::from(len));
        self.push(entry.user_data(name));
    }

    /// Starts to wait for events of a descriptor; returns the name to cancel it by.
    pub(crate) fn poll_fd(&self, fd: i32, events: u32, done: Sender<i32>) -> u64 {
        let name = self.slot(Slot::Poll { done });
        self.push_poll(
            opcode::PollAdd::new(types::Fd(fd), events)
                .build()
                .user_data(name),
        );
        name
    }

    /// Notifies of each signal of an event descriptor; returns the name to cancel it by.
    pub(crate) fn poll_signals(&self, fd: i32, told: Rc<signals::State>) -> u64 {
        let name = self.slot(Slot::Signals(told));
        let entry = opcode::PollAdd::new(types::Fd(fd), libc::POLLIN as u32).multi(true);
        self.push_poll(entry.build().user_data(name));
        name
    }

    /// Stops waiting; the request still ends by itself, with an error that is ignored.
    pub(crate) fn cancel(&self, name: u64) {
        let own = self.slot(Slot::Ignored);
        self.push(opcode::AsyncCancel::new(name).build().user_data(own));
    }

    pub(crate) fn arm_event(&self, fd: i32) {
        if !self.event_armed.replace(true) {
            let name = self.slot(Slot::Event);
            let entry = opcode::PollAdd::new(types::Fd(fd), libc::POLLIN as u32).build();
            self.push_poll(entry.user_data(name));
        }
    }

    /// Hands what is queued to the kernel and, if `wait`, waits for an event at most
    /// `timeout_ns`. Interruptions and a busy kernel are no errors.
    pub(crate) fn enter(&self, wait: bool, timeout_ns: Option<u64>) -> io::Result<()> {
        self.prepared.set(false);
        self.prepared_bytes.set(0);
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
                let queue = ring.submission();
                let nothing = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
                drop(queue);
                if nothing {
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

    /// Ends what the kernel has ended, [`REAPED`] at most; returns how many. `event` clears the event descriptor.
    pub(crate) fn reap(&self, mut event: impl FnMut()) -> usize {
        let mut count = 0;
        while count < REAPED {
            let next = self.ring.borrow_mut().completion().next();
            let Some(entry) = next else { break };
            count += 1;
            let index = entry.user_data() as u32;
            let more = cqueue::more(entry.flags());
            let slot = self.ended(index, more);
            if !matches!(slot, Slot::Poll { .. } | Slot::Signals(_) | Slot::Event) {
                self.in_kernel.set(self.in_kernel.get() - 1);
            }
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
                Slot::Signals(told) => told.signalled(entry.result(), more),
                Slot::Event => {
                    self.event_armed.set(false);
                    event();
                }
                Slot::Ignored | Slot::Free => {}
            }
        }
        self.push_waiting();
        count
    }

    /// The purpose of a request; its place is freed unless more completions follow.
    fn ended(&self, index: u32, more: bool) -> Slot {
        let slot = &mut self.slots.borrow_mut()[index as usize].0;
        if let (Slot::Signals(told), true) = (&*slot, more) {
            return Slot::Signals(told.clone());
        }
        self.free.borrow_mut().push(index);
        std::mem::replace(slot, Slot::Free)
    }

    /// Whether it has requests of drives.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_kernel.get() > 0
    }

    /// Whether it has few requests of drives, and is to be given them, or has ended some, as far as can be seen without asking
    /// it.
    pub(crate) fn is_awaited(&self) -> bool {
        if !(1..=FEW).contains(&self.in_kernel.get()) {
            return false;
        }
        if self.prepared.get() {
            return true;
        }
        let mut ring = self.ring.borrow_mut();
        let is_to_run = ring.submission().taskrun();
        is_to_run || !ring.completion().is_empty()
    }

    /// Drive requests whose memory the kernel may still write to.
    pub(crate) fn drives_in_flight(&self) -> usize {
        self.slots
            .borrow()
            .iter()
            .filter(|(slot, _)| matches!(slot, Slot::Drive { .. }))
            .count()
    }
}

/// A ring that does what is left of a request's end when its thread enters the kernel: nothing interrupts the
/// thread on another processor's behalf, which in a virtual machine takes longer than a fast drive's answer.
/// Kernels before 6.1 do not know that.
fn build() -> io::Result<IoUring> {
    let deferred = IoUring::builder()
        .setup_clamp()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .build(ENTRIES);
    match deferred {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().setup_clamp().build(ENTRIES)
        }
        result => result,
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

/// Translates the result of a transfer of `len` bytes.
///
/// # Errors
/// The system's error, or that it moved fewer.
pub fn moved(result: i32, len: u32) -> Result<(), DriveError> {
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
