//! Memory that a drive's reads are answered from: a state mostly has there what the one before had, so only what differs
//! is copied, and who reads gets a part of that memory itself.

use crate::image::Block;
use crate::lent;
use block::{DmaBuf, DmaPool};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use units::BLOCK;

/// Blocks of the longest reads: of journals, and of all others. A window has twice as many, and so many on the next
/// begins: any such read is within one.
const LONG: u64 = 128;
const SHORT: u64 = 16;
/// Blocks that the windows of a drive have at most, of each kind; then all of that kind begin again.
const MOST: u64 = 8192;
/// Memory for windows that a thread has at hand, in bytes.
const ARENA: usize = 1 << 30;

thread_local! {
    static POOL: DmaPool = DmaPool::with_arena(ARENA);
    static CONTENTS: Contents = const { Contents::new() };
}

/// Which block each 4 KiB of the thread's arena have, where it is one of an image: its checksum is found once for all
/// states that have it. Only a [`Window`] changes that memory: readers share it.
struct Contents {
    /// First byte of the arena and its length; none yet.
    arena: Cell<(usize, usize)>,
    blocks: RefCell<Vec<Option<Arc<Block>>>>,
}

impl Contents {
    const fn new() -> Self {
        Self {
            arena: Cell::new((0, 0)),
            blocks: RefCell::new(Vec::new()),
        }
    }

    /// The place of a block's memory in the arena, if it is all there.
    fn place(&self, memory: &[u8]) -> Option<usize> {
        let (first, len) = self.arena.get();
        let at = (memory.as_ptr() as usize).wrapping_sub(first);
        (memory.len() == BLOCK && at < len && at.is_multiple_of(BLOCK)).then_some(at / BLOCK)
    }

    /// The memory has that block from now on; or its content is unknown.
    fn set(&self, memory: &[u8], block: Option<&Arc<Block>>) {
        let Some(at) = self.place(memory) else {
            return;
        };
        let before = std::mem::replace(&mut self.blocks.borrow_mut()[at], block.cloned());
        drop(before);
    }

    /// The checksum of a block's memory.
    #[cfg(any(test, debug_assertions, feature = "mutations"))]
    fn crc(&self, memory: &[u8]) -> Option<u32> {
        let at = self.place(memory)?;
        self.blocks.borrow()[at].as_ref().map(|block| block.crc())
    }

    fn begin(&self, arena: Option<(*mut u8, usize)>) {
        let (first, len) = arena.map_or((0, 0), |(first, len)| (first as usize, len));
        self.arena.set((first, len));
        self.blocks.borrow_mut().resize(len / BLOCK, None);
    }
}

/// Memory whose contents are followed.
pub fn memory_of(len: usize) -> DmaBuf {
    POOL.with(|pool| {
        CONTENTS.with(|contents| {
            if contents.arena.get() == (0, 0) {
                contents.begin(pool.arena());
                #[cfg(any(debug_assertions, feature = "mutations"))]
                checksum::know_checksums(|memory| CONTENTS.with(|contents| contents.crc(memory)));
            }
        });
        pool.get(len)
    })
}

/// Records that this memory holds that block from now on, or unknown content.
pub fn note(memory: &[u8], block: Option<&Arc<Block>>) {
    // A thread that ends may have forgotten them all.
    let _ = CONTENTS.try_with(|contents| contents.set(memory, block));
}

/// Known content of a block of a drive.
pub enum Known<'a> {
    Zeroes,
    Block(&'a Arc<Block>),
    /// Something of this state alone.
    Else,
}

/// Content of the memory for a block. The block itself is kept: no other one can be where it is.
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

impl Window {
    fn new(blocks: usize) -> Self {
        Self {
            memory: memory_of(blocks * BLOCK),
            // The memory is another one's that was.
            holds: vec![Holds::Else; blocks],
        }
    }
}

impl Drop for Window {
    /// A remaining owner of a part of the memory may be the only one from now on, and change it.
    fn drop(&mut self) {
        let all = self.memory.chunks_exact(BLOCK);
        all.for_each(|memory| note(memory, None));
    }
}

/// The memory: windows of a drive where something was read. All openings of the drive share it.
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
    /// they are too many, or while what was given before is examined and would change.
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
            match &known {
                Known::Block(now) => note(into, Some(now)),
                Known::Zeroes => note(into, Some(&lent::zeroes())),
                Known::Else => note(into, None),
            }
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
        self.all[number].get_or_insert_with(|| Window::new(blocks as usize))
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
    fn a_checksum_is_known_as_long_as_the_block_is_there() {
        let mut shadow = Shadow::default();
        let blocks = [3, 4].map(|value| Arc::new(Block::of(&[value; BLOCK])));
        let known = |read: &DmaBuf| CONTENTS.with(|contents| contents.crc(&read[..BLOCK]));
        let right = |read: &DmaBuf| format::crc32c(&Vec::from(&read[..BLOCK]));
        for block in [&blocks[0], &blocks[1], &blocks[0]] {
            let read = shadow.read((7, BLOCK), |_| Known::Block(block), |_, _| {});
            let read = read.expect("nobody looks at it");
            assert_eq!(known(&read), Some(right(&read)));
            assert_eq!(format::crc32c(&read), right(&read));
            let part = &read[8..];
            assert_eq!(CONTENTS.with(|contents| contents.crc(part)), None);
        }
        let read = shadow.read((7, BLOCK), |_| Known::Else, |_, into| into.fill(9));
        let read = read.expect("nobody looks at it");
        assert_eq!((known(&read), read[0]), (None, 9));
        drop(read);
        let read = shadow.read((7, BLOCK), |_| Known::Block(&blocks[1]), |_, _| {});
        let mut read = read.expect("nobody looks at it");
        assert!(known(&read).is_some());
        drop(shadow);
        read.fill(5);
        assert_eq!(known(&read), None, "it was changed");
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
