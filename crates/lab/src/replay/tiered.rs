//! A published policy as a tier: extents of one size, whole, on flash alone.
//!
//! A read that misses fills the extent; a write that misses takes one without filling it. What
//! leaves is written back whole. What is not let in is read from and written to the disk, just what was asked
//! for.

use super::blocks::{Span, spans};
use super::cost::{Disk, Tally, flash_ms, transfer_ms};
use crate::failure::Result;
use crate::interrupt;
use rivals::{Cache, Outcome};
use traces::Request;

/// Requests between checks whether it has been cancelled.
pub const LOOK: usize = 1 << 16;
/// Bits of a key that number the extent; those above are the volume.
const NUMBER_BITS: u32 = 48;

/// The keys that requests use, in order, for extents of a number of blocks.
pub fn keys(requests: &[Request], extent: u64) -> Vec<u64> {
    let parts = requests.iter().flat_map(|it| spans(it, extent));
    parts.map(|part| key(&part, extent)).collect()
}

fn key(part: &Span, extent: u64) -> u64 {
    u64::from(part.volume) << NUMBER_BITS | (part.first / extent)
}

/// Replays requests through a policy over extents of a number of blocks.
///
/// # Errors
/// When a person ends it.
pub fn replay(
    name: String,
    requests: &[Request],
    extent: u64,
    cache: &mut dyn Cache,
) -> Result<Tally> {
    let mut tally = Tally {
        name,
        ..Tally::default()
    };
    let mut disk = Disk::default();
    let mut gone = Vec::new();
    for some in requests.chunks(LOOK) {
        interrupt::check()?;
        for request in some {
            let mut on_flash = 0;
            for part in spans(request, extent) {
                let blocks = part.end - part.first;
                let start = part.first / extent * extent;
                let outcome = cache.access(key(&part, extent), &mut gone);
                tally.parts += 1;
                match outcome {
                    Outcome::Admitted if !request.write => {
                        let took_ms = disk.read(part.volume, start, start + extent);
                        tally.waited_ms += took_ms - transfer_ms(extent - blocks);
                        tally.migrated += extent;
                        tally.flash_written += extent;
                    }
                    Outcome::Bypassed => {
                        tally.waited_ms += disk.read(part.volume, part.first, part.end);
                    }
                    Outcome::Hit | Outcome::Admitted => {
                        tally.hits += 1;
                        on_flash += blocks;
                    }
                }
                if request.write && outcome != Outcome::Bypassed {
                    tally.flash_written += blocks;
                }
                for _ in gone.drain(..) {
                    disk.demote(extent);
                    tally.migrated += extent;
                }
            }
            tally.waited_ms += flash_ms(on_flash);
            tally.requests += 1;
            tally.bytes += super::blocks::bytes(request);
        }
    }
    tally.disk_ms = disk.busy_ms;
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rivals::Lru;

    fn request(first: u64, blocks: u32, write: bool) -> Request {
        Request {
            at_us: 0,
            sector: first * 8,
            sectors: blocks * 8,
            device: 0,
            write,
        }
    }

    fn run(requests: &[Request]) -> Tally {
        replay("lru".to_owned(), requests, 16, &mut Lru::new(2)).expect("nobody ends it")
    }

    #[test]
    fn a_read_fills_its_extent_and_a_write_does_not() {
        let read = run(&[request(0, 1, false)]);
        assert_eq!((read.hits, read.migrated, read.flash_written), (0, 16, 16));
        assert!(read.waited_ms > 8.0 && read.disk_ms > read.waited_ms);
        let written = run(&[request(0, 1, true)]);
        assert_eq!((written.hits, written.migrated), (1, 0));
        assert!(written.waited_ms < 0.2 && written.disk_ms == 0.0);
    }

    #[test]
    fn what_leaves_is_written_back_whole() {
        let all = [0, 16, 32].map(|first| request(first, 1, true));
        let tally = run(&all);
        assert_eq!((tally.migrated, tally.flash_written), (16, 3));
        assert!(tally.disk_ms > 4.3 && tally.disk_ms < 4.4);
    }
}
