//! The write cache of a disk: which ranges it holds, and which flushes wait for them.

use std::collections::BTreeMap;

/// Longest write to the medium in one go, in bytes.
const DESTAGE_MAX: u64 = 1 << 20;
/// Ranges that are compared for the next write to the medium.
const CANDIDATES: usize = 16;

/// Disjoint ranges that do not touch, end by start.
type Ranges = BTreeMap<u64, u64>;

/// A range of bytes, start and end.
pub(super) type Range = (u64, u64);

/// Ranges that are not on the medium yet.
///
/// While a flush continues, newer writes are kept apart, so that it ends whatever keeps coming.
#[derive(Default)]
pub(super) struct Dirty {
    current: Ranges,
    /// Written since the flush began.
    newer: Ranges,
    /// Bytes in both, and in the range being written.
    bytes: u64,
    writing: Option<Range>,
    flushing: Vec<u64>,
    /// Flushes that came after newer writes.
    flushing_newer: Vec<u64>,
}

/// Adds a range and joins what it touches; returns by how many bytes the ranges grew.
fn insert(ranges: &mut Ranges, mut start: u64, mut end: u64) -> u64 {
    let mut joined = 0;
    if let Some((&first, &last)) = ranges.range(..start).next_back()
        && last >= start
    {
        ranges.remove(&first);
        joined += last - first;
        (start, end) = (first, end.max(last));
    }
    while let Some((&first, &last)) = ranges.range(start..=end).next() {
        ranges.remove(&first);
        joined += last - first;
        end = end.max(last);
    }
    ranges.insert(start, end);
    end - start - joined
}

fn covers(ranges: &Ranges, start: u64, end: u64) -> bool {
    ranges
        .range(..=start)
        .next_back()
        .is_some_and(|(_, last)| *last >= end)
}

impl Dirty {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ranges that wait for the medium.
    pub(super) fn ranges(&self) -> usize {
        self.current.len() + self.newer.len()
    }

    /// Whether there is one that may be written now.
    pub(super) fn has_ranges(&self) -> bool {
        !self.current.is_empty()
    }

    pub(super) fn is_flushing(&self) -> bool {
        !self.flushing.is_empty()
    }

    pub(super) fn write(&mut self, start: u64, end: u64) {
        let ranges = if self.is_flushing() {
            &mut self.newer
        } else {
            &mut self.current
        };
        self.bytes += insert(ranges, start, end);
    }

    /// Whether a read finds all of its range here.
    pub(super) fn covers(&self, start: u64, end: u64) -> bool {
        covers(&self.current, start, end) || covers(&self.newer, start, end)
    }

    /// Takes a flush. False when there is nothing to wait for.
    pub(super) fn flush(&mut self, id: u64) -> bool {
        if self.current.is_empty() && self.writing.is_none() {
            return false;
        }
        if self.newer.is_empty() {
            self.flushing.push(id);
        } else {
            self.flushing_newer.push(id);
        }
        true
    }

    /// Takes the range to write next: of those that follow `from`, the one that costs least. It
    /// only ever looks forward, as a sweep does, so that every range gets its turn.
    pub(super) fn start(&mut self, from: u64, cost: impl Fn(Range) -> u64) -> Option<Range> {
        let ahead = self.current.range(from..);
        let behind = self.current.range(..from);
        let (start, end) = ahead
            .chain(behind)
            .take(CANDIDATES)
            .map(|(start, end)| (*start, *end))
            .min_by_key(|(start, end)| cost((*start, (*end).min(start + DESTAGE_MAX))))?;
        self.current.remove(&start);
        let cut = end.min(start + DESTAGE_MAX);
        if cut < end {
            self.current.insert(cut, end);
        }
        self.writing = Some((start, cut));
        self.writing
    }

    /// The range is on the medium; returns the flushes that have ended by that.
    pub(super) fn finish(&mut self) -> Vec<u64> {
        if let Some((start, end)) = self.writing.take() {
            self.bytes -= end - start;
        }
        if !self.current.is_empty() || !self.is_flushing() {
            return Vec::new();
        }
        self.current = std::mem::take(&mut self.newer);
        std::mem::replace(&mut self.flushing, std::mem::take(&mut self.flushing_newer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut dirty = Dirty::default();
        for (start, end) in [(10, 20), (30, 40), (20, 30), (5, 12), (35, 36)] {
            dirty.write(start, end);
        }
        assert_eq!(dirty.bytes(), 35);
        assert!(dirty.covers(5, 40));
        assert!(!dirty.covers(4, 40));
        assert_eq!(dirty.start(0, |_| 0), Some((5, 40)));
        assert!(dirty.finish().is_empty());
        assert_eq!(dirty.bytes(), 0);
    }

    #[test]
    fn a_flush_waits_for_the_writes_before_it_and_no_others() {
        let mut dirty = Dirty::default();
        assert!(!dirty.flush(1));
        dirty.write(0, 10);
        dirty.write(50, 60);
        assert!(dirty.flush(2));
        dirty.write(100, 110);
        assert!(dirty.flush(3));
        assert_eq!(dirty.start(0, |_| 0), Some((0, 10)));
        assert!(dirty.finish().is_empty());
        assert_eq!(dirty.start(10, |_| 0), Some((50, 60)));
        assert_eq!(dirty.finish(), [2]);
        assert_eq!(dirty.start(0, |_| 0), Some((100, 110)));
        assert_eq!(dirty.finish(), [3]);
        assert_eq!(dirty.bytes(), 0);
    }

    #[test]
    fn a_long_range_is_written_in_steps() {
        let mut dirty = Dirty::default();
        dirty.write(0, 5 << 20);
        for step in 0..5 {
            let range = (step << 20, (step + 1) << 20);
            assert_eq!(dirty.start(step << 20, |_| 0), Some(range));
            dirty.finish();
        }
        assert!(!dirty.has_ranges());
    }
}
