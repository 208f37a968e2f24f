//! Logging in, step by step, so that many sessions can do it concurrently; the numbers of a session; and commands of which
//! one waits for the other.

use super::lun::Lun;
use super::protocol::{self as p, Head};
use super::wire::{Wire, wrong};
use std::io::Result;
use std::sync::atomic::{AtomicU32, Ordering};

/// Unit attentions of a new session, and states in which a unit is not ready yet, at most.
const ATTENTIONS_MAX: usize = 100;

/// Login parameters.
#[derive(Clone, Debug)]
pub struct Initiator {
    /// Its name (RFC 7143, section 4.2.7).
    pub name: String,
    /// Whether headers and data have digests.
    pub digests: bool,
}

impl Default for Initiator {
    /// The same for all sessions of this program, without digests.
    fn default() -> Self {
        Self {
            name: format!("iqn.2026-11.io.convect.lab:{}", std::process::id()),
            digests: false,
        }
    }
}

/// An ISID of the random type (RFC 7143, section 11.12.5) that no other session of this program has.
pub fn next_isid() -> [u8; 6] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    [0x80, number[0], number[1], number[2], number[3], 0]
}

/// The numbers of a session (RFC 7143, section 4.2.2).
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// CmdSN of the next command.
    pub command: u32,
    /// The last CmdSN that the target takes.
    command_max: u32,
    /// The next StatSN that is expected.
    pub status: u32,
}

impl Numbers {
    /// Takes over what a target's PDU says.
    pub fn note(&mut self, head: &Head) {
        if head.status().is_some() {
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

    /// Puts the numbers into a command's header, and continues.
    pub fn stamp(&mut self, head: Head) -> Head {
        let stamped = head.word(24, self.command).word(28, self.status);
        self.command = self.command.wrapping_add(1);
        stamped
    }
}

/// A session whose login was sent.
pub struct Waiting {
    wire: Wire,
    lun: u8,
    digests: bool,
}

/// A session in the full feature phase.
pub struct Opened {
    pub wire: Wire,
    pub numbers: Numbers,
    pub lun: u8,
    /// Bytes of data that may come with a command.
    pub immediate_max: usize,
    /// Bytes of a data segment that the target takes.
    pub segment_max: usize,
}

/// A target's value of a numeric key.
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
    /// If no server listens there.
    pub fn begin(lun: &Lun, initiator: &Initiator) -> Result<Self> {
        Self::over(Wire::connect(lun.portal)?, lun, initiator, next_isid())
    }

    /// The same over a connection that is there, with an ISID that the caller chooses.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn over(mut wire: Wire, lun: &Lun, initiator: &Initiator, isid: [u8; 6]) -> Result<Self> {
        let digest = if initiator.digests { "CRC32C" } else { "None" };
        let text = format!(
            "InitiatorName={}\0TargetName={}\0SessionType=Normal\0HeaderDigest={digest}\0DataDigest={digest}\0\
             InitialR2T=Yes\0ImmediateData=Yes\0MaxRecvDataSegmentLength={}\0MaxBurstLength=1048576\0\
             FirstBurstLength=262144\0MaxOutstandingR2T=1\0",
            initiator.name,
            lun.target,
            p::SEGMENT_MAX,
        );
        // From the operational stage to the full feature phase.
        let head = Head::new(p::LOGIN | p::IMMEDIATE, 0x87, 0)
            .bytes(8, &isid)
            .word(24, 1);
        wire.send(head, text.as_bytes())?;
        Ok(Self {
            wire,
            lun: lun.number,
            digests: initiator.digests,
        })
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// When the target refuses, or wants more than one step.
    pub fn end(mut self) -> Result<Opened> {
        let (head, data) = self.wire.receive()?;
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
        let agreed = |pair: &str| text.split('\0').any(|said| said == pair);
        if self.digests && !(agreed("HeaderDigest=CRC32C") && agreed("DataDigest=CRC32C")) {
            return Err(wrong("the target has no digests"));
        }
        self.wire.digests = self.digests;
        let segment_max = number(&text, "MaxRecvDataSegmentLength").unwrap_or(8192);
        let burst = number(&text, "FirstBurstLength").unwrap_or(65_536);
        let at_once = !agreed("ImmediateData=No");
        Ok(Opened {
            numbers: Numbers {
                command: head.get(28),
                command_max: head.get(32),
                status: head.get(24).wrapping_add(1),
            },
            wire: self.wire,
            lun: self.lun,
            immediate_max: if at_once { burst.min(segment_max) } else { 0 },
            segment_max,
        })
    }
}

impl Opened {
    /// Logs in.
    ///
    /// # Errors
    /// As [`Waiting::begin`] and [`Waiting::end`].
    pub fn open(lun: &Lun, initiator: &Initiator) -> Result<Self> {
        Waiting::begin(lun, initiator)?.end()
    }

    /// The header of the next command: `data` goes with it, or `expected` bytes come back.
    pub fn next_command(&mut self, cdb: &[u8; 16], data: &[u8], expected: u32) -> Head {
        let (way, expected) = match (data.len(), expected) {
            (0, 0) => (None, 0),
            (0, expected) => (Some(false), expected),
            (len, _) => (Some(true), len as u32),
        };
        let head = p::command(0, self.lun, way, expected, cdb);
        self.numbers.stamp(head)
    }

    /// Waits until the command before has ended: its status, and its data; or its sense data, after their length
    /// in two bytes (RFC 7143, section 11.4.7).
    ///
    /// # Errors
    /// When the connection broke.
    pub fn answer(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut data = Vec::new();
        loop {
            let (head, part) = self.wire.receive()?;
            self.numbers.note(&head);
            match head.opcode() {
                p::DATA_IN => data.extend(part),
                p::RESPONSE => data = part,
                _ => {}
            }
            if let Some(status) = head.status() {
                return Ok((status, data));
            }
        }
    }

    /// One command that brings data or none, after all before it have ended: its status and its data.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn ask(&mut self, cdb: &[u8; 16], expected: u32) -> Result<(u8, Vec<u8>)> {
        let head = self.next_command(cdb, &[], expected);
        self.wire.send(head, &[])?;
        self.answer()
    }

    /// Waits until the unit is ready; its blocks and the bytes of each.
    ///
    /// # Errors
    /// When it is not there.
    pub fn capacity(&mut self) -> Result<(u64, u32)> {
        for _ in 0..ATTENTIONS_MAX {
            if self.ask(&p::TEST_UNIT_READY, 0)?.0 == 0 {
                let (status, data) = self.ask(&p::read_capacity(), p::CAPACITY_LEN)?;
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
