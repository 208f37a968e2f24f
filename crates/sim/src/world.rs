//! Loops on one thread under a virtual clock: the seed chooses which one runs next, and which of its tasks.

use crate::random::Random;
use reactor::{Clock, Handle, Remote};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

struct Time(Rc<Cell<u64>>);

impl Clock for Time {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Which of a loop's ready tasks goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The one that has waited for longest, as where the engine is in use.
    Fifo,
    /// Any of them.
    Any,
    /// The one of the highest rank: ranks are drawn, and now and then drawn again, so that a task is overtaken by all others
    /// for a while (probabilistic concurrency testing).
    Ranks,
}

/// Tasks that go by the same ranks, about.
const RANKED: u64 = 64;

/// The loops and their clock.
pub struct World {
    loops: Vec<Handle>,
    order: Order,
    /// What the ranks of tasks follow from.
    ranks: Cell<u64>,
    time: Rc<Cell<u64>>,
    random: RefCell<Random>,
    /// Loops in a row that had nothing to do.
    idle: Cell<usize>,
    /// A loop that does not continue until this moment.
    stopped: Cell<Option<(usize, u64)>>,
    /// Loops stand still for moments all the time, one after the other.
    stumbles: Cell<bool>,
    /// When what is waited for has to have come.
    until: Cell<u64>,
    /// Steps since time last passed.
    busy: Cell<u64>,
    /// Steps since something was requested.
    steps: Cell<u64>,
    /// Those were too many once.
    endless: Cell<bool>,
}

/// Virtual time within which everything that is asked of an engine has to end, in nanoseconds.
const PATIENCE_NS: u64 = 3600 * 1_000_000_000;
/// Steps within which it has to end. Under load an hour has so many more that what hosts keep from ending would only be seen
/// after hours.
const ENDLESS: u64 = 10_000_000;

/// Steps until some loop stands still where they stumble, about, and for how long, in nanoseconds.
const STUMBLES: u64 = 32;
const STUMBLE_NS: [u64; 3] = [100_000, 1_000_000, 3_000_000];

/// Steps after which time passes although there is always something to do: operations that complete immediately
/// would otherwise stop every clock, and with it what waits for a drive.
const BUSY: u64 = 10_000;

impl World {
    /// `loops` loops whose tasks go in this order.
    ///
    /// # Panics
    /// When the system has no event descriptor left.
    pub fn new(loops: usize, order: Order, seed: u64) -> Rc<Self> {
        let time = Rc::new(Cell::new(1_000_000_000));
        let mut random = Random::new(seed);
        let make = |_| {
            let clock = Box::new(Time(time.clone()));
            Handle::simulated(clock, random.next()).expect("an event descriptor")
        };
        let loops = (0..loops).map(make).collect();
        Rc::new(Self {
            loops,
            order,
            ranks: Cell::new(seed),
            time,
            random: RefCell::new(random),
            idle: Cell::new(0),
            stopped: Cell::new(None),
            stumbles: Cell::new(false),
            until: Cell::new(u64::MAX),
            steps: Cell::new(0),
            endless: Cell::new(false),
            busy: Cell::new(0),
        })
    }

    /// The loops, for an engine.
    pub fn remotes(&self) -> Vec<Remote> {
        self.loops.iter().map(Handle::remote).collect()
    }

    /// Virtual nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.time.get()
    }

    /// Something is requested from now on: nothing continues when it does not end.
    pub fn wait(&self) {
        self.until.set(self.now_ns() + PATIENCE_NS);
        self.steps.set(0);
    }

    /// Whether something that was requested took more steps than it may.
    pub fn is_endless(&self) -> bool {
        self.endless.get()
    }

    /// Drops every task: the power is gone.
    pub fn abandon(&self) {
        self.loops.iter().for_each(Handle::drop_tasks);
    }

    /// One loop does not continue for so many nanoseconds, while the others do.
    pub fn stop_one(&self, ns: u64) {
        let which = self.random.borrow_mut().below(self.loops.len() as u64) as usize;
        self.stopped.set(Some((which, self.now_ns() + ns)));
    }

    /// From now on one loop after the other stands still for some milliseconds at most, also in the middle of what
    /// takes no time.
    pub fn stumble(&self) {
        self.stumbles.set(true);
    }

    /// Nothing continues for so many nanoseconds: the process was stopped.
    pub fn stop_all(&self, ns: u64) {
        self.time.set(self.now_ns() + ns);
        self.wait();
        self.idle.set(self.loops.len());
    }

    /// Loops that continue.
    fn awake(&self) -> impl Iterator<Item = &Handle> {
        let stopped = self.stopped.get().map(|(which, _)| which);
        let loops = self.loops.iter().enumerate();
        loops.filter_map(move |(number, handle)| (Some(number) != stopped).then_some(handle))
    }

    /// Lets the tasks of a loop that are ready go on. Returns how many did.
    fn run(&self, handle: &Handle) -> usize {
        match self.order {
            Order::Fifo => handle.run_ready(1),
            Order::Any => handle.run_chosen(&mut |tasks| {
                let any = self.random.borrow_mut().below(tasks.len() as u64);
                any as usize
            }),
            Order::Ranks => handle.run_chosen(&mut |tasks| {
                if self.random.borrow_mut().one_in(RANKED) {
                    self.ranks.set(self.random.borrow_mut().next());
                }
                let rank = |at: &usize| reactor::mix(self.ranks.get() ^ tasks[*at] as u64);
                (0..tasks.len()).max_by_key(rank).unwrap_or(0)
            }),
        }
    }

    /// Lets one loop go on; time passes when none has anything to do, or all have had for long. False
    /// when nothing can happen any longer, or enough has.
    pub fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > ENDLESS {
            self.endless.set(true);
            return false;
        }
        if self
            .stopped
            .get()
            .is_some_and(|(_, until)| until <= self.now_ns())
        {
            self.stopped.set(None);
        }
        if self.stumbles.get() && self.stopped.get().is_none() {
            let mut random = self.random.borrow_mut();
            let ns = *random.pick(&STUMBLE_NS);
            let stops = random.one_in(STUMBLES);
            drop(random);
            if stops {
                self.stop_one(ns);
            }
        }
        let count = self.loops.len();
        self.busy.set(self.busy.get() + 1);
        if self.busy.get() > BUSY {
            self.pass();
            return true;
        }
        if self.idle.get() < count {
            let start = self.random.borrow_mut().below(count as u64) as usize;
            let stopped = self.stopped.get().is_some_and(|(which, _)| which == start);
            let ran = if stopped {
                0
            } else {
                self.run(&self.loops[start])
            };
            self.idle
                .set(if ran == 0 { self.idle.get() + 1 } else { 0 });
            return true;
        }
        // Chance may have passed a loop over: each is asked once before time passes.
        if self.awake().map(|handle| self.run(handle)).sum::<usize>() > 0 {
            self.idle.set(0);
            return true;
        }
        self.pass()
    }

    /// Advances the time to the next event. False if none is due, or it is too far in the future.
    fn pass(&self) -> bool {
        self.busy.set(0);
        let timers = self.awake().filter_map(Handle::next_timer_ns);
        let next = timers
            .chain(self.stopped.get().map(|(_, until)| until))
            .min();
        let Some(next) = next.filter(|next| *next <= self.until.get()) else {
            return false;
        };
        self.time.set(self.time.get().max(next));
        self.awake().for_each(|handle| {
            handle.fire_timers();
        });
        self.idle.set(0);
        true
    }
}
