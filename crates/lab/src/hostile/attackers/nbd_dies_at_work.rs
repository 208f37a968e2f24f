//! Asks for long work and is gone before any of it is answered.

use crate::hostile::peers::nbd;
use crate::hostile::stage::Stage;
use crate::nbd::protocol as p;
use std::io::{Read, Write};

/// Connections at a time.
const CONNECTIONS: u64 = 4;
/// Requests of each.
const REQUESTS: u64 = 48;
/// The longest range of block status, in bytes.
const STATUS_LENGTH: u32 = !0xfff;

pub fn attack(stage: &Stage<'_>) {
    stage.together(CONNECTIONS, |_, chance| {
        let mut stream = nbd::open(stage, true)?;
        for number in 0..REQUESTS {
            let last = stage.places.nbd_bytes - u64::from(nbd::LONGEST);
            let offset = chance.below(last) & !0xfff;
            let request = match number % 4 {
                0 => p::request(p::BLOCK_STATUS, 0, number, 0, STATUS_LENGTH),
                1 => p::request(p::READ, 0, number, offset, nbd::LONGEST),
                2 => p::request(p::TRIM, 0, number, offset, nbd::LONGEST),
                _ => p::request(p::WRITE_ZEROES, 0, number, offset, nbd::LONGEST),
            };
            stream.write_all(&request)?;
            stage.did(1);
        }
        // Something was begun when there is an answer to the first.
        stream.read(&mut [0; 4096]).map(|_| ())
    });
}
