//! Every command of a unit: one row each, which dispatch, rights and REPORT SUPPORTED OPERATION CODES share.

use crate::rights::Changes;

/// The effect of a command on the unit, for reservations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Never a conflict.
    Always,
    /// A conflict with RESERVE(6) only.
    Free,
    /// Reads the medium.
    Read,
    /// Changes the unit or its medium.
    Write,
    /// A persistent reservation's own commands.
    Persistent,
    /// RELEASE(6), which does nothing for who holds nothing.
    Release,
}

/// The function that executes a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Run {
    TestUnitReady,
    RequestSense,
    Inquiry,
    ModeSelect,
    ModeSense,
    Reserve,
    Release,
    StartStop,
    SendDiagnostic,
    PreventAllow,
    ReadCapacity,
    ReadCapacity16,
    Read,
    Write,
    WriteAtomic,
    WriteVerify,
    Verify,
    Prefetch,
    Synchronize,
    ReadDefects,
    WriteSame,
    Unmap,
    Sanitize,
    LogSense,
    PersistentIn,
    PersistentOut,
    ExtendedCopy,
    ExtendedCopyLong,
    PopulateToken,
    WriteUsingToken,
    LongCopyStatus,
    TokenInformation,
    CopyStatus,
    CopyParameters,
    CompareAndWrite,
    OrWrite,
    LbaStatus,
    ReportLuns,
    ReportPortGroups,
    SetPortGroups,
    ReportReferrals,
    ReportOpcodes,
    ReportFunctions,
}

impl Run {
    /// Whether one request may request much work, which is done in pieces.
    pub(crate) const fn is_long(self) -> bool {
        matches!(
            self,
            Self::Verify
                | Self::WriteSame
                | Self::Unmap
                | Self::LbaStatus
                | Self::ExtendedCopy
                | Self::ExtendedCopyLong
                | Self::WriteUsingToken
        )
    }
}

/// A command.
#[derive(Debug)]
pub(crate) struct Row {
    pub opcode: u8,
    pub service: Option<u8>,
    pub access: Access,
    pub run: Run,
    /// Its effects that are visible to others, for read-only hosts.
    pub changes: Changes,
    /// The bits that mean something, for REPORT SUPPORTED OPERATION CODES.
    pub usage: &'static [u8],
}

const fn row(opcode: u8, access: Access, run: Run, usage: &'static [u8]) -> Row {
    Row {
        opcode,
        service: None,
        access,
        run,
        changes: run.changes(),
        usage,
    }
}

const fn action(opcode: u8, service: u8, access: Access, run: Run, usage: &'static [u8]) -> Row {
    Row {
        opcode,
        service: Some(service),
        access,
        run,
        changes: run.changes(),
        usage,
    }
}

/// CDBs with an LBA and a length: `$flags` are the bits of byte 1.
macro_rules! ten {
    ($opcode:literal, $flags:literal) => {
        &[
            $opcode, $flags, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x07,
        ]
    };
}
macro_rules! twelve {
    ($opcode:literal, $flags:literal) => {
        &[
            $opcode, $flags, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x07,
        ]
    };
}
macro_rules! sixteen {
    ($opcode:literal, $flags:literal) => {
        &[
            $opcode, $flags, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 0x1f, 0x07,
        ]
    };
}
/// CDBs of 12 bytes with an allocation length at 6.
macro_rules! in_twelve {
    ($opcode:literal, $action:literal, $flags:literal) => {
        &[
            $opcode, $action, $flags, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x07,
        ]
    };
}
macro_rules! persistent {
    ($opcode:literal, $action:literal, $kind:literal) => {
        &[$opcode, $action, $kind, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x07]
    };
}
macro_rules! copy_results {
    ($action:literal) => {
        &[
            0x84, $action, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07,
        ]
    };
}
/// Results by a list identifier of four bytes.
macro_rules! long_results {
    ($action:literal) => {
        &[
            0x84, $action, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07,
        ]
    };
}
/// Commands of tokens, with a list identifier of four bytes.
macro_rules! token {
    ($action:literal) => {
        &[
            0x83, $action, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x07,
        ]
    };
}
macro_rules! sanitize {
    ($action:literal) => {
        &[0x48, $action, 0, 0, 0, 0, 0, 0xff, 0xff, 0x07]
    };
}

use Access::{Always, Free, Persistent, Read, Write};

/// In the order of operation codes.
pub(crate) static ROWS: &[Row] = &[
    row(0x00, Free, Run::TestUnitReady, &[0x00, 0, 0, 0, 0, 0x07]),
    row(
        0x03,
        Always,
        Run::RequestSense,
        &[0x03, 0x01, 0, 0, 0xff, 0x07],
    ),
    row(0x08, Read, Run::Read, &[0x08, 0x1f, 0xff, 0xff, 0xff, 0x07]),
    row(
        0x0a,
        Write,
        Run::Write,
        &[0x0a, 0x1f, 0xff, 0xff, 0xff, 0x07],
    ),
    row(
        0x12,
        Always,
        Run::Inquiry,
        &[0x12, 0x01, 0xff, 0xff, 0xff, 0x07],
    ),
    row(
        0x15,
        Write,
        Run::ModeSelect,
        &[0x15, 0x11, 0, 0, 0xff, 0x07],
    ),
    row(0x16, Free, Run::Reserve, &[0x16, 0, 0, 0, 0, 0x07]),
    row(
        0x17,
        Access::Release,
        Run::Release,
        &[0x17, 0, 0, 0, 0, 0x07],
    ),
    row(
        0x1a,
        Read,
        Run::ModeSense,
        &[0x1a, 0x08, 0xff, 0xff, 0xff, 0x07],
    ),
    row(
        0x1b,
        Write,
        Run::StartStop,
        &[0x1b, 0x01, 0, 0x0f, 0xf7, 0x07],
    ),
    row(
        0x1d,
        Write,
        Run::SendDiagnostic,
        &[0x1d, 0x04, 0, 0, 0, 0x07],
    ),
    row(0x1e, Free, Run::PreventAllow, &[0x1e, 0, 0, 0, 0x03, 0x07]),
    row(0x25, Free, Run::ReadCapacity, ten!(0x25, 0x00)),
    row(0x28, Read, Run::Read, ten!(0x28, 0xf8)),
    row(0x2a, Write, Run::Write, ten!(0x2a, 0xf8)),
    row(0x2e, Write, Run::WriteVerify, ten!(0x2e, 0xf6)),
    row(0x2f, Read, Run::Verify, ten!(0x2f, 0xf6)),
    row(0x34, Read, Run::Prefetch, ten!(0x34, 0x02)),
    row(0x35, Write, Run::Synchronize, ten!(0x35, 0x02)),
    row(
        0x37,
        Free,
        Run::ReadDefects,
        &[0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0x07],
    ),
    row(0x41, Write, Run::WriteSame, ten!(0x41, 0xf8)),
    row(
        0x42,
        Write,
        Run::Unmap,
        &[0x42, 0x01, 0, 0, 0, 0, 0x1f, 0xff, 0xff, 0x07],
    ),
    action(0x48, 0x01, Write, Run::Sanitize, sanitize!(0xe1)),
    action(0x48, 0x02, Write, Run::Sanitize, sanitize!(0xe2)),
    action(0x48, 0x1f, Write, Run::Sanitize, sanitize!(0xff)),
    row(
        0x4d,
        Free,
        Run::LogSense,
        &[0x4d, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0x07],
    ),
    row(
        0x55,
        Write,
        Run::ModeSelect,
        &[0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0x07],
    ),
    row(
        0x5a,
        Read,
        Run::ModeSense,
        &[0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x07],
    ),
    action(
        0x5e,
        0x00,
        Persistent,
        Run::PersistentIn,
        persistent!(0x5e, 0x00, 0x00),
    ),
    action(
        0x5e,
        0x01,
        Persistent,
        Run::PersistentIn,
        persistent!(0x5e, 0x01, 0x00),
    ),
    action(
        0x5e,
        0x02,
        Persistent,
        Run::PersistentIn,
        persistent!(0x5e, 0x02, 0x00),
    ),
    action(
        0x5e,
        0x03,
        Persistent,
        Run::PersistentIn,
        persistent!(0x5e, 0x03, 0x00),
    ),
    action(
        0x5f,
        0x00,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x00, 0x00),
    ),
    action(
        0x5f,
        0x01,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x01, 0xff),
    ),
    action(
        0x5f,
        0x02,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x02, 0xff),
    ),
    action(
        0x5f,
        0x03,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x03, 0x00),
    ),
    action(
        0x5f,
        0x04,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x04, 0xff),
    ),
    action(
        0x5f,
        0x05,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x05, 0xff),
    ),
    action(
        0x5f,
        0x06,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x06, 0x00),
    ),
    action(
        0x5f,
        0x07,
        Persistent,
        Run::PersistentOut,
        persistent!(0x5f, 0x07, 0x00),
    ),
    action(
        0x83,
        0x00,
        Write,
        Run::ExtendedCopy,
        &[
            0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07,
        ],
    ),
    action(
        0x83,
        0x01,
        Write,
        Run::ExtendedCopyLong,
        &[
            0x83, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07,
        ],
    ),
    action(0x83, 0x10, Read, Run::PopulateToken, token!(0x10)),
    action(0x83, 0x11, Write, Run::WriteUsingToken, token!(0x11)),
    action(0x84, 0x00, Write, Run::CopyStatus, copy_results!(0x00)),
    action(0x84, 0x03, Free, Run::CopyParameters, copy_results!(0x03)),
    action(0x84, 0x05, Free, Run::LongCopyStatus, long_results!(0x05)),
    action(0x84, 0x07, Free, Run::TokenInformation, long_results!(0x07)),
    row(0x88, Read, Run::Read, sixteen!(0x88, 0xf8)),
    row(
        0x89,
        Write,
        Run::CompareAndWrite,
        &[
            0x89, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0x1f, 0x07,
        ],
    ),
    row(0x8a, Write, Run::Write, sixteen!(0x8a, 0xf8)),
    row(0x8b, Write, Run::OrWrite, sixteen!(0x8b, 0xf8)),
    row(0x8e, Write, Run::WriteVerify, sixteen!(0x8e, 0xf6)),
    row(0x8f, Read, Run::Verify, sixteen!(0x8f, 0xf6)),
    row(0x90, Read, Run::Prefetch, sixteen!(0x90, 0x02)),
    row(0x91, Write, Run::Synchronize, sixteen!(0x91, 0x02)),
    row(0x93, Write, Run::WriteSame, sixteen!(0x93, 0xf9)),
    row(0x9c, Write, Run::WriteAtomic, sixteen!(0x9c, 0xf8)),
    action(0x9e, 0x10, Free, Run::ReadCapacity16, sixteen!(0x9e, 0x10)),
    action(0x9e, 0x12, Read, Run::LbaStatus, sixteen!(0x9e, 0x12)),
    action(
        0x9e,
        0x13,
        Free,
        Run::ReportReferrals,
        &[
            0x9e, 0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,
            0x07,
        ],
    ),
    row(0xa0, Always, Run::ReportLuns, in_twelve!(0xa0, 0x00, 0xff)),
    action(
        0xa3,
        0x0a,
        Free,
        Run::ReportPortGroups,
        in_twelve!(0xa3, 0xea, 0x00),
    ),
    action(
        0xa3,
        0x0c,
        Free,
        Run::ReportOpcodes,
        in_twelve!(0xa3, 0x0c, 0x87),
    ),
    action(
        0xa3,
        0x0d,
        Free,
        Run::ReportFunctions,
        in_twelve!(0xa3, 0x0d, 0x80),
    ),
    action(
        0xa4,
        0x0a,
        Write,
        Run::SetPortGroups,
        &[0xa4, 0x0a, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07],
    ),
    row(0xa8, Read, Run::Read, twelve!(0xa8, 0xf8)),
    row(0xaa, Write, Run::Write, twelve!(0xaa, 0xf8)),
    row(0xae, Write, Run::WriteVerify, twelve!(0xae, 0xf6)),
    row(0xaf, Read, Run::Verify, twelve!(0xaf, 0xf6)),
    row(
        0xb7,
        Free,
        Run::ReadDefects,
        &[
            0xb7, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0x07,
        ],
    ),
];

/// Where an operation code's rows begin, plus one; zero when it has none.
static FIRST: [u8; 256] = first_rows();

const fn first_rows() -> [u8; 256] {
    let mut first = [0; 256];
    let mut index = ROWS.len();
    while index > 0 {
        first[ROWS[index - 1].opcode as usize] = index as u8;
        index -= 1;
    }
    first
}

/// The rows of an operation code.
pub(crate) fn rows_of(opcode: u8) -> impl Iterator<Item = &'static Row> {
    let first = usize::from(FIRST[usize::from(opcode)]);
    let rows = if first == 0 {
        &[][..]
    } else {
        &ROWS[first - 1..]
    };
    rows.iter().take_while(move |row| row.opcode == opcode)
}

/// The row of a CDB.
pub(crate) fn find(cdb: &[u8; 16]) -> Option<&'static Row> {
    rows_of(cdb[0]).find(|row| row.service.is_none_or(|service| service == cdb[1] & 0x1f))
}

/// The length that an operation code's group gives a CDB (SPC-4 4.2.5.1).
pub(crate) fn cdb_len(opcode: u8) -> usize {
    match opcode >> 5 {
        0 => 6,
        1 | 2 => 10,
        4 => 16,
        5 => 12,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_as_long_as_their_group_says() {
        for pair in ROWS.windows(2) {
            assert!(
                (pair[0].opcode, pair[0].service) < (pair[1].opcode, pair[1].service),
                "{:02x}",
                pair[1].opcode
            );
        }
        for row in ROWS {
            assert_eq!(row.usage.len(), cdb_len(row.opcode), "{:02x}", row.opcode);
            assert_eq!(row.usage[0], row.opcode);
        }
    }

    #[test]
    fn every_row_is_found_by_its_code_and_action() {
        for row in ROWS {
            let mut cdb = [0; 16];
            cdb[0] = row.opcode;
            cdb[1] = row.service.unwrap_or(0);
            assert!(std::ptr::eq(find(&cdb).expect("it is there"), row));
        }
        assert!(find(&[0xff; 16]).is_none());
    }
}
