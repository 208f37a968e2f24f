//! What is kept: of each volume one whole map, and what changed of it from look to look. Pure.

use crate::live::{Change, differences};
use std::collections::{BTreeMap, VecDeque};

/// Parts of a map that is kept, at most.
const CELLS_MAX: u64 = 1024;
/// Bytes of a volume that are never divided.
const CHUNK: u64 = units::CHUNK as u64;
/// From one look at a volume to the next, in seconds.
pub const EVERY_S: u64 = 10;
/// The same for one with which nothing was done.
pub const IDLE_S: u64 = 300;
/// How long it is kept, in seconds.
const KEEP_S: u64 = 3600;
/// Looks that are kept of a volume.
const FRAMES_MAX: usize = (KEEP_S / EVERY_S) as usize;
/// Volumes of which maps are kept; of others there are none.
const VOLUMES_MAX: usize = 4096;
/// Bytes for the maps of all volumes; beyond that the oldest looks go.
const BYTES_MAX: usize = 64 << 20;
/// What a volume and a look take beside their parts, about.
const VOLUME_BYTES: usize = 512;
const FRAME_BYTES: usize = 64;

/// A volume by its pool's name and its own.
type Key = (String, String);

/// What a look saw otherwise than the one before.
struct Frame {
    at_s: u64,
    changed: Box<[Change]>,
}

impl Frame {
    fn bytes(&self) -> usize {
        FRAME_BYTES + size_of_val(&*self.changed)
    }
}

/// What is kept of a volume.
struct Tape {
    /// The volume's serial number: another one of this name is another one.
    serial: String,
    size: u64,
    /// The map as the first look of those that are kept saw it, and when that was.
    first: Box<[u16]>,
    first_s: u64,
    /// Looks since then that saw something else, the oldest first.
    frames: VecDeque<Frame>,
    /// The map at the last look.
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

    /// Forgets the first look; the next one becomes the first. Returns how many bytes that freed.
    fn forget_first(&mut self) -> usize {
        let Some(next) = self.frames.pop_front() else {
            return 0;
        };
        apply(&mut self.first, &next.changed);
        self.first_s = next.at_s;
        next.bytes()
    }

    /// Forgets what is older than `since_s`, but what the map was then.
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

/// A volume's map as it was at a moment, and what changed of it since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Was {
    /// The volume's size in bytes.
    pub size: u64,
    /// When it was looked at last: seconds since 1970.
    pub last_s: u64,
    /// When it was seen so first: seconds since 1970.
    pub at_s: u64,
    /// A code a part.
    pub codes: Vec<u16>,
    /// What changed then, and when: seconds since 1970.
    pub then: Vec<(u64, Vec<Change>)>,
}

/// The maps of all volumes.
#[derive(Default)]
pub struct Recorded {
    tapes: BTreeMap<Key, Tape>,
    /// What they take, about.
    bytes: usize,
}

/// Parts of the map of a volume of `size` bytes that is kept: a power of two, and none smaller than 1 MiB.
pub fn cells_for(size: u64) -> usize {
    let most = (size / CHUNK).clamp(1, CELLS_MAX);
    1 << most.ilog2()
}

impl Recorded {
    /// Notes what a look at `at_s`, seconds since 1970, saw of a volume. One that has another size, or is another one
    /// of its name, begins anew, and so it is when the clock was set back.
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

    /// Forgets the oldest looks until the rest takes no more than `most` bytes, about. A volume's last map stays.
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

    /// Forgets what is older than an hour at `at_s`, and volumes that are not among these.
    pub fn tidy(&mut self, at_s: u64, is_there: impl Fn(&Key) -> bool) {
        self.tapes.retain(|key, _| is_there(key));
        for tape in self.tapes.values_mut() {
            tape.forget_before(at_s.saturating_sub(KEEP_S));
        }
        self.bytes = self.tapes.values().map(Tape::bytes).sum();
    }

    /// When a volume was looked at last: seconds since 1970.
    pub fn last_s(&self, key: &Key) -> Option<u64> {
        self.tapes.get(key).map(|tape| tape.last_s)
    }

    /// How a volume's map was at `from_s`, or at the first look that is kept, and what changed up to `to_s`; both are
    /// seconds since 1970. Nothing when nothing is kept of it.
    pub fn was(&self, key: &Key, serial: &str, from_s: u64, to_s: u64) -> Option<Was> {
        let tape = self.tapes.get(key).filter(|tape| tape.serial == serial)?;
        let mut was = Was {
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

    /// Bytes that all of it takes, about.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
