//! The cost of a request: a model of drives that is the same for every policy.
//!
//! A disk needs 8 ms for a read, or 0.05 ms where the last one ended, and moves 180 MB/s; demoted data
//! goes down sorted, 4 ms each, and does not move the head that reads find. Flash needs 100 µs
//! and moves 1.8 GB/s, RAM needs 10 µs. A host waits for the seek and until the last byte that it requested
//! is there, and for nothing that is done for its own good or in the background; the disk is busy for all of it.
//! There are no queues: no request waits for another.

use units::BLOCK;

const SEEK_MS: f64 = 8.0;
const SEQUENTIAL_MS: f64 = 0.05;
const DEMOTION_MS: f64 = 4.0;
const DISK_BYTES_MS: f64 = 180e3;
const FLASH_MS: f64 = 0.1;
const FLASH_BYTES_MS: f64 = 1.8e6;
const RAM_MS: f64 = 0.01;

/// Milliseconds to move blocks to or from the disk.
pub fn transfer_ms(blocks: u64) -> f64 {
    (blocks * BLOCK as u64) as f64 / DISK_BYTES_MS
}

/// A disk, and what it did.
#[derive(Default)]
pub struct Disk {
    /// The block after the last that was read, by volume.
    head: Option<(u32, u64)>,
    /// Milliseconds for which it was busy.
    pub busy_ms: f64,
}

impl Disk {
    /// Reads blocks; how long that takes in milliseconds.
    pub fn read(&mut self, volume: u32, first: u64, end: u64) -> f64 {
        let reach_ms = match self.head == Some((volume, first)) {
            true => SEQUENTIAL_MS,
            false => SEEK_MS,
        };
        self.head = Some((volume, end));
        let took_ms = reach_ms + transfer_ms(end - first);
        self.busy_ms += took_ms;
        took_ms
    }

    /// The block after the last that was read, and its volume.
    pub fn last(&self) -> Option<(u32, u64)> {
        self.head
    }

    /// The block after the last that was read, if that was of this volume.
    pub fn head(&self, volume: u32) -> Option<u64> {
        self.head.filter(|head| head.0 == volume).map(|head| head.1)
    }

    /// Writes demoted data: a number of blocks from the first to the last, with gaps.
    pub fn demote(&mut self, blocks: u64) {
        self.busy_ms += DEMOTION_MS + transfer_ms(blocks);
    }
}

/// Milliseconds to read or write blocks on flash in one go; none for none.
pub fn flash_ms(blocks: u64) -> f64 {
    match blocks {
        0 => 0.0,
        _ => FLASH_MS + (blocks * BLOCK as u64) as f64 / FLASH_BYTES_MS,
    }
}

/// Milliseconds to copy blocks from RAM; none for none.
pub fn ram_ms(blocks: u64) -> f64 {
    if blocks == 0 { 0.0 } else { RAM_MS }
}

/// Result of a policy.
#[derive(Default)]
pub struct Tally {
    /// Its name in the table.
    pub name: String,
    /// Requests.
    pub requests: u64,
    /// Bytes that hosts requested.
    pub bytes: u64,
    /// Parts of requests, one for each extent.
    pub parts: u64,
    /// Those for which no host waited for the disk.
    pub hits: u64,
    /// Milliseconds for which hosts waited.
    pub waited_ms: f64,
    /// Milliseconds for which the disk was busy.
    pub disk_ms: f64,
    /// Blocks that were moved between the tiers, up and down.
    pub migrated: u64,
    /// Blocks written to flash, by hosts too.
    pub flash_written: u64,
}

impl Tally {
    /// Hits in parts of all.
    pub fn hit_share(&self) -> f64 {
        self.hits as f64 / self.parts.max(1) as f64
    }

    /// Mean latency in milliseconds.
    pub fn latency_ms(&self) -> f64 {
        self.waited_ms / self.requests.max(1) as f64
    }

    /// Milliseconds of the disk for a request.
    pub fn disk_ms_each(&self) -> f64 {
        self.disk_ms / self.requests.max(1) as f64
    }

    /// Bytes moved between tiers per requested byte.
    pub fn migrated_share(&self) -> f64 {
        (self.migrated * BLOCK as u64) as f64 / self.bytes.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_sequential_only_where_the_last_one_ended() {
        let mut disk = Disk::default();
        let moved = transfer_ms(16);
        assert_eq!(disk.read(1, 0, 16), SEEK_MS + moved);
        assert_eq!(disk.read(1, 16, 32), SEQUENTIAL_MS + moved);
        assert_eq!(disk.read(2, 32, 48), SEEK_MS + moved);
        disk.demote(256);
        assert_eq!(disk.read(2, 48, 64), SEQUENTIAL_MS + moved);
        let all = 2.0 * (SEEK_MS + SEQUENTIAL_MS) + 4.0 * moved;
        assert!((disk.busy_ms - all - DEMOTION_MS - transfer_ms(256)).abs() < 1e-9);
    }
}
