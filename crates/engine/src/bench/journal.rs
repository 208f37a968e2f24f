//! Journals as full as a shard lets them get, with every page that they change on a drive.

use crate::device::shard_of_chunk;
use crate::harness::Harness;
use crate::shard::{CHANGED_PAGES, Shard};
use block::IoError;
use futures_util::future::join_all;
use units::BLOCK;

/// Pages written between two barriers, as a busy shard does.
const COMMIT_PAGES: u64 = 128;
/// Pages changed between two checkpoints while the map is made.
const CHECKPOINT_PAGES: usize = 4096;
/// Writes in flight.
const DEPTH: usize = 256;
/// A stride that visits every chunk of a volume in an order of no use to a cache.
const STRIDE: u64 = 0x9e37_79b1;

/// Contents of a pool's journals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filled {
    /// Pages.
    pub pages: u64,
    /// Records, each of one block.
    pub records: u64,
    /// Of these, those at the end whose data no flush has covered.
    pub unflushed: u64,
    /// Chunks whose pages they change.
    pub chunks: u64,
}

impl Filled {
    /// Changed pages of a shard that recovery loads at most: those of a checkpoint that had not ended,
    /// and as many again.
    pub const MOST_CHANGED: usize = 2 * CHANGED_PAGES;
}

impl Harness {
    /// Fills the journals until a host's work would wait for a checkpoint: single blocks of
    /// `changed` chunks a shard, all over a volume of `chunks` MiB. All but the last pages are
    /// durable; only the data of those was really written. The harness has to be dropped then.
    ///
    /// # Errors
    /// A drive's error.
    pub async fn fill_journals(
        &self,
        volume: u32,
        chunks: u32,
        changed: usize,
    ) -> Result<Filled, IoError> {
        let mut filled = Filled::default();
        for (number, shard) in self.shards.iter().enumerate() {
            let own = |step: &u64| {
                let chunk = (step * STRIDE % u64::from(chunks)) as u32;
                (shard_of_chunk(volume, chunk, self.shards.len()) == number).then_some(chunk)
            };
            let own: Vec<u32> = (0..u64::from(chunks))
                .filter_map(|step| own(&step))
                .take(changed)
                .collect();
            let shard = self.fill(shard, volume, &own).await?;
            filled.pages += shard.pages;
            filled.records += shard.records;
            filled.unflushed += shard.unflushed;
            filled.chunks += own.len() as u64;
        }
        Ok(filled)
    }

    async fn fill(&self, shard: &Shard, volume: u32, chunks: &[u32]) -> Result<Filled, IoError> {
        for some in chunks.chunks(CHECKPOINT_PAGES) {
            for chunk in some {
                shard.remap_for_benchmark(volume, *chunk, 0, None).await?;
            }
            shard.checkpoint().await?;
        }
        let (limit, before) = (shard.journal_host_limit(), shard.journal_made());
        let mut turns = (1..).flat_map(|turn| chunks.iter().map(move |chunk| (*chunk, turn % 256)));
        let mut barrier = 0;
        while shard.journal_length() + COMMIT_PAGES + 8 < limit {
            let (chunk, block) = turns.next().unwrap_or_default();
            shard
                .remap_for_benchmark(volume, chunk, block, None)
                .await?;
            if shard.journal_length() >= barrier + COMMIT_PAGES {
                shard.barrier().await?;
                barrier = shard.journal_length();
            }
        }
        shard.barrier().await?;
        let sure = shard.journal_made();
        let mut content = self.handle.dma().get(BLOCK);
        content.fill(1);
        while shard.journal_length() + 8 < limit {
            let some: Vec<_> = turns.by_ref().take(DEPTH).collect();
            let writes = some.iter().map(|(chunk, block)| {
                shard.remap_for_benchmark(volume, *chunk, *block, Some(&content))
            });
            join_all(writes)
                .await
                .into_iter()
                .collect::<Result<(), _>>()?;
        }
        Ok(Filled {
            pages: shard.journal_length(),
            records: shard.journal_made() - before,
            unflushed: shard.journal_made() - sure,
            chunks: chunks.len() as u64,
        })
    }
}
