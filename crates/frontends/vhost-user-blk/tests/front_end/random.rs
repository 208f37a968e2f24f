//! Random messages and rings: each message is answered or its connection closed, each ring can be
//! stopped, and others are served. `CONVECT_RANDOM_ROUNDS`: number of connections;
//! `CONVECT_RANDOM_SEED`: seed.

use crate::monitor::{event, message, negotiated, table, words};
use crate::support::*;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use vhost_client::{Options, RawConnection, memory_file};

const ROUNDS: u64 = 300;
const USER: u64 = 0x7f00_0000_0000;
const MEMORY: u64 = 1 << 20;
/// Offsets of the parts of a ring; data is before them.
const TABLE: u64 = 0x8_0000;
const AVAILABLE: u64 = 0xa_0000;
const USED: u64 = 0xc_0000;
const ENTRIES: u64 = 16;

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        reactor::mix(reactor::mix(self.0))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of(&mut self, values: &[u64]) -> u64 {
        values[self.below(values.len() as u64) as usize]
    }

    /// A number that is often at a limit.
    fn number(&mut self) -> u64 {
        let near = self.of(&[
            0,
            1,
            8,
            16,
            128,
            1024,
            4096,
            1 << 16,
            MEMORY,
            USER,
            1 << 32,
            u64::MAX,
        ]);
        match self.below(4) {
            0 => near,
            1 => near.wrapping_add(self.below(32)).wrapping_sub(16),
            2 => self.below(4),
            _ => self.next(),
        }
    }
}

/// Descriptors to send with messages.
struct Files {
    memory: File,
    /// Shorter than claimed.
    short: File,
    event: File,
    call: File,
    socket: std::os::unix::net::UnixStream,
    device: File,
}

impl Files {
    fn new() -> Self {
        Self {
            memory: memory_file(MEMORY).unwrap(),
            short: memory_file(4096).unwrap(),
            event: event(),
            call: event(),
            socket: std::os::unix::net::UnixStream::pair().unwrap().0,
            device: File::open("/dev/null").unwrap(),
        }
    }

    fn some(&self, chance: &mut Chance) -> Vec<RawFd> {
        let count = chance.of(&[0, 0, 1, 1, 1, 1, 2, 9]);
        let one = |chance: &mut Chance| match chance.below(16) {
            0..=5 => self.event.as_raw_fd(),
            6..=12 => self.memory.as_raw_fd(),
            13 => self.short.as_raw_fd(),
            14 => self.socket.as_raw_fd(),
            _ => match chance.one_in(4) {
                true => self.device.as_raw_fd(),
                false => self.call.as_raw_fd(),
            },
        };
        (0..count).map(|_| one(chance)).collect()
    }
}

/// A body that is valid for some message, or nearly.
fn body(chance: &mut Chance) -> Vec<u8> {
    let pair = |low: u64, high: u64| words(&[low & 0xffff_ffff | high << 32]);
    let mut body = match chance.below(8) {
        0 => Vec::new(),
        1 => words(&[chance.number()]),
        2 => pair(chance.below(5), chance.number()),
        3 => {
            let place =
                |chance: &mut Chance| USER + chance.of(&[TABLE, AVAILABLE, USED, MEMORY - 8]);
            words(&[
                chance.below(5),
                place(chance),
                place(chance),
                place(chance),
                0,
            ])
        }
        4 => {
            let size = chance.of(&[MEMORY, 4096, 2 * MEMORY]);
            table(
                chance.of(&[0, 4096, MEMORY]),
                USER,
                size,
                chance.of(&[0, 0, 4096]),
            )
        }
        5 => words(&[
            0,
            chance.number(),
            chance.number(),
            chance.number(),
            chance.number(),
        ]),
        6 => {
            let mut body = pair(chance.below(70), chance.below(70));
            body.extend([0; 4]);
            body.resize(12 + chance.below(70) as usize, 1);
            body
        }
        _ => {
            let mut body = words(&[chance.of(&[8192, 1 << 20]), chance.of(&[0, 16, 4096])]);
            body.extend([chance.below(5) as u8, 0, chance.below(20) as u8, 0]);
            body.extend([0; 4]);
            body
        }
    };
    if !body.is_empty() && chance.one_in(8) {
        let at = chance.below(body.len() as u64) as usize;
        body[at] = chance.next() as u8;
    }
    if chance.one_in(16) {
        body.resize(chance.below(80) as usize, 7);
    }
    body
}

/// Waits until the peer has answered a request; false if it has closed the connection.
fn is_there(connection: &RawConnection) -> bool {
    if connection.send(message::GET_FEATURES, 0, &[], &[]).is_err() {
        return false;
    }
    loop {
        match connection.receive() {
            Ok((message::GET_FEATURES, _)) => return true,
            Ok(_) => {}
            Err(error) => {
                let silent = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                assert!(!silent.contains(&error.kind()), "no answer: {error}");
                return false;
            }
        }
    }
}

/// Sends messages until the connection is closed; true if it is still open.
fn say(connection: &RawConnection, chance: &mut Chance, files: &Files, count: u64) -> bool {
    (0..count).all(|_| {
        let request = match chance.one_in(16) {
            true => chance.number() as u32,
            false => chance.below(46) as u32,
        };
        let flags = chance.of(&[0, 8, 8, 8]) as u32;
        let (body, descriptors) = (body(chance), files.some(chance));
        connection.send(request, flags, &body, &descriptors).is_ok() && is_there(connection)
    })
}

/// Sets a ring up correctly.
fn set_up(connection: &RawConnection, files: &Files, index: u32) -> std::io::Result<()> {
    let number = |number: u32| [index.to_le_bytes(), number.to_le_bytes()].concat();
    let fd = |file: &File| [file.as_raw_fd()];
    let queue = words(&[u64::from(index)]);
    let addresses = words(&[
        u64::from(index),
        USER + TABLE,
        USER + USED,
        USER + AVAILABLE,
        0,
    ]);
    for (request, body, files) in [
        (
            message::SET_MEM_TABLE,
            table(0, USER, MEMORY, 0),
            &fd(&files.memory)[..],
        ),
        (message::SET_VRING_NUM, number(ENTRIES as u32), &[]),
        (message::SET_VRING_BASE, number(0), &[]),
        (message::SET_VRING_ADDR, addresses, &[]),
        (message::SET_VRING_CALL, queue.clone(), &fd(&files.call)),
        (message::SET_VRING_ERR, queue.clone(), &fd(&files.call)),
        (message::SET_VRING_KICK, queue, &fd(&files.event)),
        (message::SET_VRING_ENABLE, number(1), &[]),
    ] {
        connection.ask(request, &body, files)?;
    }
    Ok(())
}

/// Fills memory and ring at random, much of it nearly valid.
fn fill(chance: &mut Chance, files: &Files, available: u16) {
    let put = |at: u64, bytes: &[u8]| files.memory.write_all_at(bytes, at).unwrap();
    for at in 0..8 {
        let kind = chance.of(&[0, 0, 1, 1, 4, 8, 11, 13, 99]);
        let sector = match chance.one_in(4) {
            true => chance.number(),
            false => chance.below(1000),
        };
        put(
            64 * at,
            &words(&[kind, sector, chance.below(64), chance.number()]),
        );
    }
    for index in 0..ENTRIES {
        let address = match chance.below(8) {
            0 => chance.number(),
            1 => TABLE + 16 * chance.below(ENTRIES),
            _ => 64 * chance.below(8),
        };
        let len = match chance.below(4) {
            0 => chance.number() as u32,
            1 => 16,
            _ => chance.of(&[1, 16, 512, 4096]) as u32,
        };
        let flags = match chance.one_in(8) {
            true => chance.next() as u16,
            false => chance.of(&[0, 1, 1, 1, 2, 2, 3, 3, 4]) as u16,
        };
        let next = match chance.one_in(16) {
            true => chance.next() as u16,
            false => (index + 1) as u16,
        };
        let mut bytes = words(&[address]);
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        put(TABLE + 16 * index, &bytes);
    }
    for entry in 0..ENTRIES {
        let head = match chance.one_in(32) {
            true => chance.next() as u16,
            false => chance.below(ENTRIES) as u16,
        };
        put(AVAILABLE + 4 + 2 * entry, &head.to_le_bytes());
    }
    put(AVAILABLE + 2, &available.to_le_bytes());
    (&mut &files.event).write_all(&1u64.to_ne_bytes()).unwrap();
}

fn round(served: &Served, seed: u64) {
    let mut chance = Chance(seed << 20);
    let files = Files::new();
    if chance.one_in(8) {
        let connection = RawConnection::connect(&served.path, TIMEOUT).unwrap();
        say(&connection, &mut chance, &files, 8);
        return;
    }
    let connection = negotiated(served);
    if chance.one_in(3) && !say(&connection, &mut chance, &files, 20) {
        return;
    }
    for _ in 0..4 {
        if set_up(&connection, &files, chance.below(4) as u32).is_err() {
            return;
        }
        let mut available = 0u16;
        for _ in 0..4 {
            available = available.wrapping_add(chance.of(&[1, 1, 2, 3, 3, 16, 17, 300]) as u16);
            fill(&mut chance, &files, available);
            if !is_there(&connection) {
                return;
            }
        }
        if chance.one_in(8) {
            files.memory.set_len(chance.of(&[0, TABLE, 4096])).unwrap();
            (&mut &files.event).write_all(&1u64.to_ne_bytes()).unwrap();
        }
        for index in 0..4 {
            let body = words(&[index]);
            let flags = 0;
            let sent = connection.send(message::GET_VRING_BASE, flags, &body, &[]);
            if sent.is_err() || !is_there(&connection) {
                return;
            }
        }
        if chance.one_in(4) && !say(&connection, &mut chance, &files, 10) {
            return;
        }
        if files.memory.metadata().unwrap().len() < MEMORY {
            return;
        }
    }
}

#[test]
fn every_random_message_is_answered_or_ends_its_connection() {
    let number = |name, else_be| match std::env::var(name) {
        Ok(text) => text.parse().unwrap(),
        Err(_) => else_be,
    };
    let (first, rounds) = (
        number("CONVECT_RANDOM_SEED", 0),
        number("CONVECT_RANDOM_ROUNDS", ROUNDS),
    );
    let served = serve(volume());
    for seed in first..first + rounds {
        // Printed on failure.
        println!("seed {seed}");
        round(&served, seed);
        if seed % 16 == 15 {
            let mut client = served.connect(Options::default());
            assert_eq!(write(client.queue(0), 0, &[seed as u8; 512]), OK);
            assert_eq!(read(client.queue(0), 0, 512), [seed as u8; 512]);
        }
    }
}
