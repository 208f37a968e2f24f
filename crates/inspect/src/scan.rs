//! Searching the metadata region for pages of a volume's map that nothing leads to any longer.

use crate::fetch::Want;
use crate::inspection::Inspection;
use crate::space::Space;
use format::{Page, PageKind, crc32c};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use units::{Place, VdriveId};

/// Blocks read together.
const BATCH: u64 = 64;

/// A chunk's page that was found.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Where it lies, and the checksum of what was found there.
    pub want: Want,
    /// The checkpoint that wrote it.
    pub generation: u64,
    /// The bitmaps say that its place is in use: it is the page that counts, since every other of
    /// the same chunk was freed. Else it may be an older one.
    pub certain: bool,
}

/// Finds the pages of chunks of a volume: for each the one that counts, or the newest.
pub async fn chunks(
    inspection: &Inspection<'_>,
    volume: u32,
    ranges: &[RangeInclusive<u32>],
    space: Option<&Space>,
) -> BTreeMap<u32, Candidate> {
    let pool = inspection.pool;
    let (mut at, end) = (pool.meta().base, pool.meta().layout.blocks());
    let mut found: BTreeMap<u32, Candidate> = BTreeMap::new();
    while at < end {
        let count = BATCH.min(end - at);
        for (_, blocks) in pool.read_meta(at, count as usize).await {
            for (block, bytes) in (at..).zip(blocks) {
                let page = bytes.ok().and_then(|bytes| Page::found(&bytes));
                let Some(page) = page else { continue };
                let Some(header) = page.header() else {
                    continue;
                };
                let wanted = header.kind == PageKind::Chunk
                    && header.owner == volume
                    && ranges.iter().any(|range| range.contains(&header.key));
                if !wanted {
                    continue;
                }
                let place = Place::new(VdriveId(0), block);
                let candidate = Candidate {
                    want: Want {
                        place,
                        crc: crc32c(page.bytes()),
                    },
                    generation: header.generation,
                    certain: space.is_some_and(|space| space.has_slot(pool, place)),
                };
                let better = |known: &Candidate| {
                    (known.certain, known.generation) < (candidate.certain, candidate.generation)
                };
                if found.get(&header.key).is_none_or(better) {
                    found.insert(header.key, candidate);
                }
            }
        }
        at += count;
    }
    found
}
