//! Bulk loading of the pages of many chunks, for recovery: a journal may change tens of thousands
//! all over a map, and reading them one by one would dominate the time of an opening.

use super::layer_table::layer_entry;
use super::radix::Lookup;
use crate::checkpoint::metadata_pages::{opened_page, unreadable_page};
use crate::shard::state::Shard;
use block::{DmaBuf, IoError};
use format::{ChunkPage, PAGE, PagePtr, TREE_TOP, crc32c};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use units::Place;
use units::mutation::{Mutation, is_on};

/// Unneeded pages that are read along, so that one read suffices.
const GAP: u64 = 4;
/// Pages of one read.
const RUN: u64 = 64;
/// Reads in flight.
const DEPTH: usize = 64;

/// A page of a volume's tree: volume, level (0: a chunk's page), key, and where it lies.
type Wanted = (u32, u8, u32, PagePtr);

impl Shard {
    /// Loads the pages of these chunks (layer and number), where there are any.
    ///
    /// # Errors
    /// A drive's error, or `Medium` if no copy of a page is intact.
    pub(crate) async fn load_chunks(&self, chunks: &[(u32, u32)]) -> Result<(), IoError> {
        // Level by level: what is loaded tells where the next ones lie.
        for _ in 0..=TREE_TOP {
            let pages = self.missing_pages(chunks);
            if pages.is_empty() {
                break;
            }
            let pages: Vec<(Place, Wanted)> = pages.into_iter().collect();
            let runs: Vec<_> = runs(&pages).collect();
            for runs in runs.chunks(DEPTH) {
                let reads = join_all(runs.iter().map(|run| self.read_run_of_pages(run))).await;
                for (run, read) in runs.iter().zip(reads) {
                    self.install_run(run, &read?)?;
                }
            }
        }
        if is_on(Mutation::ForkEarly) {
            for (volume, chunk) in chunks {
                self.map_page(*volume, *chunk, true).await?;
            }
        }
        Ok(())
    }

    /// The next reads for these chunks, by place.
    fn missing_pages(&self, chunks: &[(u32, u32)]) -> BTreeMap<Place, Wanted> {
        let mut state = self.state.borrow_mut();
        let mut pages = BTreeMap::new();
        for (volume, chunk) in chunks {
            let entry = layer_entry(&mut state, *volume);
            let (level, key, ptr) = match entry.tree.lookup(*chunk) {
                Lookup::Loaded(_) | Lookup::Absent => continue,
                Lookup::OnDisk(ptr) => (0, *chunk, ptr),
                Lookup::NeedNode(level, key, ptr) => (level, key, ptr),
            };
            pages.insert(ptr.place, (*volume, level, key, ptr));
        }
        pages
    }

    async fn read_run_of_pages(&self, run: &[(Place, Wanted)]) -> Result<DmaBuf, IoError> {
        for (_, (.., ptr)) in run {
            self.check_ptr(*ptr)?;
        }
        let (first, last) = (run[0].0, run[run.len() - 1].0);
        let count = (last.block() - first.block() + 1) as usize;
        let mut crcs = vec![None; count];
        for (place, (.., ptr)) in run {
            crcs[(place.block() - first.block()) as usize] = Some(ptr.crc);
        }
        let check = |index: usize, bytes: &[u8]| crcs[index].is_none_or(|crc| crc32c(bytes) == crc);
        let read = self.read_place(first, count, &check).await;
        read.map_err(unreadable_page)
    }

    fn install_run(&self, run: &[(Place, Wanted)], bytes: &DmaBuf) -> Result<(), IoError> {
        let mut state = self.state.borrow_mut();
        for (place, (volume, level, key, ptr)) in run {
            let at = (place.block() - run[0].0.block()) as usize * PAGE;
            let header = match state.volumes.get(volume) {
                Some(entry) if *level > 0 => entry.tree.header(*level, *key),
                _ => ChunkPage::header(*volume, *key, 0),
            };
            let page = opened_page(&bytes[at..at + PAGE], header)?;
            self.install_page(&mut state, (*volume, *level, *key, *ptr), page)?;
        }
        Ok(())
    }
}

/// Pages that are read together.
fn runs(pages: &[(Place, Wanted)]) -> impl Iterator<Item = &[(Place, Wanted)]> {
    let mut rest = pages;
    std::iter::from_fn(move || {
        let first = rest.first()?.0;
        let near = |pair: &[(Place, Wanted)]| {
            let (left, right) = (pair[0].0, pair[1].0);
            left.vdrive() == right.vdrive()
                && right.block() - left.block() <= GAP
                && right.block() - first.block() < RUN
        };
        let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
        let (run, after) = rest.split_at(count);
        rest = after;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::VdriveId;

    #[test]
    fn what_lies_near_is_read_at_once_and_not_more_than_fits() {
        let at = |vdrive, block| {
            let place = Place::new(VdriveId(vdrive), block);
            (place, (1, 0, 0, PagePtr::default()))
        };
        let mut pages = vec![at(0, 10), at(0, 14), at(0, 19), at(1, 20)];
        pages.extend((0..70).map(|block| at(2, 100 + block)));
        let lengths: Vec<usize> = runs(&pages).map(<[_]>::len).collect();
        assert_eq!(lengths, [2, 1, 1, 64, 6]);
    }
}
