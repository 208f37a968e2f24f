//! All guests' requests, sent by one thread when they are due: requests that wait for another guest wait in the server.

use super::windows::Windows;
use crate::chance::Chance;
use crate::failure::Result;
use crate::interrupt;
use crate::load::{Aim, Blocks, Pace, Port, Request};
use std::time::{Duration, Instant};

/// Answers between two looks whether a person wants an end.
const LOOK: u64 = 1 << 16;
/// How long what is outstanding at the end is waited for.
const DRAIN: Duration = Duration::from_secs(10);

/// A guest.
pub struct Guest {
    pub port: Box<dyn Port>,
    pub blocks: Blocks,
    pub read_percent: u8,
    pub aim: Aim,
    pub pace: Pace,
    pub chance: Chance,
    /// Slots that are free.
    pub free: Vec<u16>,
    /// By slot, when its request was due.
    pub open: Vec<u64>,
    /// Completions.
    pub windows: Windows,
}

impl Guest {
    /// Sends what is due and has a slot.
    fn send(&mut self, now_ns: u64) -> Result<()> {
        let mut queued = false;
        while self.pace.due_ns() <= now_ns
            && let Some(slot) = self.free.pop()
        {
            let length = self.blocks.next(&mut self.chance);
            let write = self.chance.below(100) >= u64::from(self.read_percent);
            let offset = (self.aim)(&mut self.chance, length);
            self.open[usize::from(slot)] = self.pace.due_ns();
            let request = Request {
                offset,
                length,
                write,
            };
            self.port.queue(slot, request)?;
            self.pace.advance(&mut self.chance);
            queued = true;
        }
        if queued {
            self.port.send()?;
        }
        Ok(())
    }

    /// Counts what was answered.
    fn take(&mut self, begun: Instant, answered: &mut Vec<u16>) -> Result<()> {
        answered.clear();
        self.port.take(answered)?;
        if answered.is_empty() {
            return Ok(());
        }
        let at_ns = begun.elapsed().as_nanos() as u64;
        for slot in answered.drain(..) {
            self.windows.answered(self.open[usize::from(slot)], at_ns);
            self.free.push(slot);
        }
        Ok(())
    }
}

/// Sends all guests' requests until the time is over, and waits for the answers. It never sleeps.
///
/// # Errors
/// When a request fails, or is not answered.
pub fn drive(guests: &mut [Guest], time: Duration) -> Result<()> {
    for guest in guests.iter_mut() {
        guest.port.begin()?;
    }
    let (begun, mut rounds) = (Instant::now(), 0_u64);
    let mut answered = Vec::new();
    loop {
        let now = begun.elapsed();
        let under_way = guests
            .iter()
            .any(|guest| guest.free.len() < guest.open.len());
        if now >= time && (!under_way || now >= time + DRAIN) {
            break;
        }
        for guest in guests.iter_mut() {
            if now < time {
                guest.send(begun.elapsed().as_nanos() as u64)?;
            }
            guest.take(begun, &mut answered)?;
        }
        rounds += 1;
        if rounds.is_multiple_of(LOOK) {
            interrupt::check()?;
        }
    }
    match guests
        .iter()
        .all(|guest| guest.free.len() == guest.open.len())
    {
        true => Ok(()),
        false => Err(crate::failure::Failure::new(
            "requests are not answered: look at the server's log",
        )),
    }
}
