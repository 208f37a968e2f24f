//! A drive with a volatile cache: what is durable, what is visible, and what a crash may leave.

use crate::image::{Block, Content, Crashed, Image};
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes that a drive writes as a whole or not at all.
pub const SECTOR: usize = 512;

/// A write that no flush has covered.
#[derive(Clone)]
struct Pending {
    /// Its turn among the writes that have completed; none while it is in flight.
    completed: Option<u64>,
    id: u64,
    first: u64,
    blocks: Vec<Arc<Block>>,
    /// The request, if the drive does something else.
    meant: Option<Vec<Arc<Block>>>,
    /// A flush said that it is safe, and lied.
    lied: bool,
}

/// The effect of a crash on unflushed writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Every one is there.
    None,
    /// None is there.
    All,
    /// Each is there, or not, by itself.
    Some,
    /// Each is there, or not, or torn, sector by sector.
    Torn,
    /// One in eight is there.
    Few,
    /// One in eight is not there.
    Most,
}

impl Loss {
    /// All there are.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::All,
        Self::Some,
        Self::Torn,
        Self::Few,
        Self::Most,
    ];
}

/// A drive's memory of what was written.
#[derive(Clone)]
pub struct Medium {
    /// Content that reads see.
    pub current: Image,
    durable: Image,
    pending: Vec<Pending>,
    /// Writes of a failed flush, which no later one makes durable: reads see it, and a
    /// power cut may take it.
    orphans: BTreeMap<u64, Arc<Block>>,
    turns: u64,
    ids: u64,
}

impl Medium {
    /// A drive on which `image` is durable.
    pub fn new(image: Image) -> Self {
        Self {
            current: image.clone(),
            durable: image,
            pending: Vec::new(),
            orphans: BTreeMap::new(),
            turns: 0,
            ids: 0,
        }
    }

    /// A write begins; returns its number.
    pub fn begin(&mut self, first: u64, blocks: Vec<Arc<Block>>) -> u64 {
        self.ids += 1;
        self.pending.push(Pending {
            completed: None,
            id: self.ids,
            first,
            blocks,
            meant: None,
            lied: false,
        });
        self.ids
    }

    /// Whether a write to one of these blocks is in flight.
    pub fn is_being_written(&self, blocks: &std::ops::Range<u64>) -> bool {
        let flying = self
            .pending
            .iter()
            .filter(|write| write.completed.is_none());
        flying
            .map(|write| write.first..write.first + write.blocks.len() as u64)
            .any(|write| write.start < blocks.end && blocks.start < write.end)
    }

    /// A write was requested with other blocks than those that the drive takes.
    pub fn alter(&mut self, id: u64, meant: Vec<Arc<Block>>) {
        if let Some(write) = self.pending.iter_mut().find(|write| write.id == id) {
            write.meant = Some(meant);
        }
    }

    /// Whether a write of something else to one of these blocks, from `first` on, is in flight.
    pub fn is_contested(&self, first: u64, blocks: &[Arc<Block>]) -> bool {
        let flying = self
            .pending
            .iter()
            .filter(|write| write.completed.is_none());
        let mut known = flying
            .flat_map(|write| (write.first..).zip(write.meant.as_ref().unwrap_or(&write.blocks)));
        known.any(|(at, flying)| {
            let index = at.checked_sub(first).map(|index| index as usize);
            let new = index.and_then(|index| blocks.get(index));
            new.is_some_and(|new| new[..] != flying[..])
        })
    }

    /// A write has ended: reads see it.
    pub fn end(&mut self, id: u64) {
        let Some(write) = self.pending.iter_mut().find(|write| write.id == id) else {
            return;
        };
        self.turns += 1;
        write.completed = Some(self.turns);
        for (block, content) in (write.first..).zip(&write.blocks) {
            self.current.set(block, Some(content.clone()));
        }
    }

    /// A write has ended with an error: what it covers may be old or new.
    pub fn fail(&mut self, id: u64, kept: bool) {
        if kept {
            self.end(id);
        } else {
            self.pending.retain(|write| write.id != id);
        }
    }

    /// A flush begins: it covers what has ended by now.
    pub fn flush_begins(&self) -> u64 {
        self.turns
    }

    /// The flush that began at `turn` has ended.
    pub fn flush_ends(&mut self, turn: u64) {
        let covered = |write: &Pending| write.completed.is_some_and(|at| at <= turn);
        let mut writes: Vec<_> = self
            .pending
            .extract_if(.., |write| covered(write))
            .collect();
        writes.sort_by_key(|write| write.completed);
        for write in &writes {
            for (block, content) in (write.first..).zip(&write.blocks) {
                self.durable.set(block, Some(content.clone()));
                self.orphans.remove(&block);
            }
        }
    }

    /// The flush that began at `turn` fails: of the writes that it covers, those that `are_given_up`
    /// are not tried again.
    pub fn flush_fails(&mut self, turn: u64, mut are_given_up: impl FnMut() -> bool) {
        let mut given_up =
            |write: &Pending| write.completed.is_some_and(|at| at <= turn) && are_given_up();
        let mut writes: Vec<_> = self
            .pending
            .extract_if(.., |write| given_up(write))
            .collect();
        writes.sort_by_key(|write| write.completed);
        for write in writes {
            self.orphans.extend((write.first..).zip(write.blocks));
        }
    }

    /// The flush that began at `turn` completes without effect.
    pub fn flush_lies(&mut self, turn: u64) {
        for write in &mut self.pending {
            write.lied |= write.completed.is_some_and(|at| at <= turn);
        }
    }

    /// Blocks that a flush which begins at `turn` covers.
    pub fn covered(&self, turn: u64) -> impl Iterator<Item = &Arc<Block>> {
        let covered = move |write: &&Pending| write.completed.is_some_and(|at| at <= turn);
        self.pending
            .iter()
            .filter(covered)
            .flat_map(|write| &write.blocks)
    }

    /// Places of written blocks that begin like this and that no flush has covered.
    pub fn unflushed(&self, begin: &[u8]) -> usize {
        let blocks = self
            .pending
            .iter()
            .flat_map(|write| (write.first..).zip(&write.blocks));
        let found = blocks.filter(|(_, block)| block.starts_with(begin));
        found.map(|(at, _)| at).collect::<BTreeSet<_>>().len()
    }

    /// Blocks that a flush said were safe and that a power cut may take.
    pub fn lied(&self) -> impl Iterator<Item = &Arc<Block>> {
        let lied = self.pending.iter().filter(|write| write.lied);
        lied.flat_map(|write| &write.blocks)
    }

    /// Forgets blocks; they read as zeroes, durably.
    pub fn discard(&mut self, first: u64, count: u64) {
        for block in first..first + count {
            self.current.set(block, None);
            self.durable.set(block, None);
            self.orphans.remove(&block);
        }
    }

    /// The drive continues, while who used it has ended: each write in progress happens, or never does.
    pub fn killed(&self, random: &mut Random) -> Self {
        let mut medium = self.clone();
        let flying = self
            .pending
            .iter()
            .filter(|write| write.completed.is_none());
        for write in flying {
            medium.fail(write.id, random.one_in(2));
        }
        medium
    }

    /// Content of the drive after a power cut now.
    pub fn crash(&self, loss: Loss, random: &mut Random) -> Crashed {
        let mut crashed = Crashed::unchanged(self.durable.clone());
        for (block, content) in &self.orphans {
            loss.survives(&mut crashed, *block, || content.clone(), random);
        }
        let mut order: Vec<&Pending> = self.pending.iter().collect();
        order.sort_by_key(|write| write.completed.unwrap_or(u64::MAX));
        for write in order {
            for (block, content) in (write.first..).zip(&write.blocks) {
                loss.survives(&mut crashed, block, || content.clone(), random);
            }
        }
        crashed
    }
}

impl Loss {
    /// Leaves of an unflushed write of a block what this kind of loss leaves.
    pub fn survives(
        self,
        crashed: &mut Crashed,
        block: u64,
        content: impl FnOnce() -> Arc<Block>,
        random: &mut Random,
    ) {
        let whole = match self {
            Self::None => true,
            Self::All => false,
            Self::Some => random.one_in(2),
            Self::Few => random.one_in(8),
            Self::Most => !random.one_in(8),
            Self::Torn => {
                let fate = random.next();
                if fate % 4 > 1 {
                    return crashed.tear(block, &content(), (fate >> 8) as u8);
                }
                fate % 4 == 1
            }
        };
        if whole {
            let content = Content::Whole(content());
            crashed.changed.push((block, content));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(value: u8) -> Vec<Arc<Block>> {
        vec![Arc::new(Block::of(&[value; units::BLOCK]))]
    }

    fn first(crashed: &Crashed) -> u8 {
        crashed.get(0).map_or(0, |block| block[0])
    }

    #[test]
    fn a_flush_covers_what_ended_before_it_began() {
        let mut medium = Medium::new(Image::new(1 << 20));
        let mut random = Random::new(1);
        let one = medium.begin(0, block(1));
        medium.end(one);
        let turn = medium.flush_begins();
        let two = medium.begin(0, block(2));
        medium.end(two);
        medium.flush_ends(turn);
        assert_eq!(first(&medium.crash(Loss::All, &mut random)), 1);
        assert_eq!(first(&medium.crash(Loss::None, &mut random)), 2);
        let current = Crashed::unchanged(medium.current.clone());
        assert_eq!((first(&current), medium.pending.len()), (2, 1));
    }

    #[test]
    fn what_a_failed_flush_gave_up_no_later_one_saves() {
        let mut medium = Medium::new(Image::new(1 << 20));
        let mut random = Random::new(1);
        let one = medium.begin(0, block(1));
        medium.end(one);
        let turn = medium.flush_begins();
        medium.flush_fails(turn, || true);
        medium.flush_ends(turn);
        let current = Crashed::unchanged(medium.current.clone());
        assert_eq!(first(&current), 1);
        assert_eq!(first(&medium.crash(Loss::All, &mut random)), 0);
        assert_eq!(first(&medium.crash(Loss::None, &mut random)), 1);
        let two = medium.begin(0, block(2));
        medium.end(two);
        medium.flush_ends(medium.flush_begins());
        assert_eq!(first(&medium.crash(Loss::None, &mut random)), 2);
    }

    #[test]
    fn two_writes_of_a_block_contest_it_unless_the_same_was_asked_for() {
        let mut medium = Medium::new(Image::new(1 << 20));
        let one = medium.begin(1, block(1));
        assert!(medium.is_contested(1, &block(2)));
        assert!(!medium.is_contested(1, &block(1)) && !medium.is_contested(0, &block(2)));
        medium.alter(one, block(2));
        assert!(!medium.is_contested(1, &block(2)));
        medium.end(one);
        assert!(!medium.is_contested(1, &block(3)));
    }

    #[test]
    fn a_torn_block_has_sectors_of_both() {
        let mut medium = Medium::new(Image::new(1 << 20));
        let one = medium.begin(0, block(9));
        medium.end(one);
        let mut random = Random::new(1);
        let mixed = (0..100).any(|_| {
            let image = medium.crash(Loss::Torn, &mut random);
            let content = image.get(0).map_or([0; units::BLOCK], |block| **block);
            content.contains(&0) && content.contains(&9)
        });
        assert!(mixed);
    }
}
