//! Storage of recorded maps: per volume one whole map and subsequent changes. Pure functions.

use crate::live::{Change, differences};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of cells of a recorded map.
const CELLS_MAX: u64 = 1024;
/// Minimum bytes per cell.
const CHUNK: u64 = units::CHUNK as u64;
/// Recording interval of a volume, in seconds.
pub const EVERY_S: u64 = 10;
/// Recording interval of an idle volume, in seconds.
pub const IDLE_S: u64 = 300;
/// Retention, in seconds.
const KEEP_S: u64 = 3600;
/// Maximum number of frames per volume.
const FRAMES_MAX: usize = (KEEP_S / EVERY_S) as usize;
/// Maximum number of recorded volumes.
const VOLUMES_MAX: usize = 4096;
/// Memory limit in bytes for all volumes; beyond it the oldest frames are dropped.
const BYTES_MAX: usize = 64 << 20;
/// Approximate overhead of a volume and of a frame, in bytes.
const VOLUME_BYTES: usize = 512;
const FRAME_BYTES: usize = 64;

/// A volume by the names of its pool and itself.
type Key = (String, String);

/// Changes from the previous frame.
struct Frame {
    at_s: u64,
    changed: Box<[Change]>,
}

impl Frame {
    fn bytes(&self) -> usize {
        FRAME_BYTES + size_of_val(&*self.changed)
    }
}

/// Recording of a volume.
struct Tape {
    /// Serial number of the volume, to detect another one of the same name.
    serial: String,
    size: u64,
    /// The oldest stored map, and its time.
    first: Box<[u16]>,
    first_s: u64,
    /// Later frames with changes, oldest first.
    frames: VecDeque<Frame>,
    /// The latest map.
    last: Box<[u16]>,
    last_s: u64,
}

fn apply(codes: &mut [u16], changed: &[Change]) {
    for (at, code) in changed {
        codes[usize::from(*at)] = *code;
    }
}

impl Tape {
    fn bytes(&self) -> usize {
        let frames: usize = self.frames.iter().map(Frame::bytes).sum();
        VOLUME_BYTES + size_of_val(&*self.first) * 2 + frames
    }

    /// Drops the oldest map; the next frame takes its place. Returns the bytes freed.
    fn forget_first(&mut self) -> usize {
        let Some(next) = self.frames.pop_front() else {
            return 0;
        };
        apply(&mut self.first, &next.changed);
        self.first_s = next.at_s;
        next.bytes()
    }

    /// Drops frames older than `since_s`, keeping the map of that time.
    fn forget_before(&mut self, since_s: u64) -> usize {
        let mut freed = 0;
        while self
            .frames
            .front()
            .is_some_and(|frame| frame.at_s <= since_s)
        {
            freed += self.forget_first();
        }
        freed
    }
}

/// A volume's map at some time, and its later changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PastMap {
    /// The volume's size in bytes.
    pub size: u64,
    /// Time of the last recording: seconds since 1970.
    pub last_s: u64,
    /// Time of this map: seconds since 1970.
    pub at_s: u64,
    /// One code per cell.
    pub codes: Vec<u16>,
    /// Later changes and their times: seconds since 1970.
    pub then: Vec<(u64, Vec<Change>)>,
}

/// Recordings of all volumes.
#[derive(Default)]
pub struct Recorded {
    tapes: BTreeMap<Key, Tape>,
    /// Approximate memory in use.
    bytes: usize,
}

/// Number of cells for a volume of `size` bytes: a power of two, with at least 1 MiB per cell.
pub fn cells_for(size: u64) -> usize {
    let most = (size / CHUNK).clamp(1, CELLS_MAX);
    1 << most.ilog2()
}

impl Recorded {
    /// Records a map of a volume at `at_s`, seconds since 1970. A new recording begins if the size
    /// or serial number has changed, or the clock was set back.
    pub fn note(&mut self, key: &Key, serial: &str, size: u64, at_s: u64, codes: Vec<u16>) {
        let known = self.tapes.get_mut(key).filter(|tape| {
            tape.serial == serial
                && tape.size == size
                && tape.last.len() == codes.len()
                && tape.last_s <= at_s
        });
        match known {
            Some(tape) => {
                let changed = differences(&tape.last, &codes);
                tape.last_s = at_s;
                if !changed.is_empty() {
                    tape.last = codes.into();
                    let changed = changed.into();
                    tape.frames.push_back(Frame { at_s, changed });
                    self.bytes += tape.frames.back().map_or(0, Frame::bytes);
                }
                if tape.frames.len() > FRAMES_MAX {
                    self.bytes -= tape.forget_first();
                }
                self.bytes -= tape.forget_before(at_s.saturating_sub(KEEP_S));
            }
            None => {
                self.forget(key);
                if self.tapes.len() >= VOLUMES_MAX {
                    return;
                }
                let tape = Tape {
                    serial: serial.to_owned(),
                    size,
                    first: codes.clone().into(),
                    first_s: at_s,
                    frames: VecDeque::new(),
                    last: codes.into(),
                    last_s: at_s,
                };
                self.bytes += tape.bytes();
                self.tapes.insert(key.clone(), tape);
            }
        }
        self.fit(BYTES_MAX);
    }

    fn forget(&mut self, key: &Key) {
        if let Some(tape) = self.tapes.remove(key) {
            self.bytes -= tape.bytes();
        }
    }

    /// Drops the oldest frames until at most `most` bytes are used, approximately. The latest map
    /// of each volume is kept.
    pub(super) fn fit(&mut self, most: usize) {
        while self.bytes > most {
            let oldest = self
                .tapes
                .values_mut()
                .filter(|tape| !tape.frames.is_empty())
                .min_by_key(|tape| tape.first_s);
            match oldest.map(Tape::forget_first) {
                Some(freed) => self.bytes -= freed,
                None => return,
            }
        }
    }

    /// Drops frames older than an hour at `at_s`, and volumes that no longer exist.
    pub fn tidy(&mut self, at_s: u64, is_there: impl Fn(&Key) -> bool) {
        self.tapes.retain(|key, _| is_there(key));
        for tape in self.tapes.values_mut() {
            tape.forget_before(at_s.saturating_sub(KEEP_S));
        }
        self.bytes = self.tapes.values().map(Tape::bytes).sum();
    }

    /// Time of the last recording of a volume: seconds since 1970.
    pub fn last_s(&self, key: &Key) -> Option<u64> {
        self.tapes.get(key).map(|tape| tape.last_s)
    }

    /// A volume's map at `from_s`, or the oldest one stored, and its changes up to `to_s`, in
    /// seconds since 1970. Nothing if none is stored.
    pub fn was(&self, key: &Key, serial: &str, from_s: u64, to_s: u64) -> Option<PastMap> {
        let tape = self.tapes.get(key).filter(|tape| tape.serial == serial)?;
        let mut was = PastMap {
            size: tape.size,
            last_s: tape.last_s,
            at_s: tape.first_s,
            codes: tape.first.to_vec(),
            then: Vec::new(),
        };
        for frame in tape.frames.iter().take_while(|frame| frame.at_s <= to_s) {
            if frame.at_s <= from_s {
                apply(&mut was.codes, &frame.changed);
                was.at_s = frame.at_s;
            } else {
                was.then.push((frame.at_s, frame.changed.to_vec()));
            }
        }
        Some(was)
    }

    /// Approximate memory in use, in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
