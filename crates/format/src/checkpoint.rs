//! The record that makes a checkpoint valid: roots of a shard's trees and where its journal begins.

use crate::bytes::{get_u16, get_u32, get_u64, get_u128, put};
use crate::{PAGE, PagePtr};
use checksum::crc32c;
use units::{PoolId, ShardId};

pub(crate) const MAGIC: u32 = 0x5043_5643; // "CVCP"
const VERSION: u16 = 1;

/// Generations, epochs and pages of journals are below this: what counts further was never counted by a pool.
pub(crate) const COUNT_MAX: u64 = 1 << 56;

/// A shard's checkpoint. Two slots a shard are written in turn; the higher generation wins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Pool.
    pub pool: PoolId,
    /// Shard.
    pub shard: ShardId,
    /// Grows by one with each checkpoint.
    pub generation: u64,
    /// Grows by one with each opening: journal pages of another epoch are stale.
    pub epoch: u64,
    /// First journal page (counted since the pool was made) that is not part of it.
    pub journal_from: u64,
    /// Directory of volumes.
    pub directory: PagePtr,
    /// Groups handed out in blocks.
    pub slots: PagePtr,
    /// Groups handed out in chunks.
    pub homes: PagePtr,
}

impl Checkpoint {
    /// The 4 KiB as they are written.
    pub fn encode(&self) -> [u8; PAGE] {
        let mut bytes = [0; PAGE];
        put(&mut bytes, 0, &MAGIC.to_le_bytes());
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 10, &self.shard.0.to_le_bytes());
        put(&mut bytes, 16, &self.pool.0.to_le_bytes());
        put(&mut bytes, 32, &self.generation.to_le_bytes());
        put(&mut bytes, 40, &self.epoch.to_le_bytes());
        put(&mut bytes, 48, &self.journal_from.to_le_bytes());
        self.directory.encode(&mut bytes, 64);
        self.slots.encode(&mut bytes, 80);
        self.homes.encode(&mut bytes, 96);
        let crc = crc32c(&bytes[8..]);
        put(&mut bytes, 4, &crc.to_le_bytes());
        bytes
    }

    /// Reads a slot; `None` when it is not a checkpoint of this pool and shard and version, or counts what no pool
    /// can have counted.
    pub fn decode(bytes: &[u8], pool: PoolId, shard: ShardId) -> Option<Self> {
        if Self::version(bytes, pool, shard)? != VERSION {
            return None;
        }
        let [generation, epoch, journal_from] = [32, 40, 48].map(|at| get_u64(bytes, at));
        if generation.max(epoch).max(journal_from) >= COUNT_MAX {
            return None;
        }
        Some(Self {
            pool,
            shard,
            generation,
            epoch,
            journal_from,
            directory: PagePtr::decode(bytes, 64),
            slots: PagePtr::decode(bytes, 80),
            homes: PagePtr::decode(bytes, 96),
        })
    }

    /// Whether a slot holds a whole checkpoint of this pool and shard that a newer version wrote:
    /// an older one beside it is outdated.
    pub fn is_newer(bytes: &[u8], pool: PoolId, shard: ShardId) -> bool {
        let claims = bytes.len() == PAGE && get_u16(bytes, 8) != VERSION;
        claims && Self::version(bytes, pool, shard).is_some()
    }

    fn version(bytes: &[u8], pool: PoolId, shard: ShardId) -> Option<u16> {
        let whole = bytes.len() == PAGE
            && get_u32(bytes, 0) == MAGIC
            && get_u32(bytes, 4) == crc32c(&bytes[8..])
            && get_u16(bytes, 10) == shard.0
            && get_u128(bytes, 16) == pool.0;
        whole.then(|| get_u16(bytes, 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_survives_and_damage_is_seen() {
        let checkpoint = Checkpoint {
            pool: PoolId(77),
            shard: ShardId(1),
            generation: 9,
            epoch: 3,
            journal_from: 1000,
            directory: PagePtr {
                crc: 1,
                ..PagePtr::default()
            },
            slots: PagePtr {
                crc: 2,
                ..PagePtr::default()
            },
            homes: PagePtr {
                crc: 3,
                hint: 4,
                ..PagePtr::default()
            },
        };
        let bytes = checkpoint.encode();
        assert_eq!(
            Checkpoint::decode(&bytes, PoolId(77), ShardId(1)),
            Some(checkpoint)
        );
        assert_eq!(Checkpoint::decode(&bytes, PoolId(78), ShardId(1)), None);
        assert_eq!(Checkpoint::decode(&bytes, PoolId(77), ShardId(0)), None);
        for at in [0, 5, 33, 100, 4095] {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert_eq!(
                Checkpoint::decode(&damaged, PoolId(77), ShardId(1)),
                None,
                "byte {at}"
            );
        }
        let mut newer = bytes;
        newer[8] = 2;
        let crc = crc32c(&newer[8..]);
        put(&mut newer, 4, &crc.to_le_bytes());
        let (pool, shard) = (PoolId(77), ShardId(1));
        assert_eq!(Checkpoint::decode(&newer, pool, shard), None);
        assert!(Checkpoint::is_newer(&newer, pool, shard));
        assert!(!Checkpoint::is_newer(&bytes, pool, shard));
    }
}
