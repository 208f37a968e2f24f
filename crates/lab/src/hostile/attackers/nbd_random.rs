//! Random options before, and random requests after an export was chosen. Most look right up to a field.

use crate::chance::Chance;
use crate::hostile::peers::nbd;
use crate::hostile::stage::Stage;
use crate::nbd::protocol as p;
use std::io::{Read, Write};

/// Connections at a time.
const CONNECTIONS: u64 = 4;
/// Options or requests of each.
const MESSAGES: u64 = 64;
/// Most bytes of data of a message.
const DATA_MAX: u64 = 4096;

fn bytes(chance: &mut Chance, most: u64) -> Vec<u8> {
    let count = chance.below(most + 1);
    (0..count).map(|_| chance.next() as u8).collect()
}

fn request(chance: &mut Chance, size: u64) -> Vec<u8> {
    let (command, flags) = (chance.below(10) as u16, chance.next() as u16 & 0x1f);
    let offset = match chance.below(4) {
        0 => chance.next(),
        1 => size - chance.below(1 << 20),
        _ => chance.below(size),
    };
    let length = match chance.below(4) {
        0 => chance.next() as u32,
        _ => chance.below(1 << 16) as u32,
    };
    let data = match command {
        p::WRITE => bytes(chance, DATA_MAX),
        _ => Vec::new(),
    };
    // What is written has mostly the length that is said, so that what follows is understood.
    let length = match command == p::WRITE && chance.below(8) > 0 {
        true => data.len() as u32,
        false => length,
    };
    let head = p::request(command, flags, chance.next(), offset, length);
    [&head[..], &data].concat()
}

pub fn attack(stage: &Stage<'_>) {
    stage.together(CONNECTIONS, |number, chance| {
        let mut stream = match number % 2 {
            0 => nbd::greet(stage)?,
            _ => nbd::open(stage, true)?,
        };
        for _ in 0..MESSAGES {
            let message = match (number % 2, chance.below(16)) {
                (_, 0) => bytes(chance, 64),
                (0, _) => p::option(chance.below(12) as u32, &bytes(chance, DATA_MAX)),
                _ => request(chance, stage.places.nbd_bytes),
            };
            stream.write_all(&message)?;
            stage.did(1);
        }
        stream.read(&mut [0; 4096]).map(|_| ())
    });
}
