//! Blocks of a volume that are compared in every state: unflushed ones, and those that were changed recently.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// Operations whose blocks are compared in every state, flushed or not: what a recovery may still
/// spoil is what the journal records.
const RECENT: u64 = 64;
/// Blocks of which it is known when they were changed, until old ones are forgotten.
const MANY: usize = 8192;

/// Ranges of blocks: first, count.
pub type Ranges = Vec<(u64, u64)>;

/// The blocks of one volume.
#[derive(Clone, Debug, Default)]
pub struct Young {
    /// Sectors with something that no flush has covered.
    unsettled: BTreeSet<u64>,
    /// Blocks, with the operations that changed them, recently.
    recent: Vec<(u64, u64)>,
    /// What was requested last, and the answer: many states of one moment ask the same. Forgotten at every change.
    found: RefCell<Option<((u64, u64), Ranges)>>,
}

impl Young {
    /// Blocks are changed by operation `id`.
    pub fn touch(&mut self, blocks: impl Iterator<Item = u64>, id: u64) {
        self.found.take();
        self.recent.extend(blocks.map(|block| (block, id)));
        if self.recent.len() > MANY {
            self.recent.retain(|(_, at)| *at + RECENT >= id);
        }
    }

    /// A sector has something that no flush has covered.
    pub fn unsettle(&mut self, sector: u64) {
        self.found.take();
        self.unsettled.insert(sector);
    }

    /// All of a sector is durable.
    pub fn settle(&mut self, sector: u64) {
        self.found.take();
        self.unsettled.remove(&sector);
    }

    /// Only what `stays` says still has something that no flush has covered.
    pub fn settle_all_but(&mut self, mut stays: impl FnMut(u64) -> bool) {
        self.found.take();
        self.unsettled.retain(|at| stays(*at));
    }

    /// What no flush has covered counts as changed by operation `id`, and as settled.
    pub fn forget_in_flight(&mut self, id: u64) {
        let unsettled = std::mem::take(&mut self.unsettled);
        self.touch(unsettled.into_iter().map(|at| at / 8), id);
    }

    /// Sectors from `first` on are gone.
    pub fn cut(&mut self, first: u64) {
        self.found.take();
        self.unsettled.retain(|at| *at < first);
        self.recent.retain(|(at, _)| at * 8 < first);
    }

    /// The blocks when `next` was the last operation that began, as ranges that `join` makes of them, at most `longest`
    /// blocks each.
    pub fn ranges(
        &self,
        next: u64,
        longest: u64,
        join: impl Fn(std::vec::IntoIter<u64>, u64) -> Ranges,
    ) -> Ranges {
        let mut found = self.found.borrow_mut();
        match &*found {
            Some((asked, ranges)) if *asked == (next, longest) => ranges.clone(),
            _ => {
                let ranges = join(self.blocks(next).into_iter(), longest);
                *found = Some(((next, longest), ranges.clone()));
                ranges
            }
        }
    }

    /// In order; some perhaps several times.
    fn blocks(&self, next: u64) -> Vec<u64> {
        let oldest = next.saturating_sub(RECENT);
        let recent = self.recent.iter().rev();
        let recent = recent.take_while(|(_, id)| *id >= oldest);
        let mut blocks: Vec<u64> = self.unsettled.iter().map(|sector| sector / 8).collect();
        blocks.dedup();
        blocks.extend(recent.map(|(block, _)| *block));
        blocks.sort_unstable();
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_seen_by_who_asks_again() {
        let mut young = Young::default();
        let all = |young: &Young, next| {
            young.ranges(next, 256, |blocks, _| {
                blocks.map(|block| (block, 1)).collect()
            })
        };
        let firsts = |ranges: Ranges| ranges.iter().map(|(first, _)| *first).collect::<Vec<_>>();
        assert_eq!(firsts(all(&young, 1)), [0; 0]);
        young.touch([3].into_iter(), 1);
        assert_eq!(firsts(all(&young, 1)), [3]);
        young.unsettle(40);
        assert_eq!(firsts(all(&young, 1)), [3, 5]);
        assert_eq!(firsts(all(&young, 100)), [5], "operation 1 is old");
        assert_eq!(firsts(all(&young, 1)), [3, 5]);
        young.forget_in_flight(1);
        assert_eq!(firsts(all(&young, 1)), [3, 5]);
        young.cut(30);
        assert_eq!(firsts(all(&young, 1)), [3]);
        young.unsettle(80);
        assert_eq!(firsts(all(&young, 1)), [3, 10]);
        young.settle(80);
        assert_eq!(firsts(all(&young, 1)), [3]);
        young.unsettle(80);
        assert_eq!(firsts(all(&young, 1)), [3, 10]);
        young.settle_all_but(|_| false);
        assert_eq!(firsts(all(&young, 1)), [3]);
    }
}
