//! A ring beside the loop's own, for what that cannot carry: commands that a drive takes as they are, whose
//! entries are longer, and transfers whose completions are polled.

use crate::{Handle, RingFile};
use block::{DmaBuf, DmaPool, DriveError, DriveOutcome, Sender};
use io_uring::{IoUring, cqueue::Entry32, squeue::Entry128, types};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::RawFd;
use std::rc::Rc;

/// Requests in the kernel at a time; more wait in a queue here.
const ENTRIES: u32 = 256;
/// Requests that are handed to the kernel without waiting for more.
const TOGETHER: usize = 8;
/// Times that a request is handed over before what asks for another try is its end.
const TRIES: u8 = 5;

/// Bytes of a registered buffer. Kernels before 6.7 refuse a command whose whole buffer has more segments than the
/// drive takes, however short the command is.
const BUFFER: usize = 256 << 10;

/// How a loop learns that requests have ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// The drive interrupts.
    Told,
    /// The loop looks, as long as requests are in progress.
    Polled,
}

/// Translates a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// How the request ended.
    Ended(Result<(), DriveError>),
    /// The drive would take it another time. What it says at the last try counts as `EIO`.
    Again,
}

/// Translates a request's result: by its function, from the result and the number of bytes to move.
#[derive(Clone, Copy)]
pub struct Meaning {
    /// Reads the result.
    pub of: fn(i32, u32) -> Answer,
    /// Bytes that the request has to move.
    pub len: u32,
}

/// A request in the kernel, or on its way there.
struct Request {
    done: Sender<DriveOutcome>,
    buf: Option<DmaBuf>,
    meaning: Meaning,
    /// To be handed over again.
    entry: Entry128,
    tries: u8,
    /// Held so that the descriptor stays open.
    file: Rc<RingFile>,
}

pub(crate) struct SideRing {
    ring: RefCell<IoUring<Entry128, Entry32>>,
    ends: Ends,
    requests: RefCell<Vec<Option<Request>>>,
    free: RefCell<Vec<u32>>,
    waiting: RefCell<VecDeque<Entry128>>,
    in_kernel: Cell<u32>,
    /// Addresses of the memory that is registered, in buffers of [`BUFFER`]; empty when none is.
    registered: Range<usize>,
    /// Keeps that memory.
    _dma: DmaPool,
}

impl SideRing {
    /// A ring whose completions are signalled by `event`, the loop's event descriptor.
    pub(crate) fn new(ends: Ends, dma: &DmaPool, event: RawFd) -> io::Result<Self> {
        let mut builder = IoUring::<Entry128, Entry32>::builder();
        builder.setup_clamp();
        if ends == Ends::Polled {
            builder.setup_iopoll();
        }
        let ring = builder.build(ENTRIES)?;
        if ends == Ends::Told {
            ring.submitter().register_eventfd(event)?;
        }
        let registered = dma.arena().filter(|(start, len)| {
            let buffers: Vec<_> = (0..*len)
                .step_by(BUFFER)
                .map(|at| libc::iovec {
                    iov_base: start.wrapping_add(at).cast(),
                    iov_len: BUFFER.min(len - at),
                })
                .collect();
            // SAFETY: this ring holds the pool that the memory belongs to.
            unsafe { ring.submitter().register_buffers(&buffers) }.is_ok()
        });
        Ok(Self {
            ring: RefCell::new(ring),
            ends,
            requests: RefCell::default(),
            free: RefCell::default(),
            waiting: RefCell::default(),
            in_kernel: Cell::new(0),
            registered: registered
                .map_or(0..0, |(start, len)| start as usize..start as usize + len),
            _dma: dma.clone(),
        })
    }

    /// Number of the registered buffer that `buf` is in.
    pub(crate) fn registered_buffer(&self, buf: &DmaBuf) -> Option<u16> {
        let start = buf.as_raw() as usize;
        if !self.registered.contains(&start) || start + buf.len() > self.registered.end {
            return None;
        }
        let at = start - self.registered.start;
        let (first, last) = (at / BUFFER, (at + buf.len() - 1) / BUFFER);
        (first == last).then_some(first as u16)
    }

    /// Starts a request, or lets it wait for its turn.
    pub(crate) fn start(
        &self,
        entry: Entry128,
        file: Rc<RingFile>,
        buf: Option<DmaBuf>,
        meaning: Meaning,
        done: Sender<DriveOutcome>,
    ) {
        let mut requests = self.requests.borrow_mut();
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            requests.push(None);
            requests.len() as u32 - 1
        });
        let entry = entry.user_data(u64::from(index));
        requests[index as usize] = Some(Request {
            done,
            buf,
            meaning,
            entry: entry.clone(),
            tries: 1,
            file,
        });
        drop(requests);
        self.waiting.borrow_mut().push_back(entry);
        self.push_waiting();
    }

    fn push_waiting(&self) {
        let mut ring = self.ring.borrow_mut();
        while self.in_kernel.get() < ENTRIES {
            let Some(entry) = self.waiting.borrow_mut().pop_front() else {
                break;
            };
            // SAFETY: the memory that the entry names is owned by its request until it ends.
            while unsafe { ring.submission().push(&entry) }.is_err() {
                // A full queue empties by being submitted.
                if ring.submit().is_err() {
                    return self.waiting.borrow_mut().push_front(entry);
                }
            }
            self.in_kernel.set(self.in_kernel.get() + 1);
        }
        if ring.submission().len() >= TOGETHER {
            // What the kernel does not take now, the loop hands over.
            let _ = ring.submit();
        }
    }

    /// Hands what is queued to the kernel, and has it look for ends that are not told. True when there may be such.
    pub(crate) fn enter(&self) -> io::Result<bool> {
        let polls = self.ends == Ends::Polled && self.in_kernel.get() > 0;
        let mut ring = self.ring.borrow_mut();
        if !polls && ring.submission().is_empty() {
            return Ok(false);
        }
        // For a ring whose ends are polled this looks for them, too.
        match ring.submit() {
            Err(error)
                if !matches!(
                    error.raw_os_error(),
                    Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)
                ) =>
            {
                Err(error)
            }
            _ => Ok(polls),
        }
    }

    /// Ends what the kernel has ended.
    pub(crate) fn reap(&self) {
        loop {
            let next = self.ring.borrow_mut().completion().next();
            let Some(entry) = next else { break };
            let index = entry.user_data() as u32;
            self.in_kernel.set(self.in_kernel.get() - 1);
            let Some(mut request) = self.requests.borrow_mut()[index as usize].take() else {
                continue;
            };
            let meaning = request.meaning;
            let result = match (meaning.of)(entry.result(), meaning.len) {
                Answer::Ended(result) => result,
                Answer::Again if request.tries < TRIES => {
                    request.tries += 1;
                    self.waiting.borrow_mut().push_back(request.entry.clone());
                    self.requests.borrow_mut()[index as usize] = Some(request);
                    continue;
                }
                Answer::Again => Err(DriveError::Os(libc::EIO)),
            };
            self.free.borrow_mut().push(index);
            drop(request.file);
            request.done.send((request.buf, result));
        }
        if !self.waiting.borrow().is_empty() {
            self.push_waiting();
        }
    }

    /// Whether it has requests whose memory the kernel may write to.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_kernel.get() > 0
    }
}

/// A loop's side rings, each made when the first drive asks for it.
#[derive(Default)]
pub(crate) struct Sides {
    told: OnceCell<SideRing>,
    polled: OnceCell<SideRing>,
}

impl Sides {
    fn of(&self, ends: Ends) -> &OnceCell<SideRing> {
        match ends {
            Ends::Told => &self.told,
            Ends::Polled => &self.polled,
        }
    }

    fn all(&self) -> impl Iterator<Item = &SideRing> {
        [&self.told, &self.polled]
            .into_iter()
            .filter_map(OnceCell::get)
    }

    /// Whether the kernel has requests of theirs.
    pub(crate) fn is_busy(&self) -> bool {
        self.all().any(SideRing::is_busy)
    }

    /// Submits queued requests to the kernel. True if the caller has to poll, since there is no notification.
    pub(crate) fn enter(&self) -> io::Result<bool> {
        let mut polls = false;
        for ring in self.all() {
            polls |= ring.enter()?;
        }
        Ok(polls)
    }

    /// Ends what the kernel has ended.
    pub(crate) fn reap(&self) {
        self.all().for_each(SideRing::reap);
    }
}

impl Handle {
    /// Makes this thread's side ring for requests whose ends are learned in this way, if there is none yet.
    ///
    /// # Errors
    /// `Unsupported` on a loop without a ring, or what the kernel says: before 5.19 it knows no such rings.
    pub fn prepare_side(&self, ends: Ends) -> io::Result<()> {
        if self.0.ring.is_none() {
            let text = "a simulated loop has no io_uring: use a drive of kind ram, null or model over them";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let side = self.0.sides.of(ends);
        if side.get().is_none() {
            let ring = SideRing::new(ends, self.dma(), self.0.inbox.event_fd())?;
            // It was empty a moment ago, and the loop does not leave its thread.
            let _ = side.set(ring);
        }
        Ok(())
    }

    /// Number of the buffer that is registered with a side ring and that all of `buf` is in, if it does.
    pub fn side_buffer(&self, ends: Ends, buf: &DmaBuf) -> Option<u16> {
        self.0.sides.of(ends).get()?.registered_buffer(buf)
    }

    /// Starts a request on a side ring that was prepared; without that, `done` is dropped. `entry` names
    /// [`RingFile::descriptor`]. Until it ends it holds a handle on `file`.
    ///
    /// # Safety
    /// The memory that `entry` names, if any, is within `buf`.
    pub unsafe fn side_io(
        &self,
        ends: Ends,
        file: &Rc<RingFile>,
        entry: Entry128,
        buf: Option<DmaBuf>,
        meaning: Meaning,
        done: Sender<DriveOutcome>,
    ) {
        if let Some(side) = self.0.sides.of(ends).get() {
            side.start(entry, file.clone(), buf, meaning, done);
        }
    }
}

impl RingFile {
    /// The file as a request of a side ring has to name it.
    pub fn descriptor(&self) -> types::Fd {
        types::Fd(self.raw())
    }
}
