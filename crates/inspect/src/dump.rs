//! Any record of a pool as text.

use crate::checkpoint;
use crate::disk::LabelState;
use crate::error::{InspectError, Result};
use crate::inspection::Inspection;
use crate::pool::Pool;
use crate::replay::subjects;
use crate::shard::ShardView;
use crate::walk::{Found, Walk};
use format::{
    BlockState, ChunkPage, FANOUT, HomesPage, NodePage, Page, PageKind, PagePtr, Record, SlotsPage,
    VolumePage, crc32c,
};
use units::{CHUNK_BLOCKS, Place, VdriveId};

/// The records to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The labels of every drive, and the newest description.
    Label,
    /// The checkpoints of one shard or of all, on every member.
    Checkpoint(Option<u16>),
    /// The records that an opening would replay.
    Journal(Option<u16>),
    /// The content of a block of the metadata region.
    Page(u64),
    /// The map of a volume, one line per chunk; or one chunk, one line per run of blocks.
    Map(String, Option<u32>),
    /// The space of shards, one line per group.
    Space(Option<u16>),
}

/// Takes lines; false ends the dump.
pub type Lines<'a> = &'a mut dyn FnMut(&str) -> bool;

/// Shows one kind of record.
///
/// # Errors
/// When there is no such volume, shard or block.
pub async fn dump(inspection: &Inspection<'_>, what: &What, out: Lines<'_>) -> Result<()> {
    let shards = |only: &Option<u16>| {
        let all = 0..inspection.pool.config().shards;
        match only {
            Some(shard) if !all.contains(shard) => Err(InspectError::new(format!(
                "the pool has shards 0 to {}, not {shard}",
                all.end - 1
            ))),
            Some(shard) => Ok(*shard..*shard + 1),
            None => Ok(all),
        }
    };
    match what {
        What::Label => labels(inspection.pool, out),
        What::Checkpoint(only) => {
            for shard in shards(only)? {
                checkpoints(inspection, shard, out).await;
            }
            Ok(())
        }
        What::Journal(only) => {
            for shard in shards(only)? {
                journal(inspection, shard, out).await;
            }
            Ok(())
        }
        What::Page(block) => page(inspection.pool, *block, out).await,
        What::Map(volume, chunk) => map(inspection, volume, *chunk, out).await,
        What::Space(only) => {
            for shard in shards(only)? {
                space(inspection, shard, out).await;
            }
            Ok(())
        }
    }
}

fn at(place: Place) -> String {
    if place.is_none() {
        return "none".into();
    }
    format!("{}:{}", place.vdrive(), place.block())
}

fn pointer(ptr: PagePtr) -> String {
    if ptr.place.is_none() {
        return "none".into();
    }
    format!("{} crc {:08x} hint {}", at(ptr.place), ptr.crc, ptr.hint)
}

fn labels(pool: &Pool, out: Lines<'_>) -> Result<()> {
    for disk in &pool.disks {
        out(&format!("{} ({} bytes)", disk.spec, disk.size));
        for (state, offset) in disk.labels.iter().zip(disk.places) {
            let text = match state {
                LabelState::Valid(label) => format!(
                    "generation {}, pool {}, drive {}, {}",
                    label.generation,
                    label.pool,
                    label.drive,
                    if label.exported {
                        "exported"
                    } else {
                        "not exported"
                    }
                ),
                LabelState::Empty => "empty".into(),
                LabelState::Gone => "beyond the drive's end".into(),
                LabelState::Damaged => "damaged".into(),
                LabelState::Unreadable(error) => format!("unreadable: {error}"),
                LabelState::Unknown(why) => why.clone(),
            };
            let offset = offset.map_or_else(|| "none".to_owned(), |offset| offset.to_string());
            out(&format!("  at byte {offset}: {text}"));
        }
    }
    let text = serde_json::to_string_pretty(&pool.written.config);
    let text = text.map_err(|error| InspectError::new(error.to_string()))?;
    out(&format!(
        "description of generation {}:",
        pool.label.generation
    ));
    for line in text.lines() {
        if !out(line) {
            break;
        }
    }
    Ok(())
}

async fn checkpoints(inspection: &Inspection<'_>, shard: u16, out: Lines<'_>) {
    for copy in checkpoint::copies(inspection, shard).await {
        let drive = inspection.pool.part_name(VdriveId(0), copy.part);
        let head = format!("shard {shard}, block 0:{} on {drive}: ", copy.block);
        let Some(found) = copy.found else {
            let state = match (copy.empty, copy.newer) {
                (true, _) => "empty",
                (_, true) => "of a newer version",
                _ => "damaged",
            };
            out(&format!("{head}{state}"));
            continue;
        };
        out(&format!(
            "{head}generation {}, epoch {}, journal from page {}",
            found.generation, found.epoch, found.journal_from
        ));
        out(&format!("  directory {}", pointer(found.directory)));
        out(&format!("  slots     {}", pointer(found.slots)));
        out(&format!("  homes     {}", pointer(found.homes)));
    }
}

async fn journal(inspection: &Inspection<'_>, shard: u16, out: Lines<'_>) {
    let Some(view) = ShardView::read(inspection, shard).await else {
        out(&format!(
            "shard {shard}: no checkpoint says where the journal begins"
        ));
        return;
    };
    let journal = view.journal;
    out(&format!(
        "shard {shard}: {} pages that change {} chunks; durable below page {}",
        journal.pages.len(),
        subjects(&journal, inspection.pool.config()).len(),
        journal.durable
    ));
    for page in &journal.pages {
        let header = page.header;
        out(&format!(
            "page {} of epoch {}, written when pages below {} were durable",
            header.sequence, header.epoch, header.durable_below
        ));
        for found in &page.records {
            if !out(&format!("  {}", record(found))) {
                return;
            }
        }
    }
}

fn record(record: &Record) -> String {
    let (volume, chunk) = record.subject();
    let head = format!("volume {volume} chunk {chunk}");
    let old = |old: &[Place]| {
        let old: Vec<String> = old.iter().map(|place| at(*place)).collect();
        if old.is_empty() {
            String::new()
        } else {
            format!(", frees {}", old.join(" "))
        }
    };
    match record {
        Record::Write {
            first,
            slot,
            crcs,
            old: freed,
            ..
        } => format!(
            "write {head} blocks {first}+{} to {}{}",
            crcs.len(),
            at(*slot),
            old(freed)
        ),
        Record::Trim {
            first,
            count,
            old: freed,
            ..
        } => format!("trim {head} blocks {first}+{count}{}", old(freed)),
        Record::Promote {
            first, count, slot, ..
        } => format!("promote {head} blocks {first}+{count} to {}", at(*slot)),
        Record::Evict {
            mask, old: freed, ..
        } => format!("evict {head} {} blocks{}", mask.count(), old(freed)),
        Record::Home { home, mask, .. } => {
            format!(
                "home {head} at {}, {} blocks valid",
                at(*home),
                mask.count()
            )
        }
        Record::MoveHome { new, old, .. } => {
            format!("move home {head} from {} to {}", at(*old), at(*new))
        }
        Record::Merge { lower, .. } => format!("merge {head} into volume {lower}"),
    }
}

async fn page(pool: &Pool, block: u64, out: Lines<'_>) -> Result<()> {
    let blocks = pool.meta().layout.blocks();
    if block >= blocks {
        return Err(InspectError::new(format!(
            "the metadata region has blocks 0 to {}, not {block}",
            blocks.saturating_sub(1)
        )));
    }
    for (part, copies) in pool.read_meta(block, 1).await {
        let drive = pool.part_name(VdriveId(0), part);
        let Some(Ok(bytes)) = copies.into_iter().next() else {
            out(&format!("0:{block} on {drive}: unreadable"));
            continue;
        };
        let Some(page) = Page::found(&bytes) else {
            let empty = bytes.iter().all(|byte| *byte == 0);
            let what = if empty {
                "zeroes"
            } else {
                "not a page of a tree"
            };
            out(&format!(
                "0:{block} on {drive}: {what}, crc {:08x}",
                crc32c(&bytes)
            ));
            continue;
        };
        out(&format!("0:{block} on {drive}: crc {:08x}", crc32c(&bytes)));
        content(&page, out);
    }
    Ok(())
}

fn content(page: &Page, out: Lines<'_>) {
    let Some(header) = page.header() else { return };
    out(&format!(
        "  {:?} of owner {}, level {}, key {}, generation {}",
        header.kind, header.owner, header.level, header.key, header.generation
    ));
    match header.kind {
        PageKind::Node => {
            for index in 0..FANOUT {
                let ptr = NodePage::get(page, index);
                if ptr.place.is_some() {
                    out(&format!("  {index:>3} {}", pointer(ptr)));
                }
            }
        }
        PageKind::Chunk => chunk(&ChunkPage::from_page(page.clone()), out),
        PageKind::Volume => {
            let (root, counts) = VolumePage::decode(page);
            out(&format!("  map {}, {counts:?}", pointer(root)));
        }
        PageKind::Slots => {
            let bits = SlotsPage::decode(page);
            let used: u32 = bits.iter().map(|word| word.count_ones()).sum();
            out(&format!("  {used} blocks in use"));
        }
        PageKind::Homes => {
            for (index, group) in HomesPage::decode(page).iter().enumerate() {
                if let Some(bits) = group {
                    out(&format!("  group {index}: homes {bits:016x}"));
                }
            }
        }
    }
}

/// A line for blocks that are in the same state and lie together.
fn chunk(page: &ChunkPage, out: Lines<'_>) {
    out(&format!("  home {}", at(page.home())));
    let mut block = 0;
    while block < CHUNK_BLOCKS {
        let (state, slot) = (page.state(block), page.slot(block));
        let mut count = 1;
        let together = |count: usize| {
            let next = page.slot(block + count);
            let follows = slot.is_none() && next.is_none()
                || crate::chunk::beyond(slot, count) == Some(next) && slot.is_some();
            page.state(block + count) == state && follows
        };
        while block + count < CHUNK_BLOCKS && together(count) {
            count += 1;
        }
        if state != BlockState::Zero {
            out(&format!(
                "  blocks {block}+{count}: {state:?}, slot {}",
                at(slot)
            ));
        }
        block += count;
    }
}

async fn map(
    inspection: &Inspection<'_>,
    volume: &str,
    only: Option<u32>,
    out: Lines<'_>,
) -> Result<()> {
    let volumes = &inspection.pool.config().volumes;
    let Some(known) = volumes.iter().find(|known| known.name == volume) else {
        let names: Vec<&str> = volumes.iter().map(|known| known.name.as_str()).collect();
        return Err(InspectError::new(format!(
            "the pool has no volume '{volume}': its volumes are {}",
            names.join(", ")
        )));
    };
    out("as of the checkpoints; `dump journal` shows later changes");
    for shard in 0..inspection.pool.config().shards {
        let Some(view) = ShardView::read(inspection, shard).await else {
            out(&format!("shard {shard}: no valid checkpoint"));
            continue;
        };
        let root = view.volumes.get(&known.id).copied().unwrap_or_default();
        let mut walk = Walk::new(known.id, PageKind::Chunk, root);
        while let Some(found) = walk.next(inspection).await {
            for found in found {
                if !map_page(found, only, out) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn map_page(found: Found, only: Option<u32>, out: Lines<'_>) -> bool {
    match found {
        Found::Page { ptr, page, header } if header.kind == PageKind::Chunk => {
            if only.is_some_and(|only| only != header.key) {
                return true;
            }
            let map = ChunkPage::from_page(page);
            let count = |state| {
                (0..CHUNK_BLOCKS)
                    .filter(|block| map.state(*block) == state)
                    .count()
            };
            let line = out(&format!(
                "chunk {} at {}, generation {}: {} dirty, {} shadow, {} home",
                header.key,
                pointer(ptr),
                header.generation,
                count(BlockState::Dirty),
                count(BlockState::Clean),
                count(BlockState::Home)
            ));
            if only.is_some() {
                chunk(&map, out);
            }
            line
        }
        Found::Page { .. } => true,
        Found::Lost { ptr, level, key } => out(&format!(
            "LOST: the page of level {level} at {} with chunks from {key}",
            pointer(ptr)
        )),
    }
}

async fn space(inspection: &Inspection<'_>, shard: u16, out: Lines<'_>) {
    let Some(view) = ShardView::read(inspection, shard).await else {
        out(&format!("shard {shard}: no valid checkpoint"));
        return;
    };
    for (key, bits) in &view.space.slots {
        let used: u32 = bits.iter().map(|word| word.count_ones()).sum();
        out(&format!(
            "shard {shard}: group {} of vdrive {}: {used} blocks in use",
            key.group(),
            key.vdrive()
        ));
    }
    for (key, bits) in &view.space.homes {
        out(&format!(
            "shard {shard}: group {} of vdrive {}: {} homes in use",
            key.group(),
            key.vdrive(),
            bits.count_ones()
        ));
    }
}
