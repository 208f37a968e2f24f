//! The loop itself, on a thread of its own.

use crate::cores::keep_to;
use crate::executor::Clock;
use crate::remote::Inbox;
use crate::ring::Ring;
use crate::waiting::begin_loop;
use crate::{Handle, Remote};
use block::DmaPool;
use std::io;
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Instant;

/// Rounds of ready tasks before the kernel is examined again.
const TURNS: usize = 16;
/// The same while it has requests of drives, or is to get some: tasks that look for others' requests are
/// always ready, and these would wait for them.
const TURNS_BUSY: usize = 4;
/// Memory for transfers that a loop registers with the kernel, in bytes: the data of 4,096 small
/// writes, or half of that and the large ones of a checkpoint.
const BUFFERS: usize = 32 << 20;

/// Nanoseconds since the first loop of the process was made: all its loops show the same time.
struct Monotonic(Instant);

impl Monotonic {
    fn new() -> Self {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        Self(*ORIGIN.get_or_init(Instant::now))
    }
}

impl Clock for Monotonic {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// A loop with io_uring beneath it.
pub struct Reactor {
    handle: Handle,
}

impl Reactor {
    /// A loop for the calling thread. `seed` begins its random sequence.
    ///
    /// # Errors
    /// When the kernel gives no io_uring: too old, forbidden, or out of locked memory.
    pub fn new(seed: u64) -> io::Result<Self> {
        Self::with_buffers(seed, DmaPool::with_arena(BUFFERS))
    }

    /// As [`Reactor::new`], with `dma` for the loop's buffers. An arena of it is registered with
    /// the kernel.
    ///
    /// # Errors
    /// As [`Reactor::new`].
    pub fn with_buffers(seed: u64, dma: DmaPool) -> io::Result<Self> {
        let clock = Box::new(Monotonic::new());
        let ring = Ring::new(&dma)?;
        Ok(Self {
            handle: Handle::new(clock, seed, Inbox::new()?, Some(ring), dma),
        })
    }

    /// The loop, for its tasks.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs until [`Remote::stop`], then drops what tasks are left.
    ///
    /// # Errors
    /// When the ring fails in a way that no single request explains.
    pub fn run(self) -> io::Result<()> {
        let result = self.turn_until(|| false);
        self.wind_down();
        result
    }

    /// Runs `future` and the loop until it ends. For tests and tools.
    ///
    /// # Errors
    /// As [`Reactor::run`].
    pub fn block_on<T: 'static>(self, future: impl Future<Output = T> + 'static) -> io::Result<T> {
        let result = std::rc::Rc::new(std::cell::RefCell::new(None));
        let target = result.clone();
        self.handle.spawn(async move {
            let value = future.await;
            *target.borrow_mut() = Some(value);
        });
        self.turn_until(|| result.borrow().is_some())?;
        self.wind_down();
        let value = result.borrow_mut().take();
        value.ok_or_else(|| io::Error::other("the loop was stopped before the task ended"))
    }

    fn turn_until(&self, ended: impl Fn() -> bool) -> io::Result<()> {
        let inner = &self.handle.0;
        let ring = inner.ring.as_ref().expect("made with a ring");
        while !inner.inbox.is_stopping() {
            self.handle.fire_timers();
            let is_busy = ring.is_busy() || inner.sides.is_busy();
            let turns = if is_busy { TURNS_BUSY } else { TURNS };
            self.handle.run_until(turns, || ring.is_awaited());
            if ended() {
                break;
            }
            self.wait_once(ring)?;
        }
        Ok(())
    }

    fn wait_once(&self, ring: &Ring) -> io::Result<()> {
        let (inbox, sides) = (&self.handle.0.inbox, &self.handle.0.sides);
        ring.arm_event(inbox.event_fd());
        let polls = sides.enter()?;
        let wait = !polls && inbox.may_sleep();
        let from_ns = self.handle.now_ns();
        let timeout = self
            .handle
            .next_timer_ns()
            .map(|at| at.saturating_sub(from_ns));
        ring.enter(wait, timeout)?;
        inbox.awake();
        if wait {
            let (now_ns, slept_ns) = (self.handle.now_ns(), &self.handle.0.slept_ns);
            slept_ns.set(slept_ns.get() + (now_ns - from_ns));
            self.handle.0.awake_ns.set(now_ns);
        }
        ring.reap(|| {
            let mut count = 0u64;
            // SAFETY: eight bytes from the loop's own event descriptor, which does not block.
            unsafe { libc::read(inbox.event_fd(), (&raw mut count).cast(), 8) };
        });
        sides.reap();
        Ok(())
    }

    /// Ends the tasks, then waits for the requests whose memory the kernel still holds.
    fn wind_down(&self) {
        // Nothing may come in behind the last job that is dropped.
        self.handle.0.inbox.stop();
        self.handle.drop_tasks();
        let ring = self.handle.0.ring.as_ref().expect("made with a ring");
        let sides = &self.handle.0.sides;
        let deadline = Instant::now() + std::time::Duration::from_secs(30);
        while (ring.drives_in_flight() > 0 || sides.is_busy()) && Instant::now() < deadline {
            let polls = sides.enter();
            let wait_ns = if sides.is_busy() {
                1_000_000
            } else {
                100_000_000
            };
            if polls.is_err() || ring.enter(true, Some(wait_ns)).is_err() {
                break;
            }
            ring.reap(|| {});
            sides.reap();
        }
    }
}

/// A loop on a thread of its own.
pub struct ReactorThread {
    remote: Remote,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl ReactorThread {
    /// Starts a thread called `name` (at most 15 bytes) with a loop on it.
    ///
    /// # Errors
    /// When the system has no thread or ring left.
    pub fn start(name: &str, seed: u64) -> io::Result<Self> {
        Self::start_on(name, seed, Vec::new())
    }

    /// As [`ReactorThread::start`], on these cores alone; none are all that there are. Its memory lies near them.
    ///
    /// # Errors
    /// As [`ReactorThread::start`], and when it may not run there.
    pub fn start_on(name: &str, seed: u64, cores: Vec<usize>) -> io::Result<Self> {
        Self::start_with(name, seed, cores, || DmaPool::with_arena(BUFFERS))
    }

    /// As [`ReactorThread::start`], for work that asks no drive: it has no buffers for that.
    ///
    /// # Errors
    /// As [`ReactorThread::start`].
    pub fn start_aside(name: &str, seed: u64) -> io::Result<Self> {
        Self::start_with(name, seed, Vec::new(), DmaPool::new)
    }

    fn start_with(
        name: &str,
        seed: u64,
        cores: Vec<usize>,
        buffers: impl FnOnce() -> DmaPool + Send + 'static,
    ) -> io::Result<Self> {
        let (give, take) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                begin_loop();
                let reactor =
                    match keep_to(&cores).and_then(|()| Reactor::with_buffers(seed, buffers())) {
                        Ok(reactor) => reactor,
                        Err(error) => {
                            let copy = io::Error::new(error.kind(), error.to_string());
                            let _ = give.send(Err(copy));
                            return Err(error);
                        }
                    };
                let _ = give.send(Ok(reactor.handle().remote()));
                reactor.run()
            })?;
        let remote = take
            .recv()
            .map_err(|_| io::Error::other("the loop's thread ended"))??;
        Ok(Self {
            remote,
            thread: Some(thread),
        })
    }

    /// The way to reach it.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }
}

impl Drop for ReactorThread {
    fn drop(&mut self) {
        self.remote.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
