//! Chains of more segments than the disk says it takes, and chains without an end.

use crate::hostile::stage::Stage;
use std::io::Result;
use std::time::Duration;
use vhost_client::RawGuest;

const MEMORY: u64 = 4 << 20;
const RING: u16 = 1024;
/// Another descriptor follows; the device writes it; a table of descriptors.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// Entries of the indirect table.
const TABLE: u16 = 4096;
const SECTOR: u32 = 512;
/// How long the other side has for it.
const NOTICE: Duration = Duration::from_millis(2);

/// A chain through the whole ring: a read of as many sectors.
fn long(guest: &RawGuest, end: Option<u16>) -> Result<()> {
    let (header, data) = (RawGuest::FREE, RawGuest::FREE + 0x1000);
    guest.header(header, 0, 0)?;
    guest.descriptor(0, (header, 16, NEXT, 1))?;
    for index in 1..RING - 1 {
        let at = data + u64::from(index) * u64::from(SECTOR);
        guest.descriptor(index, (at, SECTOR, NEXT | WRITE, index + 1))?;
    }
    let (flags, next) = end.map_or((WRITE, 0), |next| (WRITE | NEXT, next));
    guest.descriptor(RING - 1, (data, 1, flags, next))
}

/// The same through an indirect table, which may be longer than the ring.
fn indirect(guest: &RawGuest, last: u16) -> Result<()> {
    let (header, data) = (RawGuest::FREE, RawGuest::FREE + 0x1000);
    let table = 2 << 20;
    guest.header(header, 0, 0)?;
    guest.descriptor_at(table, (header, 16, NEXT, 1))?;
    for index in 1..TABLE {
        let flags = if index == last { WRITE } else { WRITE | NEXT };
        let at = table + 16 * u64::from(index);
        guest.descriptor_at(at, (data, SECTOR, flags, (index + 1) % TABLE))?;
    }
    guest.descriptor(0, (table, 16 * u32::from(TABLE), INDIRECT, 0))
}

pub fn attack(stage: &Stage<'_>) {
    let mut chance = stage.chance(0);
    stage.again(|| {
        let mut guest = RawGuest::new(&stage.places.vhost, MEMORY, 1, RING)?;
        match chance.below(4) {
            0 => long(&guest, None)?,
            1 => long(&guest, Some(chance.below(u64::from(RING)) as u16))?,
            2 => indirect(&guest, TABLE - 1)?,
            // Round and round.
            _ => indirect(&guest, TABLE)?,
        }
        for _ in 0..16 {
            guest.publish(0)?;
        }
        guest.kick();
        stage.did(1);
        stage.pause(NOTICE);
        Ok(())
    });
}
