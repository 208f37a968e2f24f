//! Protocol data units: parsing and building basic header segments (RFC 7143, section 11).

use crate::bytes::{put, u16_at, u32_at};

/// Length of a basic header segment.
pub(crate) const HEAD_LEN: usize = 48;
/// The reserved tag value.
pub(crate) const NO_TAG: u32 = u32::MAX;

/// Operation codes of initiator PDUs (11.2.1.2).
pub(crate) mod request {
    pub const NOP_OUT: u8 = 0x00;
    pub const COMMAND: u8 = 0x01;
    pub const FUNCTION: u8 = 0x02;
    pub const LOGIN: u8 = 0x03;
    pub const TEXT: u8 = 0x04;
    pub const DATA_OUT: u8 = 0x05;
    pub const LOGOUT: u8 = 0x06;
}

/// Operation codes of target PDUs.
pub(crate) mod response {
    pub const NOP_IN: u8 = 0x20;
    pub const COMMAND: u8 = 0x21;
    pub const FUNCTION: u8 = 0x22;
    pub const LOGIN: u8 = 0x23;
    pub const TEXT: u8 = 0x24;
    pub const DATA_IN: u8 = 0x25;
    pub const LOGOUT: u8 = 0x26;
    pub const R2T: u8 = 0x31;
    pub const ASYNCHRONOUS: u8 = 0x32;
    pub const REJECT: u8 = 0x3f;
}

/// Reasons of a reject (11.17.1).
pub(crate) mod reason {
    pub const DATA_DIGEST: u8 = 0x02;
    pub const PROTOCOL: u8 = 0x04;
    pub const NOT_SUPPORTED: u8 = 0x05;
    pub const IMMEDIATE: u8 = 0x06;
    pub const TASK_IN_PROGRESS: u8 = 0x07;
}

/// The final bit.
pub(crate) const FINAL: u8 = 0x80;

/// A basic header segment of an initiator PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(pub [u8; HEAD_LEN]);

impl Head {
    pub(crate) fn opcode(&self) -> u8 {
        self.0[0] & 0x3f
    }

    pub(crate) fn is_immediate(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    pub(crate) fn flags(&self) -> u8 {
        self.0[1]
    }

    pub(crate) fn is_final(&self) -> bool {
        self.0[1] & FINAL != 0
    }

    /// Length of additional header segments, in bytes.
    pub(crate) fn additional_len(&self) -> usize {
        usize::from(self.0[4]) * 4
    }

    pub(crate) fn data_len(&self) -> usize {
        (u32_at(&self.0, 4) & 0x00ff_ffff) as usize
    }

    pub(crate) fn lun_bytes(&self) -> [u8; 8] {
        let mut lun = [0; 8];
        lun.copy_from_slice(&self.0[8..16]);
        lun
    }

    pub(crate) fn lun(&self) -> Option<u16> {
        scsi::parse_lun(self.lun_bytes())
    }

    /// Initiator task tag.
    pub(crate) fn task_tag(&self) -> u32 {
        u32_at(&self.0, 16)
    }

    /// Target transfer tag; expected length of a command; referenced tag of a function.
    pub(crate) fn word_20(&self) -> u32 {
        u32_at(&self.0, 20)
    }

    pub(crate) fn command_number(&self) -> u32 {
        u32_at(&self.0, 24)
    }

    /// Next expected status number of the connection (ExpStatSN).
    pub(crate) fn status_expected(&self) -> u32 {
        u32_at(&self.0, 28)
    }

    /// Number of the command referenced by a function (RefCmdSN).
    pub(crate) fn command_referred(&self) -> u32 {
        u32_at(&self.0, 32)
    }

    /// DataSN of a Data-Out.
    pub(crate) fn data_number(&self) -> u32 {
        u32_at(&self.0, 36)
    }

    /// Buffer offset of a Data-Out.
    pub(crate) fn offset(&self) -> u32 {
        u32_at(&self.0, 40)
    }

    pub(crate) fn cdb(&self) -> [u8; 16] {
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&self.0[32..48]);
        cdb
    }

    /// ISID and TSIH of a login.
    pub(crate) fn isid(&self) -> [u8; 6] {
        let mut isid = [0; 6];
        isid.copy_from_slice(&self.0[8..14]);
        isid
    }

    pub(crate) fn session_handle(&self) -> u16 {
        u16_at(&self.0, 14)
    }

    /// CID of a login or a logout.
    pub(crate) fn connection(&self) -> u16 {
        u16_at(&self.0, 20)
    }
}

/// The status number of a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StatusNumber {
    /// The next one, which is consumed.
    Takes,
    /// The next one, not consumed.
    Shows,
    /// None.
    Without,
}

/// A header to be sent; status and command numbers are assigned when it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub head: [u8; HEAD_LEN],
    pub number: StatusNumber,
}

impl Made {
    pub(crate) fn new(opcode: u8, flags: u8, task_tag: u32, number: StatusNumber) -> Self {
        let mut head = [0; HEAD_LEN];
        head[0] = opcode;
        head[1] = flags;
        put(&mut head, 16, &task_tag.to_be_bytes());
        Self { head, number }
    }

    /// A Data-In header (11.7): tag of the command, number, offset; and for the last one, status
    /// and residual count. Built in one step, since it is the most frequent PDU.
    pub(crate) fn data_in(
        (flags, tag): (u8, u32),
        (data_number, at): (u32, u32),
        end: Option<(u8, u32)>,
    ) -> Self {
        let mut head = [0; HEAD_LEN];
        head[0] = response::DATA_IN;
        head[1] = flags;
        head[16..20].copy_from_slice(&tag.to_be_bytes());
        head[20..24].copy_from_slice(&NO_TAG.to_be_bytes());
        head[36..40].copy_from_slice(&data_number.to_be_bytes());
        head[40..44].copy_from_slice(&at.to_be_bytes());
        let mut number = StatusNumber::Without;
        if let Some((status, residual)) = end {
            number = StatusNumber::Takes;
            head[3] = status;
            head[44..48].copy_from_slice(&residual.to_be_bytes());
        }
        Self { head, number }
    }

    /// Stores a 32-bit number at `at`.
    pub(crate) fn word(mut self, at: usize, value: u32) -> Self {
        put(&mut self.head, at, &value.to_be_bytes());
        self
    }

    pub(crate) fn byte(mut self, at: usize, value: u8) -> Self {
        self.head[at] = value;
        self
    }

    pub(crate) fn lun(mut self, lun: [u8; 8]) -> Self {
        put(&mut self.head, 8, &lun);
        self
    }

    pub(crate) fn data_len(&mut self, len: usize) {
        put(&mut self.head, 5, &(len as u32).to_be_bytes()[1..]);
    }
}

/// A reject, with the rejected header as data.
pub(crate) fn reject(why: u8, head: &Head) -> (Made, Vec<u8>) {
    let made = Made::new(response::REJECT, FINAL, NO_TAG, StatusNumber::Takes);
    (made.byte(2, why), head.0.to_vec())
}

/// Serial number arithmetic (RFC 1982): whether `left` precedes `right`.
pub(crate) fn is_before(left: u32, right: u32) -> bool {
    left != right && right.wrapping_sub(left) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_are_parsed() {
        let mut bytes = [0; 48];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = index as u8;
        }
        bytes[0] = 0x41;
        let head = Head(bytes);
        assert_eq!(head.opcode(), request::COMMAND);
        assert!(head.is_immediate() && !head.is_final());
        assert_eq!(head.additional_len(), 16);
        assert_eq!(head.data_len(), 0x05_0607);
        assert_eq!(head.task_tag(), 0x1011_1213);
        assert_eq!(head.command_number(), 0x1819_1a1b);
        assert_eq!(head.cdb()[0], 32);
        assert_eq!(head.session_handle(), 0x0e0f);
    }

    #[test]
    fn serial_numbers_wrap_around() {
        assert!(is_before(u32::MAX, 0));
        assert!(!is_before(0, u32::MAX));
        assert!(!is_before(5, 5));
    }
}
