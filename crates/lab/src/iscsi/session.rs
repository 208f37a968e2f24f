//! Logging in, step by step, so that many sessions can do it at once; and the numbers of a session.

use super::lun::Lun;
use super::names;
use super::protocol::{self as p, Head};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer to a login that takes longer than this never comes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Unit attentions of a new session, and states in which a unit is not ready yet, at most.
const ATTENTIONS_MAX: usize = 100;

pub(super) fn wrong(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, text.into())
}

/// The numbers of a session (RFC 7143, section 4.2.2).
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// CmdSN of the next command.
    pub command: u32,
    /// The last CmdSN that the target takes.
    pub command_max: u32,
    /// The next StatSN that is expected.
    pub status: u32,
}

impl Numbers {
    /// Takes over what a target's PDU says.
    pub fn note(&mut self, head: &Head) {
        if p::ASYNC == head.opcode() || head.status().is_some() {
            self.status = head.get(24).wrapping_add(1);
        }
        let most = head.get(32);
        if most.wrapping_sub(self.command_max) < 1 << 31 {
            self.command_max = most;
        }
    }

    /// Whether another command may be sent.
    pub fn is_open(&self) -> bool {
        self.command_max.wrapping_sub(self.command) < 1 << 31
    }

    /// Puts the numbers into a command's header, and goes on.
    pub fn stamp(&mut self, head: Head) -> Head {
        let stamped = head.word(24, self.command).word(28, self.status);
        self.command = self.command.wrapping_add(1);
        stamped
    }
}

/// A session whose login was sent.
pub struct Waiting {
    stream: TcpStream,
    lun: u8,
}

/// A session in the full feature phase.
pub struct Opened {
    pub stream: TcpStream,
    pub numbers: Numbers,
    pub lun: u8,
    /// Bytes of data that may come with a command.
    pub immediate_max: usize,
    /// Bytes of a data segment that the target takes.
    pub segment_max: usize,
}

fn receive(stream: &mut TcpStream) -> Result<(Head, Vec<u8>)> {
    let mut bytes = [0; p::HEAD_LEN];
    stream.read_exact(&mut bytes)?;
    let head = Head(bytes);
    let (len, pad) = head.segment();
    if len > p::SEGMENT_MAX || bytes[4] != 0 {
        return Err(wrong(format!("a data segment of {len} bytes")));
    }
    let mut data = vec![0; len + pad];
    stream.read_exact(&mut data)?;
    data.truncate(len);
    Ok((head, data))
}

/// What a target said of a key that is a number.
fn number(text: &str, key: &str) -> Option<usize> {
    let value = text
        .split('\0')
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))?;
    value.parse().ok()
}

impl Waiting {
    /// Connects to a unit's portal and sends the login: one request, straight to the full feature phase.
    ///
    /// # Errors
    /// When nobody listens there.
    pub fn begin(lun: &Lun) -> Result<Self> {
        let mut stream = TcpStream::connect(lun.portal)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let text = format!(
            "InitiatorName={}\0TargetName={}\0SessionType=Normal\0HeaderDigest=None\0DataDigest=None\0\
             InitialR2T=Yes\0ImmediateData=Yes\0MaxRecvDataSegmentLength={}\0MaxBurstLength=1048576\0\
             FirstBurstLength=262144\0MaxOutstandingR2T=1\0",
            names::initiator(),
            lun.target,
            p::SEGMENT_MAX,
        );
        // From the operational stage to the full feature phase.
        let head = Head::new(p::LOGIN | p::IMMEDIATE, 0x87, 0)
            .bytes(8, &names::next_isid())
            .word(24, 1)
            .data_len(text.len());
        let mut bytes = head.0.to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        stream.write_all(&bytes)?;
        Ok(Self {
            stream,
            lun: lun.number,
        })
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// When the target refuses, or wants more than one step.
    pub fn end(mut self) -> Result<Opened> {
        let (head, data) = receive(&mut self.stream)?;
        let text = String::from_utf8_lossy(&data);
        if head.opcode() != p::LOGIN_RESPONSE || head.0[36..38] != [0, 0] {
            let (class, detail) = (head.0[36], head.0[37]);
            return Err(wrong(format!(
                "the login was refused: {class:#04x}{detail:02x}"
            )));
        }
        if head.0[1] & 0x83 != 0x83 {
            return Err(wrong("the target does not go to the full feature phase"));
        }
        let segment_max = number(&text, "MaxRecvDataSegmentLength").unwrap_or(8192);
        let burst = number(&text, "FirstBurstLength").unwrap_or(65_536);
        let immediate = !text.split('\0').any(|pair| pair == "ImmediateData=No");
        Ok(Opened {
            numbers: Numbers {
                command: head.get(28),
                command_max: head.get(32),
                status: head.get(24).wrapping_add(1),
            },
            stream: self.stream,
            lun: self.lun,
            immediate_max: if immediate { burst.min(segment_max) } else { 0 },
            segment_max,
        })
    }
}

impl Opened {
    /// Logs in.
    ///
    /// # Errors
    /// As [`Waiting::begin`] and [`Waiting::end`].
    pub fn open(lun: &Lun) -> Result<Self> {
        Waiting::begin(lun)?.end()
    }

    /// One command after all before it have ended: its status and its data.
    fn ask(&mut self, expected: u32, cdb: &[u8; 16]) -> Result<(u8, Vec<u8>)> {
        let way = (expected > 0).then_some(false);
        let head = self
            .numbers
            .stamp(p::command(0, self.lun, way, expected, cdb));
        self.stream.write_all(&head.0)?;
        let mut data = Vec::new();
        loop {
            let (head, part) = receive(&mut self.stream)?;
            self.numbers.note(&head);
            if head.opcode() == p::DATA_IN {
                data.extend(part);
            }
            if let Some(status) = head.status() {
                return Ok((status, data));
            }
        }
    }

    /// Waits until the unit is ready; its blocks and the bytes of each.
    ///
    /// # Errors
    /// When it is not there.
    pub fn capacity(&mut self) -> Result<(u64, u32)> {
        for _ in 0..ATTENTIONS_MAX {
            if self.ask(0, &p::TEST_UNIT_READY)?.0 == 0 {
                let (status, data) = self.ask(p::CAPACITY_LEN, &p::read_capacity())?;
                let last = data.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
                let size = data
                    .get(8..12)
                    .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")));
                return match (status, last.and_then(|last| last.checked_add(1)), size) {
                    (0, Some(blocks), Some(size)) if size > 0 => Ok((blocks, size)),
                    _ => Err(wrong("the unit does not tell its size")),
                };
            }
        }
        Err(wrong("the unit does not become ready"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wrap_and_never_shrink() {
        let mut numbers = Numbers {
            command: u32::MAX,
            command_max: u32::MAX,
            status: 7,
        };
        assert!(numbers.is_open());
        assert_eq!(numbers.stamp(Head([0; p::HEAD_LEN])).get(24), u32::MAX);
        assert!(!numbers.is_open());
        let told = |most| {
            Head::new(p::RESPONSE, p::FINAL, 0)
                .word(24, 7)
                .word(32, most)
        };
        numbers.note(&told(1));
        assert!(numbers.is_open());
        assert_eq!(numbers.status, 8);
        numbers.note(&told(u32::MAX));
        assert_eq!(numbers.command_max, 1);
    }

    #[test]
    fn numbers_of_keys_are_found() {
        let text = "TargetPortalGroupTag=1\0FirstBurstLength=65536\0X=\0";
        assert_eq!(number(text, "FirstBurstLength"), Some(65_536));
        assert_eq!(number(text, "BurstLength"), None);
    }
}
