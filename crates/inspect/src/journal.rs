//! A shard's journal ring: what an opening would replay, and signs that part of it is lost. Where pages out of its middle are,
//! an opening is refused; here those after them are used, and ranges that may be older because of that are known.

use crate::inspection::Inspection;
use crate::report::Verdict;
use format::{
    BlockMask, Bounds, Checkpoint, JournalHeader, PAGE, Record, journal_start, open_page,
};
use std::collections::{BTreeMap, BTreeSet};
use units::VdriveId;

/// Pages read together.
const BATCH: u64 = 64;

/// A page of the journal.
pub struct JournalEntry {
    /// Its header.
    pub header: JournalHeader,
    /// Its records.
    pub records: Vec<Record>,
}

/// The content of a journal since a checkpoint.
#[derive(Default)]
pub struct Journal {
    /// Pages in order; some between them may be lost.
    pub pages: Vec<JournalEntry>,
    /// Pages below this number were durable with their data.
    pub durable: u64,
    /// Numbers of pages that were durable and are lost. What they said of a block counts no more only where a later page
    /// names that block.
    pub lost: BTreeSet<u64>,
    /// The newest checkpoint is lost, and the journal continues from that.
    pub later: bool,
    /// The last page says that all before it was durable, and has no records: nothing came after it for a moment at least.
    pub ended: bool,
    /// The page behind the last one is there and not whole on any member: it was being written when
    /// the power went, or is damaged, and then what was written last is missing.
    pub cut: bool,
}

/// A page as some members have it.
struct Candidate {
    entry: JournalEntry,
    /// Parts that have it as full as this.
    parts: Vec<usize>,
}

/// The content of a ring, of all epochs.
struct Ring {
    /// Pages of the checkpoint's epoch, from its point on, by number.
    pages: BTreeMap<u64, Candidate>,
    /// Parts that could be asked.
    parts: Vec<usize>,
    /// The highest mark of durable pages of this epoch.
    durable: u64,
    /// The highest epoch.
    epoch: u64,
    /// Whole pages that hold something that is no record.
    strange: u64,
    /// Pages of this epoch that are not whole on some member, by number.
    broken: BTreeSet<u64>,
    /// Places that no member can read.
    unreadable: BTreeSet<u64>,
}

impl Ring {
    /// Numbers of the pages that count, in order, and of those between them that are lost. A page that is lost ends the
    /// journal, unless others tell that it was durable: then those count up to the durable mark, and on from there.
    fn choose(&self, from: u64, length: u64) -> (Vec<u64>, BTreeSet<u64>) {
        let has = |number: &u64| self.pages.contains_key(number);
        let limit = from.saturating_add(length);
        let durable = self.durable.clamp(from, limit);
        let (mut chosen, lost): (Vec<u64>, BTreeSet<u64>) = {
            let (chosen, lost): (Vec<u64>, Vec<u64>) = (from..durable).partition(has);
            (chosen, lost.into_iter().collect())
        };
        chosen.extend((durable..limit).take_while(has));
        (chosen, lost)
    }
}

/// Reads what an opening from `checkpoint` would replay. Members that lack a page, or have it as it was
/// before it was full, are repaired: a crash leaves the last page so, and it may have been durable.
pub async fn read(inspection: &Inspection<'_>, checkpoint: &Checkpoint) -> Journal {
    let config = inspection.pool.config();
    let shard = checkpoint.shard.0;
    let base = journal_start(config.shards, shard, config.meta.journal_blocks);
    let length = config.meta.journal_blocks;
    let mut ring = read_ring(inspection, checkpoint, base, length).await;
    let (chosen, lost) = ring.choose(checkpoint.journal_from, length);
    let last = chosen.last().copied();
    let next = last.map_or(checkpoint.journal_from, |last| last + 1);
    tell(inspection, checkpoint, &ring, &lost, next);
    let mut journal = Journal {
        durable: ring.durable,
        lost,
        later: ring.epoch > checkpoint.epoch,
        cut: ring.broken.contains(&next),
        ended: last.is_some_and(|last| ring.pages[&last].entry.is_mark()),
        ..Journal::default()
    };
    if ring.unreadable.contains(&(next % length)) && !inspection.pool.label.exported {
        journal.cut = true;
        let text = format!(
            "shard {}: page {next} of the journal cannot be read on any drive that has it: flushed writes \
             may be lost",
            checkpoint.shard
        );
        inspection.find(Verdict::Lost, text);
    }
    for number in chosen {
        let Some(candidate) = ring.pages.remove(&number) else {
            break;
        };
        mend(inspection, &ring, &candidate, base + number % length).await;
        journal.pages.push(candidate.entry);
    }
    journal
}

impl JournalEntry {
    /// It says that everything before it was durable, and nothing else.
    fn is_mark(&self) -> bool {
        self.records.is_empty() && self.header.durable_below >= self.header.sequence
    }
}

impl Journal {
    /// Whether something that was durable is lost, so that blocks without a later record may be older.
    pub fn has_gaps(&self) -> bool {
        self.later || !self.lost.is_empty()
    }

    /// Whether a page's records are taken as they say: it was durable, and so is all that came before it.
    pub fn is_sure(&self, header: &JournalHeader) -> bool {
        let after_gap = self
            .lost
            .first()
            .is_some_and(|lost| header.sequence > *lost);
        header.sequence < self.durable && !after_gap
    }

    /// Blocks, by layer and chunk, that were written or discarded after everything that is lost.
    pub fn settled(&self) -> BTreeMap<(u32, u32), BlockMask> {
        let mut settled: BTreeMap<(u32, u32), BlockMask> = BTreeMap::new();
        let last = self.lost.last().copied();
        let after = |page: &&JournalEntry| !self.later && Some(page.header.sequence) > last;
        for record in self
            .pages
            .iter()
            .filter(after)
            .flat_map(|page| &page.records)
        {
            let (first, count) = match record {
                Record::Write { first, crcs, .. } => (usize::from(*first), crcs.len()),
                Record::Trim { first, count, .. } => (usize::from(*first), usize::from(*count)),
                _ => continue,
            };
            let known = settled.entry(record.subject()).or_default();
            (first..first + count).for_each(|block| known.set(block));
        }
        settled
    }
}

async fn mend(inspection: &Inspection<'_>, ring: &Ring, candidate: &Candidate, block: u64) {
    let has = |part: &usize| candidate.parts.contains(part);
    let wrong: Vec<usize> = ring
        .parts
        .iter()
        .copied()
        .filter(|part| !has(part))
        .collect();
    if wrong.is_empty() {
        return;
    }
    for (part, blocks) in inspection.pool.read_meta(block, 1).await {
        let bytes = blocks.into_iter().next().and_then(Result::ok);
        let Some(bytes) = bytes.filter(|_| has(&part)) else {
            continue;
        };
        inspection
            .mend_parts("journal page", VdriveId(0), block, &bytes, &wrong)
            .await;
        return;
    }
}

/// Reports contents of the ring outside of the replayable part.
fn tell(
    inspection: &Inspection<'_>,
    checkpoint: &Checkpoint,
    ring: &Ring,
    lost: &BTreeSet<u64>,
    next: u64,
) {
    let shard = checkpoint.shard;
    if ring.epoch > checkpoint.epoch {
        let text = format!(
            "shard {shard}: the journal is of opening {} and the newest checkpoint of opening {}: \
             its checkpoint is lost, and changes with it",
            ring.epoch, checkpoint.epoch
        );
        inspection.find(Verdict::Lost, text);
    } else if let Some(first) = lost.first() {
        let count = lost.len();
        let text = format!(
            "shard {shard}: page {first} of the journal was durable and is lost on every drive, {count} such pages in total: \
             their records are lost, and the pool cannot be opened; `convect restore` uses the remaining pages up to {next}, \
             and lists data that may be older"
        );
        inspection.find(Verdict::Lost, text);
    }
    if ring.strange > 0 {
        let text = format!(
            "shard {shard}: {} pages of the journal contain invalid records",
            ring.strange
        );
        inspection.find(Verdict::Lost, text);
    }
}

async fn read_ring(
    inspection: &Inspection<'_>,
    checkpoint: &Checkpoint,
    base: u64,
    length: u64,
) -> Ring {
    let mut ring = Ring {
        pages: BTreeMap::new(),
        parts: Vec::new(),
        durable: 0,
        epoch: 0,
        strange: 0,
        broken: BTreeSet::new(),
        unreadable: BTreeSet::new(),
    };
    let mut at = 0;
    while at < length {
        let count = BATCH.min(length - at);
        let copies = inspection.pool.read_meta(base + at, count as usize).await;
        ring.parts = copies.iter().map(|(part, _)| *part).collect();
        for index in 0..count as usize {
            let mut here = copies.iter().filter_map(|(_, blocks)| blocks.get(index));
            if here.all(Result::is_err) {
                ring.unreadable.insert(at + index as u64);
            }
        }
        for (part, blocks) in copies {
            for (position, bytes) in (at..).zip(blocks) {
                let Ok(bytes) = bytes else { continue };
                debug_assert_eq!(bytes.len(), PAGE);
                let (pool, shard) = (inspection.pool.id, checkpoint.shard);
                let here = |header: &JournalHeader| header.sequence % length == position;
                let Some(header) = JournalHeader::claimed(&bytes, pool, shard).filter(here) else {
                    continue;
                };
                if JournalHeader::read(&bytes, pool, shard).is_none() {
                    if header.epoch == checkpoint.epoch {
                        ring.broken.insert(header.sequence);
                    }
                    continue;
                }
                if !note(&mut ring, checkpoint, &header) {
                    continue;
                }
                match open_page(&bytes, pool, shard) {
                    Ok(Some((header, records))) if are_bounded(inspection, &records) => {
                        keep(&mut ring, part, JournalEntry { header, records });
                    }
                    _ => ring.strange += 1,
                }
            }
        }
        at += count;
    }
    ring
}

/// Whether all places that records name can be the pool's.
fn are_bounded(inspection: &Inspection<'_>, records: &[Record]) -> bool {
    let mut records = records.iter();
    records.all(|record| inspection.pool.check_record(record).is_ok())
}

/// Notes what a page says of the journal; whether its records count.
fn note(ring: &mut Ring, checkpoint: &Checkpoint, header: &JournalHeader) -> bool {
    ring.epoch = ring.epoch.max(header.epoch);
    if header.epoch != checkpoint.epoch {
        return false;
    }
    ring.durable = ring.durable.max(header.durable_below);
    header.sequence >= checkpoint.journal_from
}

fn keep(ring: &mut Ring, part: usize, entry: JournalEntry) {
    let number = entry.header.sequence;
    let parts = vec![part];
    // A page that was being filled may be fuller on one member than on another.
    match ring.pages.get_mut(&number) {
        Some(known) if known.entry.records.len() > entry.records.len() => {}
        Some(known) if known.entry.records.len() == entry.records.len() => {
            known.parts.push(part);
        }
        _ => drop(ring.pages.insert(number, Candidate { entry, parts })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Place, PoolId, ShardId};

    fn header(sequence: u64, durable_below: u64) -> JournalHeader {
        JournalHeader {
            pool: PoolId(1),
            shard: ShardId(0),
            epoch: 3,
            sequence,
            durable_below,
        }
    }

    fn ring(pages: &[u64], durable: u64) -> Ring {
        let candidate = |sequence: u64| Candidate {
            entry: JournalEntry {
                header: header(sequence, durable),
                records: Vec::new(),
            },
            parts: vec![0],
        };
        Ring {
            pages: pages
                .iter()
                .map(|number| (*number, candidate(*number)))
                .collect(),
            parts: vec![0],
            durable,
            epoch: 3,
            strange: 0,
            broken: BTreeSet::new(),
            unreadable: BTreeSet::new(),
        }
    }

    #[test]
    fn pages_after_a_lost_one_count_where_it_was_durable() {
        let check = |pages: &[u64], durable, chosen: &[u64], lost: &[u64]| {
            let found = ring(pages, durable).choose(10, 32);
            let lost: BTreeSet<u64> = lost.iter().copied().collect();
            assert_eq!(found, (chosen.to_vec(), lost), "{pages:?} {durable}");
        };
        check(&[10, 11, 12], 12, &[10, 11, 12], &[]);
        // Not durable: a crash left it so, and it ends the journal.
        check(&[10, 12, 13], 11, &[10], &[]);
        check(&[], 0, &[], &[]);
        check(&[10, 12, 13], 13, &[10, 12, 13], &[11]);
        check(&[12, 13, 15], 13, &[12, 13], &[10, 11]);
        // An impossible mark.
        check(
            &[10, 11],
            u64::MAX,
            &[10, 11],
            &(12..42).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn what_was_written_after_the_last_lost_page_is_not_older() {
        let write = |chunk: u32, first: u8| Record::Write {
            volume: 1,
            chunk,
            first,
            slot: Place::NONE,
            crcs: vec![7, 8].into(),
            old: Vec::new().into(),
        };
        let page = |sequence, record| JournalEntry {
            header: header(sequence, 13),
            records: vec![record],
        };
        let journal = Journal {
            pages: vec![page(10, write(1, 0)), page(12, write(2, 4))],
            durable: 13,
            lost: BTreeSet::from([11]),
            ..Journal::default()
        };
        let settled = journal.settled();
        assert_eq!(settled.keys().copied().collect::<Vec<_>>(), [(1, 2)]);
        assert_eq!(settled[&(1, 2)].blocks().collect::<Vec<_>>(), [4, 5]);
        assert!(journal.is_sure(&header(10, 13)) && !journal.is_sure(&header(12, 13)));
        let later = Journal {
            later: true,
            ..journal
        };
        assert!(later.settled().is_empty() && later.has_gaps());
    }
}
