//! Dirty-region log: which regions were written while a mirror's member was out, one bit per region.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::mutation::{Mutation, is_on};

/// Regions of one part at most.
pub const REGIONS: u64 = 4096;
const WORDS: usize = (REGIONS / 64) as usize;
/// Regions of even numbers: all that a known bug notes.
const EVEN: u64 = 0x5555_5555_5555_5555;
/// The value for a map of everything in the labels.
const ALL: &str = "all";
/// Regions after one that follows a written one: a run continues, and labels are written rarely.
const AHEAD: u64 = 8;

/// Blocks of a region of a part of `blocks`: whole groups.
pub fn region_blocks(blocks: u64, group_blocks: u64) -> u64 {
    blocks
        .div_ceil(REGIONS)
        .next_multiple_of(group_blocks)
        .max(group_blocks)
}

/// Regions of a part that a member lacks. Any thread may add to it.
#[derive(Debug)]
pub struct StaleMap {
    region_blocks: u64,
    all: AtomicBool,
    words: [AtomicU64; WORDS],
}

impl StaleMap {
    /// A map in which nothing is stale.
    pub fn new(region_blocks: u64) -> Self {
        Self {
            region_blocks: region_blocks.max(1),
            all: AtomicBool::new(false),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// Blocks of a region.
    pub fn region_blocks(&self) -> u64 {
        self.region_blocks
    }

    /// Parses a label's map. An invalid one counts as everything: copying too much is safe.
    pub fn load(&self, text: &str) {
        let words = text.as_bytes().chunks(16);
        if text == ALL || !text.is_ascii() || words.len() > WORDS {
            return self.set_all();
        }
        for (index, word) in words.enumerate() {
            let word = std::str::from_utf8(word).ok();
            match word.and_then(|word| u64::from_str_radix(word, 16).ok()) {
                Some(word) => drop(self.words[index].fetch_or(word, Ordering::AcqRel)),
                None => return self.set_all(),
            }
        }
    }

    /// The form in labels: 16 hex digits for each 64 regions, or "all".
    pub fn text(&self) -> String {
        if self.is_all() {
            return ALL.to_owned();
        }
        let words: Vec<u64> = self
            .words
            .iter()
            .map(|word| word.load(Ordering::Acquire))
            .collect();
        let used = words
            .iter()
            .rposition(|word| *word != 0)
            .map_or(0, |last| last + 1);
        words[..used]
            .iter()
            .map(|word| format!("{word:016x}"))
            .collect()
    }

    /// Everything is stale.
    pub fn set_all(&self) {
        self.all.store(true, Ordering::Release);
    }

    /// Whether everything is.
    pub fn is_all(&self) -> bool {
        self.all.load(Ordering::Acquire)
    }

    /// Nothing is.
    pub fn clear(&self) {
        self.words
            .iter()
            .for_each(|word| word.store(0, Ordering::Release));
        self.all.store(false, Ordering::Release);
    }

    /// Blocks from `block` on were written; true when the labels do not tell of that yet. After a
    /// region that is stale already some more are marked with it, since writes come in runs.
    pub fn note(&self, block: u64, count: u64) -> bool {
        if self.is_all() {
            return false;
        }
        let (first, last) = self.span(block, count);
        let mut news = false;
        for region in first..=last {
            if self.add(region) {
                news = true;
                if region > 0 && self.has(region - 1) {
                    for next in region..(region + AHEAD).min(REGIONS) {
                        self.add(next);
                    }
                }
            }
        }
        news
    }

    /// Adds the regions of another thread's list; true when one is new.
    pub fn note_all(&self, written: &Written) -> bool {
        if self.is_all() {
            return false;
        }
        let mut news = false;
        for (word, more) in self.words.iter().zip(written.0.iter()) {
            let more = match is_on(Mutation::StaleUnnoted) {
                true => *more & EVEN,
                false => *more,
            };
            news |= more != 0 && word.fetch_or(more, Ordering::AcqRel) & more != more;
        }
        news
    }

    /// Whether it covers all of another thread's list.
    pub fn has_all(&self, written: &Written) -> bool {
        let mut words = self.words.iter().zip(written.0.iter());
        self.is_all() || words.all(|(word, more)| more & !word.load(Ordering::Acquire) == 0)
    }

    /// Whether a block is in a stale region.
    pub fn covers(&self, block: u64) -> bool {
        self.is_all() || self.has(self.span(block, 1).0)
    }

    /// The stale ones among the first `count` regions.
    pub fn regions(&self, count: u64) -> Vec<u64> {
        (0..count.min(REGIONS))
            .filter(|region| self.is_all() || self.has(*region))
            .collect()
    }

    /// Regions up to and with `last` are up to date, of `count` in all.
    pub fn clear_upto(&self, last: u64, count: u64) {
        if self.is_all() {
            for region in 0..count.min(REGIONS) {
                self.add(region);
            }
            self.all.store(false, Ordering::Release);
        }
        for region in 0..=last.min(REGIONS - 1) {
            let (word, bit) = place(region);
            self.words[word].fetch_and(!bit, Ordering::AcqRel);
        }
    }

    fn span(&self, block: u64, count: u64) -> (u64, u64) {
        let last = (block + count.max(1) - 1) / self.region_blocks;
        (
            (block / self.region_blocks).min(REGIONS - 1),
            last.min(REGIONS - 1),
        )
    }

    fn has(&self, region: u64) -> bool {
        let (word, bit) = place(region);
        self.words[word].load(Ordering::Acquire) & bit != 0
    }

    fn add(&self, region: u64) -> bool {
        let (word, bit) = place(region);
        if is_on(Mutation::StaleUnnoted) && bit & EVEN == 0 {
            return false;
        }
        self.words[word].fetch_or(bit, Ordering::AcqRel) & bit == 0
    }
}

fn place(region: u64) -> (usize, u64) {
    ((region / 64) as usize, 1 << (region % 64))
}

/// Regions that one thread has written and not flushed.
#[derive(Clone, Debug)]
pub struct Written(Box<[u64; WORDS]>);

impl Default for Written {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl Written {
    /// Adds what a write touched.
    pub fn add(&mut self, map: &StaleMap, block: u64, count: u64) {
        let (first, last) = map.span(block, count);
        for region in first..=last {
            let (word, bit) = place(region);
            self.0[word] |= bit;
        }
    }

    /// Adds another list.
    pub fn add_all(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(other.0.iter()) {
            *word |= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_survives_its_text_and_damage_means_everything() {
        let map = StaleMap::new(512);
        assert_eq!(map.text(), "");
        assert!(map.note(512 * 70, 1));
        assert!(!map.note(512 * 70 + 511, 1), "the same region");
        assert!(map.note(512 * 4000, 513));
        let copy = StaleMap::new(512);
        copy.load(&map.text());
        assert_eq!(copy.regions(REGIONS), map.regions(REGIONS));
        assert!(map.regions(REGIONS).starts_with(&[70, 4000, 4001]));
        for damaged in ["xyz", "all", "é"] {
            let map = StaleMap::new(512);
            map.load(damaged);
            assert!(map.is_all(), "{damaged}");
        }
    }

    #[test]
    fn a_map_has_all_of_a_list_once_that_is_noted() {
        let (map, mut written) = (StaleMap::new(512), Written::default());
        assert!(map.has_all(&written));
        written.add(&map, 512 * 70, 1);
        assert!(!map.has_all(&written));
        map.note_all(&written);
        assert!(map.has_all(&written));
    }

    #[test]
    fn a_run_of_writes_is_marked_ahead() {
        let map = StaleMap::new(512);
        let news = (0..64).filter(|region| map.note(region * 512, 8)).count();
        assert!(news <= 10, "{news} label writes for 64 regions");
        assert_eq!(map.regions(REGIONS).len(), 65);
    }

    #[test]
    fn what_is_up_to_date_is_cleared_and_the_rest_stays() {
        let map = StaleMap::new(512);
        map.set_all();
        map.clear_upto(9, 20);
        assert_eq!(map.regions(20), (10..20).collect::<Vec<_>>());
        assert!(map.covers(10 * 512) && !map.covers(9 * 512));
    }

    #[test]
    fn regions_are_whole_groups_and_at_most_4096() {
        assert_eq!(region_blocks(100, 512), 512);
        assert_eq!(region_blocks(4096 * 512 + 1, 512), 1024);
        let map = StaleMap::new(512);
        assert!(map.note(u64::MAX / 2, 1), "beyond the last is the last");
    }
}
