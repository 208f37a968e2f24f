//! I/O of the daemon itself on a volume, with several operations in flight, as protocols do it.

use block::{BlockDevice, Completion, CompletionSink, IoBuf, IoError, Op, OpFlags, OpKind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Queue depth.
pub const IN_FLIGHT: usize = 32;
/// Maximum bytes per write-zeroes operation.
const ZEROES_MAX: u64 = 1 << 30;
/// Retry delay when the volume's queue is full.
const FULL_TIME: Duration = Duration::from_millis(1);

struct Ends(Sender<Completion>);

impl CompletionSink for Ends {
    fn complete(&self, completion: Completion) {
        // The receiver is gone after an earlier failure.
        let _ = self.0.send(completion);
    }
}

/// A volume or snapshot opened for I/O. All calls may block.
pub struct VolumeIo {
    device: Arc<dyn BlockDevice>,
    ends: Arc<Ends>,
    ended: Receiver<Completion>,
    in_flight: usize,
    failed: Option<IoError>,
}

impl VolumeIo {
    /// A volume without operations in flight.
    pub fn new(device: Arc<dyn BlockDevice>) -> Self {
        let (ends, ended) = channel();
        Self {
            device,
            ends: Arc::new(Ends(ends)),
            ended,
            in_flight: 0,
            failed: None,
        }
    }

    /// Waits for one completion and returns it; records a failure.
    fn wait(&mut self) -> Option<Completion> {
        let completion = self.ended.recv().ok()?;
        self.in_flight -= 1;
        if let Err(error) = &completion.result {
            self.failed.get_or_insert_with(|| error.clone());
        }
        Some(completion)
    }

    fn submit(&mut self, kind: OpKind, tag: u64, (offset, len): (u64, u64), buf: IoBuf) {
        let mut op = Op {
            tag,
            kind,
            flags: OpFlags::default(),
            offset,
            len,
            buf,
            done: self.ends.clone(),
        };
        loop {
            match self.device.submit(op) {
                Ok(()) => break,
                Err(back) => op = back,
            }
            std::thread::sleep(FULL_TIME);
        }
        self.in_flight += 1;
    }

    /// Waits until fewer than `most` operations are in flight.
    fn drain(&mut self, most: usize) -> Result<(), IoError> {
        while self.in_flight >= most && self.wait().is_some() {}
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Reads ranges, at most [`IN_FLIGHT`], given by offset and length in bytes.
    ///
    /// # Errors
    /// As the volume's.
    pub fn read(&mut self, ranges: &[(u64, usize)]) -> Result<Vec<Box<[u8]>>, IoError> {
        for (tag, (offset, len)) in ranges.iter().enumerate() {
            let buf = IoBuf::zeroed(*len);
            self.submit(OpKind::Read, tag as u64, (*offset, *len as u64), buf);
        }
        let mut read = vec![Box::default(); ranges.len()];
        while self.in_flight > 0 {
            let Some(completion) = self.wait() else { break };
            if let Some(bytes) = completion.buf.into_bytes() {
                read[completion.tag as usize] = bytes;
            }
        }
        self.drain(1)?;
        Ok(read)
    }

    /// Starts a write.
    ///
    /// # Errors
    /// When an earlier operation has failed.
    pub fn write(&mut self, offset: u64, bytes: Vec<u8>) -> Result<(), IoError> {
        self.drain(IN_FLIGHT)?;
        let len = bytes.len() as u64;
        let buf = IoBuf::from_bytes(bytes.into_boxed_slice());
        self.submit(OpKind::Write, 0, (offset, len), buf);
        Ok(())
    }

    /// Starts to zero a range.
    ///
    /// # Errors
    /// When an earlier operation has failed.
    pub fn write_zeroes(&mut self, offset: u64, len: u64) -> Result<(), IoError> {
        let end = offset + len;
        let mut at = offset;
        while at < end {
            self.drain(IN_FLIGHT)?;
            let part = (end - at).min(ZEROES_MAX);
            self.submit(OpKind::WriteZeroes, 0, (at, part), IoBuf::empty());
            at += part;
        }
        Ok(())
    }

    /// Waits for all operations and flushes.
    ///
    /// # Errors
    /// When a write or the flush has failed.
    pub fn flush(&mut self) -> Result<(), IoError> {
        self.drain(1)?;
        self.submit(OpKind::Flush, 0, (0, 0), IoBuf::empty());
        self.drain(1)
    }
}
