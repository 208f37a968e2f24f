//! A ring of random content: addresses near and far, flags and links of all kinds.

use crate::chance::Chance;
use crate::hostile::stage::Stage;
use std::io::Result;
use std::time::Duration;
use vhost_client::RawGuest;

const MEMORY: u64 = 4 << 20;
const RING: u16 = 256;
/// How long the other side has for it.
const NOTICE: Duration = Duration::from_millis(2);

fn fill(guest: &mut RawGuest, chance: &mut Chance) -> Result<()> {
    for index in 0..RING {
        let address = match chance.below(16) {
            0 => chance.next(),
            1 => MEMORY - chance.below(64),
            _ => RawGuest::FREE + chance.below(MEMORY - RawGuest::FREE),
        };
        let len = match chance.below(8) {
            0 => chance.next() as u32,
            1..4 => 16,
            4 => 1,
            _ => 512 * chance.below(64) as u32,
        };
        let next = match chance.below(16) {
            0 => chance.next() as u16,
            _ => (index + 1) % RING,
        };
        let flags = match chance.below(16) {
            0 => chance.next() as u16,
            1 => 4,
            _ => chance.below(4) as u16,
        };
        // What a header says where one is.
        if len == 16 && address % 8 == 0 && address + 16 <= MEMORY {
            guest.header(address, chance.below(16) as u32, chance.below(1 << 12))?;
        }
        guest.descriptor(index, (address, len, flags, next))?;
    }
    for _ in 0..chance.below(u64::from(RING)) {
        guest.publish(chance.below(u64::from(RING)) as u16)?;
    }
    Ok(())
}

pub fn attack(stage: &Stage<'_>) {
    let mut chance = stage.chance(0);
    stage.again(|| {
        let mut guest = RawGuest::new(&stage.places.vhost, MEMORY, 1, RING)?;
        fill(&mut guest, &mut chance)?;
        guest.kick();
        stage.did(1);
        stage.pause(NOTICE);
        Ok(())
    });
}
