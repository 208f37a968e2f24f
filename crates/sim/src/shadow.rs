//! Memory that a drive's reads are answered from: a state mostly has there what the one before had, so only what differs
//! is copied, and who reads gets a part of that memory itself.

use crate::image::Block;
use block::{DmaBuf, DmaPool};
use std::sync::Arc;
use units::BLOCK;

/// Blocks of the longest reads: of journals, and of all others. A window has twice as many, and so many on the next
/// begins: any such read lies within one.
const LONG: u64 = 128;
const SHORT: u64 = 16;
/// Blocks that the windows of a drive have at most, of each kind; then all of that kind begin anew.
const MOST: u64 = 4096;
/// Memory for windows that a thread has at hand, in bytes.
const ARENA: usize = 64 << 20;

thread_local! {
    static POOL: DmaPool = DmaPool::with_arena(ARENA);
}

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

struct Window {
    memory: DmaBuf,
    holds: Vec<Holds>,
}

/// The memory: windows of a drive where something was read.
pub struct Shadow {
    short: Windows,
    long: Windows,
}

impl Default for Shadow {
    fn default() -> Self {
        let [short, long] = [SHORT, LONG].map(|step| Windows {
            step,
            all: Vec::new(),
            made: 0,
        });
        Self { short, long }
    }
}

impl Shadow {
    /// `len` bytes from the block `first` on, given what is `known` of each block, and a way to `read` one. None when
    /// they are too many, or while what was given before is looked at and would change.
    pub fn read<'a>(
        &mut self,
        (first, len): (u64, usize),
        known: impl Fn(u64) -> Known<'a>,
        read: impl Fn(u64, &mut [u8]),
    ) -> Option<DmaBuf> {
        let count = (len / BLOCK) as u64;
        let windows = match count {
            0..=SHORT => &mut self.short,
            _ if count <= LONG => &mut self.long,
            _ => return None,
        };
        let at = (first % windows.step) as usize;
        let window = windows.get((first / windows.step) as usize);
        let mut unique = None;
        for (index, block) in (at..at + count as usize).zip(first..) {
            let known = known(block);
            match (&known, &window.holds[index]) {
                (Known::Zeroes, Holds::Zeroes) => continue,
                (Known::Block(now), Holds::Block(before)) if Arc::ptr_eq(now, before) => continue,
                _ => {}
            }
            if !*unique.get_or_insert_with(|| window.memory.is_unique()) {
                return None;
            }
            let into = &mut window.memory[index * BLOCK..][..BLOCK];
            window.holds[index] = match known {
                Known::Zeroes => {
                    into.fill(0);
                    Holds::Zeroes
                }
                Known::Block(now) => {
                    into.copy_from_slice(&now[..]);
                    Holds::Block(now.clone())
                }
                Known::Else => {
                    read(block, into);
                    Holds::Else
                }
            };
        }
        Some(window.memory.slice(at * BLOCK, len))
    }
}

struct Windows {
    /// Blocks from the beginning of one to that of the next.
    step: u64,
    all: Vec<Option<Window>>,
    made: u64,
}

impl Windows {
    fn get(&mut self, number: usize) -> &mut Window {
        if self.all.len() <= number {
            self.all.resize_with(number + 1, || None);
        }
        let blocks = 2 * self.step;
        if self.all[number].is_none() {
            if (self.made + 1) * blocks > MOST {
                self.all.iter_mut().for_each(|window| *window = None);
                self.made = 0;
            }
            self.made += 1;
        }
        self.all[number].get_or_insert_with(|| Window {
            memory: POOL.with(|pool| pool.get(blocks as usize * BLOCK)),
            // The memory is another one's that was.
            holds: vec![Holds::Else; blocks as usize],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_is_known_and_what_is_looked_at_stays() {
        let mut shadow = Shadow::default();
        let blocks = [3, 4].map(|value| Arc::new(Block::of(&[value; BLOCK])));
        let mut read = |now: [Option<usize>; 2]| {
            let of = |block: u64| match now[block as usize - 15] {
                Some(9) => Known::Else,
                Some(at) => Known::Block(&blocks[at]),
                None => Known::Zeroes,
            };
            shadow.read((15, 2 * BLOCK), of, |_, into| into.fill(9))
        };
        let bytes = |read: &DmaBuf| [0, BLOCK - 1, BLOCK, 2 * BLOCK - 1].map(|at| read[at]);
        for (now, holds) in [
            ([None, Some(0)], [0, 0, 3, 3]),
            ([Some(0), Some(1)], [3, 3, 4, 4]),
            ([Some(9), None], [9, 9, 0, 0]),
            ([Some(1), Some(0)], [4, 4, 3, 3]),
        ] {
            let read = read(now);
            assert_eq!(read.as_ref().map(bytes), Some(holds));
        }
        let held = read([Some(1), Some(0)]);
        assert!(read([Some(1), None]).is_none(), "it is looked at");
        let same = read([Some(1), Some(0)]);
        assert_eq!(same.as_ref().map(bytes), Some([4, 4, 3, 3]));
        assert_eq!(held.as_ref().map(bytes), Some([4, 4, 3, 3]));
        drop((held, same));
        assert!(read([Some(1), None]).is_some());
    }

    #[test]
    fn there_are_only_so_many_windows_and_all_reads_lie_within_one() {
        for (step, blocks) in [(SHORT, SHORT), (LONG, SHORT + 1), (LONG, LONG)] {
            let mut shadow = Shadow::default();
            let len = blocks as usize * BLOCK;
            for number in 0..MOST / step {
                let first = (number + 1) * step - 1;
                let read = |block: u64, into: &mut [u8]| into.fill((block / step) as u8);
                let read = shadow.read((first, len), |_| Known::Else, read);
                let ends = read.map(|read| [read[0], read[len - 1]]);
                assert_eq!(ends, Some([number as u8, (number + 1) as u8]));
                for windows in [&shadow.short, &shadow.long] {
                    let count = windows.all.iter().flatten().count() as u64;
                    assert!(count * 2 * windows.step <= MOST);
                }
            }
        }
        let mut shadow = Shadow::default();
        let too_long = (LONG as usize + 1) * BLOCK;
        let read = shadow.read((0, too_long), |_| Known::Zeroes, |_, _| {});
        assert!(read.is_none());
    }
}
