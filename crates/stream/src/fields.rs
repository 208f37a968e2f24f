//! Little-endian fields, and the checksum that continues from record to record.

use crate::record::ID;
use crc_fast::{CrcAlgorithm, Digest};
use units::{PoolId, SnapshotId};

/// CRC32C of all that came so far.
#[derive(Clone, Copy)]
pub struct Sum(Digest);

impl Sum {
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

pub fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub fn get_u128(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().expect("sixteen bytes"))
}

pub fn get_id(bytes: &[u8], at: usize) -> SnapshotId {
    SnapshotId {
        pool: PoolId(get_u128(bytes, at)),
        epoch: get_u32(bytes, at + 16),
        created_s: get_u64(bytes, at + 20),
    }
}

/// The same where all zeroes are none.
pub fn get_id_or_none(bytes: &[u8], at: usize) -> Option<SnapshotId> {
    let some = bytes[at..at + ID].iter().any(|byte| *byte != 0);
    some.then(|| get_id(bytes, at))
}

pub fn push_id(out: &mut Vec<u8>, id: Option<SnapshotId>) {
    let Some(id) = id else {
        out.extend([0; ID]);
        return;
    };
    out.extend(id.pool.0.to_le_bytes());
    out.extend(id.epoch.to_le_bytes());
    out.extend(id.created_s.to_le_bytes());
}
