//! Layout of a file: a region per object, with a ring per step length.

use super::record::{Payload, decode, encode, record_bytes, step_of};
use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A ring (round-robin archive): step length and number of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    /// Seconds per step.
    pub step_s: u64,
    /// Number of steps kept.
    pub steps: u64,
    /// Records that precede it in the region.
    before: u64,
}

/// Seconds for an hour, minutes for a week, hours for two years.
pub const RINGS: [Ring; 3] = [
    Ring {
        step_s: 1,
        steps: 3600,
        before: 0,
    },
    Ring {
        step_s: 60,
        steps: 7 * 24 * 60,
        before: 3600,
    },
    Ring {
        step_s: 3600,
        steps: 2 * 365 * 24,
        before: 3600 + 7 * 24 * 60,
    },
];

/// Page size in bytes; a record does not cross pages.
const PAGE: usize = 4096;

/// Size of an object's region in bytes, in whole pages.
const fn region_bytes<T: Payload>() -> u64 {
    let records = RINGS[2].before + RINGS[2].steps;
    (records * record_bytes::<T>() as u64).next_multiple_of(PAGE as u64)
}

/// Region and id of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its id, which is never reused.
    pub id: u32,
    /// Its region, counted from 0.
    pub region: u32,
}

/// A file of records. It is sparse: unwritten parts use no space.
pub struct Rings<T>(File, PhantomData<fn() -> T>);

impl<T: Payload> Rings<T> {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// An I/O error.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o640);
        let file = reactor::open_regular(path, &options)?;
        Ok(Self(file, PhantomData))
    }

    fn offset(place: Place, ring: &Ring, step: u64) -> u64 {
        let record = ring.before + step % ring.steps;
        u64::from(place.region) * region_bytes::<T>() + record * record_bytes::<T>() as u64
    }

    /// Writes a step, overwriting the previous step in its place. It survives a crash of the
    /// daemon.
    ///
    /// # Errors
    /// An I/O error.
    pub fn write(&self, place: Place, ring: &Ring, step: u64, kept: &T) -> io::Result<()> {
        let record = encode(place.id, step as u32, kept);
        self.0
            .write_all_at(&record, Self::offset(place, ring, step))
    }

    /// Reads consecutive records; zeroes beyond the end of the file.
    fn records(&self, place: Place, ring: &Ring, from: u64, count: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count as usize * record_bytes::<T>()];
        let mut filled = 0;
        while filled < bytes.len() {
            let at = Self::offset(place, ring, from) + filled as u64;
            match self.0.read_at(&mut bytes[filled..], at) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// Reads a range of steps, at most as many as the ring has; nothing for missing ones.
    ///
    /// # Errors
    /// An I/O error.
    pub fn read(&self, place: Place, ring: &Ring, steps: Range<u64>) -> io::Result<Vec<Option<T>>> {
        let mut read = Vec::new();
        let mut from = steps.start;
        let end = steps.end.min(steps.start.saturating_add(ring.steps));
        while from < end {
            // Up to the point where the ring wraps around.
            let count = (end - from).min(ring.steps - from % ring.steps);
            let bytes = self.records(place, ring, from, count)?;
            let numbered = bytes.chunks_exact(record_bytes::<T>()).zip(from..);
            read.extend(numbered.map(|(record, step)| decode(place.id, step as u32, record)));
            from += count;
        }
        Ok(read)
    }

    /// All steps in a ring, with their numbers.
    ///
    /// # Errors
    /// An I/O error.
    pub fn all(&self, place: Place, ring: &Ring) -> io::Result<Vec<(u64, T)>> {
        let bytes = self.records(place, ring, 0, ring.steps)?;
        let records = bytes.chunks_exact(record_bytes::<T>());
        let known = records.filter_map(|record| {
            let step = step_of(place.id, record)?;
            Some((u64::from(step), decode(place.id, step, record)?))
        });
        Ok(known.collect())
    }

    /// Writes many steps of an object, page by page.
    ///
    /// # Errors
    /// An I/O error.
    pub fn write_all(&self, place: Place, steps: &[(&Ring, Vec<(u64, T)>)]) -> io::Result<()> {
        let begin = u64::from(place.region) * region_bytes::<T>();
        let mut region = vec![0; region_bytes::<T>() as usize];
        for (ring, steps) in steps {
            for (step, kept) in steps {
                let at = (Self::offset(place, ring, *step) - begin) as usize;
                let record = encode(place.id, *step as u32, kept);
                region[at..at + record.len()].copy_from_slice(&record);
            }
        }
        let pages = region.chunks_exact(PAGE).zip((begin..).step_by(PAGE));
        let known = pages.filter(|(page, _)| page.iter().any(|byte| *byte != 0));
        for (page, at) in known {
            self.0.write_all_at(page, at)?;
        }
        self.0.sync_data()
    }

    /// The newest step of a ring.
    ///
    /// # Errors
    /// An I/O error.
    pub fn newest(&self, place: Place, ring: &Ring) -> io::Result<Option<u64>> {
        let bytes = self.records(place, ring, 0, ring.steps)?;
        let records = bytes.chunks_exact(record_bytes::<T>());
        let steps = records.filter_map(|record| step_of(place.id, record));
        Ok(steps.max().map(u64::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::counts::Counts;
    use crate::history::series::{SERIES_MAX, Values};

    #[test]
    fn rings_are_contiguous_and_match_the_documented_size() {
        assert_eq!(
            RINGS.map(|ring| ring.step_s * ring.steps),
            [3600, 7 * 86_400, 730 * 86_400]
        );
        assert_eq!(RINGS[1].before, RINGS[0].steps);
        assert_eq!(RINGS[2].before, RINGS[1].before + RINGS[1].steps);
        assert_eq!(region_bytes::<Values>(), 1952 << 10);
        assert_eq!(region_bytes::<Counts>(), 3900 << 10);
        assert_eq!(region_bytes::<[f32; 6]>(), 976 << 10);
        assert!(4096usize.is_multiple_of(record_bytes::<Values>()));
        assert!(4096usize.is_multiple_of(record_bytes::<Counts>()));
    }

    #[test]
    fn range_is_read_across_the_wrap_of_its_ring() {
        let folder = tempfile::tempdir().unwrap();
        let rings = Rings::<Values>::open(&folder.path().join("data")).unwrap();
        let place = Place { id: 5, region: 2 };
        let values = |step: u64| [step as f32; SERIES_MAX];
        for step in 7190..7210 {
            rings.write(place, &RINGS[0], step, &values(step)).unwrap();
        }
        let read = rings.read(place, &RINGS[0], 7188..7212).unwrap();
        let steps: Vec<Option<f32>> = read.iter().map(|step| step.map(|step| step[0])).collect();
        let wanted = (7188..7212).map(|step| (7190..7210).contains(&step).then_some(step as f32));
        assert_eq!(steps, wanted.collect::<Vec<_>>());
        assert_eq!(rings.newest(place, &RINGS[0]).unwrap(), Some(7209));
        // One revolution later the same places hold other steps.
        assert_eq!(
            rings.read(place, &RINGS[0], 3590..3610).unwrap(),
            [None; 20]
        );
        assert_eq!(
            rings.read(place, &RINGS[1], 7190..7200).unwrap(),
            [None; 10]
        );
    }
}
