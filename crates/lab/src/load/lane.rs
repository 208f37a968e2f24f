//! One thread: completed requests are counted and replaced by new ones.

use super::pace::Pace;
use super::plan::{Content, Load};
use super::port::{Port, Request};
use super::second::{Answer, Series};
use super::shared::{Shared, locked};
use super::verify::Verify;
use super::wait::{wait, watch};
use crate::chance::Chance;
use std::io::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a lane sleeps before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// Resolution of random choices.
const WHOLE: u64 = 1 << 20;

/// Reads and writes, second by second. Stalls are with the reads.
#[derive(Clone, Default)]
pub(super) struct Counted {
    pub reads: Series,
    pub writes: Series,
}

impl Counted {
    pub fn with_room(seconds: usize) -> Self {
        Self {
            reads: Series::with_room(seconds),
            writes: Series::with_room(seconds),
        }
    }

    fn of(&mut self, write: bool) -> &mut Series {
        match write {
            true => &mut self.writes,
            false => &mut self.reads,
        }
    }
}

/// A request that is not answered.
#[derive(Clone, Copy, Default)]
struct Open {
    due_ns: u64,
    request: Request,
}

/// A port with its slots.
pub(super) struct Place {
    port: Box<dyn Port>,
    free: Vec<u16>,
    open: Vec<Open>,
    verify: Option<Verify>,
    queued: bool,
}

impl Place {
    pub fn new(port: Box<dyn Port>, slots: u16, verify: Option<Verify>) -> Self {
        Self {
            port,
            free: (0..slots).rev().collect(),
            open: vec![Open::default(); usize::from(slots)],
            verify,
            queued: false,
        }
    }
}

/// A thread's ports and what it counted.
pub(super) struct Lane {
    places: Vec<Place>,
    load: Load,
    shared: Arc<Shared>,
    counted: Arc<Mutex<Counted>>,
    chance: Chance,
    pace: Option<Pace>,
    /// Requests that may be outstanding, and are.
    most: usize,
    outstanding: usize,
    answered: Vec<u16>,
    watched: Vec<libc::pollfd>,
    /// The port that the next request of an open loop goes to.
    turn: usize,
    now_ns: u64,
}

impl Lane {
    pub fn new(
        load: Load,
        places: Vec<Place>,
        shared: Arc<Shared>,
        counted: Arc<Mutex<Counted>>,
        chance: Chance,
        pace: Option<Pace>,
    ) -> Self {
        let slots = places.iter().map(|place| place.open.len());
        Self {
            most: slots.clone().sum::<usize>() / load.disks.len(),
            answered: Vec::with_capacity(slots.max().unwrap_or(0)),
            watched: Vec::with_capacity(places.len()),
            places,
            load,
            shared,
            counted,
            chance,
            pace,
            outstanding: 0,
            turn: 0,
            now_ns: 0,
        }
    }

    /// Writes other bytes than zeroes into every slot, for unverified writes.
    fn fill_slots(&mut self) {
        if !matches!(self.load.content, Content::Random) || self.load.read_percent == 100 {
            return;
        }
        let bytes = self.load.blocks.largest() as usize;
        let data: Vec<u8> = (0..bytes / 8)
            .flat_map(|_| self.chance.next().to_le_bytes())
            .collect();
        for place in &mut self.places {
            (0..place.open.len()).for_each(|slot| place.port.fill(slot as u16, 0, &data));
        }
    }

    /// Sends a request by a port that has a free slot.
    fn send(&mut self, index: usize, due_ns: u64) -> Result<()> {
        let place = &mut self.places[index];
        let slot = place.free.pop().expect("a free slot");
        let length = self.load.blocks.next(&mut self.chance);
        let reads = u64::from(self.load.read_percent);
        let request = Request {
            offset: (self.load.aim)(&mut self.chance, length),
            length,
            write: reads < 100 && self.chance.below(100) >= reads,
        };
        if let Some(verify) = &mut place.verify {
            verify.sent(&mut *place.port, slot, request);
        }
        place.open[usize::from(slot)] = Open { due_ns, request };
        place.port.queue(slot, request)?;
        place.queued = true;
        self.outstanding += 1;
        Ok(())
    }

    /// The port by which the next request goes when each disk has its part of them.
    fn choose(&mut self) -> usize {
        let second = self.chance.below(WHOLE) as f64 >= self.load.first * WHOLE as f64;
        // The ports of the two disks take turns.
        let ports = self.places.iter().enumerate().skip(usize::from(second));
        let emptiest = ports.step_by(2).max_by_key(|(_, place)| place.free.len());
        emptiest.map_or(0, |(index, _)| index)
    }

    /// Sends as many as may be outstanding.
    fn send_all(&mut self) -> Result<()> {
        if self.load.disks.len() > 1 {
            while self.outstanding < self.most && self.shared.takes_one() {
                let index = self.choose();
                self.send(index, self.now_ns)?;
            }
            return Ok(());
        }
        for index in 0..self.places.len() {
            while !self.places[index].free.is_empty() && self.shared.takes_one() {
                self.send(index, self.now_ns)?;
            }
        }
        Ok(())
    }

    /// Sends what is due, as far as slots are free.
    fn send_due(&mut self, mut pace: Pace) -> Result<Pace> {
        let now = self.shared.now_ns().min(self.shared.end_ns);
        while pace.due_ns() < now && self.outstanding < self.most {
            while self.places[self.turn].free.is_empty() {
                self.turn = (self.turn + 1) % self.places.len();
            }
            self.send(self.turn, pace.due_ns())?;
            self.turn = (self.turn + 1) % self.places.len();
            pace.advance(&mut self.chance);
        }
        Ok(pace)
    }

    fn issue(&mut self) -> Result<()> {
        match self.pace.take() {
            Some(pace) => self.pace = Some(self.send_due(pace)?),
            None if self.outstanding < self.most => self.send_all()?,
            None => {}
        }
        for place in &mut self.places {
            if std::mem::take(&mut place.queued) {
                place.port.send()?;
            }
        }
        Ok(())
    }

    /// Counts what was answered; returns how many that were.
    fn take(&mut self) -> Result<usize> {
        let mut all = 0;
        for index in 0..self.places.len() {
            let place = &mut self.places[index];
            if place.free.len() == place.open.len() {
                continue;
            }
            self.answered.clear();
            place.port.take(&mut self.answered)?;
            if self.answered.is_empty() {
                continue;
            }
            all += self.answered.len();
            self.now_ns = self.shared.now_ns();
            self.count(index)?;
        }
        self.outstanding -= all;
        Ok(all)
    }

    /// Counts the answers of a port.
    fn count(&mut self, index: usize) -> Result<()> {
        let now = self.now_ns;
        let before = self.shared.last_ns.fetch_max(now, Ordering::Relaxed);
        let mut counted = locked(&self.counted);
        let place = &mut self.places[index];
        for slot in self.answered.iter().copied() {
            let Open { due_ns, request } = place.open[usize::from(slot)];
            if let Some(verify) = &mut place.verify {
                let checked = verify.answered(&*place.port, slot, request);
                checked.map_err(Error::other)?;
            }
            let answer = Answer {
                at_ns: now,
                due_ns,
                bytes: request.length.into(),
            };
            let series = counted.of(request.write);
            match self.pace {
                Some(_) => series.answered_due(answer),
                None => series.answered(answer),
            }
            place.free.push(slot);
        }
        if before < now {
            counted.reads.silent(before, now);
        }
        Ok(())
    }

    /// Passes the time until there is something to do.
    fn idle(&mut self) -> Result<()> {
        if self.load.polling {
            std::hint::spin_loop();
            return Ok(());
        }
        let mut time = LOOK;
        if let Some(pace) = &self.pace
            && self.outstanding < self.most
        {
            let due = pace.due_ns().saturating_sub(self.shared.now_ns());
            time = time.min(Duration::from_nanos(due));
        }
        if let [place] = &mut self.places[..] {
            return place.port.wait(time);
        }
        self.watched.clear();
        let mut ready = false;
        for place in &mut self.places {
            ready |= place.port.arm();
            let (fd, writing) = place.port.event();
            self.watched.push(watch(fd, writing));
        }
        if !ready {
            wait(&mut self.watched, time)?;
        }
        for (place, watched) in self.places.iter_mut().zip(&self.watched) {
            if watched.revents != 0 {
                place.port.disarm();
            }
        }
        Ok(())
    }

    /// Counts what was due and could not be sent.
    fn give_up(&mut self) {
        let Some(mut pace) = self.pace.take() else {
            return;
        };
        let mut counted = locked(&self.counted);
        let reads = u64::from(self.load.read_percent);
        // Requests due after an interrupt do not count.
        let stopped_ns = self.shared.stopped_ns.load(Ordering::Relaxed);
        let end_ns = self.shared.end_ns.min(stopped_ns);
        while pace.due_ns() < end_ns {
            let write = self.chance.below(100) >= reads;
            let series = counted.of(write);
            series.unsent(pace.due_ns(), end_ns);
            pace.advance(&mut self.chance);
        }
    }

    fn go_on(&mut self) -> Result<()> {
        for place in &mut self.places {
            place.port.begin()?;
        }
        self.fill_slots();
        self.now_ns = self.shared.now_ns();
        loop {
            let stopping = self.shared.stop.load(Ordering::Relaxed);
            if !stopping {
                self.issue()?;
            }
            let ending = stopping || self.shared.left.load(Ordering::Relaxed) <= 0;
            if ending && self.outstanding == 0 {
                return Ok(());
            }
            if self.take()? == 0 {
                if self.shared.abandon.load(Ordering::Relaxed) {
                    return Err(Error::other("requests are not answered"));
                }
                self.idle()?;
            }
        }
    }

    /// Goes on until it is to stop and everything was answered.
    pub fn run(mut self) {
        let ended = self.go_on();
        self.give_up();
        if let Err(error) = ended {
            locked(&self.shared.failure).get_or_insert(error.to_string());
        }
    }
}
