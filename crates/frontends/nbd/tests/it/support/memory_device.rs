//! A volume in memory with fault injection, whose operations complete on a thread of its own.
//! Shared by the tests of several protocols, none of which uses all of it.

use block::{
    AllocationState, BlockDevice, Completion, ErrorKind, Geometry, IoBuf, IoError, Op, OpFlags,
    OpKind, StatusExtent,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

/// Allocation unit, in bytes.
const UNIT: u64 = 4096;

/// An executed operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    pub kind: OpKind,
    pub flags: OpFlags,
    pub offset: u64,
    pub len: u64,
}

struct State {
    bytes: Vec<u8>,
    allocated: BTreeSet<u64>,
    geometry: Geometry,
    gone: bool,
    fault: Option<(OpKind, ErrorKind)>,
    /// Maximum operations in flight; more are rejected.
    limit: usize,
    given_back: usize,
    waiting: Vec<Op>,
    most_in_flight: usize,
    /// Operations do not complete while this is set, except for the given number.
    held: bool,
    excepted: usize,
    backwards: bool,
    seen: Vec<Seen>,
    listeners: HashMap<u64, Waker>,
    bases: Vec<(String, u32)>,
    closed: bool,
}

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

/// The device; its thread stops with it.
pub struct MemoryDevice {
    inner: Arc<Inner>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl MemoryDevice {
    /// A volume of `size` bytes.
    pub fn new(size: u64, lba_size: u32) -> Arc<Self> {
        let inner = Arc::new(Inner {
            state: Mutex::new(State {
                bytes: vec![0; size as usize],
                allocated: BTreeSet::new(),
                geometry: Geometry {
                    size,
                    lba_size,
                    block_size: 4096,
                    read_only: false,
                    serial: "memory".to_owned(),
                },
                gone: false,
                fault: None,
                limit: usize::MAX,
                given_back: 0,
                waiting: Vec::new(),
                most_in_flight: 0,
                held: false,
                excepted: 0,
                backwards: false,
                seen: Vec::new(),
                listeners: HashMap::new(),
                bases: Vec::new(),
                closed: false,
            }),
            changed: Condvar::new(),
        });
        let worker = inner.clone();
        let thread = std::thread::spawn(move || worker.work());
        Arc::new(Self {
            inner,
            thread: Some(thread),
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = change(&mut self.inner.state.lock().unwrap());
        self.inner.changed.notify_all();
        value
    }

    fn announce(&self) {
        let listeners: Vec<Waker> =
            self.change(|state| state.listeners.drain().map(|l| l.1).collect());
        for waker in listeners {
            waker.wake();
        }
    }

    /// Fails subsequent operations of `kind`.
    pub fn fail(&self, kind: OpKind, error: ErrorKind) {
        self.change(|state| state.fault = Some((kind, error)));
    }

    /// Ends the failures.
    pub fn heal(&self) {
        self.change(|state| state.fault = None);
    }

    /// Rejects operations when `limit` are in flight.
    pub fn limit(&self, limit: usize) {
        self.change(|state| state.limit = limit);
    }

    /// Number of rejected operations.
    pub fn given_back(&self) -> usize {
        self.change(|state| state.given_back)
    }

    /// Sets the existing snapshots. Since number N every N-th unit has changed.
    pub fn set_bases(&self, bases: &[(&str, u32)]) {
        let bases = bases.iter().map(|(name, number)| ((*name).into(), *number));
        self.change(|state| state.bases = bases.collect());
    }

    /// Operations complete in reverse order.
    pub fn backwards(&self) {
        self.change(|state| state.backwards = true);
    }

    /// Operations wait until [`MemoryDevice::go_on`].
    pub fn hold(&self) {
        self.change(|state| state.held = true);
    }

    pub fn go_on(&self) {
        self.change(|state| state.held = false);
    }

    /// Lets one of the waiting operations complete.
    pub fn let_one_end(&self) {
        self.change(|state| state.excepted += 1);
    }

    /// Operations in flight.
    pub fn in_flight(&self) -> usize {
        self.change(|state| state.waiting.len())
    }

    /// Maximum number of operations in flight so far.
    pub fn most_in_flight(&self) -> usize {
        self.change(|state| state.most_in_flight)
    }

    /// Sets the serial number, by which some protocols identify a volume.
    pub fn set_serial(&self, serial: &str) {
        self.change(|state| state.geometry.serial = serial.to_owned());
    }

    pub fn read_only(&self) {
        self.change(|state| state.geometry.read_only = true);
    }

    pub fn resize(&self, size: u64) {
        self.change(|state| {
            state.bytes.resize(size as usize, 0);
            state.geometry.size = size;
        });
        self.announce();
    }

    /// Ends the volume.
    pub fn end(&self) {
        self.change(|state| state.gone = true);
        self.announce();
    }

    /// Operations executed since the last call.
    pub fn seen(&self) -> Vec<Seen> {
        self.change(|state| std::mem::take(&mut state.seen))
    }

    pub fn content(&self, offset: u64, len: usize) -> Vec<u8> {
        self.change(|state| state.bytes[offset as usize..offset as usize + len].to_vec())
    }
}

impl Drop for MemoryDevice {
    fn drop(&mut self) {
        self.change(|state| state.closed = true);
        // The last owner may be the worker itself, through an operation's sink.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            thread.join().unwrap();
        }
    }
}

impl BlockDevice for MemoryDevice {
    fn geometry(&self) -> Geometry {
        self.inner.state.lock().unwrap().geometry.clone()
    }

    fn submit(&self, op: Op) -> Result<(), Op> {
        self.change(|state| {
            if state.waiting.len() >= state.limit {
                state.given_back += 1;
                return Err(op);
            }
            state.waiting.push(op);
            state.most_in_flight = state.most_in_flight.max(state.waiting.len());
            Ok(())
        })
    }

    fn on_change(&self, listener: u64, waker: Waker) {
        self.change(|state| state.listeners.insert(listener, waker));
    }

    fn is_gone(&self) -> bool {
        self.inner.state.lock().unwrap().gone
    }

    fn bases(&self) -> Vec<(String, u32)> {
        self.inner.state.lock().unwrap().bases.clone()
    }
}

impl Inner {
    fn work(&self) {
        loop {
            let (completion, done) = {
                let mut state = self.state.lock().unwrap();
                while (state.waiting.is_empty() || state.held && state.excepted == 0)
                    && !state.closed
                {
                    state = self.changed.wait(state).unwrap();
                }
                state.excepted = state.excepted.saturating_sub(1);
                if state.closed {
                    return;
                }
                let op = if state.backwards {
                    state.waiting.pop().unwrap()
                } else {
                    state.waiting.remove(0)
                };
                state.carry_out(op)
            };
            self.changed.notify_all();
            done.complete(completion);
        }
    }
}

impl State {
    fn carry_out(&mut self, mut op: Op) -> (Completion, Arc<dyn block::CompletionSink>) {
        self.seen.push(Seen {
            kind: op.kind,
            flags: op.flags,
            offset: op.offset,
            len: op.len,
        });
        let mut extents = Vec::new();
        let result = self.check(&op).map(|()| {
            let (start, end) = (op.offset, op.offset + op.len);
            let range = start as usize..end as usize;
            match op.kind {
                OpKind::Read => op.buf.write(0, &self.bytes[range]),
                OpKind::Write => {
                    op.buf.read(0, &mut self.bytes[range]);
                    self.allocated.extend(start / UNIT..end.div_ceil(UNIT));
                }
                OpKind::Flush => {}
                OpKind::Discard | OpKind::WriteZeroes => {
                    let of: Vec<u64> = (self.allocated)
                        .range(start / UNIT..end.div_ceil(UNIT))
                        .copied()
                        .collect();
                    for unit in of {
                        let (from, to) = (start.max(unit * UNIT), end.min((unit + 1) * UNIT));
                        self.bytes[from as usize..to as usize].fill(0);
                        if to - from == UNIT && !op.flags.no_unmap {
                            self.allocated.remove(&unit);
                        }
                    }
                    if op.flags.no_unmap {
                        self.allocated.extend(start / UNIT..end.div_ceil(UNIT));
                    }
                }
                OpKind::Status => {
                    let states = (AllocationState::Data, AllocationState::Hole);
                    extents = runs(start, end, states, |unit| self.allocated.contains(&unit));
                }
                OpKind::Changed(number) => {
                    let states = (AllocationState::Changed, AllocationState::Same);
                    extents = runs(start, end, states, |unit| unit % u64::from(number) == 0);
                }
            }
        });
        let completion = Completion {
            tag: op.tag,
            result,
            buf: std::mem::replace(&mut op.buf, IoBuf::empty()),
            extents,
        };
        (completion, op.done)
    }

    fn check(&self, op: &Op) -> Result<(), IoError> {
        let lba = u64::from(self.geometry.lba_size);
        if self.gone {
            return Err(IoError::new(ErrorKind::Gone, ""));
        }
        if let Some((kind, error)) = self.fault
            && kind == op.kind
        {
            return Err(IoError::new(error, "as the test asked"));
        }
        let data = matches!(op.kind, OpKind::Read | OpKind::Write);
        if op.kind != OpKind::Flush
            && (!op.offset.is_multiple_of(lba)
                || !op.len.is_multiple_of(lba)
                || op.len == 0
                || op.offset + op.len > self.geometry.size
                || data && op.buf.len() as u64 != op.len)
        {
            return Err(IoError::new(ErrorKind::Invalid, format!("{op:?}")));
        }
        Ok(())
    }
}

fn runs(
    start: u64,
    end: u64,
    (yes, no): (AllocationState, AllocationState),
    is_yes: impl Fn(u64) -> bool,
) -> Vec<StatusExtent> {
    let mut extents: Vec<StatusExtent> = Vec::new();
    let mut at = start;
    while at < end {
        let next = ((at / UNIT + 1) * UNIT).min(end);
        let state = if is_yes(at / UNIT) { yes } else { no };
        match extents.last_mut() {
            Some(last) if last.state == state => last.len += next - at,
            _ => extents.push(StatusExtent {
                len: next - at,
                state,
            }),
        }
        at = next;
    }
    extents
}
