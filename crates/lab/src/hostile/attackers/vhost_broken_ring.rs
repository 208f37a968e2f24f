//! A guest that breaks its ring as soon as it has one.

use crate::hostile::stage::Stage;
use std::time::Duration;
use vhost_client::RawGuest;

const MEMORY: u64 = 1 << 20;
const RING: u16 = 128;
/// How long the other side has to notice it.
const NOTICE: Duration = Duration::from_millis(2);

pub fn attack(stage: &Stage<'_>) {
    let mut chance = stage.chance(0);
    stage.again(|| {
        let mut guest = RawGuest::new(&stage.places.vhost, MEMORY, 1, RING)?;
        match chance.below(3) {
            // More requests than the ring has entries.
            0 => guest.set_avail_index(0x8000)?,
            // A descriptor that is not in the table.
            1 => guest.publish(RING + 7)?,
            // A table where there is no memory.
            _ => {
                guest.descriptor(0, (1 << 50, 16, 4, 0))?;
                guest.publish(0)?;
            }
        }
        guest.kick();
        stage.did(1);
        stage.pause(NOTICE);
        Ok(())
    });
}
