//! A test volume: a file served by a thread of its own in arbitrary order.

use block::{BlockDevice, Completion, ErrorKind, Geometry, IoBuf, IoError, Op, OpFlags, OpKind};
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

/// Statistics.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub durable_writes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub zeroes: u64,
    pub refused: u64,
}

#[derive(Default)]
struct State {
    waiting: Vec<Op>,
    held: bool,
    closed: bool,
    gone: bool,
    fail_with: Option<ErrorKind>,
    counts: Counts,
    listeners: HashMap<u64, Waker>,
}

struct Shared {
    file: File,
    geometry: Mutex<Geometry>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The volume.
pub struct TestDevice {
    shared: Arc<Shared>,
    /// Maximum operations in flight.
    limit: usize,
    /// Complete within `submit`.
    inline: bool,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// A file in memory.
pub fn memory_file(size: u64) -> File {
    // SAFETY: a system call with a constant name.
    let fd = unsafe { libc::memfd_create(c"volume".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "no memory file");
    // SAFETY: a new descriptor.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(size).unwrap();
    file
}

impl TestDevice {
    pub fn new(file: File, lba_size: u32, limit: usize, inline: bool) -> Self {
        let geometry = Geometry {
            size: file.metadata().unwrap().len(),
            lba_size,
            block_size: 4096,
            read_only: false,
            serial: "test-volume-0001".into(),
        };
        let shared = Arc::new(Shared {
            file,
            geometry: Mutex::new(geometry),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let for_thread = shared.clone();
        Self {
            shared,
            limit,
            inline,
            thread: Some(std::thread::spawn(move || for_thread.work())),
        }
    }

    pub fn counts(&self) -> Counts {
        self.shared.state.lock().unwrap().counts
    }

    /// Delays all completions until it is released.
    pub fn hold(&self, held: bool) {
        self.shared.state.lock().unwrap().held = held;
        self.shared.changed.notify_all();
    }

    /// Number of delayed operations.
    pub fn waiting(&self) -> usize {
        self.shared.state.lock().unwrap().waiting.len()
    }

    /// Number of these whose result is still needed.
    pub fn wanted(&self) -> usize {
        let state = self.shared.state.lock().unwrap();
        state
            .waiting
            .iter()
            .filter(|op| op.done.is_wanted())
            .count()
    }

    /// Fails all operations with this error.
    pub fn fail_with(&self, kind: Option<ErrorKind>) {
        self.shared.state.lock().unwrap().fail_with = kind;
    }

    pub fn set_read_only(&self) {
        self.shared.geometry.lock().unwrap().read_only = true;
    }

    pub fn resize(&self, size: u64) {
        self.shared.file.set_len(size).unwrap();
        self.shared.geometry.lock().unwrap().size = size;
        self.wake_listeners();
    }

    /// Ends the volume.
    pub fn end(&self) {
        self.shared.state.lock().unwrap().gone = true;
        self.wake_listeners();
    }

    fn wake_listeners(&self) {
        let listeners = std::mem::take(&mut self.shared.state.lock().unwrap().listeners);
        listeners.into_values().for_each(Waker::wake);
    }

    pub fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.shared.file.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let mut state = self.state.lock().unwrap();
            while !state.closed && (state.held || state.waiting.is_empty()) {
                state = self.changed.wait(state).unwrap();
            }
            if state.closed && (state.held || state.waiting.is_empty()) {
                return;
            }
            let mut batch = std::mem::take(&mut state.waiting);
            drop(state);
            // In reverse: the order must not matter.
            batch.reverse();
            for op in batch {
                self.complete(op);
            }
        }
    }

    fn complete(&self, op: Op) {
        let Op {
            tag,
            kind,
            flags,
            offset,
            len,
            mut buf,
            done,
        } = op;
        let failure = {
            let mut state = self.state.lock().unwrap();
            match done.is_wanted() {
                true => {
                    state.counts.add(kind, flags);
                    state.fail_with
                }
                false => Some(ErrorKind::Gone),
            }
        };
        let result = match failure {
            Some(kind) => Err(IoError::new(kind, "as the test wants it")),
            None => self.execute(kind, offset, len, &mut buf),
        };
        done.complete(Completion {
            tag,
            result,
            buf,
            extents: Vec::new(),
        });
    }

    fn execute(&self, kind: OpKind, offset: u64, len: u64, buf: &mut IoBuf) -> Result<(), IoError> {
        let failed = |error: std::io::Error| IoError::new(ErrorKind::Device, error.to_string());
        match kind {
            OpKind::Read => {
                let mut bytes = vec![0; buf.len()];
                self.file
                    .read_exact_at(&mut bytes, offset)
                    .map_err(failed)?;
                buf.write(0, &bytes);
            }
            OpKind::Write => {
                let mut bytes = vec![0; buf.len()];
                buf.read(0, &mut bytes);
                self.file.write_all_at(&bytes, offset).map_err(failed)?;
            }
            OpKind::Discard | OpKind::WriteZeroes => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let (offset, len) = (offset as i64, len as i64);
                // SAFETY: a system call on a descriptor owned by `file`.
                if unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, len) } != 0 {
                    return Err(failed(std::io::Error::last_os_error()));
                }
            }
            OpKind::Flush => self.file.sync_data().map_err(failed)?,
            OpKind::Status | OpKind::Changed(_) => {
                return Err(IoError::new(ErrorKind::Unsupported, "status"));
            }
        }
        Ok(())
    }
}

impl Counts {
    fn add(&mut self, kind: OpKind, flags: OpFlags) {
        self.durable_writes += u64::from(flags.fua);
        match kind {
            OpKind::Read => self.reads += 1,
            OpKind::Write => self.writes += 1,
            OpKind::Flush => self.flushes += 1,
            OpKind::Discard => self.discards += 1,
            OpKind::WriteZeroes => self.zeroes += 1,
            OpKind::Status | OpKind::Changed(_) => {}
        }
    }
}

impl BlockDevice for TestDevice {
    fn geometry(&self) -> Geometry {
        self.shared.geometry.lock().unwrap().clone()
    }

    fn submit(&self, op: Op) -> Result<(), Op> {
        if self.inline {
            self.shared.complete(op);
            return Ok(());
        }
        let mut state = self.shared.state.lock().unwrap();
        if state.waiting.len() >= self.limit {
            state.counts.refused += 1;
            return Err(op);
        }
        state.waiting.push(op);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    fn on_change(&self, listener: u64, waker: Waker) {
        let mut state = self.shared.state.lock().unwrap();
        state.listeners.insert(listener, waker);
    }

    fn is_gone(&self) -> bool {
        self.shared.state.lock().unwrap().gone
    }
}

impl Drop for TestDevice {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
