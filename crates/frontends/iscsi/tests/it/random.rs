//! Random commands and PDUs: each is answered or its connection ends, and another host's session is
//! unaffected. Reproducible by seed; see `CONVECT_RANDOM_ROUNDS` and `CONVECT_RANDOM_SEED`.

use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;
use std::io::{Read, Write};
use std::net::Shutdown;

const HOST: &str = "iqn.2026-11.test:host";
const OTHER: &str = "iqn.2026-11.test:random";
const ROUNDS: u64 = 60;

/// A setting from the environment, or its default.
fn setting(name: &str, usual: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(usual, |given| given.parse().expect("a number"))
}

/// Pseudo-random numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 11) % most
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn byte(&mut self) -> u8 {
        // Prefer boundary values.
        match self.below(4) {
            0 => [0, 1, 2, 0x7f, 0x80, 0xff][self.below(6) as usize],
            1 => 0,
            _ => self.next() as u8,
        }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

/// A CDB, mostly of a supported command.
fn cdb(random: &mut Random, known: &[(u8, u8)]) -> [u8; 16] {
    let mut cdb = [0; 16];
    let (opcode, action) = match random.one_in(10) {
        true => (random.next() as u8, random.next() as u8),
        false => known[random.below(known.len() as u64) as usize],
    };
    (cdb[0], cdb[1]) = (opcode, action);
    for byte in &mut cdb[2..] {
        if random.one_in(3) {
            *byte = random.byte();
        }
    }
    if random.one_in(4) {
        cdb[1] ^= 1 << random.below(8);
    }
    cdb
}

/// Operation codes and service actions that the unit reports.
fn known(client: &mut Client) -> Vec<(u8, u8)> {
    let pdu = client.command(0xc1, 4096, &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0]);
    client.send(&pdu);
    let list = client.receive().unwrap().data;
    let rows = list[4..].chunks_exact(8);
    rows.map(|row| (row[0], row[3])).collect()
}

/// Sends a command and its solicited data; returns once it was answered. None if the connection has
/// ended.
fn carry_out(client: &mut Client, random: &mut Random, known: &[(u8, u8)]) -> Option<()> {
    let cdb = cdb(random, known);
    let data = match random.below(3) {
        0 => Vec::new(),
        1 => {
            let len = [4, 24, 512, 1024, 4096][random.below(5) as usize];
            random.bytes(len)
        }
        _ => vec![random.byte(); random.below(20_000) as usize],
    };
    let reads = data.is_empty() && random.one_in(2);
    let (flags, expected) = match (data.len(), reads) {
        (0, true) => (0xc0, random.below(1 << 20) as u32),
        (0, false) => (0x80, 0),
        (len, _) => (0xa0, len as u32),
    };
    let attribute = [1, 1, 1, 1, 0, 2, 3][random.below(7) as usize];
    let mut pdu = client.command(flags | attribute, expected, &cdb);
    pdu.head[9] = u8::from(random.one_in(8));
    let immediate = data.len() <= 8192 && random.one_in(2);
    if immediate {
        pdu = pdu.data(&data);
    }
    let tag = client.tag;
    client.send(&pdu);
    loop {
        let answer = client.receive()?;
        match answer.opcode() {
            0x31 => {
                let (from, len) = (answer.get(40) as usize, answer.get(44) as usize);
                for (number, part) in data[from..from + len].chunks(8192).enumerate() {
                    let at = from + number * 8192;
                    let last = at + part.len() == from + len;
                    let out = Pdu::new(0x05, if last { 0x80 } else { 0 })
                        .word(16, tag)
                        .word(20, answer.get(20))
                        .word(36, number as u32)
                        .word(40, at as u32);
                    client.send(&out.data(part));
                }
            }
            0x25 if answer.head[1] & 1 == 0 => {}
            0x21 | 0x25 | 0x3f => {
                let own = answer.opcode() == 0x3f || answer.get(16) == tag;
                assert!(own, "an answer to another command: {answer:02x?}");
                return Some(());
            }
            // The session is asked to end.
            0x32 => {}
            other => panic!("opcode {other:02x} for {cdb:02x?}"),
        }
    }
}

/// Asserts that the other host's session works, whatever is reserved or stopped.
fn is_served(host: &mut Client) {
    let pdu = host.command(0xc1, 36, &[0x12, 0, 0, 0, 36, 0]);
    host.send(&pdu);
    let answer = host.receive().expect("its session continues");
    assert_eq!((answer.opcode(), answer.head[3]), (0x25, 0));
}

#[test]
fn every_command_is_answered_or_its_connection_ends() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let known = known(&mut host);
    let seed = setting("CONVECT_RANDOM_SEED", 1);
    for round in seed..seed + setting("CONVECT_RANDOM_ROUNDS", ROUNDS) {
        let mut random = Random::new(round);
        let keys = [
            "",
            "HeaderDigest=CRC32C\0DataDigest=CRC32C\0",
            "MaxRecvDataSegmentLength=512\0MaxBurstLength=512\0",
        ];
        let keys = keys[random.below(3) as usize];
        let mut client = Client::log_in(&server, OTHER, keys);
        for _ in 0..40 {
            if carry_out(&mut client, &mut random, &known).is_none() {
                break;
            }
        }
        is_served(&mut host);
    }
}

/// A PDU of any kind, valid or not.
fn any_pdu(client: &mut Client, random: &mut Random, known: &[(u8, u8)]) -> Vec<u8> {
    let opcodes = [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10, 0x1f];
    let opcode = opcodes[random.below(9) as usize];
    let mut pdu = match opcode {
        0x01 => {
            let cdb = cdb(random, known);
            client.command(random.byte(), random.below(1 << 18) as u32, &cdb)
        }
        0x05 => Pdu::new(opcode, random.byte())
            .word(16, client.tag)
            .word(20, [NO_TAG, 1, 2][random.below(3) as usize])
            .word(40, random.below(3) as u32 * 512),
        _ => Pdu::new(opcode, random.byte() | 0x80)
            .word(16, random.below(10) as u32)
            .word(20, [NO_TAG, client.tag][random.below(2) as usize])
            .word(24, client.command_number),
    };
    if random.one_in(3) {
        pdu.head[0] |= 0x40;
    }
    let len = [0, 0, 4, 48, 512, 5000][random.below(6) as usize];
    let data = match (opcode, random.one_in(2)) {
        (0x03 | 0x04, true) => b"SendTargets=All\0X-a=1\0MaxBurstLength=0\0".to_vec(),
        _ => random.bytes(len),
    };
    let mut pdu = pdu.data(&data);
    if random.one_in(6) {
        let at = random.below(48) as usize;
        pdu.head[at] = random.byte();
    }
    let mut bytes = pdu.head.to_vec();
    bytes.extend(&pdu.data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    if random.one_in(20) {
        bytes.truncate(random.below(bytes.len() as u64) as usize);
    }
    bytes
}

/// Stops sending, and reads until the target has closed the connection.
fn ends(client: &mut Client) {
    // It may have ended already.
    let _ = client.stream.shutdown(Shutdown::Write);
    let mut some = [0; 4096];
    loop {
        match client.stream.read(&mut some) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                let reset = std::io::ErrorKind::ConnectionReset;
                assert_eq!(error.kind(), reset, "it ends in time");
                return;
            }
        }
    }
}

#[test]
fn random_pdus_end_only_their_own_session_in_time() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let known = known(&mut host);
    let seed = setting("CONVECT_RANDOM_SEED", 1);
    for round in seed..seed + setting("CONVECT_RANDOM_ROUNDS", ROUNDS) {
        let mut random = Random::new(!round);
        let keys = ["", "MaxConnections=4\0InitialR2T=No\0"][random.below(2) as usize];
        let mut client = Client::log_in(&server, OTHER, keys);
        for _ in 0..30 {
            let bytes = any_pdu(&mut client, &mut random, &known);
            if client.stream.write_all(&bytes).is_err() {
                break;
            }
        }
        ends(&mut client);
        is_served(&mut host);
    }
    assert_eq!(server.sessions(), 1);
}

#[test]
fn random_logins_end_no_session_and_time_out() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let keys = [
        "InitiatorName=iqn.2026-11.test:random",
        "InitiatorName=iqn.2026-11.test:host",
        "SessionType=Discovery",
        "SessionType=Normal",
        "AuthMethod=CHAP,None",
        "AuthMethod=None",
        "CHAP_A=5",
        "CHAP_N=a",
        "CHAP_R=0x00",
        "MaxBurstLength=512",
        "FirstBurstLength=16777215",
        "MaxRecvDataSegmentLength=0",
        "MaxConnections=65535",
        "HeaderDigest=CRC32C",
        "X-=\u{ff}",
        "=",
    ];
    let seed = setting("CONVECT_RANDOM_SEED", 1);
    for round in seed..seed + 4 * setting("CONVECT_RANDOM_ROUNDS", ROUNDS) {
        let mut random = Random::new(round ^ 0x5555);
        let mut client = Client::connect(&server);
        for _ in 0..4 {
            let mut text = format!("TargetName={}\0", server.target);
            for _ in 0..random.below(6) {
                text += keys[random.below(keys.len() as u64) as usize];
                text.push('\0');
            }
            let mut pdu = Pdu::new(
                0x43,
                [0x87, 0x81, 0x83, 0x00, 0x40][random.below(5) as usize],
            )
            // Another session's ports are distinct.
            .byte(8, 0x80)
            .data(text.as_bytes());
            if random.one_in(4) {
                let at = [0, 1, 2, 3, 4, 7, 14, 15, 20, 24][random.below(10) as usize];
                pdu.head[at] = random.byte();
            }
            let mut bytes = pdu.head.to_vec();
            bytes.extend(&pdu.data);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            if client.stream.write_all(&bytes).is_err() {
                break;
            }
        }
        ends(&mut client);
        is_served(&mut host);
    }
}
