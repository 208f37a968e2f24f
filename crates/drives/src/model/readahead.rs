//! The read buffer of a disk: the data after the last read, and that of earlier reads.

use super::geometry::Geometry;
use std::collections::VecDeque;

/// Runs that the buffer keeps.
const RUNS: usize = 16;
/// Bytes that may be between the head and a read that it is on its way to: they pass sooner than
/// any other access would begin.
const GAP: u64 = 64 << 10;

/// The head reads on from where the last read ended, until it is needed or has read enough.
#[derive(Clone, Copy)]
struct Stream {
    /// First byte that is in the buffer.
    start: u64,
    /// Byte under the head at `since_ns`.
    base: u64,
    since_ns: u64,
    /// Where it stops reading on.
    limit: u64,
}

pub(super) struct ReadAhead {
    stream: Option<Stream>,
    runs: VecDeque<(u64, u64)>,
    /// Bytes that it reads on.
    distance: u64,
    revolution_ns: u64,
    size: u64,
}

impl ReadAhead {
    pub(super) fn new(distance: u64, revolution_ns: u64, size: u64) -> Self {
        Self {
            stream: None,
            runs: VecDeque::new(),
            distance,
            revolution_ns,
            size,
        }
    }

    /// The byte under the head at `now_ns`, while it reads on.
    pub(super) fn position(&self, geometry: &Geometry, now_ns: u64) -> Option<u64> {
        let stream = self.stream?;
        let turned = now_ns.saturating_sub(stream.since_ns) as f64 / self.revolution_ns as f64;
        let at = geometry.offset(geometry.revolutions(stream.base) + turned);
        Some(at.clamp(stream.base, stream.limit))
    }

    /// When the buffer holds all of `start..end`, if the head is on its way over it at `now_ns`.
    pub(super) fn arrives_ns(
        &self,
        geometry: &Geometry,
        now_ns: u64,
        start: u64,
        end: u64,
    ) -> Option<u64> {
        let stream = self.stream?;
        let position = self.position(geometry, now_ns)?;
        if start < stream.start || start > position + GAP {
            return None;
        }
        if end <= position {
            return Some(now_ns);
        }
        // A head that has stopped reading on would have to wait for the next turn.
        if position == stream.limit {
            return None;
        }
        let turns = geometry.revolutions(end) - geometry.revolutions(stream.base);
        Some(stream.since_ns + (turns * self.revolution_ns as f64) as u64)
    }

    /// Whether an earlier run holds all of `start..end`.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        self.runs.iter().any(|run| run.0 <= start && end <= run.1)
    }

    /// The head has read `start..end` and reads on from `now_ns`.
    pub(super) fn begin(&mut self, start: u64, end: u64, now_ns: u64) {
        self.stream = Some(Stream {
            start,
            base: end,
            since_ns: now_ns,
            limit: (end + self.distance).min(self.size),
        });
    }

    /// A read that ended at `end` was served from the stream: it continues.
    pub(super) fn extend(&mut self, end: u64) {
        if let Some(stream) = &mut self.stream {
            stream.limit = stream.limit.max((end + self.distance).min(self.size));
        }
    }

    /// The head is needed elsewhere: what was read is kept.
    pub(super) fn stop(&mut self, geometry: &Geometry, now_ns: u64) {
        let position = self.position(geometry, now_ns);
        if let (Some(position), Some(stream)) = (position, self.stream.take()) {
            if self.runs.len() == RUNS {
                self.runs.pop_front();
            }
            self.runs.push_back((stream.start, position));
        }
    }
}
