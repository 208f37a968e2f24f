//! A solid-state drive: dies that work side by side, a buffer that takes writes and is emptied
//! in the background, garbage collected now and then.

use super::profile::SsdProfile;
use super::service::{Device, Request, Wire, transfer_ns};
use block::DriveIoKind;
use reactor::mix;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Ends of recent writes by which a write is known to follow another.
const ENDS: usize = 16;
/// Writes of this many bytes fill their pages.
const LARGE: u64 = 64 << 10;

pub(super) struct Ssd {
    profile: &'static SsdProfile,
    /// When each die is free.
    dies: Vec<u64>,
    wire: Wire,
    /// Reads whose data the dies have brought: when, number, bytes.
    ready: BinaryHeap<Reverse<(u64, u64, u64)>>,
    /// Writes that found no room in the buffer.
    writes: VecDeque<Request>,
    /// When the buffer will be empty.
    drained_ns: u64,
    ends: VecDeque<u64>,
    collect_in: u64,
    random: u64,
}

impl Ssd {
    pub(super) fn new(profile: &'static SsdProfile, seed: u64) -> Self {
        let mut ssd = Self {
            profile,
            dies: vec![0; profile.dies],
            wire: Wire::new(profile.rate_wire, profile.wire_command_ns),
            ready: BinaryHeap::new(),
            writes: VecDeque::new(),
            drained_ns: 0,
            ends: VecDeque::new(),
            collect_in: 0,
            random: seed,
        };
        ssd.collect_in = ssd.until_collection();
        ssd
    }

    /// The next number of the seeded sequence (splitmix64).
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.random)
    }

    /// Bytes until garbage is collected again: half to one and a half of the mean.
    fn until_collection(&mut self) -> u64 {
        let mean = self.profile.collect_every;
        mean / 2 + self.next_random() % mean
    }

    /// Nanoseconds that emptying the buffer of `len` bytes takes.
    fn drain_ns(&self, len: u64) -> u64 {
        let pages = self.profile.page * self.dies.len() as u64;
        transfer_ns(len * self.profile.program_ns / 1000, pages * 1_000_000)
    }

    fn read(&mut self, now_ns: u64, request: &Request) {
        let page = self.profile.page;
        let understood = now_ns + self.profile.command_ns;
        let (mut first_ns, mut last_ns) = (u64::MAX, understood);
        for number in request.offset / page..request.end().div_ceil(page) {
            let die = (mix(number) % self.dies.len() as u64) as usize;
            // Reading a page takes a little more or less, by its place in the cell.
            let read_ns = self.profile.read_ns * (95 + self.next_random() % 11) / 100;
            let end = self.dies[die].max(understood) + read_ns;
            self.dies[die] = end;
            first_ns = first_ns.min(end);
            last_ns = last_ns.max(end);
        }
        // The first pages go over the wire while the last are read.
        let carried = transfer_ns(request.len, self.profile.rate_wire);
        let ready = first_ns.max(last_ns.saturating_sub(carried));
        self.ready.push(Reverse((ready, request.id, request.len)));
    }

    /// When the write at the head of the line finds room.
    fn room_ns(&self) -> Option<u64> {
        let write = self.writes.front()?;
        let others = self.profile.write_cache.saturating_sub(write.len);
        let empties = self.drained_ns.saturating_sub(self.drain_ns(others));
        Some(empties.max(write.taken_ns))
    }

    fn admit_writes(&mut self, now_ns: u64) {
        while self.room_ns().is_some_and(|at| at <= now_ns) {
            if let Some(write) = self.writes.pop_front() {
                self.absorb(now_ns, &write);
            }
        }
    }

    fn absorb(&mut self, now_ns: u64, write: &Request) {
        let follows = self.ends.iter().position(|end| *end == write.offset);
        match follows {
            Some(index) => self.ends[index] = write.end(),
            None => {
                if self.ends.len() == ENDS {
                    self.ends.pop_front();
                }
                self.ends.push_back(write.end());
            }
        }
        let cost = if follows.is_some() || write.len >= LARGE {
            write.len
        } else {
            write.len * self.profile.scattered_cost
        };
        self.drained_ns = self.drained_ns.max(now_ns) + self.drain_ns(cost);
        self.collect(now_ns, cost);
        let understood = now_ns + self.profile.command_ns;
        self.wire.carry(understood, write.len, write.id);
    }

    /// After this many bytes a die stalls for a while, and with it the flushing of the buffer.
    fn collect(&mut self, now_ns: u64, written: u64) {
        self.collect_in = self.collect_in.saturating_sub(written);
        if self.collect_in > 0 {
            return;
        }
        self.collect_in = self.until_collection();
        let (least, most) = self.profile.collect_ns;
        let stop_ns = least + self.next_random() % (most - least + 1);
        let die = (self.next_random() % self.dies.len() as u64) as usize;
        self.dies[die] = self.dies[die].max(now_ns) + stop_ns;
        self.drained_ns += stop_ns;
    }
}

impl Device for Ssd {
    fn take(&mut self, now_ns: u64, request: Request) {
        let understood = now_ns + self.profile.command_ns;
        match request.kind {
            DriveIoKind::Read => self.read(now_ns, &request),
            DriveIoKind::Write => {
                self.writes.push_back(request);
                self.admit_writes(now_ns);
            }
            DriveIoKind::Flush => {
                let empty = self.drained_ns.max(understood);
                self.wire.end_at(empty + self.profile.flush_ns, request.id);
            }
            DriveIoKind::Discard => self.wire.end_at(understood, request.id),
        }
    }

    fn happen(&mut self, at_ns: u64, ended: &mut Vec<u64>) {
        while let Some(Reverse((ready, id, len))) = self.ready.peek().copied()
            && ready <= at_ns
        {
            self.ready.pop();
            self.wire.carry(ready, len, id);
        }
        self.admit_writes(at_ns);
        self.wire.take_ended(at_ns, ended);
    }

    fn next_ns(&self) -> Option<u64> {
        let ready = self.ready.peek().map(|Reverse((at, ..))| *at);
        [ready, self.room_ns(), self.wire.next_ns()]
            .into_iter()
            .flatten()
            .min()
    }
}
