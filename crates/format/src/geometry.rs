//! Where things lie that nothing points to: pure arithmetic.

use units::{CHUNK, div_rem};

/// Consecutive bytes of a volume that one shard has: a bottom node of its map.
pub const REGION: u64 = 256 << 20;

/// The block of the metadata region that has a shard's checkpoint of this generation.
pub fn checkpoint_block(shard: u16, generation: u64) -> u64 {
    1 + 2 * u64::from(shard) + generation % 2
}

/// First block, in the metadata region, of the journal of `shard`, one of `shards` with journals
/// of `journal_blocks` each.
pub fn journal_start(shards: u16, shard: u16, journal_blocks: u64) -> u64 {
    (1 + 2 * u64::from(shards)).next_multiple_of(256) + u64::from(shard) * journal_blocks
}

/// First block of the metadata region that belongs to groups.
pub fn pages_start(shards: u16, journal_blocks: u64) -> u64 {
    journal_start(shards, shards, journal_blocks)
}

/// The shard of a volume's region.
pub fn shard_of(volume: u32, region: u64, shards: usize) -> usize {
    div_rem(region + u64::from(volume), shards as u64).1 as usize
}

/// The shard that has a chunk of a volume.
pub fn shard_of_chunk(volume: u32, chunk: u32, shards: usize) -> usize {
    shard_of(volume, u64::from(chunk) * CHUNK as u64 / REGION, shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_region_begins_as_the_format_says() {
        assert_eq!(checkpoint_block(0, 2), 1);
        assert_eq!(checkpoint_block(1, 3), 4);
        assert_eq!(journal_start(2, 0, 1024), 256);
        assert_eq!(journal_start(2, 1, 1024), 1280);
        assert_eq!(pages_start(2, 1024), 2304);
        assert_eq!(pages_start(128, 1024), 512 + 128 * 1024);
    }

    #[test]
    fn regions_go_to_the_shards_in_turn() {
        let of = |chunk| shard_of_chunk(1, chunk, 3);
        assert_eq!([of(0), of(255), of(256), of(512)], [1, 1, 2, 0]);
    }
}
