//! The upper limit of a core: copying random blocks out of a large memory, with the engine's checksum.

use crate::chance::Chance;
use crate::failure::{Failure, Result};
use crate::machine;
use checksum::crc32c;
use std::hint::black_box;
use std::time::{Duration, Instant};
use units::BLOCK;

/// Blocks that are copied to, in turn: as many as a guest has requests outstanding.
const TARGETS: usize = 32;
/// Bytes of a page of the system's.
const PAGE: usize = 4096;
/// Blocks between two readings of the clock.
const BATCH: u64 = 1_000;

/// Asks the system for large pages, as drives of kind `ram` do: with small ones a block somewhere costs the processor a walk
/// through its tables.
fn in_large_pages(memory: &mut [u8]) {
    let pages = memory.as_mut_ptr().align_offset(PAGE);
    if let Some(memory) = memory.get_mut(pages..) {
        // SAFETY: a hint about memory that is ours alone, from a whole page on.
        unsafe {
            libc::madvise(
                memory.as_mut_ptr().cast(),
                memory.len(),
                libc::MADV_HUGEPAGE,
            )
        };
    }
}

/// Copies a block and gives its checksum, in one pass where this processor can, as the engine does.
fn copy(from: &[u8], to: &mut [u8]) -> u32 {
    assert_eq!(from.len(), to.len(), "a block each");
    // SAFETY: both are as long as that, and borrowed.
    let at_once = unsafe { checksum::copy(from.as_ptr(), to.as_mut_ptr(), from.len()) };
    at_once.unwrap_or_else(|| {
        to.copy_from_slice(from);
        crc32c(to)
    })
}

/// A memory full of what looks like data.
pub struct Limit {
    memory: Vec<u8>,
}

impl Limit {
    /// Of so many bytes.
    pub fn new(bytes: u64) -> Self {
        let mut chance = Chance::new(bytes);
        let mut memory = vec![0; bytes as usize];
        in_large_pages(&mut memory);
        for word in memory.chunks_exact_mut(8) {
            word.copy_from_slice(&chance.next().to_le_bytes());
        }
        Self { memory }
    }

    /// Blocks copied and checksummed for each second of processor time, on a core.
    ///
    /// # Errors
    /// When there is no such core.
    pub fn measure(&self, core: usize, time: Duration) -> Result<f64> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                machine::bind_to_core(core)?;
                Ok(self.copy(time))
            });
            let broken = |_| Failure::new("the thread that copies panicked");
            thread.join().map_err(broken)?
        })
    }

    fn copy(&self, time: Duration) -> f64 {
        let blocks = self.memory.len() as u64 / BLOCK as u64;
        let mut targets = vec![0; TARGETS * BLOCK];
        let mut chance = Chance::new(blocks);
        let (begun, before) = (Instant::now(), machine::thread_processor_seconds());
        let mut copied = 0;
        while begun.elapsed() < time {
            for number in 0..BATCH {
                let from = chance.below(blocks) as usize * BLOCK;
                let to = number as usize % TARGETS * BLOCK;
                let target = &mut targets[to..to + BLOCK];
                black_box(copy(&self.memory[from..from + BLOCK], target));
            }
            copied += BATCH;
        }
        copied as f64 / (machine::thread_processor_seconds() - before)
    }
}
