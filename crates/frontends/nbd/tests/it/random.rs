//! Random messages: each request is answered or its connection closed, and other sessions are
//! unaffected.
//!
//! `CONVECT_NBD_MESSAGES`: number of messages (default: 10,000); `CONVECT_NBD_SEED`: seed.

use crate::support::client::{Client, string};
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};
use std::collections::BTreeSet;
use std::io::{Read, Write};

const SIZE: u64 = 64 << 20;
/// Requests per connection before its replies are read: payloads fit the socket's buffers.
const REQUESTS: u64 = 24;

/// The splitmix64 sequence of a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        reactor::mix(self.0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Data of an option, valid or not.
fn option_data(random: &mut Random) -> Vec<u8> {
    let name = random.one(&["", "disk", "another"]);
    let mut data = match random.below(6) {
        0 => Vec::new(),
        1 => random.bytes(64),
        2 => [string(name), vec![0, 2, 0, 1, 0, 3]].concat(),
        3 => [string(name), vec![0, 0]].concat(),
        4 => [string(name), vec![0, 0, 0, 1], string("base:allocation")].concat(),
        _ => [string(name), vec![0, 0, 0, 0]].concat(),
    };
    if random.below(8) == 0 && !data.is_empty() {
        let at = random.below(data.len() as u64) as usize;
        data[at] ^= 1 << random.below(8);
    }
    data
}

/// Sends options until the peer is in transmission or its connection has ended. Returns the number
/// of messages, and whether structured replies were negotiated.
fn handshake(client: &mut Client, random: &mut Random) -> (u64, Option<bool>) {
    client.send(&3u32.to_be_bytes());
    let mut structured = false;
    for sent in 1..=20 {
        let option = match random.below(8) {
            0 => 7,
            1 => random.next() as u32,
            _ => random.one(&[1, 2, 3, 5, 6, 7, 8, 9, 10, 11]),
        };
        let data = option_data(random);
        let head = [
            b"IHAVEOPT".as_slice(),
            &option.to_be_bytes(),
            &(data.len() as u32).to_be_bytes(),
            &data,
        ];
        if client.stream.write_all(&head.concat()).is_err() {
            return (sent, None);
        }
        if option == 1 {
            let mut answer = [0; 10];
            let entered = client.stream.read_exact(&mut answer).is_ok();
            return (sent, entered.then_some(structured));
        }
        // The reply ends with an acknowledgement or an error.
        loop {
            let Some((replied, kind)) = option_reply(client) else {
                return (sent, None);
            };
            assert_eq!(replied, option);
            match kind {
                1 if option == 7 => return (sent, Some(structured)),
                1 if option == 8 => structured = true,
                _ => {}
            }
            if kind == 1 || kind > 1 << 31 {
                break;
            }
        }
    }
    (20, None)
}

/// An option's reply, unless the connection has ended.
fn option_reply(client: &mut Client) -> Option<(u32, u32)> {
    let mut head = [0; 20];
    client.stream.read_exact(&mut head).ok()?;
    let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
    assert_eq!(head[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
    client.take(word(16) as usize);
    Some((word(8), word(12)))
}

/// Appends a request; returns whether more may follow.
fn request(random: &mut Random, cookie: u64, out: &mut Vec<u8>) -> bool {
    let command = match random.below(16) {
        0 => random.next() as u16,
        1 => 2,
        _ => random.one(&[0, 1, 3, 4, 5, 6, 7]),
    };
    let flags = match random.below(4) {
        0 => random.next() as u16,
        1 => 1 << random.below(6),
        _ => 0,
    };
    let offset = match random.below(8) {
        0 => random.next(),
        1 => SIZE - random.below(8192),
        2 => random.below(SIZE),
        _ => random.below(SIZE / 512) * 512,
    };
    let len = match (command, random.below(8)) {
        (1, 0) => random.below(2048) as u32,
        (1, _) => 512 * random.below(16) as u32,
        (_, 0) => random.next() as u32,
        (_, 1) => (1 << 25) + random.below(1024) as u32,
        _ => 512 * random.below(64) as u32,
    };
    let (offset, len) = match command {
        3 if random.below(4) > 0 => (0, 0),
        _ => (offset, len),
    };
    let magic = if random.below(200) == 0 {
        1u32
    } else {
        0x2560_9513
    };
    out.extend(magic.to_be_bytes());
    out.extend(flags.to_be_bytes());
    out.extend(command.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(offset.to_be_bytes());
    out.extend(len.to_be_bytes());
    if command == 1 {
        out.resize(out.len() + len as usize, 7);
    }
    magic != 1 && command != 2
}

/// Reads replies until the connection ends; returns the answered cookies. Lengths of simple read
/// replies are taken from the requests.
fn replies(client: &mut Client, sent: &[u8], structured: bool) -> BTreeSet<u64> {
    let reads = lengths(sent);
    let mut answered = BTreeSet::new();
    let mut magic = [0; 4];
    while client.stream.read_exact(&mut magic).is_ok() {
        let mut head = [0; 12];
        match u32::from_be_bytes(magic) {
            0x6744_6698 => {
                client.stream.read_exact(&mut head).unwrap();
                let cookie = u64::from_be_bytes(head[4..].try_into().unwrap());
                assert!(answered.insert(cookie), "{cookie} is answered twice");
                let len = reads.get(cookie as usize).copied().flatten();
                if head[..4] == [0; 4] && !structured {
                    client.take(len.unwrap_or(0) as usize);
                }
            }
            0x668e_33ef => {
                assert!(structured);
                let mut rest = [0; 16];
                client.stream.read_exact(&mut rest).unwrap();
                let cookie = u64::from_be_bytes(rest[4..12].try_into().unwrap());
                let len = u32::from_be_bytes(rest[12..].try_into().unwrap());
                client.take(len as usize);
                if rest[1] & 1 != 0 {
                    assert!(answered.insert(cookie), "{cookie} is answered twice");
                }
            }
            other => panic!("a reply begins with {other:x}"),
        }
    }
    answered
}

/// Length of each read, by cookie.
fn lengths(mut sent: &[u8]) -> Vec<Option<u32>> {
    let mut found = Vec::new();
    while sent.len() >= 28 {
        let command = u16::from_be_bytes(sent[6..8].try_into().unwrap());
        let len = u32::from_be_bytes(sent[24..28].try_into().unwrap());
        found.push((command == 0).then_some(len));
        let payload = if command == 1 { len as usize } else { 0 };
        sent = &sent[28 + payload..];
    }
    found
}

#[test]
fn random_messages_are_answered_or_their_connection_closed() {
    let (messages, seed) = (
        setting("CONVECT_NBD_MESSAGES", 10_000),
        setting("CONVECT_NBD_SEED", 1),
    );
    println!("CONVECT_NBD_SEED={seed}");
    let server = Server::start(MemoryDevice::new(SIZE, 512));
    server.device.set_bases(&[("monday", 3)]);
    let mut random = Random(seed);
    let (mut sent, mut requests) = (0, 0);
    while sent < messages {
        let mut client = Client::connect(&server);
        let (options, entered) = handshake(&mut client, &mut random);
        sent += options;
        let Some(structured) = entered else { continue };
        let mut out = Vec::new();
        let mut count = 0;
        while count < REQUESTS && request(&mut random, count, &mut out) {
            count += 1;
        }
        sent += count;
        requests += count;
        // An incomplete request at the end.
        let tail = random.one(&[0, 0, 1, 27]);
        let whole = out.len();
        out.extend(&[0x25, 0x60, 0x95, 0x13].repeat(7)[..tail]);
        if client.stream.write_all(&out).is_err() {
            continue;
        }
        if random.below(10) == 0 {
            // A disconnected peer gets nothing; the server must notice.
            continue;
        }
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answered = replies(&mut client, &out[..whole], structured);
        assert_eq!(answered, (0..count).collect(), "seed {seed}");
    }
    wait_until("all sessions have ended", || server.sessions() == 0);
    assert_eq!(server.memory.used(), 0);
    assert!(
        requests > messages / 4,
        "of {sent} messages {requests} are requests"
    );
    let mut witness = Client::transmission(&server, false);
    witness.request(0, 0, 1, 0, 512);
    assert_eq!(witness.simple_reply(), (0, 1));
}
