//! One thread that drives all sessions of some tenants.

use super::crowd::Shared;
use super::meter::{Meter, WINDOW_NS};
use super::poller::Poller;
use super::session::Session;
use crate::load::Histogram;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep: what was asked of the thread is examined then.
const LOOK: Duration = Duration::from_millis(20);
/// How long what is outstanding at the end is waited for, in nanoseconds.
const DRAIN_NS: u64 = 60_000_000_000;

/// A tenant's sessions, by number, and what is counted of it.
struct Group {
    tenant: usize,
    meter: Meter,
    outstanding: usize,
    starting: u32,
}

/// A session, its group, and what the driver knows of it.
struct Place {
    session: Session,
    group: usize,
    /// It has an entry among the timers.
    is_timed: bool,
    /// It is watched for writing.
    is_writing: bool,
    is_starting: bool,
}

/// The thread's state.
pub struct Driver {
    places: Vec<Place>,
    groups: Vec<Group>,
    /// Numbers of sessions that are rings.
    rings: Vec<usize>,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    poller: Poller,
    shared: Arc<Shared>,
    window: u64,
    answered: Vec<u16>,
    ready: Vec<usize>,
}

impl Driver {
    /// Drives the sessions of these tenants, each given by its number.
    ///
    /// # Errors
    /// When the system refuses something.
    pub fn new(tenants: Vec<(usize, Vec<Session>)>, shared: Arc<Shared>) -> Result<Self> {
        let mut driver = Self {
            places: Vec::new(),
            groups: Vec::new(),
            rings: Vec::new(),
            timers: BinaryHeap::new(),
            poller: Poller::new()?,
            shared,
            window: 0,
            answered: Vec::new(),
            ready: Vec::new(),
        };
        for (group, (tenant, sessions)) in tenants.into_iter().enumerate() {
            driver.groups.push(Group {
                tenant,
                meter: Meter::new(),
                outstanding: 0,
                starting: 0,
            });
            for session in sessions {
                driver.add(group, session)?;
            }
        }
        Ok(driver)
    }

    fn add(&mut self, group: usize, mut session: Session) -> Result<()> {
        let number = self.places.len();
        session.port().begin()?;
        let (fd, _) = session.port().event();
        self.poller.add(number, fd)?;
        if session.is_ring() {
            self.rings.push(number);
        }
        let is_starting = session.is_starting();
        self.groups[group].starting += u32::from(is_starting);
        self.places.push(Place {
            session,
            group,
            is_timed: false,
            is_writing: false,
            is_starting,
        });
        Ok(())
    }

    /// Sends what a session has to request.
    fn send(&mut self, number: usize, now_ns: u64) -> Result<()> {
        let place = &mut self.places[number];
        let group = &mut self.groups[place.group];
        let before = place.session.outstanding();
        let again = place.session.send(now_ns)?;
        group.outstanding += place.session.outstanding() - before;
        if let Some(moment) = again
            && !std::mem::replace(&mut place.is_timed, true)
        {
            self.timers.push(Reverse((moment, number)));
        }
        if place.is_starting && !place.session.is_starting() {
            place.is_starting = false;
            group.starting -= 1;
        }
        let (fd, writing) = place.session.port().event();
        if writing != place.is_writing {
            place.is_writing = writing;
            self.poller.watch_writing(number, fd, writing)?;
        }
        Ok(())
    }

    /// Takes a session's answers and sends what it requests next; true when there were any.
    fn serve(&mut self, number: usize, stopping: bool) -> Result<bool> {
        let place = &mut self.places[number];
        let group = &mut self.groups[place.group];
        let (before, now_ns) = (place.session.outstanding(), self.shared.now_ns());
        let meter = &mut group.meter;
        let any = place.session.take(&mut self.answered, |due_ns, bytes| {
            meter.answered(now_ns.saturating_sub(due_ns), bytes);
        })?;
        let ended = before - place.session.outstanding();
        group.outstanding -= ended;
        self.shared.answered(group.tenant, ended);
        if !stopping && (any || place.is_writing) {
            self.send(number, now_ns)?;
        }
        let group = &mut self.groups[self.places[number].group];
        if group.outstanding == 0 {
            group.meter.idle();
        }
        Ok(any)
    }

    /// Lets those ask whose moment has come; true when there were any.
    fn expire(&mut self, now_ns: u64) -> Result<bool> {
        let mut any = false;
        while let Some(Reverse((moment, number))) = self.timers.peek().copied()
            && moment <= now_ns
        {
            self.timers.pop();
            self.places[number].is_timed = false;
            self.send(number, now_ns)?;
            any = true;
        }
        Ok(any)
    }

    /// Ends the windows whose time is over.
    fn end_windows(&mut self, now_ns: u64) {
        while (self.window + 1) * WINDOW_NS <= now_ns {
            self.window += 1;
            for group in &mut self.groups {
                let window = group.meter.end_window(group.outstanding, group.starting);
                self.shared.push(group.tenant, window);
            }
        }
    }

    /// How long nothing is to be done, unless an answer comes.
    fn leisure(&self, now_ns: u64) -> Duration {
        let window_ns = (self.window + 1) * WINDOW_NS;
        let timer_ns = self.timers.peek().map_or(u64::MAX, |timer| timer.0.0);
        let left = window_ns.min(timer_ns).saturating_sub(now_ns);
        Duration::from_nanos(left).min(LOOK)
    }

    /// Examines the rings; true when one had answers.
    fn look_at_rings(&mut self, stopping: bool) -> Result<bool> {
        let mut any = false;
        for index in 0..self.rings.len() {
            any |= self.serve(self.rings[index], stopping)?;
        }
        Ok(any)
    }

    /// Waits for answers, and serves the sessions that have some.
    fn poll(&mut self, busy: bool, stopping: bool) -> Result<()> {
        let mut timeout = Duration::ZERO;
        if !busy {
            let mut has_answers = false;
            for number in &self.rings {
                has_answers |= self.places[*number].session.port().arm();
            }
            if !has_answers {
                timeout = self.leisure(self.shared.now_ns());
            }
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.poller.wait(timeout, &mut ready)?;
        for number in ready.drain(..) {
            self.places[number].session.port().disarm();
            self.serve(number, stopping)?;
        }
        self.ready = ready;
        Ok(())
    }

    fn go_on(&mut self) -> Result<()> {
        for number in 0..self.places.len() {
            self.send(number, self.shared.now_ns())?;
        }
        let only_rings = self.rings.len() == self.places.len();
        loop {
            let (now_ns, end_ns) = (self.shared.now_ns(), self.shared.end_ns());
            self.end_windows(now_ns.min(end_ns));
            let stopping = now_ns >= end_ns;
            let outstanding: usize = self.groups.iter().map(|group| group.outstanding).sum();
            if stopping && outstanding == 0 {
                return Ok(());
            }
            if now_ns > end_ns.saturating_add(DRAIN_NS) {
                return Err(Error::other("requests are not answered"));
            }
            let mut busy = !stopping && self.expire(now_ns)?;
            busy |= self.look_at_rings(stopping)?;
            if !(busy && only_rings) {
                self.poll(busy, stopping)?;
            }
        }
    }

    /// Goes on until the end, and gives all latencies of each tenant by its number.
    ///
    /// # Errors
    /// When a connection broke, a request failed, or is not answered.
    pub fn run(mut self) -> Result<Vec<(usize, Histogram)>> {
        self.go_on()?;
        let groups = self.groups.iter();
        Ok(groups
            .map(|group| (group.tenant, group.meter.whole().clone()))
            .collect())
    }
}
