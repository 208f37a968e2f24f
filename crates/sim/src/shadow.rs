//! Memory that a drive's long reads are answered from: a state mostly has there what the one before had, so only what
//! differs is copied. They are of journals: an opening looks at a hundred pages behind the end on every leg.

use crate::image::Block;
use block::{DmaBuf, DmaPool};
use std::sync::Arc;
use units::BLOCK;

/// What a block of a drive is known to hold.
pub enum Known<'a> {
    Zeroes,
    Block(&'a Arc<Block>),
    /// Something of this state alone.
    Else,
}

/// What the memory holds of a block. The block itself is kept: no other one can lie where it does.
#[derive(Clone)]
enum Holds {
    Zeroes,
    Block(Arc<Block>),
    Else,
}

/// The memory: as large as the drive, and nothing where no long read was.
pub struct Shadow {
    memory: DmaBuf,
    holds: Vec<Holds>,
}

impl Shadow {
    /// Of a drive of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self {
            memory: DmaPool::new().get(size as usize),
            holds: Vec::new(),
        }
    }

    /// `len` bytes from the block `first` on, given what is `known` of each block, and a way to `read` one. None while
    /// what was given before is looked at.
    pub fn read<'a>(
        &mut self,
        (first, len): (u64, u64),
        known: impl Fn(u64) -> Known<'a>,
        read: impl Fn(u64, &mut [u8]),
    ) -> Option<DmaBuf> {
        if !self.memory.is_unique() {
            return None;
        }
        let (at, len) = (first as usize * BLOCK, len as usize);
        let end = (at + len) / BLOCK;
        if self.holds.len() < end {
            self.holds.resize(end, Holds::Zeroes);
        }
        let memory = self.memory[at..at + len].chunks_exact_mut(BLOCK);
        for ((block, holds), into) in (first..).zip(&mut self.holds[first as usize..]).zip(memory) {
            match (known(block), &*holds) {
                (Known::Zeroes, Holds::Zeroes) => {}
                (Known::Block(now), Holds::Block(before)) if Arc::ptr_eq(now, before) => {}
                (Known::Zeroes, _) => {
                    into.fill(0);
                    *holds = Holds::Zeroes;
                }
                (Known::Block(now), _) => {
                    into.copy_from_slice(&now[..]);
                    *holds = Holds::Block(now.clone());
                }
                (Known::Else, _) => {
                    read(block, into);
                    *holds = Holds::Else;
                }
            }
        }
        Some(self.memory.slice(at, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_is_known_and_what_is_looked_at_stays() {
        let mut shadow = Shadow::new(1 << 20);
        let blocks = [3, 4].map(|value| Arc::new(Block::new([value; BLOCK])));
        let mut read = |now: [Option<usize>; 2]| {
            let of = |block: u64| match now[block as usize - 5] {
                Some(9) => Known::Else,
                Some(at) => Known::Block(&blocks[at]),
                None => Known::Zeroes,
            };
            let read = shadow.read((5, 2 * BLOCK as u64), of, |_, into| into.fill(9));
            read.map(|read| [0, BLOCK, BLOCK + 1].map(|at| read[at]))
        };
        assert_eq!(read([None, Some(0)]), Some([0, 3, 3]));
        assert_eq!(read([Some(0), Some(1)]), Some([3, 4, 4]));
        assert_eq!(read([Some(9), None]), Some([9, 0, 0]));
        let held = shadow.read((0, BLOCK as u64), |_| Known::Zeroes, |_, _| {});
        assert!(
            shadow
                .read((0, BLOCK as u64), |_| Known::Zeroes, |_, _| {})
                .is_none()
        );
        drop(held);
    }
}
