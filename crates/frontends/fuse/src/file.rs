//! A volume as a file: its size, its owner, and its operations on the way to the device.

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

/// When the device gave an operation back, it is asked again after this time at the latest.
const RETRY_NS: u64 = 1_000_000;

/// Who owns a file, and when it was last said to have changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub uid: u32,
    pub gid: u32,
    pub mode: u16,
    pub changed: SystemTime,
}

impl Owner {
    fn new(access: Access, read_only: bool) -> Self {
        // SAFETY: these calls only read and cannot fail.
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

/// Operations that the device gave back, in order.
#[derive(Default)]
struct Backlog {
    ops: VecDeque<Op>,
    /// A task submits them.
    pumped: bool,
    waker: Option<Waker>,
}

/// One volume.
pub(crate) struct File {
    pub number: u64,
    pub name: String,
    pub device: Arc<dyn BlockDevice>,
    /// Size of an LBA in bytes.
    pub lba: u64,
    pub read_only: bool,
    pub owner: Mutex<Owner>,
    /// File descriptors that are open.
    pub opened: AtomicUsize,
    /// The export has ended: long requests stop at their next step.
    pub ended: AtomicBool,
    pub flight: Arc<Flight>,
    pub ranges: Arc<Ranges>,
    /// How full the volume's pool is, once that was told.
    pub space: Mutex<Option<Space>>,
    size: AtomicU64,
    /// Bytes of it that hold data, once that was told; before, `u64::MAX`.
    stored: AtomicU64,
    remote: Remote,
    backlog: Mutex<Backlog>,
}

/// What is answered when an operation ends.
pub(crate) enum Answer {
    /// This part of the operation's memory.
    Data(ReplyData, Range<usize>),
    /// So many bytes were written.
    Written(ReplyWrite, u32),
    Empty(ReplyEmpty),
}

impl Answer {
    /// Answers after `result`; `buf` is the operation's memory.
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

/// A request that is one operation: answered where the operation ends.
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
            // The range is free before the caller can write there again.
            drop(held);
            answer.send(completion.result, &completion.buf);
            drop(permit);
        }
        self.file.wake_pump();
    }
}

/// What an operation does, without where its completion goes.
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

    /// The volume's size in bytes, as it is now.
    pub(crate) fn current_size(&self) -> u64 {
        let size = self.device.geometry().size;
        self.size.store(size, Ordering::Relaxed);
        size
    }

    /// Takes over who may do what.
    pub(crate) fn set_access(&self, access: Access) {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        *owner = Owner {
            changed: owner.changed,
            ..Owner::new(access, self.read_only)
        };
    }

    /// Takes over how many bytes hold data.
    pub(crate) fn note_stored(&self, bytes: u64) {
        self.stored.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of `size` that hold data, as far as that was told. It is never none: there are programs that do not read
    /// a file at all that has no blocks, and the figure is a moment old.
    pub(crate) fn stored(&self, size: u64) -> u64 {
        let stored = self.stored.load(Ordering::Relaxed);
        stored.max(u64::from(BLOCK)).min(size)
    }

    /// `offset..offset + len`, cut at the end of the volume.
    pub(crate) fn clip(&self, offset: u64, len: u64) -> Range<u64> {
        let end = offset.saturating_add(len);
        let mut size = self.size.load(Ordering::Relaxed);
        if end > size {
            size = self.current_size();
        }
        offset.min(size)..end.min(size)
    }

    /// The range of whole LBAs that holds `range`.
    pub(crate) fn whole(&self, range: &Range<u64>) -> Range<u64> {
        range.start / self.lba * self.lba..range.end.next_multiple_of(self.lba)
    }

    /// Runs a request that is a single operation.
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

    /// Runs a request of several steps on a loop. When the loop has ended, the reply that the
    /// future owns is dropped, which answers with an error.
    pub(crate) fn run<F: Future<Output = ()> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) {
        self.remote.spawn(move |_| make());
    }

    /// One step: the operation's memory, or its error.
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
            // Nobody is left to ask again: dropping the operations answers with an error.
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

    /// Submits what was given back, after completions, until nothing is left.
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
