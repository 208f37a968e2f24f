//! One thread's queue: requests become commands.

use super::command::{Command, Opcode, URING_CMD_IO, answer, range};
use super::namespace::Namespace;
use crate::check::check;
use block::{DmaBuf, DriveError, DriveIo, DriveIoKind, DriveOutcome, DriveQueue, Sender, oneshot};
use futures_util::future::join_all;
use io_uring::opcode::UringCmd80;
use reactor::{Ends, Handle, Meaning, RingFile};
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

/// Logical blocks of one deallocation at most.
const DEALLOCATED: u64 = 1 << 30;
/// Bytes of the memory that names a range.
const RANGE: usize = 4096;

#[derive(Clone)]
pub(super) struct NvmeQueue {
    handle: Handle,
    ends: Ends,
    /// Every request in flight holds a clone, which is how they are counted.
    file: Rc<RingFile>,
    namespace: Namespace,
    /// Bytes of a command at most, a multiple of the logical block.
    longest: u64,
}

impl NvmeQueue {
    pub fn new(
        handle: &Handle,
        node: Arc<dyn AsFd + Send + Sync>,
        ends: Ends,
        namespace: Namespace,
        longest: u64,
    ) -> io::Result<Self> {
        handle.prepare_side(ends)?;
        Ok(Self {
            handle: handle.clone(),
            ends,
            file: handle.ring_file(node)?,
            namespace,
            longest,
        })
    }

    /// Hands a command over whose data, if any, is the beginning of `buf`.
    fn command(&self, command: &Command, buf: Option<DmaBuf>, done: Sender<DriveOutcome>) {
        let registered = buf
            .as_ref()
            .and_then(|buf| self.handle.side_buffer(self.ends, buf));
        let entry = UringCmd80::new(self.file.descriptor(), URING_CMD_IO)
            .cmd(command.encode())
            .buf_index(registered)
            .build();
        let meaning = Meaning { of: answer, len: 0 };
        // SAFETY: the command names no other memory than `buf`'s.
        unsafe {
            self.handle
                .side_io(self.ends, &self.file, entry, buf, meaning, done);
        }
    }

    fn transfer(&self, opcode: Opcode, offset: u64, buf: DmaBuf, done: Sender<DriveOutcome>) {
        let (sector, len) = (u64::from(self.namespace.sector), buf.len() as u64);
        let (first, blocks) = (offset / sector, (len / sector) as u32);
        let data = (buf.as_raw() as u64, len as u32);
        let command = Command::transfer(opcode, self.namespace.id, first, blocks, data);
        self.command(&command, Some(buf), done);
    }

    /// A transfer that is longer than a command, in parts.
    async fn transfer_in_parts(self, opcode: Opcode, offset: u64, buf: DmaBuf) -> DriveOutcome {
        let longest = self.longest as usize;
        let parts = (0..buf.len()).step_by(longest).map(|at| {
            let (done, ended) = oneshot();
            let part = buf.slice(at, longest.min(buf.len() - at));
            self.transfer(opcode, offset + at as u64, part, done);
            ended
        });
        // Every part has ended before the memory is given back.
        let ends = join_all(parts).await;
        let result = ends.into_iter().try_for_each(|end| match end {
            Some((_, result)) => result,
            None => Err(DriveError::Gone),
        });
        (Some(buf), result)
    }

    async fn deallocate(self, offset: u64, len: u64) -> DriveOutcome {
        let sector = u64::from(self.namespace.sector);
        let (mut first, mut left) = (offset / sector, len / sector);
        while left > 0 {
            let blocks = left.min(DEALLOCATED);
            let mut memory = self.handle.dma().get(RANGE);
            let range = range(first, blocks as u32);
            memory[..range.len()].copy_from_slice(&range);
            let data = (memory.as_raw() as u64, range.len() as u32);
            let (done, ended) = oneshot();
            let command = Command::deallocate(self.namespace.id, data);
            self.command(&command, Some(memory), done);
            match ended.await {
                Some((_, Ok(()))) => {}
                Some((_, Err(error))) => return (None, Err(error)),
                None => return (None, Err(DriveError::Gone)),
            }
            (first, left) = (first + blocks, left - blocks);
        }
        (None, Ok(()))
    }

    /// Ends a request with the outcome of long work.
    fn spawn(
        &self,
        work: impl Future<Output = DriveOutcome> + 'static,
        done: Sender<DriveOutcome>,
    ) {
        self.handle.spawn(async move { done.send(work.await) });
    }
}

impl DriveQueue for NvmeQueue {
    fn submit(&self, mut io: DriveIo) {
        if let Err(error) = check(&io, self.namespace.size, self.namespace.sector) {
            io.done.send((io.buf, Err(error)));
            return;
        }
        let (offset, len, done) = (io.offset, io.len, io.done);
        let opcode = match io.kind {
            DriveIoKind::Read => Opcode::Read,
            DriveIoKind::Write => Opcode::Write,
            DriveIoKind::Flush => {
                let command = Command::plain(Opcode::Flush, self.namespace.id);
                return self.command(&command, None, done);
            }
            // A drive that cannot deallocate keeps the data, which a discard allows.
            DriveIoKind::Discard if !self.namespace.deallocates => {
                return done.send((None, Ok(())));
            }
            DriveIoKind::Discard => return self.spawn(self.clone().deallocate(offset, len), done),
        };
        match io.buf.take() {
            None => done.send((None, Err(DriveError::Bounds))),
            Some(buf) if len <= self.longest => self.transfer(opcode, offset, buf, done),
            Some(buf) => {
                let parts = self.clone().transfer_in_parts(opcode, offset, buf);
                self.spawn(parts, done);
            }
        }
    }

    fn in_flight(&self) -> usize {
        Rc::strong_count(&self.file) - 1
    }
}
