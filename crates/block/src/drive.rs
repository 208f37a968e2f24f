//! A drive as the engine sees it: [`Drive`] is the device, [`DriveQueue`] one thread's way to it.

use crate::{DmaBuf, DriveError, Lent, Receiver, Sender, Shown, oneshot};
use std::rc::Rc;
use units::Coming;

/// Whether the medium turns, as far as the drive tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rotation {
    /// Solid state, or memory.
    Solid,
    /// A spinning disk.
    Spinning,
    /// The drive does not say.
    Unknown,
}

/// Properties of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveInfo {
    /// The text that opens this drive again, e.g. `file:/dev/nvme0n1`.
    pub spec: String,
    /// Size in bytes.
    pub size: u64,
    /// Logical sector in bytes: the alignment of every request.
    pub logical_sector: u32,
    /// Physical sector in bytes: the alignment that serves best.
    pub physical_sector: u32,
    /// Whether it spins.
    pub rotation: Rotation,
    /// Whether it has a volatile write cache, so that a flush matters.
    pub write_cache: bool,
    /// Whether what was written to it is still there in another process (memory is not).
    pub persistent: bool,
}

/// A device, opened; shared by all threads.
pub trait Drive: Send + Sync {
    /// Its properties.
    fn info(&self) -> DriveInfo;
}

/// The function of a request to a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveIoKind {
    /// Fill the buffer.
    Read,
    /// Write the buffer.
    Write,
    /// Make every write that completed before durable.
    Flush,
    /// The range's content is not needed any longer; it may read as anything afterwards.
    Discard,
}

/// Completion of a request: its buffer and the result.
pub type DriveOutcome = (Option<DmaBuf>, Result<(), DriveError>);

/// One request to a drive. It owns its buffer until `done` gives it back.
pub struct DriveIo {
    /// The function.
    pub kind: DriveIoKind,
    /// First byte on the drive, a multiple of the logical sector.
    pub offset: u64,
    /// Length in bytes, a multiple of the logical sector; the buffer's for reads and writes.
    pub len: u64,
    /// The memory of a read (the only handle on it) or write; `None` for the others.
    pub buf: Option<DmaBuf>,
    /// Told when the request has ended. Dropped without a word when the drive is gone.
    pub done: Sender<DriveOutcome>,
}

/// One thread's queue to one drive.
pub trait DriveQueue {
    /// Takes a request. Every error comes through `io.done`.
    fn submit(&self, io: DriveIo);

    /// Requests taken and not ended.
    fn in_flight(&self) -> usize;

    /// Whether the drive has its data in this process's memory, so that the following two mostly can.
    fn is_in_memory(&self) -> bool {
        false
    }

    /// Where the drive has the `len` bytes from `offset` (bytes) on, which will be read in place, for the processor to
    /// fetch them.
    fn coming(&self, _offset: u64, _len: usize) -> Coming {
        Coming::NOTHING
    }

    /// Shows `see` the `len` bytes from `offset` (bytes) on, where the drive has them in this process's
    /// memory in one piece: a read that has ended when this returns.
    /// False when it cannot, and then nothing was shown: [`DriveQueue::submit`] can always.
    fn read_in_place(&self, _offset: u64, _len: usize, _see: &mut dyn FnMut(Shown<'_>)) -> bool {
        false
    }

    /// Has `fill` write the `len` bytes from `offset` (bytes) on, in the same way. Other threads may see them late:
    /// call [`crate::settle`] before notifying them.
    fn write_in_place(&self, _offset: u64, _len: usize, _fill: &mut dyn FnMut(Lent<'_>)) -> bool {
        false
    }
}

/// The four requests as plain calls that can be awaited.
pub trait DriveQueueExt {
    /// Starts a request; the receiver ends with its outcome.
    fn start(
        &self,
        kind: DriveIoKind,
        offset: u64,
        len: u64,
        buf: Option<DmaBuf>,
    ) -> Receiver<DriveOutcome>;

    /// Reads `buf.len()` bytes at `offset` (bytes) and gives the buffer back.
    fn read(&self, offset: u64, buf: DmaBuf) -> impl Future<Output = Result<DmaBuf, DriveError>>;

    /// Writes `buf` at `offset` (bytes).
    fn write(&self, offset: u64, buf: DmaBuf) -> impl Future<Output = Result<(), DriveError>>;

    /// Makes every completed write durable.
    fn flush(&self) -> impl Future<Output = Result<(), DriveError>>;

    /// Forgets `len` bytes at `offset` (bytes).
    fn discard(&self, offset: u64, len: u64) -> impl Future<Output = Result<(), DriveError>>;
}

fn gone(outcome: Option<DriveOutcome>) -> DriveOutcome {
    outcome.unwrap_or((None, Err(DriveError::Gone)))
}

impl DriveQueueExt for Rc<dyn DriveQueue> {
    fn start(
        &self,
        kind: DriveIoKind,
        offset: u64,
        len: u64,
        buf: Option<DmaBuf>,
    ) -> Receiver<DriveOutcome> {
        let (done, wait) = oneshot();
        self.submit(DriveIo {
            kind,
            offset,
            len,
            buf,
            done,
        });
        wait
    }

    async fn read(&self, offset: u64, buf: DmaBuf) -> Result<DmaBuf, DriveError> {
        let wait = self.start(DriveIoKind::Read, offset, buf.len() as u64, Some(buf));
        let (buf, result) = gone(wait.await);
        result.and_then(|()| buf.ok_or(DriveError::Gone))
    }

    async fn write(&self, offset: u64, buf: DmaBuf) -> Result<(), DriveError> {
        gone(
            self.start(DriveIoKind::Write, offset, buf.len() as u64, Some(buf))
                .await,
        )
        .1
    }

    async fn flush(&self) -> Result<(), DriveError> {
        gone(self.start(DriveIoKind::Flush, 0, 0, None).await).1
    }

    async fn discard(&self, offset: u64, len: u64) -> Result<(), DriveError> {
        gone(self.start(DriveIoKind::Discard, offset, len, None).await).1
    }
}
