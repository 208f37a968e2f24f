//! A shard's journal ring: what an opening would play, and signs that part of it is lost.

use crate::inspection::Inspection;
use crate::report::Verdict;
use format::{Bounds, Checkpoint, JournalHeader, PAGE, Record, journal_start, open_page};
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

/// What a journal has since a checkpoint.
#[derive(Default)]
pub struct Journal {
    /// Pages in order.
    pub pages: Vec<JournalEntry>,
    /// Pages below this number were durable with their data.
    pub durable: u64,
    /// The page behind the last one is there and not whole on any leg: it was being written when
    /// the power went, or is damaged, and then what was written last is missing.
    pub cut: bool,
}

/// A page as some legs have it.
struct Candidate {
    entry: JournalEntry,
    /// Parts that have it as full as this.
    parts: Vec<usize>,
}

/// What is in a ring, whatever it belongs to.
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
    /// Pages of this epoch that are not whole on some leg, by number.
    broken: BTreeSet<u64>,
}

/// Reads what an opening from `checkpoint` would play. Legs that lack a page, or have it as it was
/// before it was full, are mended: a crash leaves the last page so, and it may have been durable.
pub async fn read(inspection: &Inspection<'_>, checkpoint: &Checkpoint) -> Journal {
    let config = inspection.pool.config();
    let shard = checkpoint.shard.0;
    let base = journal_start(config.shards, shard, config.meta.journal_blocks);
    let length = config.meta.journal_blocks;
    let mut ring = read_ring(inspection, checkpoint, base, length).await;
    let mut next = checkpoint.journal_from;
    while next - checkpoint.journal_from < length && ring.pages.contains_key(&next) {
        next += 1;
    }
    tell(inspection, checkpoint, &ring, next);
    let mut journal = Journal {
        durable: ring.durable,
        cut: ring.broken.contains(&next),
        ..Journal::default()
    };
    for number in checkpoint.journal_from..next {
        let Some(candidate) = ring.pages.remove(&number) else {
            break;
        };
        mend(inspection, &ring, &candidate, base + number % length).await;
        journal.pages.push(candidate.entry);
    }
    journal
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

/// What the ring says of what is not in the part that can be played.
fn tell(inspection: &Inspection<'_>, checkpoint: &Checkpoint, ring: &Ring, next: u64) {
    let shard = checkpoint.shard;
    if ring.epoch > checkpoint.epoch {
        let text = format!(
            "shard {shard}: the journal is of opening {} and the newest checkpoint of opening {}: \
             the checkpoint that belongs to it is lost, and changes with it",
            ring.epoch, checkpoint.epoch
        );
        inspection.find(Verdict::Lost, text);
    } else if ring.durable > next {
        let text = format!(
            "shard {shard}: page {next} of the journal is lost on every drive and was durable: \
             changes of that page and later ones are lost"
        );
        inspection.find(Verdict::Lost, text);
    }
    if ring.strange > 0 {
        let text = format!(
            "shard {shard}: {} pages of the journal hold what is no record of this version",
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
    };
    let mut at = 0;
    while at < length {
        let count = BATCH.min(length - at);
        let copies = inspection.pool.read_meta(base + at, count as usize).await;
        ring.parts = copies.iter().map(|(part, _)| *part).collect();
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
    // A page that was being filled may be fuller on one leg than on another.
    match ring.pages.get_mut(&number) {
        Some(known) if known.entry.records.len() > entry.records.len() => {}
        Some(known) if known.entry.records.len() == entry.records.len() => {
            known.parts.push(part);
        }
        _ => drop(ring.pages.insert(number, Candidate { entry, parts })),
    }
}
