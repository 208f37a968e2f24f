//! A spinning disk: one head, commands taken in the order of least access time, a write cache
//! that is emptied in sweeps, a buffer that reads on.

use super::dirty::{Dirty, Range};
use super::geometry::Geometry;
use super::profile::{DiskProfile, SEEK_KNEE};
use super::readahead::ReadAhead;
use super::service::{Device, Request, Wire, transfer_ns};
use block::DriveIoKind;
use std::collections::VecDeque;

/// Share of a revolution by which rounding may miss a sector that follows directly.
const ROUNDING: f64 = 1e-5;

enum Job {
    /// From the medium.
    Read(Request),
    /// From where the head was reading on anyway.
    Stream(Request),
    Destage,
}

struct Active {
    ends_ns: u64,
    job: Job,
}

pub(super) struct Disk {
    profile: &'static DiskProfile,
    geometry: Geometry,
    /// Angle of the platter at time zero, in revolutions.
    phase: f64,
    /// Track and angle that the head was at when it last ended something, in revolutions.
    head: f64,
    active: Option<Active>,
    reads: Vec<Request>,
    /// Writes that found no room in the cache.
    writes: VecDeque<Request>,
    dirty: Dirty,
    ahead: ReadAhead,
    wire: Wire,
    /// Whether the last job was a read, when both kinds take turns.
    read_last: bool,
}

impl Disk {
    /// A disk of `size` bytes; `seed` sets the angle that its platter begins at.
    pub(super) fn new(profile: &'static DiskProfile, size: u64, seed: u64) -> Self {
        let revolution = profile.revolution_ns;
        Self {
            profile,
            geometry: Geometry::new(size, profile.rate_outer, profile.rate_inner, revolution),
            phase: (seed % 4096) as f64 / 4096.0,
            head: 0.0,
            active: None,
            reads: Vec::new(),
            writes: VecDeque::new(),
            dirty: Dirty::default(),
            ahead: ReadAhead::new(profile.read_ahead, revolution, size),
            wire: Wire::new(profile.rate_wire, 0),
            read_last: false,
        }
    }

    /// Nanoseconds of a seek over a share of the stroke: a root for short ones, while the arm
    /// speeds up and slows down, a line for long ones, while it coasts.
    fn seek_ns(&self, stroke: f64) -> u64 {
        let at = |ns: u64| ns as f64;
        let profile = self.profile;
        let ns = if stroke < SEEK_KNEE {
            let rise = at(profile.seek_knee_ns) - at(profile.seek_track_ns);
            at(profile.seek_track_ns) + rise * (stroke / SEEK_KNEE).sqrt()
        } else {
            let rise = at(profile.seek_full_ns) - at(profile.seek_knee_ns);
            at(profile.seek_knee_ns) + rise * (stroke - SEEK_KNEE) / (1.0 - SEEK_KNEE)
        };
        ns as u64
    }

    /// When a transfer of `range` would end that the head sets out for at `from_ns`.
    fn access_ends_ns(&self, from_ns: u64, range: Range, write: bool) -> u64 {
        let first = self.geometry.revolutions(range.0);
        let last = self.geometry.revolutions(range.1);
        let mut arrives = from_ns;
        if (first - self.head).abs() >= 1.0 {
            arrives += self.seek_ns(self.geometry.stroke(self.head, first));
            if write {
                arrives += self.profile.write_settle_ns;
            }
        }
        let revolution = self.profile.revolution_ns;
        let angle = self.phase + (arrives % revolution) as f64 / revolution as f64;
        let mut wait = (first - angle).rem_euclid(1.0);
        if wait > 1.0 - ROUNDING {
            wait = 0.0;
        }
        arrives + ((wait + last - first) * revolution as f64) as u64
    }

    /// When a read would end that is begun at `now_ns`, and whether the head is on its way there.
    fn read_ends_ns(&self, now_ns: u64, read: &Request) -> (u64, bool) {
        let understood = read.taken_ns + self.profile.command_ns;
        let (start, end) = (read.offset, read.end());
        match self.ahead.arrives_ns(&self.geometry, now_ns, start, end) {
            Some(arrives) => {
                let carried = understood + transfer_ns(read.len, self.profile.rate_wire);
                (arrives.max(carried).max(now_ns), true)
            }
            None => (
                self.access_ends_ns(now_ns.max(understood), (start, end), false),
                false,
            ),
        }
    }

    /// Index of the read to do next: the quickest, or the oldest when it has waited too long.
    fn choose_read(&self, now_ns: u64) -> Option<usize> {
        let oldest = (0..self.reads.len()).min_by_key(|index| self.reads[*index].taken_ns)?;
        if now_ns - self.reads[oldest].taken_ns > self.profile.age_max_ns {
            return Some(oldest);
        }
        (0..self.reads.len()).min_by_key(|index| self.read_ends_ns(now_ns, &self.reads[*index]).0)
    }

    /// Whether the cache has to be emptied even while reads wait.
    fn must_destage(&self) -> bool {
        self.dirty.has_ranges()
            && (!self.writes.is_empty()
                || self.dirty.is_flushing()
                || self.dirty.ranges() > self.profile.write_ranges / 2
                || self.dirty.bytes() > self.profile.write_cache / 2)
    }

    fn start_next(&mut self, now_ns: u64) {
        if self.active.is_some() {
            return;
        }
        if let Some(position) = self.ahead.position(&self.geometry, now_ns) {
            self.head = self.geometry.revolutions(position);
        }
        let turn_to_write = self.must_destage() && self.read_last;
        if !self.reads.is_empty() && !turn_to_write {
            self.start_read(now_ns);
        } else if self.dirty.has_ranges() {
            self.start_destage(now_ns);
        }
    }

    fn start_read(&mut self, now_ns: u64) {
        let Some(index) = self.choose_read(now_ns) else {
            return;
        };
        let read = self.reads.swap_remove(index);
        let (ends_ns, stream) = self.read_ends_ns(now_ns, &read);
        if !stream {
            self.ahead.stop(&self.geometry, now_ns);
        }
        let job = if stream {
            Job::Stream(read)
        } else {
            Job::Read(read)
        };
        self.active = Some(Active { ends_ns, job });
        self.read_last = true;
    }

    fn start_destage(&mut self, now_ns: u64) {
        self.ahead.stop(&self.geometry, now_ns);
        let mut dirty = std::mem::take(&mut self.dirty);
        let from = self.geometry.offset(self.head);
        let range = dirty.start(from, |range| self.access_ends_ns(now_ns, range, true));
        self.dirty = dirty;
        if let Some(range) = range {
            let ends_ns = self.access_ends_ns(now_ns, range, true);
            self.head = self.geometry.revolutions(range.1);
            self.active = Some(Active {
                ends_ns,
                job: Job::Destage,
            });
        }
        self.read_last = false;
    }

    fn end_active(&mut self, active: Active) {
        let now_ns = active.ends_ns;
        match active.job {
            Job::Read(read) => {
                self.head = self.geometry.revolutions(read.end());
                self.ahead.begin(read.offset, read.end(), now_ns);
                self.wire.end_at(now_ns, read.id);
            }
            Job::Stream(read) => {
                self.ahead.extend(read.end());
                self.wire.end_at(now_ns, read.id);
            }
            Job::Destage => {
                for id in self.dirty.finish() {
                    self.wire.end_at(now_ns, id);
                }
                self.admit_writes(now_ns);
            }
        }
    }

    /// Takes writes into the cache for as long as there is room. One that is larger than the
    /// cache goes in when it is empty.
    fn admit_writes(&mut self, now_ns: u64) {
        while let Some(write) = self.writes.front().copied() {
            let held = self.dirty.bytes();
            let full = held + write.len > self.profile.write_cache
                || self.dirty.ranges() >= self.profile.write_ranges;
            if held > 0 && full {
                return;
            }
            self.writes.pop_front();
            self.dirty.write(write.offset, write.end());
            let understood = now_ns.max(write.taken_ns + self.profile.command_ns);
            self.wire.carry(understood, write.len, write.id);
        }
    }
}

impl Device for Disk {
    fn take(&mut self, now_ns: u64, request: Request) {
        let understood = now_ns + self.profile.command_ns;
        match request.kind {
            DriveIoKind::Read => {
                let (start, end) = (request.offset, request.end());
                if self.dirty.covers(start, end) || self.ahead.holds(start, end) {
                    self.wire.carry(understood, request.len, request.id);
                } else {
                    self.reads.push(request);
                }
            }
            DriveIoKind::Write => {
                self.writes.push_back(request);
                self.admit_writes(now_ns);
            }
            DriveIoKind::Flush => {
                if !self.dirty.flush(request.id) {
                    self.wire.end_at(understood, request.id);
                }
            }
            DriveIoKind::Discard => self.wire.end_at(understood, request.id),
        }
        self.start_next(now_ns);
    }

    fn happen(&mut self, at_ns: u64, ended: &mut Vec<u64>) {
        if let Some(active) = self.active.take_if(|active| active.ends_ns <= at_ns) {
            self.end_active(active);
            self.start_next(at_ns);
        }
        self.wire.take_ended(at_ns, ended);
    }

    fn next_ns(&self) -> Option<u64> {
        let active = self.active.as_ref().map(|active| active.ends_ns);
        [active, self.wire.next_ns()].into_iter().flatten().min()
    }
}
