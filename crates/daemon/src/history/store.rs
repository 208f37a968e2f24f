//! The history of a daemon: its objects, and recording and reading their steps.

use super::counts::Counts;
use super::query::{Plan, Query, QueryResult};
use super::rings::{Place, RINGS, Ring, Rings};
use super::series::{Kind, SERIES_MAX, Values};
use super::{FORMAT, first};
use crate::state::{StateFiles, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The folder in the state folder, and its files.
const FOLDER: &str = "history";
const FIGURES: &str = "figures";
const COUNTS: &str = "counts";
const INDEX: &str = "index.json";
/// Maximum size of the index, in bytes.
const INDEX_MAX: u64 = 16 << 20;
/// Maximum number of objects, besides the daemon's own.
const OBJECTS_MAX: usize = 4096;
/// Objects not seen for this long are dropped, in seconds.
const FORGET_S: u64 = 2 * 365 * 86_400;
/// The object that records the daemon's uptime.
const DAEMON: &str = "daemon";
/// Maximum number of seconds recorded at a time.
const SECONDS_MAX: u64 = 15;
const UP: Values = [0.0; SERIES_MAX];

#[derive(Clone, Serialize, Deserialize)]
struct Entry {
    id: u32,
    region: u32,
    /// When it was first seen, and approximately last: seconds since 1970.
    created_s: u64,
    seen_s: u64,
}

impl Entry {
    fn place(&self) -> Place {
        Place {
            id: self.id,
            region: self.region,
        }
    }

    /// Fills in quiet steps from number `first` on: those in which the object existed, the daemon
    /// ran according to `up`, and nothing was recorded.
    fn filled(
        &self,
        kind: Kind,
        ring: &Ring,
        first: u64,
        steps: Vec<Option<Values>>,
        up: &[Option<Values>],
    ) -> Vec<Option<Values>> {
        let (since, quiet) = (self.created_s / ring.step_s, kind.quiet());
        let all = steps.into_iter().zip(up).zip(first..);
        all.map(|((step, up), number)| step.or(up.filter(|_| number >= since).map(|_| quiet)))
            .collect()
    }
}

#[derive(Serialize, Deserialize)]
struct Index {
    version: u32,
    next_id: u32,
    objects: BTreeMap<String, Entry>,
}

/// Why a query failed.
#[derive(Debug)]
pub enum Missing {
    /// Nothing is recorded for the object.
    Object,
    /// The query is invalid: why.
    Question(String),
    /// An I/O error.
    Io(io::Error),
}

struct Inner {
    rings: Arc<Rings<Values>>,
    counts: Arc<Rings<Counts>>,
    index: Index,
    /// Numbers of the next minute and hour to aggregate, counted since 1970.
    next: [u64; 2],
    /// The limit of objects was logged.
    full: bool,
}

/// The history. Locked while a second is recorded, and during a query.
pub struct Store {
    files: StateFiles,
    folder: PathBuf,
    inner: Mutex<Option<Inner>>,
}

impl Store {
    /// The history of a state folder, not opened yet.
    pub fn new(files: &StateFiles) -> Self {
        Self {
            folder: files.folder().join(FOLDER),
            files: files.clone(),
            inner: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Inner>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the history at `now_s`. An unreadable index is replaced by an empty one; if opening
    /// fails it is retried every second: the history must not keep the daemon from starting.
    pub fn load(&self, now_s: u64) {
        let opened = self.opened(&mut self.lock(), now_s).map(drop);
        if let Err(error) = self.files.note(FOLDER, opened) {
            let at = self.folder.display();
            tracing::error!("cannot record history in {at}, retrying every second: {error}");
        }
    }

    fn opened<'a>(&self, inner: &'a mut Option<Inner>, now_s: u64) -> io::Result<&'a mut Inner> {
        match inner {
            Some(inner) => Ok(inner),
            None => {
                self.make_folder()?;
                Ok(inner.insert(self.open(now_s)?))
            }
        }
    }

    /// Creates the folder; refuses a symbolic link.
    fn make_folder(&self) -> io::Result<()> {
        match std::fs::symlink_metadata(&self.folder) {
            Ok(meta) if meta.is_dir() => Ok(()),
            Ok(_) => Err(io::Error::other("it is not a directory")),
            Err(_) => std::fs::create_dir(&self.folder),
        }
    }

    fn open(&self, now_s: u64) -> io::Result<Inner> {
        let index = self.read_index().unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::error!("the history index is corrupt and is recreated: {error}");
            }
            Index {
                version: FORMAT,
                // Larger than every id in existing records.
                next_id: (now_s as u32) | 1,
                objects: BTreeMap::new(),
            }
        });
        let index = self.in_this_format(index);
        let rings = Rings::open(&self.folder.join(FIGURES))?;
        let counts = Rings::open(&self.folder.join(COUNTS))?;
        let mut inner = Inner {
            rings: Arc::new(rings),
            counts: Arc::new(counts),
            index,
            next: [u64::MAX; 2],
            full: false,
        };
        inner.entry(DAEMON, now_s);
        let place = inner.index.objects[DAEMON].place();
        // Aggregate minutes and hours that the last daemon did not.
        let last_s = inner.rings.newest(place, &RINGS[0])?.unwrap_or(now_s);
        inner.next = [last_s / 60, last_s / 3600];
        self.keep(&inner.index)?;
        // The old file is not needed once the index is written.
        first::remove(&self.folder)?;
        Ok(inner)
    }

    /// Converts an index and its data to the current format.
    fn in_this_format(&self, mut index: Index) -> Index {
        if index.version == FORMAT {
            return index;
        }
        let objects = index.objects.iter();
        let places = objects.map(|(name, entry)| (name.as_str(), entry.place()));
        match first::take_over(&self.folder, &self.folder.join(FIGURES), places) {
            Ok(steps) => {
                tracing::info!("migrated {steps} steps from the history's first format")
            }
            Err(error) => {
                let at = self.folder.join(first::ASIDE);
                tracing::error!(
                    "migration from the history's first format was incomplete, the old file is \
                     set aside as {}: {error}",
                    at.display()
                );
                first::set_aside(&self.folder);
            }
        }
        index.version = FORMAT;
        index
    }

    fn read_index(&self) -> io::Result<Index> {
        let path = self.folder.join(INDEX);
        let index: Index = serde_json::from_slice(&reactor::read_regular(&path, INDEX_MAX)?)?;
        let places: BTreeSet<u32> = index.objects.values().map(|entry| entry.region).collect();
        let right = (1..=FORMAT).contains(&index.version)
            && index.objects.len() <= OBJECTS_MAX + 1
            && places.len() == index.objects.len()
            && places
                .last()
                .is_none_or(|last| *last as usize <= OBJECTS_MAX);
        match right {
            true => Ok(index),
            false => Err(io::Error::other(
                "it is inconsistent, or was written by a newer version",
            )),
        }
    }

    fn keep(&self, index: &Index) -> io::Result<()> {
        write_whole(&self.folder, INDEX, &serde_json::to_vec(index)?, 0o640)
    }

    /// Records the activity of objects in the `seconds` (at most 15) up to `now_s`. `counts` cover
    /// all of these seconds and are recorded in the last one.
    ///
    /// # Errors
    /// An I/O error; the next second is tried again.
    pub fn write(
        &self,
        now_s: u64,
        seconds: u64,
        figures: &[(String, Values)],
        counts: &[(String, Counts)],
    ) -> io::Result<()> {
        let written = self.try_write(now_s, seconds, figures, counts);
        self.files.note(FOLDER, written)
    }

    fn try_write(
        &self,
        now_s: u64,
        seconds: u64,
        figures: &[(String, Values)],
        counts: &[(String, Counts)],
    ) -> io::Result<()> {
        let mut inner = self.lock();
        let inner = self.opened(&mut inner, now_s)?;
        let first_s = now_s.saturating_sub(seconds.clamp(1, SECONDS_MAX) - 1);
        let (mut known, before) = (Vec::new(), inner.index.next_id);
        for (object, values) in figures {
            let Some(kind) = Kind::of(object) else {
                continue;
            };
            if let Some(place) = inner.entry(object, now_s) {
                known.push((place, kind, values));
            }
        }
        if inner.index.next_id != before {
            self.keep(&inner.index)?;
        }
        let daemon = inner.index.objects[DAEMON].place();
        let ring = &RINGS[0];
        for second in first_s..=now_s {
            for (place, kind, values) in &known {
                if !kind.is_quiet(values) {
                    inner.rings.write(*place, ring, second, values)?;
                }
            }
            inner.rings.write(daemon, ring, second, &UP)?;
        }
        for (object, counts) in counts {
            if let Some(entry) = inner.index.objects.get(object) {
                inner.counts.write(entry.place(), ring, now_s, counts)?;
            }
        }
        if inner.merge(now_s)? {
            self.keep(&inner.index)?;
        }
        Ok(())
    }

    /// Answers a query.
    ///
    /// # Errors
    /// When the object is unknown, the query is invalid, or the file cannot be read.
    pub fn read(&self, query: &Query<'_>, now_s: u64) -> Result<QueryResult, Missing> {
        let (rings, counts, entry, daemon) = {
            let inner = self.lock();
            let inner = inner.as_ref().ok_or(Missing::Object)?;
            let found = |object: &str| inner.index.objects.get(object).cloned();
            let entry = found(query.object).ok_or(Missing::Object)?;
            let daemon = found(DAEMON).ok_or(Missing::Object)?;
            let (rings, counts) = (Arc::clone(&inner.rings), Arc::clone(&inner.counts));
            (rings, counts, entry, daemon.place())
        };
        let kind = Kind::of(query.object).ok_or(Missing::Object)?;
        let plan = query.plan(now_s).map_err(Missing::Question)?;
        let Plan { ring, step_s, .. } = plan;
        let asked = plan.steps();
        // Limit to the steps in the ring: the query may begin before and end after them.
        let end = asked.end.min(now_s / ring.step_s + 1);
        let range = asked.start.max(end.saturating_sub(ring.steps))..end;
        let read = |place| rings.read(place, &ring, range.clone()).map_err(Missing::Io);
        let (steps, up) = (read(entry.place())?, read(daemon)?);
        let steps = entry.filled(kind, &ring, range.start, steps, &up);
        let counts = counts.read(entry.place(), &ring, range.clone());
        let counts = counts.map_err(Missing::Io)?;
        let steps = plan.grouped(range.start, steps);
        let counts = plan.grouped(range.start, counts);
        Ok(QueryResult {
            from_s: plan.from_s,
            step_s,
            steps: steps.iter().map(|known| kind.merge(known)).collect(),
            counts: counts.iter().map(|known| sum(known)).collect(),
        })
    }
}

/// Sums the histograms of several steps.
fn sum(counts: &[Counts]) -> Option<Counts> {
    let mut known = counts.iter();
    let mut sum = *known.next()?;
    known.for_each(|counts| sum.add(counts));
    Some(sum)
}

impl Inner {
    /// The place of an object, allocated if it is new; nothing when the limit is reached.
    fn entry(&mut self, object: &str, now_s: u64) -> Option<Place> {
        if let Some(entry) = self.index.objects.get_mut(object) {
            entry.seen_s = now_s;
            return Some(entry.place());
        }
        let region = match self.free_region() {
            Some(region) => region,
            None => self.evict(now_s)?,
        };
        let id = self.index.next_id;
        self.index.next_id = id.wrapping_add(1);
        let entry = Entry {
            id,
            region,
            created_s: now_s,
            seen_s: now_s,
        };
        let place = entry.place();
        self.index.objects.insert(object.to_owned(), entry);
        Some(place)
    }

    fn free_region(&self) -> Option<u32> {
        let taken: BTreeSet<u32> = self
            .index
            .objects
            .values()
            .map(|entry| entry.region)
            .collect();
        (0..=OBJECTS_MAX as u32).find(|region| !taken.contains(region))
    }

    /// Drops the object that was not seen for longest, if that was long enough ago.
    fn evict(&mut self, now_s: u64) -> Option<u32> {
        let objects = self.index.objects.iter();
        let others = objects.filter(|(name, _)| name.as_str() != DAEMON);
        let oldest = others.min_by_key(|(_, entry)| entry.seen_s);
        let gone = oldest.filter(|(_, entry)| entry.seen_s + 3600 < now_s);
        let Some(name) = gone.map(|(name, _)| name.clone()) else {
            if !std::mem::replace(&mut self.full, true) {
                tracing::warn!(
                    "the limit of {OBJECTS_MAX} objects in the history is reached: others are not recorded"
                );
            }
            return None;
        };
        self.index.objects.remove(&name).map(|entry| entry.region)
    }

    /// Aggregates seconds into minutes and minutes into hours, up to `now_s`; returns whether an
    /// hour was completed.
    fn merge(&mut self, now_s: u64) -> io::Result<bool> {
        let mut hour = false;
        for level in 0..self.next.len() {
            let (fine, coarse) = (RINGS[level], RINGS[level + 1]);
            let now = now_s / coarse.step_s;
            // Steps that were overwritten in the finer ring cannot be aggregated; after a clock is
            // set back they are recomputed.
            let oldest = now.saturating_sub(fine.steps * fine.step_s / coarse.step_s);
            let first = self.next[level].clamp(oldest, now);
            for step in first..now {
                self.merge_step(&fine, &coarse, step)?;
                hour |= level == 1;
            }
            self.next[level] = now;
        }
        if hour {
            let old = |entry: &Entry| entry.seen_s + FORGET_S < now_s;
            self.index.objects.retain(|_, entry| !old(entry));
        }
        Ok(hour)
    }

    fn merge_step(&self, fine: &Ring, coarse: &Ring, step: u64) -> io::Result<()> {
        let ratio = coarse.step_s / fine.step_s;
        let range = step * ratio..(step + 1) * ratio;
        let daemon = self.index.objects[DAEMON].place();
        let up = self.rings.read(daemon, fine, range.clone())?;
        if up.iter().all(Option::is_none) {
            return Ok(());
        }
        for (object, entry) in &self.index.objects {
            let Some(kind) = Kind::of(object) else {
                continue;
            };
            let counts = self.counts.read(entry.place(), fine, range.clone())?;
            let known: Vec<Counts> = counts.into_iter().flatten().collect();
            if let Some(sum) = sum(&known) {
                self.counts.write(entry.place(), coarse, step, &sum)?;
            }
            let read = self.rings.read(entry.place(), fine, range.clone())?;
            if read.iter().all(Option::is_none) {
                continue;
            }
            let steps = entry.filled(kind, fine, range.start, read, &up);
            let known: Vec<Values> = steps.into_iter().flatten().collect();
            if let Some(merged) = kind.merge(&known) {
                self.rings.write(entry.place(), coarse, step, &merged)?;
            }
        }
        self.rings.write(daemon, coarse, step, &UP)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
