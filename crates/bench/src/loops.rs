//! The loops that an engine runs on: threads, or a single-threaded simulation with virtual time.

use crate::failure::{Result, while_doing};
use reactor::control::{self, Simulation};
use reactor::{Clock, Handle, ReactorThread, Remote};
use std::cell::Cell;
use std::rc::Rc;

/// Nanoseconds that pass in a simulation while each loop has its turn.
const STEP_NS: u64 = 1_000;
/// Rounds of ready tasks of a turn, as loops of threads have them.
const TURNS: usize = 16;

/// A clock that shows what it was set to.
struct Shown(Rc<Cell<u64>>);

impl Clock for Shown {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Loops, which end with this.
pub enum Loops {
    /// Each on a thread of its own.
    Threads(Vec<ReactorThread>),
    /// All on the thread that calls, which runs them while it waits for something.
    Simulated(Vec<Handle>, Simulation),
}

impl Loops {
    /// So many threads.
    ///
    /// # Errors
    /// When the system has none left.
    pub fn threads(count: u16) -> Result<Self> {
        let start =
            |number| ReactorThread::start(&format!("bench-{number}"), u64::from(number) + 1);
        let threads: std::io::Result<_> = (0..count).map(start).collect();
        Ok(Self::Threads(
            threads.map_err(while_doing("a loop cannot be started"))?,
        ))
    }

    /// So many loops of a simulation.
    ///
    /// # Errors
    /// When the system has no event descriptor left.
    pub fn simulated(count: u16) -> Result<Self> {
        let clock = Rc::new(Cell::new(1));
        let make =
            |number| Handle::simulated(Box::new(Shown(clock.clone())), u64::from(number) + 1);
        let handles: std::io::Result<Vec<Handle>> = (0..count).map(make).collect();
        let handles = handles.map_err(while_doing("a loop cannot be made"))?;
        let loops = handles.clone();
        let simulation = control::simulate(1, move || step(&loops, &clock));
        Ok(Self::Simulated(handles, simulation))
    }

    /// The ways to reach them.
    pub fn remotes(&self) -> Vec<Remote> {
        match self {
            Self::Threads(threads) => threads.iter().map(|one| one.remote().clone()).collect(),
            Self::Simulated(handles, _) => handles.iter().map(Handle::remote).collect(),
        }
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        if let Self::Simulated(handles, _) = self {
            handles.iter().for_each(Handle::drop_tasks);
        }
    }
}

/// Lets each loop have its turn; when none has anything to do, it becomes the time of the next timer. False when there
/// is none either.
fn step(loops: &[Handle], clock: &Cell<u64>) -> bool {
    clock.set(clock.get() + STEP_NS);
    let turn = |one: &Handle| one.fire_timers() + one.run_ready(TURNS);
    if loops.iter().map(turn).sum::<usize>() > 0 {
        return true;
    }
    let next = loops.iter().filter_map(Handle::next_timer_ns).min();
    if let Some(next) = next {
        clock.set(clock.get().max(next));
    }
    next.is_some()
}
