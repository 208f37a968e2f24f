//! Tasks of one thread.

use crate::remote::{Inbox, Job, Remote};
use crate::ring::Ring;
use crate::sidering::Sides;
use crate::timer::{Sleep, Timers};
use block::DmaPool;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// Where a thread's time comes from.
pub trait Clock {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now_ns(&self) -> u64;
}

/// Marks one task as ready; may be called from any thread.
struct TaskWaker {
    id: usize,
    queued: AtomicBool,
    inbox: Arc<Inbox>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.inbox.push_ready(self.id);
        }
    }
}

type BoxedFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    /// Taken out while it runs.
    body: Option<Body>,
    state: Arc<TaskWaker>,
}

/// What is polled, and with which waker.
// The future goes first when both are dropped: its drop may reach back into the loop.
struct Body {
    future: BoxedFuture,
    waker: Waker,
}

pub(crate) struct Inner {
    tasks: RefCell<Vec<Option<Task>>>,
    free: RefCell<Vec<usize>>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) timers: RefCell<Timers>,
    /// Of those whose time had come, for its memory.
    due: RefCell<Vec<Waker>>,
    clock: Box<dyn Clock>,
    /// Its last reading.
    seen_ns: Cell<u64>,
    /// When the loop slept last, the end of that.
    pub(crate) awake_ns: Cell<u64>,
    /// For how long it has slept, ever.
    pub(crate) slept_ns: Cell<u64>,
    random: Cell<u64>,
    pub(crate) ring: Option<Ring>,
    pub(crate) sides: Sides,
    dma: DmaPool,
    /// Rounds that are left before the kernel is asked; none after a task did much ([`Handle::yield_after_much`]).
    turns: Cell<usize>,
    /// Of a round that is over, for its memory.
    round: RefCell<Round>,
}

/// Tasks that run together.
#[derive(Default)]
struct Round {
    tasks: Vec<usize>,
    jobs: Vec<Job>,
}

/// Spreads a number over 64 bits: the output function of splitmix64.
pub fn mix(state: u64) -> u64 {
    let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A thread's loop, as its tasks see it. Clones are the same loop; it does not leave its thread.
#[derive(Clone)]
pub struct Handle(pub(crate) Rc<Inner>);

impl Handle {
    pub(crate) fn new(
        clock: Box<dyn Clock>,
        seed: u64,
        inbox: Arc<Inbox>,
        ring: Option<Ring>,
        dma: DmaPool,
    ) -> Self {
        Self(Rc::new(Inner {
            tasks: RefCell::default(),
            free: RefCell::default(),
            inbox,
            timers: RefCell::default(),
            due: RefCell::default(),
            clock,
            seen_ns: Cell::new(0),
            awake_ns: Cell::new(0),
            slept_ns: Cell::new(0),
            random: Cell::new(seed),
            ring,
            sides: Sides::default(),
            dma,
            turns: Cell::new(0),
            round: RefCell::default(),
        }))
    }

    /// A loop without a kernel beneath it, for simulation and tests: time is `clock`'s and the
    /// caller runs it with [`Handle::run_ready`] and [`Handle::fire_timers`].
    ///
    /// # Errors
    /// When the system has no event descriptor left.
    pub fn simulated(clock: Box<dyn Clock>, seed: u64) -> std::io::Result<Self> {
        Ok(Self::new(clock, seed, Inbox::new()?, None, DmaPool::new()))
    }

    /// Nanoseconds since a fixed moment.
    pub fn now_ns(&self) -> u64 {
        let now_ns = self.0.clock.now_ns();
        self.0.seen_ns.set(now_ns);
        now_ns
    }

    /// What [`Handle::now_ns`] was when anything on this thread asked last, which the loop itself does in each of its
    /// turns: for what need not be exact, as a look at the clock takes as long as a part of an operation.
    pub fn seen_ns(&self) -> u64 {
        self.0.seen_ns.get()
    }

    /// Since when the loop has had something to do all the time, on the clock of [`Handle::now_ns`]. A loop without a kernel
    /// takes no time for what it does: it has always just begun.
    pub fn awake_ns(&self) -> u64 {
        match self.0.ring {
            Some(_) => self.0.awake_ns.get(),
            None => self.seen_ns(),
        }
    }

    /// For how long the loop has slept, ever, as it had nothing to do, in nanoseconds. A loop without a kernel takes no time
    /// for what it does: it has slept ever since its clock began.
    pub fn slept_ns(&self) -> u64 {
        match self.0.ring {
            Some(_) => self.0.slept_ns.get(),
            None => self.seen_ns(),
        }
    }

    /// The next number of this thread's seeded sequence (splitmix64).
    pub fn random(&self) -> u64 {
        let state = self.0.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.random.set(state);
        mix(state)
    }

    /// This thread's buffers for drive transfers.
    pub fn dma(&self) -> &DmaPool {
        &self.0.dma
    }

    /// The way to reach this loop from other threads.
    pub fn remote(&self) -> Remote {
        Remote::new(self.0.inbox.clone())
    }

    /// Runs `future` as a task of its own, from the next turn of the loop on.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.add(Box::pin(future));
    }

    /// As [`Handle::spawn`], and has it begin before this returns: it most likely has to wait, and what it waits for can
    /// begin now.
    pub fn spawn_at_once(&self, future: impl Future<Output = ()> + 'static) {
        let id = self.make_task(Box::pin(future));
        self.run_task(id);
    }

    /// Polls `future` once immediately, and continues it as a task of its own if it is not finished. It
    /// costs less than [`Handle::spawn`] for what mostly has to wait for nothing.
    pub fn start(&self, future: impl Future<Output = ()> + 'static) {
        let mut future: BoxedFuture = Box::pin(future);
        // As a task it is polled again, with its own waker.
        let mut context = Context::from_waker(Waker::noop());
        if future.as_mut().poll(&mut context).is_pending() {
            self.add(future);
        }
    }

    fn add(&self, future: BoxedFuture) {
        let id = self.make_task(future);
        self.0.inbox.push_ready(id);
    }

    /// Creates a task that is not queued yet, but counts as queued.
    fn make_task(&self, future: BoxedFuture) -> usize {
        let id = self.0.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut tasks = self.0.tasks.borrow_mut();
            tasks.push(None);
            tasks.len() - 1
        });
        let state = Arc::new(TaskWaker {
            id,
            queued: AtomicBool::new(true),
            inbox: self.0.inbox.clone(),
        });
        let waker = Waker::from(state.clone());
        let task = Task {
            body: Some(Body { future, waker }),
            state,
        };
        self.0.tasks.borrow_mut()[id] = Some(task);
        id
    }

    /// Waits for `ns` nanoseconds.
    pub fn sleep(&self, ns: u64) -> Sleep {
        self.sleep_until(self.now_ns().saturating_add(ns))
    }

    /// Waits until the clock shows `deadline_ns`.
    pub fn sleep_until(&self, deadline_ns: u64) -> Sleep {
        Sleep::new(self.clone(), deadline_ns)
    }

    /// Whether a task waits for its turn, or a job from elsewhere.
    pub fn has_ready(&self) -> bool {
        self.0.inbox.has_ready()
    }

    /// Lets every other ready task run once first.
    pub async fn yield_now(&self) {
        let mut first = true;
        std::future::poll_fn(|context| {
            if std::mem::take(&mut first) {
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            } else {
                std::task::Poll::Ready(())
            }
        })
        .await;
    }

    /// The same after long work, such as copying some hundred KiB: the kernel is polled for new events before
    /// the next round, where there are mostly many rounds between two questions.
    pub async fn yield_after_much(&self) {
        self.0.turns.set(0);
        self.yield_now().await;
    }

    /// Tasks that have not ended.
    pub fn task_count(&self) -> usize {
        self.0.tasks.borrow().len() - self.0.free.borrow().len()
    }

    /// Runs tasks and jobs until none is ready, at most `turns` rounds; returns how many ran.
    pub fn run_ready(&self, turns: usize) -> usize {
        self.run_until(turns, || false)
    }

    /// The same; no further round begins when `is_enough`.
    pub(crate) fn run_until(&self, turns: usize, is_enough: impl Fn() -> bool) -> usize {
        let mut ran = 0;
        let Round {
            mut tasks,
            mut jobs,
        } = self.0.round.take();
        self.0.turns.set(turns);
        while let Some(left) = self.0.turns.get().checked_sub(1) {
            self.0.turns.set(left);
            self.0.inbox.take(&mut tasks, &mut jobs);
            if tasks.is_empty() && jobs.is_empty() {
                break;
            }
            ran += tasks.len() + jobs.len();
            // Most rounds have no job, and a task or two.
            if !jobs.is_empty() {
                jobs.drain(..).for_each(|job| job(self));
            }
            tasks.iter().for_each(|id| self.run_task(*id));
            tasks.clear();
            if is_enough() {
                break;
            }
        }
        self.0.round.replace(Round { tasks, jobs });
        ran
    }

    /// The same for a simulation, in which another order is to show what relies on this one: as many tasks as are
    /// ready now, each time the one that `choose` names of those that are ready by then. It gets the tasks' numbers, in
    /// the order in which they became ready, and answers with an index; jobs go first, as they came. Returns how many ran.
    pub fn run_chosen(&self, choose: &mut dyn FnMut(&[usize]) -> usize) -> usize {
        let (mut tasks, mut jobs) = (Vec::new(), Vec::new());
        self.0.inbox.take(&mut tasks, &mut jobs);
        let mut ran = jobs.len();
        for _ in 0..tasks.len() {
            jobs.drain(..).for_each(|job| job(self));
            self.0.inbox.take(&mut tasks, &mut jobs);
            let id = tasks.remove(choose(&tasks));
            self.run_task(id);
            ran += 1;
        }
        jobs.drain(..).for_each(|job| job(self));
        self.0.inbox.put_back(tasks);
        ran
    }

    fn run_task(&self, id: usize) {
        let mut body = {
            let mut tasks = self.0.tasks.borrow_mut();
            let Some(Some(task)) = tasks.get_mut(id) else {
                return;
            };
            task.state.queued.store(false, Ordering::Release);
            let Some(body) = task.body.take() else {
                return;
            };
            body
        };
        let mut context = Context::from_waker(&body.waker);
        if body.future.as_mut().poll(&mut context).is_pending() {
            if let Some(Some(task)) = self.0.tasks.borrow_mut().get_mut(id) {
                task.body = Some(body);
            }
            return;
        }
        // Its drop may reach back into this loop, which is not borrowed now.
        drop(body);
        let task = self.0.tasks.borrow_mut()[id].take();
        drop(task);
        self.0.free.borrow_mut().push(id);
    }

    /// Drops every task, and every job that has not run: their buffers, sockets and channels close. For the end of a
    /// loop. A job left behind would hold what it holds forever where that reaches this loop, whose inbox holds it.
    pub fn drop_tasks(&self) {
        let (mut woken, mut jobs) = (Vec::new(), Vec::new());
        loop {
            self.0.inbox.take(&mut woken, &mut jobs);
            let tasks: Vec<_> = self
                .0
                .tasks
                .borrow_mut()
                .iter_mut()
                .filter_map(Option::take)
                .collect();
            if tasks.is_empty() && jobs.is_empty() {
                break;
            }
            jobs.clear();
        }
        self.0.tasks.borrow_mut().clear();
        self.0.free.borrow_mut().clear();
    }

    /// Wakes the tasks whose time has come; returns how many.
    pub fn fire_timers(&self) -> usize {
        let now_ns = self.now_ns();
        let mut due = self.0.due.take();
        self.0.timers.borrow_mut().take_due(now_ns, &mut due);
        let count = due.len();
        due.drain(..).for_each(Waker::wake);
        self.0.due.replace(due);
        count
    }

    /// When the next sleeping task is due, on the loop's clock.
    pub fn next_timer_ns(&self) -> Option<u64> {
        self.0.timers.borrow().next()
    }
}
