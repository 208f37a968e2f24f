//! The memory's file is cut short after it was shared: what touches it beyond its end gets SIGBUS.

use crate::hostile::stage::Stage;
use std::time::Duration;
use vhost_client::{RawGuest, memory_file};

const MEMORY: u64 = 16 << 20;
const RING: u16 = 128;
/// Where a request's data are that are cut off, and to which size.
const DATA_AT: u64 = 8 << 20;
const CUT_TO: u64 = 1 << 20;
const INFLIGHT: u64 = 8192;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
/// How long the other side has to touch it.
const NOTICE: Duration = Duration::from_millis(50);

pub fn attack(stage: &Stage<'_>) {
    let mut chance = stage.chance(0);
    stage.again(|| {
        let mut guest = RawGuest::new(&stage.places.vhost, MEMORY, 1, RING)?;
        let inflight = memory_file(INFLIGHT)?;
        let way = chance.below(3);
        if way == 2 {
            guest.keep_inflight_in(&inflight, INFLIGHT)?;
        }
        guest.header(RawGuest::FREE, 0, 0)?;
        guest.descriptor(0, (RawGuest::FREE, 16, NEXT, 1))?;
        guest.descriptor(1, (DATA_AT, 4096, NEXT | WRITE, 2))?;
        guest.descriptor(2, (RawGuest::FREE + 32, 1, WRITE, 0))?;
        guest.publish(0)?;
        // What was sealed cannot be cut: that is one of the right answers.
        let cut = match way {
            0 => guest.memory.set_len(CUT_TO),
            1 => guest.memory.set_len(0),
            _ => inflight.set_len(0),
        };
        guest.kick();
        stage.did(1);
        stage.pause(NOTICE);
        cut
    });
}
