//! Convect's own policy, the code that ships, in front of the model.

use super::blocks::{bytes, spans};
use super::cost::{Disk, Tally, flash_ms, ram_ms, transfer_ms};
use super::tiered::LOOK;
use crate::failure::Result;
use crate::interrupt;
use placement::{Arrival, Blocks, Config, Extent, Policy, split};
use traces::Request;
use units::{CHUNK_EXTENTS, EXTENT_BLOCKS};

/// RAM is a twentieth of all that is fast.
const RAM_SHARE: u64 = 20;
/// Required ratio of values for promotion.
const MARGIN: f32 = 43.0;

/// RAM and flash with a total of blocks.
pub fn config(blocks: u64, seed: u64) -> Config {
    let ram_blocks = blocks / RAM_SHARE;
    Config {
        fast_blocks: blocks - ram_blocks,
        ram_blocks,
        margin: MARGIN,
        seed,
    }
}

struct Tiers {
    policy: Policy,
    disk: Disk,
    tally: Tally,
    keep: Vec<Arrival>,
}

/// Replays requests with a total of blocks of RAM and flash.
///
/// # Errors
/// When a person ends it.
pub fn replay(requests: &[Request], blocks: u64, seed: u64) -> Result<Tally> {
    let mut tiers = Tiers {
        policy: Policy::new(config(blocks, seed)),
        disk: Disk::default(),
        tally: Tally {
            name: "convect".to_owned(),
            ..Tally::default()
        },
        keep: Vec::new(),
    };
    for some in requests.chunks(LOOK) {
        interrupt::check()?;
        for request in some {
            match request.write {
                true => tiers.write(request),
                false => tiers.read(request),
            }
            tiers.make_room();
            tiers.tally.requests += 1;
            tiers.tally.bytes += bytes(request);
        }
    }
    tiers.tally.disk_ms = tiers.disk.busy_ms;
    Ok(tiers.tally)
}

impl Tiers {
    fn write(&mut self, request: &Request) {
        let mut blocks = 0;
        for part in spans(request, EXTENT_BLOCKS as u64) {
            for part in split(part.volume, part.first, part.end) {
                self.policy.wrote(part);
                blocks += u64::from(part.mask.count_ones());
                self.tally.parts += 1;
                self.tally.hits += 1;
            }
        }
        self.tally.flash_written += blocks;
        self.tally.waited_ms += flash_ms(blocks);
    }

    fn read(&mut self, request: &Request) {
        let (mut in_ram, mut on_flash) = (0, 0);
        let mut absent: Option<(u64, u64)> = None;
        let mut volume = 0;
        for span in spans(request, EXTENT_BLOCKS as u64) {
            volume = span.volume;
            for part in split(span.volume, span.first, span.end) {
                let found = self.policy.read(part);
                if found.is_new {
                    self.policy.follow(part);
                }
                in_ram += u64::from(found.ram.count_ones());
                on_flash += u64::from(found.fast.count_ones());
                self.tally.parts += 1;
                if found.absent == 0 {
                    self.tally.hits += 1;
                    continue;
                }
                let start = part.extent.number * EXTENT_BLOCKS as u64;
                let first = start + u64::from(found.absent.trailing_zeros());
                let end = start + 16 - u64::from(found.absent.leading_zeros());
                absent = Some((absent.map_or(first, |it| it.0), end));
            }
        }
        self.tally.waited_ms += ram_ms(in_ram) + flash_ms(on_flash);
        if let Some((first, end)) = absent {
            self.fetch(volume, first, end);
        }
        self.read_foreseen();
    }

    /// One read for all that is absent, with what lies around it and is worth it.
    fn fetch(&mut self, volume: u32, first: u64, end: u64) {
        let head = self.disk.head(volume);
        let policy = &mut self.policy;
        let read = policy.fetch(volume, first, end, head, &mut self.keep);
        let took_ms = self.disk.read(volume, read.start, read.end);
        self.tally.waited_ms += took_ms - transfer_ms(read.end - end);
        for arrival in &self.keep {
            self.policy.arrived(arrival);
        }
    }

    /// Prefetch after the completion: the disk is busy for it, and no host waits.
    fn read_foreseen(&mut self) {
        while let Some((volume, read)) = (self.policy).foreseen(self.disk.last(), &mut self.keep) {
            self.disk.read(volume, read.start, read.end);
            for arrival in &self.keep {
                self.policy.arrived(arrival);
            }
        }
    }

    fn make_room(&mut self) {
        while let Some(leaving) = self.policy.leave_ram() {
            let blocks = u64::from(leaving.promote.count_ones());
            self.tally.migrated += blocks;
            self.tally.flash_written += blocks;
        }
        while self.policy.fast_excess() > 0 {
            let Some(victim) = self.policy.victim() else {
                return;
            };
            if victim.dirty != 0 {
                self.sink(victim.extent);
            }
            self.policy.left_fast(Blocks {
                extent: victim.extent,
                mask: victim.fast,
            });
        }
    }

    /// Everything dirty in the chunk of an extent goes down in one sorted write.
    fn sink(&mut self, extent: Extent) {
        let size = CHUNK_EXTENTS as u64;
        let start = extent.number / size * size;
        let mut span: Option<(u64, u64)> = None;
        for number in start..start + size {
            let extent = Extent { number, ..extent };
            let mask = self.policy.dirty(extent);
            if mask == 0 {
                continue;
            }
            let first = number * EXTENT_BLOCKS as u64;
            let low = first + u64::from(mask.trailing_zeros());
            let high = first + 16 - u64::from(mask.leading_zeros());
            span = Some((span.map_or(low, |it| it.0), high));
            self.tally.migrated += u64::from(mask.count_ones());
            self.policy.sank(Blocks { extent, mask });
        }
        if let Some((low, high)) = span {
            self.disk.demote(high - low);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(first: u64, blocks: u32, write: bool) -> Request {
        Request {
            at_us: 0,
            sector: first * 8,
            sectors: blocks * 8,
            device: 0,
            write,
        }
    }

    #[test]
    fn a_write_waits_for_flash_alone_and_what_is_there_is_read_without_the_disk() {
        let requests = [request(0, 8, true), request(0, 8, false)];
        let tally = replay(&requests, 1000, 1).expect("nobody ends it");
        assert_eq!((tally.requests, tally.parts, tally.hits), (2, 2, 2));
        assert_eq!((tally.migrated, tally.flash_written), (0, 8));
        assert!(tally.disk_ms == 0.0 && tally.waited_ms < 0.3);
    }

    #[test]
    fn what_only_flash_has_sinks_by_the_chunk_before_it_leaves() {
        let requests: Vec<Request> = (0..600).map(|at| request(16 * at, 1, true)).collect();
        let tally = replay(&requests, 400, 1).expect("nobody ends it");
        // 220 extents have to go; each by itself would take 4 ms.
        assert!((220..=600).contains(&tally.migrated), "{}", tally.migrated);
        assert!(tally.disk_ms < 600.0, "{}", tally.disk_ms);
    }

    #[test]
    fn a_miss_costs_a_seek_and_its_neighbours_cost_the_host_nothing() {
        let tally = replay(&[request(64, 1, false)], 10_000, 1).expect("nobody ends it");
        assert_eq!(tally.hits, 0);
        // It may wait for blocks before its own, and for none behind.
        assert!(tally.waited_ms < 8.0 + transfer_ms(66));
        assert!(tally.disk_ms > tally.waited_ms);
    }

    #[test]
    fn what_was_foreseen_costs_the_disk_and_no_host() {
        // Far from each other, in the same order again and again, and four times what the tiers hold.
        let order: Vec<Request> = (0..8_000)
            .map(|at| request(100_000 * at, 1, false))
            .collect();
        let rounds = |count: usize| replay(&order.repeat(count), 2_000, 1).expect("nobody ends it");
        let (before, after) = (rounds(3), rounds(4));
        let misses = 8_000 - (after.hits - before.hits);
        assert!(misses < 1_000, "{misses}");
        let waited_ms = after.waited_ms - before.waited_ms;
        assert!(waited_ms < 1_000.0 * 8.5, "{waited_ms}");
        let disk_ms = after.disk_ms - before.disk_ms;
        assert!(disk_ms > 6_000.0 * 8.0, "{disk_ms}");
    }
}
