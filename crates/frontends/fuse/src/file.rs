//! A volume as a file: its size, ownership, and I/O on the device.

use crate::directory::BLOCK;
use crate::errors::errno;
use crate::flight::{Flight, Permit};
use crate::parameters::Access;
use crate::ranges::{Held, Ranges};
use block::{
    BlockDevice, Completion, CompletionQueue, CompletionSink, IoBuf, IoError, Op, OpFlags, OpKind,
    StatusExtent,
};
use fuser::{ReplyData, ReplyEmpty, ReplyWrite};
use reactor::{Budget, Handle, Remote, Space};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::SystemTime;

/// Maximum delay before an operation that the device did not accept is submitted again.
const RETRY_NS: u64 = 1_000_000;

/// Ownership of a file, and its last change time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub uid: u32,
    pub gid: u32,
    pub mode: u16,
    pub changed: SystemTime,
}

impl Owner {
    fn new(access: Access, read_only: bool) -> Self {
        // SAFETY: these calls only read process credentials and cannot fail.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        let mode = if read_only { 0o400 } else { 0o600 };
        Self {
            uid: access.uid.unwrap_or(uid),
            gid: access.gid.unwrap_or(gid),
            mode: access.mode.unwrap_or(mode),
            changed: SystemTime::now(),
        }
    }
}

/// Operations that the device did not accept, in order.
#[derive(Default)]
struct Backlog {
    ops: VecDeque<Op>,
    /// A task is resubmitting them.
    pumped: bool,
    waker: Option<Waker>,
}

/// A volume.
pub(crate) struct File {
    pub number: u64,
    pub name: String,
    pub device: Arc<dyn BlockDevice>,
    /// Logical block size in bytes.
    pub lba: u64,
    pub read_only: bool,
    pub owner: Mutex<Owner>,
    /// Number of open file descriptors.
    pub opened: AtomicUsize,
    /// The export has stopped: long requests abort at their next step.
    pub ended: AtomicBool,
    pub flight: Arc<Flight>,
    pub ranges: Arc<Ranges>,
    /// Fill level of the volume's pool, once known.
    pub space: Mutex<Option<Space>>,
    size: AtomicU64,
    /// Bytes of stored data, once known; `u64::MAX` before.
    stored: AtomicU64,
    remote: Remote,
    backlog: Mutex<Backlog>,
}

/// The reply at the completion of an operation.
pub(crate) enum Answer {
    /// This range of the operation's buffer.
    Data(ReplyData, Range<usize>),
    /// Number of bytes written.
    Written(ReplyWrite, u32),
    Empty(ReplyEmpty),
}

impl Answer {
    /// Replies with `result`; `buf` is the operation's buffer.
    pub(crate) fn send(self, result: Result<(), IoError>, buf: &IoBuf) {
        let error = result.err().map(|error| errno(error.kind));
        match (self, error) {
            (Self::Data(reply, range), None) => {
                reply.data(buf.as_bytes().map_or(&[], |bytes| &bytes[range]));
            }
            (Self::Written(reply, len), None) => reply.written(len),
            (Self::Empty(reply), None) => reply.ok(),
            (Self::Data(reply, _), Some(error)) => reply.error(error),
            (Self::Written(reply, _), Some(error)) => reply.error(error),
            (Self::Empty(reply), Some(error)) => reply.error(error),
        }
    }
}

/// A request of a single operation, answered at its completion.
struct Direct {
    file: Arc<File>,
    inner: Mutex<Option<(Answer, Option<Held>, Permit)>>,
}

impl CompletionSink for Direct {
    fn complete(&self, completion: Completion) {
        let inner = self
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((answer, held, permit)) = inner {
            // Release the range before the caller can write there again.
            drop(held);
            answer.send(completion.result, &completion.buf);
            drop(permit);
        }
        self.file.wake_pump();
    }
}

/// An operation without its completion target.
pub(crate) struct Plan {
    pub kind: OpKind,
    pub flags: OpFlags,
    pub range: Range<u64>,
    pub buf: IoBuf,
}

impl Plan {
    fn op(self, done: Arc<dyn CompletionSink>) -> Op {
        Op {
            tag: 0,
            kind: self.kind,
            flags: self.flags,
            offset: self.range.start,
            len: self.range.end - self.range.start,
            buf: self.buf,
            done,
        }
    }
}

impl File {
    pub(crate) fn new(
        number: u64,
        name: String,
        device: Arc<dyn BlockDevice>,
        remote: Remote,
        (access, memory): (Access, Budget),
    ) -> Self {
        let geometry = device.geometry();
        Self {
            number,
            name,
            device,
            lba: u64::from(geometry.lba_size),
            read_only: geometry.read_only,
            owner: Mutex::new(Owner::new(access, geometry.read_only)),
            opened: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            flight: Flight::new(memory),
            ranges: Arc::default(),
            space: Mutex::default(),
            size: AtomicU64::new(geometry.size),
            stored: AtomicU64::new(u64::MAX),
            remote,
            backlog: Mutex::default(),
        }
    }

    /// The volume's present size in bytes.
    pub(crate) fn current_size(&self) -> u64 {
        let size = self.device.geometry().size;
        self.size.store(size, Ordering::Relaxed);
        size
    }

    /// Changes ownership and mode.
    pub(crate) fn set_access(&self, access: Access) {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        *owner = Owner {
            changed: owner.changed,
            ..Owner::new(access, self.read_only)
        };
    }

    /// Updates the bytes of stored data.
    pub(crate) fn note_stored(&self, bytes: u64) {
        self.stored.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of `size` that are stored, as far as known. At least one block: some programs do not
    /// read files without blocks, and the value may be outdated.
    pub(crate) fn stored(&self, size: u64) -> u64 {
        let stored = self.stored.load(Ordering::Relaxed);
        stored.max(u64::from(BLOCK)).min(size)
    }

    /// `offset..offset + len`, clipped to the volume.
    pub(crate) fn clip(&self, offset: u64, len: u64) -> Range<u64> {
        let end = offset.saturating_add(len);
        let mut size = self.size.load(Ordering::Relaxed);
        if end > size {
            size = self.current_size();
        }
        offset.min(size)..end.min(size)
    }

    /// The smallest range of whole LBAs that contains `range`.
    pub(crate) fn whole(&self, range: &Range<u64>) -> Range<u64> {
        range.start / self.lba * self.lba..range.end.next_multiple_of(self.lba)
    }

    /// Runs a request of a single operation.
    pub(crate) fn direct(
        self: &Arc<Self>,
        plan: Plan,
        answer: Answer,
        held: Option<Held>,
        permit: Permit,
    ) {
        let done = Arc::new(Direct {
            file: self.clone(),
            inner: Mutex::new(Some((answer, held, permit))),
        });
        self.submit(plan.op(done));
    }

    /// Runs a request of several steps on a loop. If the loop has stopped, dropping the future
    /// drops its reply, which replies with an error.
    pub(crate) fn run<F: Future<Output = ()> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) {
        self.remote.spawn(move |_| make());
    }

    /// One step: returns the operation's buffer, or its error.
    pub(crate) async fn step(
        self: &Arc<Self>,
        plan: Plan,
    ) -> Result<(IoBuf, Vec<StatusExtent>), IoError> {
        let queue = CompletionQueue::new();
        self.submit(plan.op(queue.clone()));
        let completion = queue.next().await;
        self.wake_pump();
        completion
            .result
            .map(|()| (completion.buf, completion.extents))
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(self: &Arc<Self>, op: Op) {
        let op = {
            let mut backlog = self.backlog();
            if backlog.ops.is_empty() {
                op
            } else {
                backlog.ops.push_back(op);
                return;
            }
        };
        let Err(op) = self.device.submit(op) else {
            return;
        };
        let mut backlog = self.backlog();
        backlog.ops.push_back(op);
        let start = !std::mem::replace(&mut backlog.pumped, true);
        drop(backlog);
        let file = self.clone();
        if start && !self.remote.spawn(move |handle| file.pump(handle)) {
            // No retry will follow: dropping the operations replies with an error.
            let ops = std::mem::take(&mut *self.backlog());
            drop(ops);
        }
    }

    fn wake_pump(&self) {
        let waker = self.backlog().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Resubmits rejected operations after completions until none is left.
    async fn pump(self: Arc<Self>, handle: Handle) {
        loop {
            loop {
                let op = {
                    let mut backlog = self.backlog();
                    match backlog.ops.pop_front() {
                        Some(op) => op,
                        None => {
                            backlog.pumped = false;
                            return;
                        }
                    }
                };
                if let Err(op) = self.device.submit(op) {
                    self.backlog().ops.push_front(op);
                    break;
                }
            }
            let mut limit = handle.sleep(RETRY_NS);
            let mut first = true;
            poll_fn(|context| {
                if !std::mem::take(&mut first) {
                    return Poll::Ready(());
                }
                self.backlog().waker = Some(context.waker().clone());
                Pin::new(&mut limit).poll(context)
            })
            .await;
        }
    }
}
