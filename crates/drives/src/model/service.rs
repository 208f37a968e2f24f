//! The interface of modelled devices to their driver, and the command queue that they share.

use block::DriveIoKind;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Commands that a device takes at a time, as SATA's native queue does; more wait in the host.
pub(super) const QUEUE_DEPTH: usize = 32;

/// A request without its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// The driver's number for it.
    pub id: u64,
    /// Its function.
    pub kind: DriveIoKind,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// When the device took it, in nanoseconds.
    pub taken_ns: u64,
}

impl Request {
    /// The byte after its last.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// The mechanics of a device. Times are nanoseconds of any clock that does not go back.
pub(super) trait Device: Send {
    /// Takes a command. At most [`QUEUE_DEPTH`] are inside at a time.
    fn take(&mut self, now_ns: u64, request: Request);

    /// Does what happens at `at_ns`, no later than [`Device::next_ns`], and adds the commands
    /// that have ended by then.
    fn happen(&mut self, at_ns: u64, ended: &mut Vec<u64>);

    /// When the next thing happens by itself. `None` when nothing is going on.
    fn next_ns(&self) -> Option<u64>;
}

/// A device behind its command queue.
pub(super) struct Service {
    device: Box<dyn Device>,
    host: VecDeque<Request>,
    inside: usize,
    now_ns: u64,
    /// Nanoseconds between a command's start and the next one's, at least.
    pace_ns: u64,
    /// When the next command may start.
    open_ns: u64,
}

impl Service {
    /// A device that takes at most a number of commands per second, if limited.
    pub(super) fn new(device: Box<dyn Device>, iops: Option<u64>) -> Self {
        Self {
            device,
            host: VecDeque::new(),
            inside: 0,
            now_ns: 0,
            pace_ns: iops.map_or(0, |iops| 1_000_000_000 / iops),
            open_ns: 0,
        }
    }

    /// Passes the device a request at `now_ns`, after [`Service::advance`] to that moment.
    pub(super) fn submit(&mut self, now_ns: u64, request: Request) {
        self.now_ns = self.now_ns.max(now_ns);
        self.host.push_back(request);
        self.fill();
    }

    fn fill(&mut self) {
        while self.inside < QUEUE_DEPTH
            && self.open_ns <= self.now_ns
            && let Some(mut request) = self.host.pop_front()
        {
            self.open_ns = self.now_ns + self.pace_ns;
            request.taken_ns = self.now_ns;
            self.inside += 1;
            self.device.take(self.now_ns, request);
        }
    }

    /// Lets time pass up to `now_ns`; adds the requests that have ended, in their order. A moment
    /// before the last one counts as the last one.
    pub(super) fn advance(&mut self, now_ns: u64, ended: &mut Vec<u64>) {
        while let Some(at) = self.next_ns()
            && at <= now_ns
        {
            self.now_ns = self.now_ns.max(at);
            if self.device.next_ns().is_some_and(|next| next <= at) {
                let before = ended.len();
                self.device.happen(at, ended);
                self.inside -= ended.len() - before;
            }
            self.fill();
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// When the next thing happens; `None` when nothing is going on.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let waits = !self.host.is_empty() && self.inside < QUEUE_DEPTH;
        let opens = waits.then_some(self.open_ns);
        [self.device.next_ns(), opens].into_iter().flatten().min()
    }
}

/// The wire between device and host, which carries one transfer at a time.
pub(super) struct Wire {
    /// Bytes a second.
    rate: u64,
    /// Its own time for each transfer.
    command_ns: u64,
    free_ns: u64,
    ending: BinaryHeap<Reverse<(u64, u64)>>,
}

/// Nanoseconds that `len` bytes take at `rate` bytes per second.
pub(super) fn transfer_ns(len: u64, rate: u64) -> u64 {
    (u128::from(len) * 1_000_000_000 / u128::from(rate)) as u64
}

impl Wire {
    pub(super) fn new(rate: u64, command_ns: u64) -> Self {
        Self {
            rate,
            command_ns,
            free_ns: 0,
            ending: BinaryHeap::new(),
        }
    }

    /// Carries `len` bytes of command `id` as soon as the wire is free, not before `ready_ns`.
    pub(super) fn carry(&mut self, ready_ns: u64, len: u64, id: u64) {
        let busy_ns = self.command_ns + transfer_ns(len, self.rate);
        let end = ready_ns.max(self.free_ns) + busy_ns;
        self.free_ns = end;
        self.ending.push(Reverse((end, id)));
    }

    /// Ends command `id` at `at_ns` without the wire.
    pub(super) fn end_at(&mut self, at_ns: u64, id: u64) {
        self.ending.push(Reverse((at_ns, id)));
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.ending.peek().map(|Reverse((at, _))| *at)
    }

    /// Adds the commands that have ended by `now_ns`.
    pub(super) fn take_ended(&mut self, now_ns: u64, ended: &mut Vec<u64>) {
        while let Some(Reverse((at, id))) = self.ending.peek().copied()
            && at <= now_ns
        {
            self.ending.pop();
            ended.push(id);
        }
    }
}
