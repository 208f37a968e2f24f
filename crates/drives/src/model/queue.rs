//! One thread's queue to a modelled drive. The threads share the mechanism: a disk has one head.
//!
//! A request waits until the mechanism says that it has ended, and only then goes to the drive
//! beneath, whose own time comes on top.

use super::service::{Request, Service};
use crate::check::check;
use block::{DriveIo, DriveQueue};
use reactor::{Handle, Sleep};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A request's number is its port's number above these bits and the port's count below.
const PORT_SHIFT: u32 = 40;

/// State that the threads share.
pub(super) struct Mechanism(Mutex<State>);

struct State {
    service: Service,
    ports: BTreeMap<u64, Port>,
    next_port: u64,
    ended: Vec<u64>,
}

/// One queue, as the others see it.
#[derive(Default)]
struct Port {
    /// Its requests that have ended.
    ready: VecDeque<u64>,
    /// When it wakes by itself.
    sleeps_until_ns: u64,
    waker: Option<Waker>,
}

impl State {
    /// Lets time pass, gives each port what has ended, and wakes those that sleep too long.
    fn advance(&mut self, now_ns: u64) {
        let mut ended = std::mem::take(&mut self.ended);
        self.service.advance(now_ns, &mut ended);
        for id in ended.drain(..) {
            // A port that is gone has dropped its requests already.
            if let Some(port) = self.ports.get_mut(&(id >> PORT_SHIFT)) {
                port.ready.push_back(id);
            }
        }
        self.ended = ended;
        let next = self.service.next_ns().unwrap_or(u64::MAX);
        for port in self.ports.values_mut() {
            if (!port.ready.is_empty() || next < port.sleeps_until_ns)
                && let Some(waker) = port.waker.take()
            {
                waker.wake();
            }
        }
    }
}

impl Mechanism {
    pub(super) fn new(service: Service) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            service,
            ports: BTreeMap::new(),
            next_port: 0,
            ended: Vec::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct ModelQueue(Rc<Inner>);

struct Inner {
    handle: Handle,
    mechanism: Arc<Mechanism>,
    beneath: Rc<dyn DriveQueue>,
    port: u64,
    count: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, DriveIo>>,
    /// Whether a task waits for the mechanism.
    pumping: Cell<bool>,
    size: u64,
    sector: u32,
}

impl ModelQueue {
    pub(super) fn new(
        handle: &Handle,
        mechanism: Arc<Mechanism>,
        beneath: Rc<dyn DriveQueue>,
        size: u64,
        sector: u32,
    ) -> Self {
        let port = {
            let mut state = mechanism.lock();
            let port = state.next_port;
            state.next_port += 1;
            state.ports.insert(port, Port::default());
            port
        };
        Self(Rc::new(Inner {
            handle: handle.clone(),
            mechanism,
            beneath,
            port,
            count: Cell::new(0),
            waiting: RefCell::default(),
            pumping: Cell::new(false),
            size,
            sector,
        }))
    }
}

impl DriveQueue for ModelQueue {
    fn submit(&self, io: DriveIo) {
        let inner = &self.0;
        if let Err(error) = check(&io, inner.size, inner.sector) {
            io.done.send((io.buf, Err(error)));
            return;
        }
        let count = inner.count.get();
        inner.count.set(count + 1);
        let request = Request {
            id: inner.port << PORT_SHIFT | count,
            kind: io.kind,
            offset: io.offset,
            len: io.len,
            taken_ns: 0,
        };
        inner.waiting.borrow_mut().insert(request.id, io);
        let now = inner.handle.now_ns();
        {
            let mut state = inner.mechanism.lock();
            state.advance(now);
            state.service.submit(now, request);
            state.advance(now);
        }
        if !inner.pumping.replace(true) {
            inner.handle.spawn(pump(inner.clone()));
        }
    }

    fn in_flight(&self) -> usize {
        self.0.waiting.borrow().len() + self.0.beneath.in_flight()
    }
}

impl Inner {
    /// The requests of this queue that have ended, or when to look again.
    fn look(&self, context: &Context<'_>) -> Result<VecDeque<u64>, u64> {
        let mut state = self.mechanism.lock();
        state.advance(self.handle.now_ns());
        let next = state.service.next_ns().unwrap_or(u64::MAX);
        let port = state.ports.entry(self.port).or_default();
        if !port.ready.is_empty() {
            return Ok(std::mem::take(&mut port.ready));
        }
        port.sleeps_until_ns = next;
        port.waker = Some(context.waker().clone());
        Err(next)
    }

    fn poll_ended(
        &self,
        sleep: &mut Option<Sleep>,
        context: &mut Context<'_>,
    ) -> Poll<VecDeque<u64>> {
        loop {
            let next = match self.look(context) {
                Ok(ready) => return Poll::Ready(ready),
                Err(next) => next,
            };
            let timer = sleep.insert(self.handle.sleep_until(next));
            if Pin::new(timer).poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// Passes the requests that have ended to the underlying drive, until none is waiting.
async fn pump(inner: Rc<Inner>) {
    let mut sleep = None;
    while !inner.waiting.borrow().is_empty() {
        let ended = poll_fn(|context| inner.poll_ended(&mut sleep, context)).await;
        for id in ended {
            let io = inner.waiting.borrow_mut().remove(&id);
            if let Some(io) = io {
                inner.beneath.submit(io);
            }
        }
    }
    inner.pumping.set(false);
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.mechanism.lock().ports.remove(&self.port);
    }
}
