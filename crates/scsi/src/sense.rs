//! Status and sense data (SAM-5 5.3, SPC-4 4.5).

use crate::fields::put;
use block::{ErrorKind, IoError};

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// As it was requested.
    Good,
    /// Sense data says why not.
    CheckCondition,
    /// Another nexus has reserved the unit.
    ReservationConflict,
    /// Too many commands: again later.
    TaskSetFull,
}

impl Status {
    /// The byte of the protocol.
    pub fn code(self) -> u8 {
        match self {
            Self::Good => 0x00,
            Self::CheckCondition => 0x02,
            Self::ReservationConflict => 0x18,
            Self::TaskSetFull => 0x28,
        }
    }
}

/// Sense keys (SPC-4 table 44).
mod key {
    pub const NO_SENSE: u8 = 0x0;
    pub const NOT_READY: u8 = 0x2;
    pub const MEDIUM_ERROR: u8 = 0x3;
    pub const HARDWARE_ERROR: u8 = 0x4;
    pub const ILLEGAL_REQUEST: u8 = 0x5;
    pub const UNIT_ATTENTION: u8 = 0x6;
    pub const DATA_PROTECT: u8 = 0x7;
    pub const COPY_ABORTED: u8 = 0xa;
    pub const ABORTED_COMMAND: u8 = 0xb;
    pub const MISCOMPARE: u8 = 0xe;
}

/// The reason for a failure, or information for the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sense {
    key: u8,
    /// Additional sense code and qualifier.
    code: (u8, u8),
    information: Option<u64>,
}

const fn sense(key: u8, asc: u8, ascq: u8) -> Sense {
    Sense {
        key,
        code: (asc, ascq),
        information: None,
    }
}

impl Sense {
    /// Nothing to tell.
    pub const NONE: Self = sense(key::NO_SENSE, 0, 0);
    pub(crate) const INVALID_OPCODE: Self = sense(key::ILLEGAL_REQUEST, 0x20, 0x00);
    pub(crate) const LBA_OUT_OF_RANGE: Self = sense(key::ILLEGAL_REQUEST, 0x21, 0x00);
    pub(crate) const INVALID_FIELD_IN_CDB: Self = sense(key::ILLEGAL_REQUEST, 0x24, 0x00);
    /// The logical unit is not there, or not for this initiator.
    pub const UNIT_NOT_SUPPORTED: Self = sense(key::ILLEGAL_REQUEST, 0x25, 0x00);
    pub(crate) const PARAMETER_LIST_LENGTH: Self = sense(key::ILLEGAL_REQUEST, 0x1a, 0x00);
    pub(crate) const INVALID_FIELD_IN_LIST: Self = sense(key::ILLEGAL_REQUEST, 0x26, 0x00);
    pub(crate) const INVALID_RELEASE: Self = sense(key::ILLEGAL_REQUEST, 0x26, 0x04);
    pub(crate) const TOO_MANY_TARGETS: Self = sense(key::ILLEGAL_REQUEST, 0x26, 0x06);
    pub(crate) const UNSUPPORTED_TARGET_DESCRIPTOR: Self = sense(key::ILLEGAL_REQUEST, 0x26, 0x07);
    pub(crate) const TOO_MANY_SEGMENTS: Self = sense(key::ILLEGAL_REQUEST, 0x26, 0x08);
    pub(crate) const UNSUPPORTED_SEGMENT_DESCRIPTOR: Self = sense(key::ILLEGAL_REQUEST, 0x26, 0x09);
    pub(crate) const INLINE_DATA_LENGTH: Self = sense(key::ILLEGAL_REQUEST, 0x26, 0x0b);
    pub(crate) const TOKEN_UNKNOWN: Self = sense(key::ILLEGAL_REQUEST, 0x23, 0x04);
    pub(crate) const TOKEN_REVOKED: Self = sense(key::ILLEGAL_REQUEST, 0x23, 0x06);
    pub(crate) const NO_RESOURCES: Self = sense(key::ILLEGAL_REQUEST, 0x55, 0x03);
    pub(crate) const NO_REGISTRATION_ROOM: Self = sense(key::ILLEGAL_REQUEST, 0x55, 0x04);
    pub(crate) const REMOVAL_PREVENTED: Self = sense(key::ILLEGAL_REQUEST, 0x53, 0x02);
    pub(crate) const SAVING_NOT_SUPPORTED: Self = sense(key::ILLEGAL_REQUEST, 0x39, 0x00);
    pub(crate) const COPY_UNREACHABLE: Self = sense(key::COPY_ABORTED, 0x0d, 0x02);
    pub(crate) const COPY_FAILED: Self = sense(key::COPY_ABORTED, 0x0d, 0x01);
    pub(crate) const COPY_OUT_OF_RANGE: Self = sense(key::COPY_ABORTED, 0x00, 0x00);
    pub(crate) const MISCOMPARE: Self = sense(key::MISCOMPARE, 0x1d, 0x00);
    pub(crate) const WRITE_PROTECTED: Self = sense(key::DATA_PROTECT, 0x27, 0x00);
    pub(crate) const STOPPED: Self = sense(key::NOT_READY, 0x04, 0x02);
    pub(crate) const PORT_STANDBY: Self = sense(key::NOT_READY, 0x04, 0x0b);
    pub(crate) const PORT_UNAVAILABLE: Self = sense(key::NOT_READY, 0x04, 0x0c);
    pub(crate) const OFFLINE: Self = sense(key::NOT_READY, 0x04, 0x12);
    pub(crate) const SANITIZING: Self = sense(key::NOT_READY, 0x04, 0x1b);
    pub(crate) const SPACE_EXHAUSTED: Self = sense(key::DATA_PROTECT, 0x27, 0x07);
    pub(crate) const UNREADABLE: Self = sense(key::MEDIUM_ERROR, 0x11, 0x00);
    pub(crate) const TARGET_FAILURE: Self = sense(key::HARDWARE_ERROR, 0x44, 0x00);
    pub(crate) const GONE: Self = sense(key::NOT_READY, 0x04, 0x03);
    /// It was aborted, without a response.
    pub(crate) const GIVEN_UP: Self = sense(key::ABORTED_COMMAND, 0x00, 0x00);
    /// Data was damaged on its way.
    pub const PROTOCOL_CRC_ERROR: Self = sense(key::ABORTED_COMMAND, 0x47, 0x05);
    /// Less unsolicited data came than was announced, or more.
    pub const UNEXPECTED_DATA: Self = sense(key::ABORTED_COMMAND, 0x0c, 0x0c);

    pub(crate) const fn attention(asc: u8, ascq: u8) -> Self {
        sense(key::UNIT_ATTENTION, asc, ascq)
    }

    /// The same with a value in INFORMATION.
    pub(crate) fn at(mut self, information: u64) -> Self {
        self.information = Some(information);
        self
    }

    /// Sense data as bytes, in the fixed or the descriptor form (SPC-4 4.5.3 and 4.5.2).
    pub fn encode(self, descriptor: bool) -> Vec<u8> {
        if descriptor {
            let mut data = vec![0; 8];
            data[0] = 0x72;
            data[1] = self.key;
            (data[2], data[3]) = self.code;
            if let Some(information) = self.information {
                data[7] = 12;
                data.extend([0x00, 0x0a, 0x80, 0]);
                data.extend(information.to_be_bytes());
            }
            return data;
        }
        let mut data = vec![0; 18];
        data[0] = 0x70;
        data[2] = self.key;
        data[7] = 10;
        (data[12], data[13]) = self.code;
        // What does not fit four bytes is not told in this form.
        if let Some(information) = self.information.and_then(|at| u32::try_from(at).ok()) {
            data[0] |= 0x80;
            put(&mut data, 3, &information.to_be_bytes());
        }
        data
    }
}

impl From<IoError> for Sense {
    fn from(error: IoError) -> Self {
        match error.kind {
            ErrorKind::Invalid => Self::LBA_OUT_OF_RANGE,
            ErrorKind::NoSpace => Self::SPACE_EXHAUSTED,
            ErrorKind::ReadOnly => Self::WRITE_PROTECTED,
            ErrorKind::Medium => Self::UNREADABLE,
            ErrorKind::Device => Self::TARGET_FAILURE,
            ErrorKind::Gone => Self::GONE,
            ErrorKind::Unsupported => Self::INVALID_FIELD_IN_CDB,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_carry_key_code_and_information() {
        let miscompare = Sense::MISCOMPARE.at(0x1234);
        let fixed = miscompare.encode(false);
        assert_eq!(fixed.len(), 18);
        assert_eq!(fixed[0], 0xf0);
        assert_eq!(fixed[2], 0x0e);
        assert_eq!(fixed[3..7], [0, 0, 0x12, 0x34]);
        assert_eq!(fixed[12..14], [0x1d, 0]);
        let descriptor = miscompare.encode(true);
        assert_eq!(descriptor.len(), 20);
        assert_eq!(descriptor[..4], [0x72, 0x0e, 0x1d, 0]);
        assert_eq!(descriptor[8..12], [0, 0x0a, 0x80, 0]);
        assert_eq!(descriptor[18..], [0x12, 0x34]);
    }

    #[test]
    fn information_that_does_not_fit_is_left_out_of_the_fixed_form() {
        let fixed = Sense::MISCOMPARE.at(1 << 32).encode(false);
        assert_eq!(fixed[0], 0x70);
    }

    #[test]
    fn a_full_pool_is_told_as_the_thin_provisioning_error() {
        let sense = Sense::from(IoError::new(ErrorKind::NoSpace, ""));
        assert_eq!(sense.encode(false)[2], 7);
        assert_eq!(sense.encode(false)[12..14], [0x27, 7]);
    }
}
