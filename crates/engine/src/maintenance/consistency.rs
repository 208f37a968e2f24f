//! Whether a shard's books are right: every block has one owner, and every count is exact.

use crate::map::page::MapPage;
use crate::shard::state::Shard;
use crate::space::Books;
use crate::tiering::moves::MovesPaused;
use block::IoError;
use format::BlockCounts;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::CHUNK_BLOCKS;

/// Interval of checking whether space is still being released for other shards, in nanoseconds, and how often
/// an audit begins again because that began meanwhile.
const LOOK_NS: u64 = 10_000_000;
const TRIES: usize = 10;

/// Interval of checking whether moves have ended, in nanoseconds.
const MOVES_NS: u64 = 1_000_000;

/// Result of an audit.
#[derive(Clone, Default, Debug)]
pub struct Audit {
    /// Blocks that volumes store in this shard.
    pub mapped: u64,
    /// The same by layer.
    pub layers: BTreeMap<u32, u64>,
    /// Those of them that are on the fast tier.
    pub fast: BTreeMap<u32, u64>,
    /// Errors, one sentence each; the first ones of many.
    pub wrong: Vec<String>,
    /// Number of errors.
    pub count: usize,
}

impl Audit {
    /// The shards' findings together; `mapped`: the pool's count of blocks.
    pub fn sum(shards: impl IntoIterator<Item = Self>, mapped: i64) -> Self {
        let mut sum = Self::default();
        for audit in shards {
            sum.mapped += audit.mapped;
            for (layer, blocks) in audit.layers {
                *sum.layers.entry(layer).or_default() += blocks;
            }
            for (layer, blocks) in audit.fast {
                *sum.fast.entry(layer).or_default() += blocks;
            }
            sum.count += audit.count;
            sum.wrong.extend(audit.wrong);
        }
        if mapped != sum.mapped as i64 {
            sum.count += 1;
            let has = sum.mapped;
            sum.wrong.push(format!(
                "the pool counts {mapped} blocks as stored, and {has} are"
            ));
        }
        sum
    }
}

impl Shard {
    /// Compares maps, bitmaps and counts. The shard has to be at rest: no operation and nothing
    /// left to demote. Checkpoints, the mover and the promotion of pinned data wait; the
    /// release of space for other shards, which also happens at rest, is waited for.
    ///
    /// # Errors
    /// When the shard has failed, or a page cannot be loaded.
    pub async fn audit(&self) -> Result<Audit, IoError> {
        let mut tries = 0;
        loop {
            while self.requests.is_compacting() {
                self.check()?;
                self.handle.sleep(LOOK_NS).await;
            }
            let taken_up = self.requests.taken_up();
            let _moves = self.pause_moves().await?;
            self.pause_checkpoints().await?;
            let audit = self.audit_all().await;
            self.resume_checkpoints();
            tries += 1;
            let disturbed = self.requests.is_compacting() || self.requests.taken_up() != taken_up;
            if !disturbed || tries == TRIES {
                return audit;
            }
        }
    }

    /// Pauses all moves while it exists: the mover's rounds and the promotion of pinned data.
    ///
    /// # Errors
    /// Why the shard has failed.
    async fn pause_moves(&self) -> Result<MovesPaused<'_>, IoError> {
        let held = self.moves.pause();
        while self.moves.are_under_way() {
            self.check()?;
            self.handle.sleep(MOVES_NS).await;
        }
        Ok(held)
    }

    async fn audit_all(&self) -> Result<Audit, IoError> {
        let mut books = Books::default();
        let volumes: Vec<u32> = self.state.borrow().volumes.keys().copied().collect();
        let mut audit = Audit::default();
        for volume in volumes {
            let counts = self.audit_volume(volume, &mut books).await?;
            audit.mapped += counts.mapped();
            audit.layers.insert(volume, counts.mapped());
            audit.fast.insert(volume, counts.fast + counts.clean);
            let state = self.state.borrow();
            let known = state.volumes.get(&volume).map(|entry| entry.counts);
            if known != Some(counts) {
                books.note(|| format!("volume {volume} counts {known:?}, and has {counts:?}"));
            }
        }
        let state = self.state.borrow();
        for (tree, name) in state.root.trees() {
            tree.visit(&mut |ptr| {
                books.slot(&state.alloc, ptr.place, &|| format!("a page of the {name}"));
            });
        }
        (audit.wrong, audit.count) = books.compare(&state.alloc, &state.deferred_frees);
        Ok(audit)
    }

    async fn audit_volume(&self, volume: u32, books: &mut Books) -> Result<BlockCounts, IoError> {
        let mut sum = BlockCounts::default();
        let mut from = Some(0u32);
        while let Some(start) = from {
            let keys = self.next_chunks(volume, start).await?;
            for key in &keys {
                if let Some(map_page) = self.page_even_if_gone(volume, *key).await? {
                    sum += self.audit_chunk(volume, *key, &map_page, books);
                }
            }
            from = keys.last().and_then(|last| last.checked_add(1));
        }
        let state = self.state.borrow();
        if let Some(entry) = state.volumes.get(&volume) {
            entry.tree.visit(&mut |ptr| {
                let who = || format!("a page of volume {volume}'s map");
                books.slot(&state.alloc, ptr.place, &who);
            });
        }
        Ok(sum)
    }

    fn audit_chunk(
        &self,
        volume: u32,
        chunk: u32,
        map_page: &Rc<MapPage>,
        books: &mut Books,
    ) -> BlockCounts {
        let page = map_page.page.borrow();
        let state = self.state.borrow();
        for block in 0..CHUNK_BLOCKS {
            let slot = page.slot(block);
            if slot.is_some() {
                let who = || format!("block {block} of chunk {chunk} of volume {volume}");
                books.slot(&state.alloc, slot, &who);
            }
        }
        if page.home().is_some() {
            let who = || format!("chunk {chunk} of volume {volume}");
            books.home(&state.alloc, page.home(), &who);
        } else if (0..CHUNK_BLOCKS).any(|block| page.home_valid(block)) {
            books.note(|| format!("chunk {chunk} of volume {volume} has valid blocks and no home"));
        }
        let counts = self.count(&page);
        // Overwrites of dirty blocks depend on that.
        if counts.fast > 0 && !state.tier_index.is_dirty(&(volume, chunk)) {
            books
                .note(|| format!("chunk {chunk} of volume {volume} is missing in the dirty index"));
        }
        counts
    }
}
