//! An initiator under byte-level control of the test.

use super::server::Server;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub const NO_TAG: u32 = u32::MAX;

/// A PDU.
#[derive(Clone, Debug)]
pub struct Pdu {
    pub head: [u8; 48],
    pub data: Vec<u8>,
}

impl Pdu {
    pub fn new(opcode: u8, flags: u8) -> Self {
        let mut head = [0; 48];
        head[0] = opcode;
        head[1] = flags;
        Self {
            head,
            data: Vec::new(),
        }
    }

    pub fn word(mut self, at: usize, value: u32) -> Self {
        self.head[at..at + 4].copy_from_slice(&value.to_be_bytes());
        self
    }

    pub fn byte(mut self, at: usize, value: u8) -> Self {
        self.head[at] = value;
        self
    }

    pub fn data(mut self, data: &[u8]) -> Self {
        self.data = data.to_vec();
        self.head[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        self
    }

    pub fn opcode(&self) -> u8 {
        self.head[0] & 0x3f
    }

    pub fn get(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.head[at..at + 4].try_into().unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.data).replace('\0', "\n")
    }
}

fn crc(parts: &[&[u8]]) -> [u8; 4] {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    parts.iter().for_each(|part| digest.update(part));
    (digest.finalize() as u32).to_le_bytes()
}

pub struct Client {
    pub stream: TcpStream,
    pub command_number: u32,
    pub tag: u32,
    /// Header and data digests.
    pub digests: bool,
    /// Bits to flip in the next data and header digest.
    pub spoil: (u8, u8),
    /// Session handle (TSIH) and connection ID (CID).
    pub handle: u16,
    pub connection: u16,
    /// Next expected status number (ExpStatSN); acknowledged with every PDU unless disabled.
    pub status_number: u32,
    pub acknowledges: bool,
}

/// Whether a PDU consumes a status number.
fn takes_status(pdu: &Pdu) -> bool {
    match pdu.opcode() {
        0x20 => pdu.get(16) != NO_TAG,
        0x25 => pdu.head[1] & 1 != 0,
        0x31 => false,
        _ => true,
    }
}

impl Client {
    pub fn connect(server: &Server) -> Self {
        Self::connect_to(server.portal())
    }

    pub fn connect_to(portal: SocketAddr) -> Self {
        Self::over(TcpStream::connect(portal).unwrap())
    }

    pub fn over(stream: TcpStream) -> Self {
        let limit = Some(Duration::from_secs(120));
        stream.set_read_timeout(limit).unwrap();
        stream.set_write_timeout(limit).unwrap();
        // Avoid delays of small consecutive requests (Nagle's algorithm).
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            command_number: 1,
            tag: 0,
            digests: false,
            spoil: (0, 0),
            handle: 0,
            connection: 0,
            status_number: 0,
            acknowledges: true,
        }
    }

    /// A session with these keys besides the names.
    pub fn log_in(server: &Server, initiator: &str, keys: &str) -> Self {
        Self::log_in_to(server.portal(), &server.target, initiator, keys)
    }

    pub fn log_in_to(portal: SocketAddr, target: &str, initiator: &str, keys: &str) -> Self {
        let mut client = Self::connect_to(portal);
        let text = format!("InitiatorName={initiator}\0TargetName={target}\0{keys}");
        let answer = client.login(0x87, &text);
        assert_eq!(answer.head[36..38], [0, 0], "{}", answer.text());
        assert_eq!(answer.head[1] & 0x83, 0x83, "full feature phase");
        client.digests = keys.contains("Digest=CRC32C");
        client
    }

    /// A session over an open connection.
    pub fn log_in_over(stream: TcpStream, target: &str, initiator: &str) -> Self {
        let mut client = Self::over(stream);
        let answer = client.login(
            0x87,
            &format!("InitiatorName={initiator}\0TargetName={target}\0"),
        );
        assert_eq!(answer.head[36..38], [0, 0], "{}", answer.text());
        client
    }

    /// A further connection of the session of `first`, or the status of its refusal.
    pub fn join(first: &Self, initiator: &str, target: &str, number: u16) -> Result<Self, [u8; 2]> {
        let mut client = Self::connect_to(first.stream.peer_addr().unwrap());
        client.be_of(first, number);
        let text = format!("InitiatorName={initiator}\0TargetName={target}\0");
        let answer = client.login(0x87, &text);
        match answer.head[36..38] {
            [0, 0] => Ok(client),
            _ => Err([answer.head[36], answer.head[37]]),
        }
    }

    /// Claims to be the connection with this number of another session.
    pub fn be_of(&mut self, first: &Self, number: u16) {
        (self.handle, self.connection) = (first.handle, number);
        self.command_number = first.command_number;
        self.tag = u32::from(number) << 16;
    }

    /// One login request and its response.
    pub fn login(&mut self, flags: u8, text: &str) -> Pdu {
        let pdu = Pdu::new(0x43, flags)
            .byte(13, 1)
            .word(20, u32::from(self.connection) << 16)
            .word(24, self.command_number);
        let [high, low] = self.handle.to_be_bytes();
        let pdu = pdu.byte(14, high).byte(15, low);
        self.send(&pdu.data(text.as_bytes()));
        let answer = self.receive().expect("an answer to the login");
        self.handle = u16::from_be_bytes([answer.head[14], answer.head[15]]);
        answer
    }

    pub fn send(&mut self, pdu: &Pdu) {
        let mut pdu = pdu.clone();
        if self.acknowledges && pdu.get(28) == 0 {
            pdu = pdu.word(28, self.status_number);
        }
        let mut bytes = pdu.head.to_vec();
        let (data, head) = std::mem::take(&mut self.spoil);
        if self.digests {
            let mut digest = crc(&[&pdu.head]);
            digest[0] ^= head;
            bytes.extend(digest);
        }
        if !pdu.data.is_empty() {
            let start = bytes.len();
            bytes.extend(&pdu.data);
            bytes.resize(start + pdu.data.len().next_multiple_of(4), 0);
            if self.digests {
                let mut digest = crc(&[&bytes[start..]]);
                digest[0] ^= data;
                bytes.extend(digest);
            }
        }
        // The peer may have closed the connection already.
        let _ = self.stream.write_all(&bytes);
    }

    /// The next PDU, answering pings; none if the connection has ended.
    pub fn receive(&mut self) -> Option<Pdu> {
        loop {
            let pdu = self.receive_any()?;
            if takes_status(&pdu) {
                self.status_number = pdu.get(24).wrapping_add(1);
            }
            if pdu.opcode() != 0x20 || pdu.get(16) != NO_TAG {
                return Some(pdu);
            }
            let answer = Pdu::new(0x40, 0x80).word(16, NO_TAG);
            self.send(&answer.word(20, pdu.get(20)).word(24, self.command_number));
        }
    }

    /// The next PDU of any kind.
    pub fn receive_any(&mut self) -> Option<Pdu> {
        let mut head = [0; 48];
        self.stream.read_exact(&mut head).ok()?;
        if self.digests {
            let mut digest = [0; 4];
            self.stream.read_exact(&mut digest).ok()?;
            assert_eq!(digest, crc(&[&head]), "the header's digest");
        }
        let len = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
        let mut data = vec![0; len.next_multiple_of(4)];
        self.stream.read_exact(&mut data).ok()?;
        if self.digests && len > 0 {
            let mut digest = [0; 4];
            self.stream.read_exact(&mut digest).ok()?;
            assert_eq!(digest, crc(&[&data]), "the data's digest");
        }
        data.truncate(len);
        Some(Pdu { head, data })
    }

    /// A command PDU; advances the numbers.
    pub fn command(&mut self, flags: u8, expected: u32, cdb: &[u8]) -> Pdu {
        self.tag += 1;
        let mut pdu = Pdu::new(0x01, flags)
            .word(16, self.tag)
            .word(20, expected)
            .word(24, self.command_number);
        self.command_number += 1;
        pdu.head[32..32 + cdb.len()].copy_from_slice(cdb);
        pdu
    }

    pub fn write_10(&mut self, lba: u32, blocks: u16, flags: u8) -> Pdu {
        let mut cdb = [0x2a, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        cdb[2..6].copy_from_slice(&lba.to_be_bytes());
        cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
        self.command(flags, u32::from(blocks) * 512, &cdb)
    }

    /// Writes with immediate data; returns the status.
    pub fn write(&mut self, lba: u32, data: &[u8]) -> u8 {
        let pdu = self.write_10(lba, (data.len() / 512) as u16, 0xa1);
        self.send(&pdu.data(data));
        let answer = self.receive().unwrap();
        assert_eq!(answer.opcode(), 0x21);
        answer.head[3]
    }

    /// Reads; returns data and status.
    pub fn read(&mut self, lba: u32, blocks: u16) -> (Vec<u8>, u8) {
        let mut cdb = [0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        cdb[2..6].copy_from_slice(&lba.to_be_bytes());
        cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
        let pdu = self.command(0xc1, u32::from(blocks) * 512, &cdb);
        self.send(&pdu);
        let mut data = Vec::new();
        loop {
            let answer = self.receive().unwrap();
            data.extend(&answer.data);
            match answer.opcode() {
                0x25 if answer.head[1] & 1 == 0 => {}
                0x25 => return (data, answer.head[3]),
                // The data is sense data.
                0x21 => return (data, answer.head[3]),
                other => panic!("opcode {other:02x}"),
            }
        }
    }

    /// TEST UNIT READY: the status.
    pub fn ready(&mut self) -> u8 {
        let pdu = self.command(0x81, 0, &[0; 6]);
        self.send(&pdu);
        let answer = self.receive().unwrap();
        assert_eq!(answer.get(16), self.tag, "the answer to another command");
        answer.head[3]
    }

    /// Consumes the unit attention of a new nexus.
    pub fn settle(mut self) -> Self {
        assert_eq!(self.ready(), 2);
        assert_eq!(self.ready(), 0);
        self
    }
}

/// Whether the target closes a connection within a time.
pub fn is_closed(stream: &TcpStream, wait: Duration) -> bool {
    stream.set_read_timeout(Some(wait)).unwrap();
    matches!((&*stream).read(&mut [0]), Ok(0))
}
