//! The journal's tail: its newest pages in memory that outlives the process, as they are while they fill. What is
//! there need not be in the ring before the host gets its completion.
//!
//! A tail is of one opening of a pool and of its drives (`wal/tail_head.rs`); which one is taken is decided in
//! `pool/tails.rs`.
//!
//! A page's place says first how long it is: nothing else there counts beyond that, and it is changed last. So
//! whatever the process was doing when it was killed, each page is there with a whole number of its records.

use super::tail_head::{HEAD_WORDS, put_durable};
use block::LastingMemory;
use format::{JOURNAL_HEADER, JournalHeader, JournalPage, PAGE};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use units::mutation::{Mutation, is_on};
use units::{PoolId, ShardId};

/// Pages: twice as many as make a barrier begin, so that those of its duration fit beside them.
const PAGES: u64 = 256;
/// Says that a place holds a page, and how it is laid out: "CVTAIL" and a version.
const MAGIC: u64 = 0x4c49_4154_5643_0011;
/// Words before a page's own: magic, length in bytes, pool (two), epoch, number, durable mark, shard.
const HEAD: usize = 8;
const LENGTH: usize = 1;
const SEQUENCE: usize = 5;
const DURABLE: usize = 6;
const WORD: usize = size_of::<u64>();
/// Words of a page's place.
const PLACE: usize = HEAD + PAGE / WORD;

/// Words of a tail's memory: its head, then the pages' places.
pub(crate) const TAIL_WORDS: usize = HEAD_WORDS + PAGES as usize * PLACE;

/// A shard's tail.
pub(crate) struct Tail {
    memory: Arc<dyn LastingMemory>,
    /// The page that is being filled here, and how many of its bytes are.
    filling: Option<(u64, usize)>,
}

impl Tail {
    /// Over what an earlier process may have left. `None` when there is less of it than [`TAIL_WORDS`].
    pub fn new(memory: Arc<dyn LastingMemory>) -> Option<Self> {
        (memory.words().len() >= TAIL_WORDS).then_some(Self {
            memory,
            filling: None,
        })
    }

    fn place(&self, sequence: u64) -> &[std::sync::atomic::AtomicU64] {
        let first = HEAD_WORDS + (sequence % PAGES) as usize * PLACE;
        &self.memory.words()[first..first + PLACE]
    }

    /// Puts what is new of a page here; `in_ring`: those with smaller numbers are in the ring. False when one is in
    /// its place that is not.
    pub fn put(&mut self, header: JournalHeader, page: &JournalPage, in_ring: u64) -> bool {
        let filled = match self.filling {
            Some((sequence, filled)) if sequence == header.sequence => filled,
            _ if header.sequence >= in_ring + PAGES => return false,
            _ => {
                self.begin(header);
                JOURNAL_HEADER
            }
        };
        let bytes = page.bytes();
        let place = self.place(header.sequence);
        if is_on(Mutation::TailLengthFirst) {
            place[LENGTH].store(bytes.len() as u64, Release);
            self.memory.step();
        }
        let from = filled / WORD;
        let (whole, rest) = bytes[from * WORD..].as_chunks::<WORD>();
        let words = &place[HEAD + from..];
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; WORD];
            last[..rest.len()].copy_from_slice(rest);
            words[whole.len()].store(u64::from_le_bytes(last), Relaxed);
        }
        place[DURABLE].store(header.durable_below, Relaxed);
        self.memory.step();
        place[LENGTH].store(bytes.len() as u64, Release);
        self.filling = Some((header.sequence, bytes.len()));
        true
    }

    /// Nothing of the page is here yet, and nothing of another one in its place any longer.
    fn begin(&self, header: JournalHeader) {
        let place = self.place(header.sequence);
        place[LENGTH].store(0, Release);
        for (word, value) in place[..HEAD].iter().zip(head(header)) {
            word.store(value, Release);
        }
        self.memory.step();
    }

    /// The header and the length in bytes of the page that is in a page's place, if it is one of that shard and epoch.
    fn header(
        &self,
        (pool, shard): (PoolId, ShardId),
        epoch: u64,
        sequence: u64,
    ) -> Option<(JournalHeader, usize)> {
        let place = self.place(sequence);
        let length = place[LENGTH].load(Acquire) as usize;
        let header = JournalHeader {
            pool,
            shard,
            epoch,
            sequence: place[SEQUENCE].load(Relaxed),
            durable_below: place[DURABLE].load(Relaxed),
        };
        let words = head(header).into_iter().zip(place).enumerate();
        let mut same = words.map(|(at, (value, word))| at == LENGTH || word.load(Relaxed) == value);
        (same.all(|same| same) && (JOURNAL_HEADER..=PAGE).contains(&length))
            .then_some((header, length))
    }

    /// Pages below this number are in the ring and durable, with their data.
    pub fn mark(&self, durable: u64) {
        put_durable(self.memory.words(), durable);
    }

    /// A page as the ring would have it, if it is here.
    pub fn page(&self, owner: (PoolId, ShardId), epoch: u64, sequence: u64) -> Option<Vec<u8>> {
        let (header, length) = self.header(owner, epoch, sequence)?;
        if header.sequence != sequence || is_on(Mutation::TailIgnored) {
            return None;
        }
        let place = self.place(sequence);
        let words = place[HEAD..].iter();
        let mut bytes: Vec<u8> = words
            .flat_map(|word| word.load(Relaxed).to_le_bytes())
            .collect();
        bytes.truncate(length);
        bytes[..JOURNAL_HEADER].fill(0);
        let mut page = vec![0; PAGE];
        JournalPage::of(bytes).seal(header, &mut page);
        Some(page)
    }
}

/// The header of an empty page.
fn head(header: JournalHeader) -> [u64; HEAD] {
    let pool = header.pool.0;
    [
        MAGIC,
        0,
        pool as u64,
        (pool >> 64) as u64,
        header.epoch,
        header.sequence,
        header.durable_below,
        header.shard.0.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::OwnMemory;
    use format::Record;
    use units::Place;

    const POOL: PoolId = PoolId(7 << 64 | 9);
    const SHARD: ShardId = ShardId(3);
    const EPOCH: u64 = 5;

    fn header(sequence: u64) -> JournalHeader {
        JournalHeader {
            pool: POOL,
            shard: SHARD,
            epoch: EPOCH,
            sequence,
            durable_below: sequence.saturating_sub(2),
        }
    }

    fn record(chunk: u32) -> Record {
        Record::MoveHome {
            volume: 1,
            chunk,
            new: Place::NONE,
            old: Place::NONE,
        }
    }

    fn empty() -> (Arc<OwnMemory>, Tail) {
        let memory = Arc::new(OwnMemory::new(TAIL_WORDS));
        let tail = Tail::new(memory.clone()).unwrap();
        (memory, tail)
    }

    fn one_record() -> JournalPage {
        let mut page = JournalPage::new();
        assert!(page.push(&record(1)));
        page
    }

    fn sealed(page: &JournalPage, sequence: u64) -> Vec<u8> {
        let mut bytes = vec![0; PAGE];
        page.seal(header(sequence), &mut bytes);
        bytes
    }

    fn found(memory: &Arc<OwnMemory>, sequence: u64) -> Option<Vec<u8>> {
        let later = Tail::new(memory.clone()).unwrap();
        later.page((POOL, SHARD), EPOCH, sequence)
    }

    #[test]
    fn the_next_process_finds_each_page_as_it_was_after_each_record() {
        let (memory, mut tail) = empty();
        for sequence in 300..303 {
            assert_eq!(found(&memory, sequence), None);
            let mut page = JournalPage::new();
            let mut chunk = 0;
            while page.push(&record(chunk)) {
                assert!(tail.put(header(sequence), &page, 300));
                assert_eq!(found(&memory, sequence), Some(sealed(&page, sequence)));
                chunk += 1;
            }
            assert!(chunk > 50, "many records fit");
        }
    }

    #[test]
    fn a_page_that_the_ring_has_not_is_never_given_up_for_another() {
        let (memory, mut tail) = empty();
        assert!(tail.put(header(10), &one_record(), 10));
        assert!(!tail.put(header(10 + PAGES), &one_record(), 10));
        assert!(found(&memory, 10).is_some());
        assert!(tail.put(header(10 + PAGES), &one_record(), 11));
        assert!(found(&memory, 10).is_none());
        assert!(found(&memory, 10 + PAGES).is_some());
    }

    #[test]
    fn a_page_that_was_begun_and_none_of_another_pool_shard_or_epoch_is_there() {
        let (memory, mut tail) = empty();
        tail.begin(header(2));
        assert_eq!(found(&memory, 2), None);
        assert!(tail.put(header(2), &one_record(), 2));
        assert!(found(&memory, 2).is_some());
        assert_eq!(tail.page((PoolId(9), SHARD), EPOCH, 2), None);
        assert_eq!(tail.page((POOL, ShardId(4)), EPOCH, 2), None);
        assert_eq!(tail.page((POOL, SHARD), EPOCH + 1, 2), None);
        assert_eq!(tail.page((POOL, SHARD), EPOCH, 2 + PAGES), None);
    }

    #[test]
    fn an_empty_page_is_a_page() {
        let (memory, mut tail) = empty();
        let page = JournalPage::new();
        assert!(tail.put(header(5), &page, 5));
        assert_eq!(found(&memory, 5), Some(sealed(&page, 5)));
    }

    #[test]
    fn lengths_that_nobody_wrote_are_refused() {
        let (memory, mut tail) = empty();
        assert!(tail.put(header(0), &one_record(), 0));
        for length in [0, 1, JOURNAL_HEADER as u64 - 1, PAGE as u64 + 1, u64::MAX] {
            memory.words()[HEAD_WORDS + LENGTH].store(length, Relaxed);
            assert_eq!(found(&memory, 0), None, "{length}");
        }
        assert!(Tail::new(Arc::new(OwnMemory::new(TAIL_WORDS - 1))).is_none());
    }
}
