//! Writes of the journal that recovery cannot prove, since what should hold them cannot be read: whether they were there
//! is not known. Their blocks keep the places that the journal names, so that reads of them fail until they are written
//! again, and each is named once.

use crate::map::radix::Lookup;
use crate::shard::state::Shard;
use format::Record;
use std::collections::BTreeMap;
use units::{BLOCK, CHUNK, Place};

/// Blocks named in the log; the rest is counted.
const NAMED: usize = 8;

/// Such blocks, by volume, chunk and block, and where they should be.
#[derive(Default)]
pub(crate) struct Unreadable(BTreeMap<(u32, u32, usize), Place>);

impl Unreadable {
    /// A block of this record.
    pub fn note(&mut self, record: &Record, block: usize, place: Place) {
        let (volume, chunk) = record.subject();
        self.0.insert((volume, chunk, block), place);
    }

    /// Whether there are some in the record's chunk.
    pub fn has(&self, record: &Record) -> bool {
        let (volume, chunk) = record.subject();
        let all = (volume, chunk, 0)..(volume, chunk, usize::MAX);
        !self.0.is_empty() && self.0.range(all).next().is_some()
    }

    /// Says which of them nothing came after, and counts these.
    pub fn tell(&self, shard: &Shard) {
        let is_there = |((volume, chunk, block), place): (&(u32, u32, usize), &Place)| {
            let state = shard.state.borrow();
            let found = state
                .volumes
                .get(volume)
                .map(|entry| entry.tree.lookup(*chunk));
            let Some(Lookup::Loaded(map_page)) = found else {
                return true;
            };
            let page = map_page.page.borrow();
            let home = page
                .home_valid(*block)
                .then(|| page.home().plus(*block as u64));
            page.slot(*block) == *place || home == Some(*place)
        };
        let lost: Vec<(u32, u32, usize)> = self
            .0
            .iter()
            .filter(|entry| is_there(*entry))
            .map(|(key, _)| *key)
            .collect();
        if lost.is_empty() {
            return;
        }
        shard.note_opening_lost(lost.len());
        let named = lost.iter().take(NAMED);
        let named: Vec<String> = named
            .map(|(volume, chunk, block)| {
                let byte = u64::from(*chunk) * CHUNK as u64 + (block * BLOCK) as u64;
                format!("volume {volume} byte {byte}")
            })
            .collect();
        tracing::error!(
            shard = shard.config.shard.0,
            lost = lost.len(),
            blocks = named.join("; "),
            "blocks of {BLOCK} bytes are lost: their newest data cannot be read, and may have been flushed; \
             rewrite or restore them"
        );
    }
}
