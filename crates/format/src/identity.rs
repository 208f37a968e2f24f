//! Structures that contain their pool's id, for a copy that becomes a pool of its own.

use crate::PAGE;
use crate::bytes::{get_u32, get_u128, put};
use crate::{checkpoint, journal};
use checksum::crc32c;
use units::PoolId;

/// Changes the pool id of a checkpoint or journal page as stored. False, and nothing has changed,
/// if it is neither, is damaged, or belongs to another pool.
pub fn give_to_pool(bytes: &mut [u8], from: PoolId, to: PoolId) -> bool {
    // Both have their checksum and their pool at the same places.
    let is_own = bytes.len() == PAGE
        && [checkpoint::MAGIC, journal::MAGIC].contains(&get_u32(bytes, 0))
        && get_u32(bytes, 4) == crc32c(&bytes[8..])
        && get_u128(bytes, 16) == from.0;
    if is_own {
        put(bytes, 16, &to.0.to_le_bytes());
        let crc = crc32c(&bytes[8..]);
        put(bytes, 4, &crc.to_le_bytes());
    }
    is_own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checkpoint, JournalHeader, JournalPage, PagePtr};
    use units::ShardId;

    const OLD: PoolId = PoolId(1 << 100);
    const NEW: PoolId = PoolId(7);

    #[test]
    fn a_checkpoint_and_a_journals_page_are_the_same_in_the_other_pool() {
        let checkpoint = Checkpoint {
            pool: OLD,
            shard: ShardId(3),
            generation: 5,
            epoch: 6,
            journal_from: 7,
            directory: PagePtr::default(),
            slots: PagePtr::default(),
            homes: PagePtr::default(),
        };
        let mut bytes = checkpoint.encode();
        assert!(give_to_pool(&mut bytes, OLD, NEW));
        let given = Checkpoint {
            pool: NEW,
            ..checkpoint
        };
        assert_eq!(Checkpoint::decode(&bytes, NEW, ShardId(3)), Some(given));
        // It no longer belongs to the old one.
        assert!(!give_to_pool(&mut bytes, OLD, NEW));

        let header = JournalHeader {
            pool: OLD,
            shard: ShardId(3),
            epoch: 6,
            sequence: 9,
            durable_below: 8,
        };
        let mut bytes = [0; PAGE];
        JournalPage::new().seal(header, &mut bytes);
        assert!(give_to_pool(&mut bytes, OLD, NEW));
        let given = JournalHeader {
            pool: NEW,
            ..header
        };
        assert_eq!(JournalHeader::read(&bytes, NEW, ShardId(3)), Some(given));
        // Neither what is damaged nor what is something else.
        bytes[100] ^= 1;
        assert!(!give_to_pool(&mut bytes, NEW, OLD));
        assert!(!give_to_pool(&mut [0; PAGE], PoolId(0), NEW));
    }
}
