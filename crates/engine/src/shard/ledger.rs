//! What was moved of late, from where to where and why, and how often each was done at all.
//!
//! A ring of fixed size that its shard owns: noting a move takes no memory and no lock, and what is looked
//! for in it, when a person asks, is looked for in all of it. Leaves out: deciding anything.

use crate::control::explain::{Cause, MoveCount};
use placement::{Admission, Extent, Heat};
use units::{BLOCK, CHUNK_EXTENTS};

/// What happens to one extent for one cause within this time, in nanoseconds, is one move.
const TOGETHER_NS: u64 = 1_000_000_000;

/// Why something was moved, with the figures that decided where some did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Grounds {
    pub cause: Cause,
    /// What the extent was worth.
    pub worth: f32,
    /// What that was held against; 0: nothing.
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
    /// Of an extent that had to leave the fast tier for one that is worth more.
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
pub(super) struct Move {
    /// When, by the loop's clock.
    pub at_ns: u64,
    pub extent: Extent,
    /// Blocks of the extent; bit 0 is the first.
    pub blocks: u16,
    pub grounds: Grounds,
    /// What had left the tier last before room there was taken for it.
    pub displaced: Option<Extent>,
}

impl Move {
    /// One that took place just now and displaced nothing.
    pub fn new(now_ns: u64, grounds: impl Into<Grounds>, extent: Extent, blocks: u16) -> Self {
        Self {
            at_ns: now_ns,
            extent,
            blocks,
            grounds: grounds.into(),
            displaced: None,
        }
    }

    /// The same, for which something else had to leave.
    pub fn in_place_of(self, left: Option<Extent>) -> Self {
        let displaced = left.filter(|left| *left != self.extent);
        Self { displaced, ..self }
    }
}

/// A move as it is kept.
#[derive(Clone, Copy)]
struct Entry {
    at_ns: u64,
    extent: Packed,
    /// Of layer 0: none.
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

/// How often something was done.
#[derive(Clone, Copy, Default)]
struct Tally {
    moves: u64,
    blocks: u64,
}

/// The last moves of a shard, and how many there were.
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The oldest one, once there is room for no more.
    oldest: usize,
    most: usize,
    tallies: [Tally; Cause::ALL.len()],
    /// What left the fast tier last to make room.
    evicted: Packed,
    /// Blocks of such room that nothing has taken since.
    room: u64,
    /// Since then everything is in it.
    since_ns: u64,
    is_whole: bool,
}

impl Ledger {
    /// An empty one that takes at most `bytes`, from `now_ns` on.
    pub fn new(bytes: usize, now_ns: u64) -> Self {
        let most = (bytes / size_of::<Entry>()).max(1);
        Self {
            entries: Vec::with_capacity(most),
            oldest: 0,
            most,
            tallies: [Tally::default(); Cause::ALL.len()],
            evicted: Packed::default(),
            room: 0,
            since_ns: now_ns,
            is_whole: true,
        }
    }

    /// Notes a move. One that takes room on the fast tier has displaced what left that last, as long as what
    /// left made so much room.
    pub fn note(&mut self, moved: Move) {
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
        let is_new = self.add(entry);
        let tally = &mut self.tallies[cause as usize];
        tally.moves += u64::from(is_new);
        tally.blocks += blocks;
    }

    /// Keeps an entry, or adds its blocks to the last one; false then.
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

    /// The moves of an extent that are still known, the newest first.
    pub fn of(&self, extent: Extent) -> impl Iterator<Item = Move> {
        let (newer, older) = self.entries.split_at(self.oldest);
        let newest_first = newer.iter().rev().chain(older.iter().rev());
        let extent = Packed::from(extent);
        let known = newest_first.filter(move |entry| entry.extent == extent);
        known.map(|entry| Move::from(*entry))
    }

    /// Since when everything is known, by the loop's clock.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Whether nothing has been dropped yet.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// How often each cause moved something, and how much.
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
mod tests {
    use super::*;

    fn extent(number: u64) -> Extent {
        Extent { volume: 3, number }
    }

    /// A move of blocks at a second.
    fn moved(at_s: u64, number: u64, blocks: u16, cause: Cause) -> Move {
        Move::new(at_s * TOGETHER_NS, cause, extent(number), blocks)
    }

    /// One for four moves.
    fn ledger() -> Ledger {
        Ledger::new(4 * size_of::<Entry>() + 5, 7)
    }

    fn seconds(ledger: &Ledger, number: u64) -> Vec<u64> {
        let moves = ledger.of(extent(number));
        moves.map(|known| known.at_ns / TOGETHER_NS).collect()
    }

    fn count(ledger: &Ledger, cause: Cause) -> (u64, u64) {
        let mut counts = ledger.counts();
        let found = counts.find(|known| known.cause == cause).unwrap();
        (found.moves, found.bytes / BLOCK as u64)
    }

    #[test]
    fn what_it_takes_is_bounded_and_the_oldest_goes_first() {
        let mut ledger = ledger();
        assert!(ledger.is_whole() && ledger.since_ns() == 7);
        let memory = ledger.entries.capacity();
        for second in 1..=4 {
            ledger.note(moved(second, second % 2, 1, Cause::Missed));
        }
        assert!(ledger.is_whole(), "nothing was dropped yet");
        assert_eq!(seconds(&ledger, 1), [3, 1]);
        for second in 5..=9 {
            ledger.note(moved(second, second % 2, 1, Cause::Missed));
            let oldest = second - 4;
            assert_eq!(ledger.since_ns(), oldest * TOGETHER_NS);
            let newest: Vec<u64> = (oldest + 1..=second).rev().collect();
            let of = |odd| newest.iter().copied().filter(move |known| known % 2 == odd);
            assert_eq!(seconds(&ledger, 1), of(1).collect::<Vec<_>>());
            assert_eq!(seconds(&ledger, 0), of(0).collect::<Vec<_>>());
        }
        assert!(!ledger.is_whole());
        assert_eq!(
            (ledger.entries.len(), ledger.entries.capacity()),
            (4, memory)
        );
        assert_eq!(
            count(&ledger, Cause::Missed),
            (9, 9),
            "counted all the same"
        );
    }

    #[test]
    fn an_extent_is_told_from_those_of_other_chunks_and_layers() {
        let mut ledger = ledger();
        let far = (u64::from(u32::MAX) << 4) + 15;
        ledger.note(moved(1, far, 0b101, Cause::RoseRoom));
        let other = Extent {
            volume: 4,
            number: far,
        };
        assert_eq!(ledger.of(other).count(), 0);
        assert_eq!(ledger.of(extent(far - 16)).count(), 0);
        let found = ledger.of(extent(far)).next().unwrap();
        assert_eq!(found, moved(1, far, 0b101, Cause::RoseRoom));
    }

    #[test]
    fn what_happens_to_an_extent_within_a_second_is_one_move() {
        let mut ledger = ledger();
        for block in 0..16 {
            ledger.note(moved(1, 5, 1 << block, Cause::Written));
        }
        assert_eq!(ledger.of(extent(5)).next().unwrap().blocks, u16::MAX);
        ledger.note(moved(2, 5, 1, Cause::Written));
        ledger.note(moved(2, 5, 1, Cause::Discarded));
        ledger.note(moved(2, 6, 1, Cause::Discarded));
        assert_eq!(seconds(&ledger, 5), [2, 2, 1]);
        assert_eq!(count(&ledger, Cause::Written), (2, 17));
        // Also with what lies at the ring's end.
        ledger.note(moved(3, 5, 1, Cause::Written));
        ledger.note(moved(3, 5, 2, Cause::Written));
        assert_eq!(seconds(&ledger, 5), [3, 2, 2]);
        assert_eq!(ledger.of(extent(5)).next().unwrap().blocks, 3);
    }

    #[test]
    fn what_left_last_was_displaced_as_long_as_it_made_room() {
        let mut ledger = Ledger::new(1 << 12, 0);
        let displaced = |ledger: &Ledger, number| {
            let last = ledger.of(extent(number)).next().unwrap();
            last.displaced.map(|known| known.number)
        };
        ledger.note(moved(1, 10, 1, Cause::Written));
        assert_eq!(displaced(&ledger, 10), None);
        ledger.note(moved(2, 20, 0b11, Cause::EvictedLeast));
        ledger.note(moved(2, 21, 0b11, Cause::EvictedCooled));
        // Neither a copy in RAM nor a move within the tier takes of it.
        ledger.note(moved(3, 11, u16::MAX, Cause::Missed));
        ledger.note(moved(3, 12, u16::MAX, Cause::SparedFast));
        assert_eq!(displaced(&ledger, 12), None);
        ledger.note(moved(4, 13, 0b1, Cause::RoseRoom));
        assert_eq!(displaced(&ledger, 13), Some(20));
        ledger.note(moved(5, 14, 0b11, Cause::Written));
        ledger.note(moved(6, 15, 1, Cause::Written));
        assert_eq!(
            (displaced(&ledger, 14), displaced(&ledger, 15)),
            (Some(20), None)
        );
        ledger.note(moved(7, 16, 1, Cause::Missed).in_place_of(Some(extent(30))));
        assert_eq!(displaced(&ledger, 16), Some(30));
    }

    #[test]
    fn the_figures_say_why_something_rose_or_did_not() {
        let grounds = |promote, worth, wanted| {
            let admission = Admission {
                promote,
                worth,
                wanted,
            };
            Grounds::from(admission).cause
        };
        assert_eq!(grounds(1, 2.0, 1.0), Cause::RoseWorth);
        assert_eq!(grounds(1, 2.0, 0.0), Cause::RoseRoom);
        assert_eq!(grounds(0, 0.5, 1.0), Cause::StayedLow);
        assert_eq!(grounds(0, 0.0, 0.0), Cause::StayedUnasked);
    }
}
