//! Log of recent moves, with source, destination and reason, and counts of each.
//!
//! Rings of fixed size that their shard owns: logging a move takes no memory and no lock, and queries
//! search all of them. Leaves out: deciding anything.

use crate::control::explain::{Cause, MoveCount, Spot};
use placement::{Admission, Extent, Heat};
use units::{BLOCK, CHUNK_EXTENTS};

/// Events of one extent for the same reason within this time, in nanoseconds, are one move.
const TOGETHER_NS: u64 = 1_000_000_000;

/// Share of the memory for moves into and out of RAM: a quarter.
const RAM_PART: usize = 4;

/// The reason for a move, with the decisive figures, if any.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Grounds {
    pub cause: Cause,
    /// The extent's value.
    pub worth: f32,
    /// The threshold; 0: none.
    pub wanted: f32,
}

impl From<Cause> for Grounds {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            worth: 0.0,
            wanted: 0.0,
        }
    }
}

impl From<Admission> for Grounds {
    fn from(admission: Admission) -> Self {
        let (worth, wanted) = (admission.worth, admission.wanted);
        let cause = match admission.promote {
            0 if worth > 0.0 || wanted > 0.0 => Cause::StayedLow,
            0 => Cause::StayedUnasked,
            _ if wanted > 0.0 => Cause::RoseWorth,
            _ => Cause::RoseRoom,
        };
        Self {
            cause,
            worth,
            wanted,
        }
    }
}

impl Grounds {
    /// For an extent evicted from the fast tier for a more valuable one.
    pub fn evicted(cause: Cause, heat: &Heat) -> Self {
        Self {
            cause,
            worth: heat.worth,
            wanted: heat.bar,
        }
    }
}

/// A move of blocks of an extent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Move {
    /// Its time, by the loop's clock.
    pub at_ns: u64,
    pub extent: Extent,
    /// Blocks of the extent; bit 0 is the first.
    pub blocks: u16,
    pub grounds: Grounds,
    /// The last extent evicted from the tier before its space was taken.
    pub displaced: Option<Extent>,
}

impl Move {
    /// A move that took place just now and displaced nothing.
    pub fn new(now_ns: u64, grounds: impl Into<Grounds>, extent: Extent, blocks: u16) -> Self {
        Self {
            at_ns: now_ns,
            extent,
            blocks,
            grounds: grounds.into(),
            displaced: None,
        }
    }

    /// The same, for which another extent was evicted.
    pub fn in_place_of(self, left: Option<Extent>) -> Self {
        let displaced = left.filter(|left| *left != self.extent);
        Self { displaced, ..self }
    }
}

/// A stored move.
#[derive(Clone, Copy)]
struct Entry {
    at_ns: u64,
    extent: Packed,
    /// Layer 0: none.
    displaced: Packed,
    worth: f32,
    wanted: f32,
    blocks: u16,
    cause: Cause,
}

/// An extent in twelve bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Packed {
    layer: u32,
    chunk: u32,
    extent: u8,
}

impl From<Extent> for Packed {
    fn from(extent: Extent) -> Self {
        let size = CHUNK_EXTENTS as u64;
        Self {
            layer: extent.volume,
            chunk: (extent.number / size) as u32,
            extent: (extent.number % size) as u8,
        }
    }
}

impl From<Packed> for Extent {
    fn from(packed: Packed) -> Self {
        Self {
            volume: packed.layer,
            number: u64::from(packed.chunk) * CHUNK_EXTENTS as u64 + u64::from(packed.extent),
        }
    }
}

impl From<Entry> for Move {
    fn from(entry: Entry) -> Self {
        let displaced = (entry.displaced != Packed::default()).then(|| entry.displaced.into());
        Self {
            at_ns: entry.at_ns,
            extent: entry.extent.into(),
            blocks: entry.blocks,
            grounds: Grounds {
                cause: entry.cause,
                worth: entry.worth,
                wanted: entry.wanted,
            },
            displaced,
        }
    }
}

/// Counts of a move.
#[derive(Clone, Copy, Default)]
struct Tally {
    moves: u64,
    blocks: u64,
}

/// The last moves of a kind.
struct Ring {
    entries: Vec<Entry>,
    /// The oldest one, once it is full.
    oldest: usize,
    most: usize,
    /// Start of the time that it covers completely.
    since_ns: u64,
    is_whole: bool,
}

impl Ring {
    fn new(bytes: usize, now_ns: u64) -> Self {
        let most = (bytes / size_of::<Entry>()).max(1);
        Self {
            entries: Vec::with_capacity(most),
            oldest: 0,
            most,
            since_ns: now_ns,
            is_whole: true,
        }
    }

    /// Stores an entry, or adds its blocks to the last one; false then.
    fn add(&mut self, entry: Entry) -> bool {
        let newest = match self.oldest {
            0 => self.entries.last_mut(),
            oldest => self.entries.get_mut(oldest - 1),
        };
        if let Some(newest) = newest
            && newest.extent == entry.extent
            && newest.cause == entry.cause
            && entry.at_ns < newest.at_ns.saturating_add(TOGETHER_NS)
        {
            newest.blocks |= entry.blocks;
            return false;
        }
        if self.entries.len() < self.most {
            self.entries.push(entry);
            return true;
        }
        let dropped = std::mem::replace(&mut self.entries[self.oldest], entry);
        (self.since_ns, self.is_whole) = (dropped.at_ns, false);
        self.oldest = (self.oldest + 1) % self.most;
        true
    }

    /// The newest first.
    fn of(&self, extent: Packed) -> impl Iterator<Item = Move> {
        let (newer, older) = self.entries.split_at(self.oldest);
        let newest_first = newer.iter().rev().chain(older.iter().rev());
        let known = newest_first.filter(move |entry| entry.extent == extent);
        known.map(|entry| Move::from(*entry))
    }
}

/// The last moves of a shard, and their counts.
pub(crate) struct Ledger {
    /// Into RAM, and evictions from it: many, and soon of no interest.
    ram: Ring,
    /// The others.
    tiers: Ring,
    tallies: [Tally; Cause::ALL.len()],
    /// The last extent evicted from the fast tier for space.
    evicted: Packed,
    /// Blocks of its space that have not been taken since.
    room: u64,
}

impl Ledger {
    /// An empty one that takes at most `bytes`, from `now_ns` on.
    pub fn new(bytes: usize, now_ns: u64) -> Self {
        let ram = bytes / RAM_PART;
        Self {
            ram: Ring::new(ram, now_ns),
            tiers: Ring::new(bytes - ram, now_ns),
            tallies: [Tally::default(); Cause::ALL.len()],
            evicted: Packed::default(),
            room: 0,
        }
    }

    /// Logs a move. One that takes space on the fast tier has displaced the last evicted extent, as long as that
    /// freed enough.
    pub fn note(&mut self, moved: Move) {
        if moved.blocks == 0 {
            return;
        }
        let (cause, blocks) = (moved.grounds.cause, u64::from(moved.blocks.count_ones()));
        let mut displaced = moved.displaced.map(Packed::from).unwrap_or_default();
        if cause.makes_room() {
            self.evicted = moved.extent.into();
            self.room += blocks;
        } else if cause.takes_room() && self.room > 0 {
            self.room = self.room.saturating_sub(blocks);
            displaced = self.evicted;
        }
        let entry = Entry {
            at_ns: moved.at_ns,
            extent: moved.extent.into(),
            displaced,
            worth: moved.grounds.worth,
            wanted: moved.grounds.wanted,
            blocks: moved.blocks,
            cause,
        };
        let ring = match (cause.from(), cause.to()) {
            (_, Spot::Ram) | (Spot::Ram, Spot::Slow) => &mut self.ram,
            _ => &mut self.tiers,
        };
        let is_new = ring.add(entry);
        let tally = &mut self.tallies[cause as usize];
        tally.moves += u64::from(is_new);
        tally.blocks += blocks;
    }

    /// The stored moves of an extent, newest first: at most this many that only concern RAM, and
    /// this many others.
    pub fn of(&self, extent: Extent, most: usize) -> impl Iterator<Item = Move> {
        let mut ram = self.ram.of(extent.into()).take(most).peekable();
        let mut tiers = self.tiers.of(extent.into()).take(most).peekable();
        std::iter::from_fn(move || match (ram.peek(), tiers.peek()) {
            (Some(in_ram), Some(other)) if in_ram.at_ns > other.at_ns => ram.next(),
            (Some(_), None) => ram.next(),
            _ => tiers.next(),
        })
    }

    /// Start of the complete log of moves to a tier, by the loop's clock.
    pub fn since_ns(&self, tier: Spot) -> u64 {
        match tier {
            Spot::Ram => self.ram.since_ns,
            _ => self.tiers.since_ns,
        }
    }

    /// Whether no move between tiers has been dropped yet.
    pub fn is_whole(&self) -> bool {
        self.tiers.is_whole
    }

    /// Counts and bytes of moves by reason.
    pub fn counts(&self) -> impl Iterator<Item = MoveCount> {
        let tallies = Cause::ALL.iter().zip(&self.tallies);
        tallies.map(|(cause, tally)| MoveCount {
            cause: *cause,
            moves: tally.moves,
            bytes: tally.blocks * BLOCK as u64,
        })
    }
}

#[cfg(test)]
mod tests;
