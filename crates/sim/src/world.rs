//! Loops on one thread under a virtual clock: which one goes on next is the seed's choice.

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

/// The loops and their clock.
pub struct World {
    loops: Vec<Handle>,
    time: Rc<Cell<u64>>,
    random: RefCell<Random>,
    /// Loops in a row that had nothing to do.
    idle: Cell<usize>,
}

impl World {
    /// `loops` loops.
    ///
    /// # Panics
    /// When the system has no event descriptor left.
    pub fn new(loops: usize, seed: u64) -> Rc<Self> {
        let time = Rc::new(Cell::new(1_000_000_000));
        let mut random = Random::new(seed);
        let make = |_| {
            let clock = Box::new(Time(time.clone()));
            Handle::simulated(clock, random.next()).expect("an event descriptor")
        };
        let loops = (0..loops).map(make).collect();
        Rc::new(Self {
            loops,
            time,
            random: RefCell::new(random),
            idle: Cell::new(0),
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

    /// Drops every task: the power is gone.
    pub fn abandon(&self) {
        self.loops.iter().for_each(Handle::drop_tasks);
    }

    /// Lets one loop go on; time passes when none has anything to do. False when nothing can
    /// happen any more.
    pub fn step(&self) -> bool {
        let count = self.loops.len();
        if self.idle.get() < count {
            let start = self.random.borrow_mut().below(count as u64) as usize;
            let ran = self.loops[start].run_ready(1);
            self.idle
                .set(if ran == 0 { self.idle.get() + 1 } else { 0 });
            return true;
        }
        // Chance may have passed a loop over: each is asked once before time passes.
        if self
            .loops
            .iter()
            .map(|handle| handle.run_ready(1))
            .sum::<usize>()
            > 0
        {
            self.idle.set(0);
            return true;
        }
        let next = self.loops.iter().filter_map(Handle::next_timer_ns).min();
        let Some(next) = next else { return false };
        self.time.set(self.time.get().max(next));
        self.loops.iter().for_each(|handle| {
            handle.fire_timers();
        });
        self.idle.set(0);
        true
    }
}
