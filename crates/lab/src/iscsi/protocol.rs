//! Words of iSCSI (RFC 7143, section 11) and of the few SCSI commands that are sent.

/// Bytes of a basic header segment.
pub const HEAD_LEN: usize = 48;
/// The tag that means none.
pub const NO_TAG: u32 = u32::MAX;
/// The longest data segment that is taken, in bytes.
pub const SEGMENT_MAX: usize = 256 << 10;

pub const NOP_OUT: u8 = 0x00;
pub const COMMAND: u8 = 0x01;
pub const LOGIN: u8 = 0x03;
pub const DATA_OUT: u8 = 0x05;
pub const LOGOUT: u8 = 0x06;
pub const NOP_IN: u8 = 0x20;
pub const RESPONSE: u8 = 0x21;
pub const LOGIN_RESPONSE: u8 = 0x23;
pub const DATA_IN: u8 = 0x25;
pub const R2T: u8 = 0x31;

/// The bit of a PDU that may pass others.
pub const IMMEDIATE: u8 = 0x40;
/// The final bit.
pub const FINAL: u8 = 0x80;
/// The bit of a Data-In that carries the status.
pub const WITH_STATUS: u8 = 0x01;

/// A basic header segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head(pub [u8; HEAD_LEN]);

impl Head {
    /// A header with its kind, its flags and its initiator task tag.
    pub fn new(opcode: u8, flags: u8, tag: u32) -> Self {
        let mut bytes = [0; HEAD_LEN];
        (bytes[0], bytes[1]) = (opcode, flags);
        Self(bytes).word(16, tag)
    }

    /// Puts a number of four bytes at `at`.
    #[must_use]
    pub fn word(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_be_bytes());
        self
    }

    /// Puts bytes at `at`.
    #[must_use]
    pub fn bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Says how many bytes of data follow.
    #[must_use]
    pub fn data_len(self, len: usize) -> Self {
        self.bytes(5, &(len as u32).to_be_bytes()[1..])
    }

    /// The number of four bytes at `at`.
    pub fn get(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    pub fn opcode(&self) -> u8 {
        self.0[0] & 0x3f
    }

    /// The initiator task tag.
    pub fn tag(&self) -> u32 {
        self.get(16)
    }

    /// Bytes of the data segment, and of what follows to a multiple of four.
    pub fn segment(&self) -> (usize, usize) {
        let len = (self.get(4) & 0x00ff_ffff) as usize;
        (len, len.next_multiple_of(4) - len)
    }

    /// Whether it has a status, and which: of a response, or of the last Data-In (sections 11.4 and 11.7).
    pub fn status(&self) -> Option<u8> {
        match self.opcode() {
            RESPONSE => Some(self.0[3]),
            DATA_IN if self.0[1] & WITH_STATUS != 0 => Some(self.0[3]),
            _ => None,
        }
    }
}

/// READ(16) or WRITE(16) (SBC-4, 5.18 and 5.44), in blocks.
pub fn transfer(write: bool, lba: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = if write { 0x8a } else { 0x88 };
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// COMPARE AND WRITE (SBC-4, 5.3), in blocks: the data are what is expected there, and then what is to be there.
pub fn compare_and_write(lba: u64, blocks: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[13]) = (0x89, blocks);
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb
}

/// TEST UNIT READY.
pub const TEST_UNIT_READY: [u8; 16] = [0; 16];

/// Bytes that READ CAPACITY(16) gives (SBC-4, 5.20).
pub const CAPACITY_LEN: u32 = 32;

/// READ CAPACITY(16).
pub fn read_capacity() -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[13]) = (0x9e, 0x10, CAPACITY_LEN as u8);
    cdb
}

/// A command's header (section 11.3): `write` says which way its data go, of which there are `expected` bytes.
pub fn command(tag: u32, lun: u8, write: Option<bool>, expected: u32, cdb: &[u8; 16]) -> Head {
    let way = match write {
        Some(true) => 0x20,
        Some(false) => 0x40,
        None => 0,
    };
    // Simple tasks.
    Head::new(COMMAND, FINAL | way | 1, tag)
        .bytes(9, &[lun])
        .word(20, expected)
        .bytes(32, cdb)
}
