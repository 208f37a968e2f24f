//! Labels: what makes a drive part of a pool. Four a drive, of 1 MiB: two at each end.

use crate::PoolConfig;
use crate::bytes::{crc32c, get_u32, get_u64, get_u128, put};
use thiserror::Error;
use units::{DriveId, PoolId};

/// Bytes of one label.
pub const LABEL_SIZE: u64 = 1 << 20;
/// First byte of a drive that belongs to vdrives.
pub const DATA_START: u64 = 2 * LABEL_SIZE;
const MAGIC: &[u8; 8] = b"CONVECT\x01";
const HEADER: usize = 128;
const BLOCK: usize = 4096;

/// End of the part of a drive of `size` bytes that belongs to vdrives: whole MiB.
pub fn data_end(size: u64) -> u64 {
    (size / LABEL_SIZE * LABEL_SIZE).saturating_sub(2 * LABEL_SIZE)
}

/// First bytes of the four labels of a drive of `size` bytes.
pub fn label_offsets(size: u64) -> [u64; 4] {
    let end = data_end(size);
    [0, LABEL_SIZE, end, end + LABEL_SIZE]
}

/// The two of the four labels that a generation is written to: the other two keep the one before.
pub fn label_slots_for(generation: u64) -> [usize; 2] {
    if generation.is_multiple_of(2) {
        [0, 2]
    } else {
        [1, 3]
    }
}

/// Why a label cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LabelError {
    /// Not a label, or damaged.
    #[error("no label")]
    None,
    /// Written by a version that this one cannot follow.
    #[error("the label needs features {0:#x} that this version does not know: use a newer version")]
    Incompatible(u64),
    /// The pool's description does not fit.
    #[error("the pool's description takes {0} bytes and a label holds {max}: remove volumes or exports", max = LABEL_SIZE - 4096)]
    TooLong(usize),
}

/// A label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Pool.
    pub pool: PoolId,
    /// The drive that bears it.
    pub drive: DriveId,
    /// The highest wins.
    pub generation: u64,
    /// The pool was left in order by an export: any host may take it.
    pub exported: bool,
    /// The whole pool.
    pub config: PoolConfig,
}

impl Label {
    /// Its bytes, padded to whole blocks.
    ///
    /// # Errors
    /// [`LabelError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, LabelError> {
        let payload = serde_json::to_vec(&self.config).map_err(|_| LabelError::None)?;
        let length = (HEADER + payload.len()).next_multiple_of(BLOCK);
        if length as u64 > LABEL_SIZE {
            return Err(LabelError::TooLong(payload.len()));
        }
        let mut bytes = vec![0; length];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 12, &(payload.len() as u32).to_le_bytes());
        // 16: compatible, 24: read-only compatible, 32: incompatible features; none exist yet.
        put(&mut bytes, 40, &self.generation.to_le_bytes());
        put(&mut bytes, 48, &self.pool.0.to_le_bytes());
        put(&mut bytes, 64, &self.drive.0.to_le_bytes());
        put(&mut bytes, 80, &u32::from(self.exported).to_le_bytes());
        put(&mut bytes, HEADER, &payload);
        let crc = crc32c(&bytes[12..HEADER + payload.len()]);
        put(&mut bytes, 8, &crc.to_le_bytes());
        Ok(bytes)
    }

    /// Reads a label from its bytes (the whole 1 MiB, or as much of it as it fills).
    ///
    /// # Errors
    /// [`LabelError::None`] or [`LabelError::Incompatible`].
    pub fn decode(bytes: &[u8]) -> Result<Self, LabelError> {
        if bytes.len() < HEADER || &bytes[..8] != MAGIC {
            return Err(LabelError::None);
        }
        let end = HEADER + get_u32(bytes, 12) as usize;
        let covered = bytes.get(12..end).ok_or(LabelError::None)?;
        if get_u32(bytes, 8) != crc32c(covered) {
            return Err(LabelError::None);
        }
        let incompatible = get_u64(bytes, 32);
        if incompatible != 0 {
            return Err(LabelError::Incompatible(incompatible));
        }
        let config = serde_json::from_slice(&bytes[HEADER..end]).map_err(|_| LabelError::None)?;
        Ok(Self {
            pool: PoolId(get_u128(bytes, 48)),
            drive: DriveId(get_u128(bytes, 64)),
            generation: get_u64(bytes, 40),
            exported: get_u32(bytes, 80) != 0,
            config,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MetaConfig, Policy};

    fn label() -> Label {
        Label {
            pool: PoolId(1),
            drive: DriveId(2),
            generation: 3,
            exported: true,
            config: PoolConfig {
                name: "tank".into(),
                policy: Policy::SlowFirst,
                shards: 2,
                group_blocks: 4096,
                meta: MetaConfig {
                    parts: vec![],
                    journal_blocks: 4096,
                },
                drives: vec![],
                vdrives: vec![],
                volumes: vec![],
                exports: vec![],
                next_volume: 1,
            },
        }
    }

    #[test]
    fn a_label_survives_and_damage_is_seen() {
        let bytes = label().encode().unwrap();
        assert_eq!(Label::decode(&bytes), Ok(label()));
        for at in [0, 13, 50, 70, 130] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Label::decode(&damaged), Err(LabelError::None), "byte {at}");
        }
    }

    #[test]
    fn labels_do_not_overlap_the_data() {
        let size = (100 << 20) + 12345;
        assert_eq!(label_offsets(size), [0, 1 << 20, 98 << 20, 99 << 20]);
        assert_eq!((DATA_START, data_end(size)), (2 << 20, 98 << 20));
        assert_ne!(label_slots_for(4), label_slots_for(5));
    }

    #[test]
    fn a_label_of_a_newer_format_is_refused_by_name() {
        let mut bytes = label().encode().unwrap();
        bytes[32] = 4;
        let end = HEADER + get_u32(&bytes, 12) as usize;
        let crc = crc32c(&bytes[12..end]);
        put(&mut bytes, 8, &crc.to_le_bytes());
        assert_eq!(Label::decode(&bytes), Err(LabelError::Incompatible(4)));
    }
}
