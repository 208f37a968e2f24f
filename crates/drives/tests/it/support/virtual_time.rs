//! A loop whose time is only a number: it jumps to the next moment at which something happens.

use reactor::{Clock, Handle};
use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone)]
struct Virtual(Rc<Cell<u64>>);

impl Clock for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Runs the tasks that `start` spawns until all have ended; returns the nanoseconds that passed.
pub fn run(start: impl FnOnce(&Handle)) -> u64 {
    let clock = Virtual(Rc::default());
    let handle = Handle::simulated(Box::new(clock.clone()), 1).expect("an event descriptor");
    start(&handle);
    loop {
        while handle.run_ready(64) > 0 {}
        if handle.task_count() == 0 {
            return clock.0.get();
        }
        clock
            .0
            .set(handle.next_timer_ns().expect("somebody sleeps"));
        handle.fire_timers();
    }
}
