//! The longest requests, across a border of the volume's regions and of the memory's, as many as the ring has room for.

use crate::hostile::stage::Stage;
use std::io::Result;
use std::time::Duration;
use vhost_client::RawGuest;

const MIB: u64 = 1 << 20;
/// Memory, in regions; each request's data are the same memory.
const MEMORY: u64 = 128 * MIB;
const REGIONS: u64 = 2;
const RING: u16 = 1024;
const LENGTH: u64 = 64 * MIB;
/// Where data are: their middle is where a region ends.
const DATA_AT: u64 = MEMORY / REGIONS - LENGTH / 2;
/// Where on the disk: the middle is where a region of the volume ends.
const OFFSET: u64 = 256 * MIB - LENGTH / 2;
const SECTOR: u64 = 512;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
/// How long the requests are in progress before the guest is gone.
const REST: Duration = Duration::from_millis(500);

/// Fills the ring with requests: reads, of some every fourth a write.
fn fill(guest: &mut RawGuest, writes: bool) -> Result<u64> {
    let mut requests = 0;
    for first in (0..RING - 3).step_by(4) {
        let header = RawGuest::FREE + 32 * u64::from(first);
        let write = writes && first % 16 == 0;
        guest.header(header, u32::from(write), OFFSET / SECTOR)?;
        guest.descriptor(first, (header, 16, NEXT, first + 1))?;
        let way = if write { NEXT } else { NEXT | WRITE };
        // Two segments, each of one region of the memory, and one after the other.
        let half = LENGTH / 2;
        guest.descriptor(first + 1, (DATA_AT, half as u32, way, first + 2))?;
        guest.descriptor(first + 2, (DATA_AT + half, half as u32, way, first + 3))?;
        guest.descriptor(first + 3, (header + 16, 1, WRITE, 0))?;
        guest.publish(first)?;
        requests += 1;
    }
    guest.kick();
    Ok(requests)
}

pub fn attack(stage: &Stage<'_>) {
    let mut chance = stage.chance(0);
    stage.again(|| {
        let mut guest = RawGuest::new(&stage.places.vhost, MEMORY, REGIONS, RING)?;
        stage.did(fill(&mut guest, chance.below(2) == 0)?);
        stage.pause(REST);
        Ok(())
    });
}
