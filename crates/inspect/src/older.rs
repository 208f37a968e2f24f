//! Ranges of a volume that may be older than the last writes, since durable pages of a shard's journal are lost.
//!
//! It is unknown which blocks such a page named: every block of the shard may be among them, except those that a
//! later page names.

use crate::journal::Journal;
use crate::report::Range;
use format::{REGION, shard_of};
use units::{BLOCK, CHUNK, CHUNK_BLOCKS};

/// Those ranges, of a volume of `size` bytes that is seen as `layer`, within shard `shard` of `shards`; `root` is the layer
/// by which chunks are divided among them.
pub fn ranges(
    journal: &Journal,
    (layer, root): (u32, u32),
    (shard, shards): (u16, u16),
    size: u64,
) -> Vec<Range> {
    if !journal.has_gaps() {
        return Vec::new();
    }
    let settled = journal.settled();
    let mut ranges = Vec::new();
    for region in 0..size.div_ceil(REGION) {
        if shard_of(root, region, shards.into()) != usize::from(shard) {
            continue;
        }
        let (mut from, end) = (region * REGION, ((region + 1) * REGION).min(size));
        let chunks = (from / CHUNK as u64) as u32..end.div_ceil(CHUNK as u64) as u32;
        let known = settled.range((layer, chunks.start)..(layer, chunks.end));
        for ((_, chunk), blocks) in known {
            for block in (0..CHUNK_BLOCKS).filter(|block| blocks.has(*block)) {
                let at = u64::from(*chunk) * CHUNK as u64 + (block * BLOCK) as u64;
                push(&mut ranges, from, at.min(end));
                from = (at + BLOCK as u64).min(end);
            }
        }
        push(&mut ranges, from, end);
    }
    ranges
}

fn push(ranges: &mut Vec<Range>, from: u64, to: u64) {
    if from < to {
        ranges.push(Range {
            offset: from,
            len: to - from,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::JournalEntry;
    use format::{JournalHeader, Record};
    use std::collections::BTreeSet;
    use units::{Place, PoolId, ShardId};

    fn journal(lost: &[u64]) -> Journal {
        let trim = Record::Trim {
            volume: 5,
            chunk: 1,
            first: 2,
            count: 3,
            old: Vec::<Place>::new().into(),
        };
        Journal {
            pages: vec![JournalEntry {
                header: JournalHeader {
                    pool: PoolId(1),
                    shard: ShardId(0),
                    epoch: 1,
                    sequence: 9,
                    durable_below: 9,
                },
                records: vec![trim],
            }],
            durable: 9,
            lost: lost.iter().copied().collect::<BTreeSet<_>>(),
            ..Journal::default()
        }
    }

    #[test]
    fn all_of_the_shard_may_be_older_but_what_was_written_since() {
        let size = REGION + 3 * CHUNK as u64;
        let found = |lost: &[u64], shard| {
            let found = ranges(&journal(lost), (5, 5), (shard, 2), size);
            found
                .into_iter()
                .map(|range| (range.offset, range.len))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&[], 0), []);
        let at = CHUNK as u64 + 2 * BLOCK as u64;
        let next = at + 3 * BLOCK as u64;
        // Region 0 of a volume of an odd number is the second shard's.
        assert_eq!(found(&[8], 1), [(0, at), (next, REGION - next)]);
        assert_eq!(found(&[8], 0), [(REGION, 3 * CHUNK as u64)]);
        assert_eq!(found(&[8, 10], 1), [(0, REGION)]);
    }
}
