//! Looking at all of a pool: labels, then each shard with its maps, then its bitmaps.

use crate::inspection::Inspection;
use crate::replay::{self, Chunks};
use crate::report::{Report, Verdict, VolumeReport};
use crate::shard::ShardView;
use crate::space::{Claim, Space};
use crate::walk::{Found, Walk, keys_beneath};
use crate::{chunk, membership};
use format::{
    Bounds, ChunkPage, GroupKey, PageKind, PoolConfig, REGION, VolumeConfig, shard_of,
    shard_of_chunk,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use units::{BLOCK, CHUNK, Place};

/// Chunks' maps of one region.
const REGION_CHUNKS: u64 = REGION / CHUNK as u64;

/// State that is checked across shards.
#[derive(Default)]
struct Shared {
    /// Owners of groups.
    groups: BTreeMap<GroupKey, u16>,
}

/// Space that a shard's maps refer to.
#[derive(Default)]
struct Maps {
    refers: Space,
    /// Chunks that the journal changes.
    chunks: Chunks,
    /// Chunks that it changes and whose page is lost.
    lost: BTreeSet<(u32, u32)>,
    /// Part of the maps cannot be read, so that what nothing refers to is not known.
    partial: bool,
}

/// Examines a pool, and repairs as it goes when the pass may. The report is in the inspection.
pub async fn inspect(inspection: &Inspection<'_>) {
    begin(inspection);
    membership::check(inspection).await;
    let mut shared = Shared::default();
    for shard in 0..inspection.pool.config().shards {
        check_shard(inspection, shard, &mut shared).await;
    }
    inspection.flush().await;
    inspection.report.borrow_mut().settle();
}

fn begin(inspection: &Inspection<'_>) {
    let (pool, config) = (inspection.pool, inspection.pool.config());
    *inspection.report.borrow_mut() = Report {
        pool: config.name.clone(),
        id: pool.id.to_string(),
        generation: pool.label.generation,
        exported: pool.label.exported,
        data_read: inspection.data,
        volumes: config
            .volumes
            .iter()
            .map(|volume| VolumeReport {
                id: volume.id,
                name: volume.name.clone(),
                size: volume.size,
                ..VolumeReport::default()
            })
            .collect(),
        ..Report::default()
    };
}

async fn check_shard(inspection: &Inspection<'_>, shard: u16, shared: &mut Shared) {
    let Some(mut view) = ShardView::read(inspection, shard).await else {
        lose_volumes(inspection, shard, &(0..=u32::MAX));
        return;
    };
    if let Some(older) = view.older(inspection) {
        inspection.find(Verdict::Lost, older);
    }
    claim_groups(inspection, &view, shared);
    let mut maps = Maps::default();
    for range in std::mem::take(&mut view.lost_volumes) {
        let text = format!(
            "shard {shard}: entries of volumes {} to {} in its directory are lost",
            range.start(),
            range.end()
        );
        inspection.find(Verdict::Repairable, text);
        lose_volumes(inspection, shard, &range);
        let subjects = view.subjects.iter();
        maps.lost
            .extend(subjects.filter(|(volume, _)| range.contains(volume)));
        maps.partial = true;
    }
    for (volume, root) in view.volumes.clone() {
        let mut walk = Walk::new(volume, PageKind::Chunk, root);
        while let Some(found) = walk.next(inspection).await {
            for found in found {
                view.note_page(&found);
                check_page(inspection, &view, &mut maps, volume, found).await;
            }
        }
    }
    let unfinished = replay::replay(
        inspection,
        &view.journal,
        &mut maps.chunks,
        &maps.lost,
        &mut view.space,
    )
    .await;
    view.report.unfinished_blocks = unfinished.len() as u64;
    let exported = inspection.pool.label.exported;
    if !exported && !view.journal.ended && !view.journal.has_gaps() {
        inspection.report.borrow_mut().unproven.push(shard);
    }
    for ((volume, chunk), page) in std::mem::take(&mut maps.chunks) {
        check_chunk(inspection, shard, &mut maps, volume, chunk, &page).await;
    }
    compare(inspection, &view, maps);
    inspection.report.borrow_mut().shards.push(view.report);
}

/// Every group belongs to one shard.
fn claim_groups(inspection: &Inspection<'_>, view: &ShardView, shared: &mut Shared) {
    for key in view.space.slots.keys().chain(view.space.homes.keys()) {
        if let Some(other) = shared.groups.insert(*key, view.id) {
            let text = format!(
                "group {} of vdrive {} belongs to shard {other} and to shard {}: one may overwrite the other",
                key.group(),
                key.vdrive(),
                view.id
            );
            inspection.find(Verdict::Lost, text);
        }
    }
}

async fn check_page(
    inspection: &Inspection<'_>,
    view: &ShardView,
    maps: &mut Maps,
    volume: u32,
    found: Found,
) {
    match found {
        Found::Page { page, header, .. } if header.kind == PageKind::Chunk => {
            let page = ChunkPage::from_page(page);
            let subject = (volume, header.key);
            if view.subjects.contains(&subject) {
                maps.chunks.insert(subject, page);
            } else {
                check_chunk(inspection, view.id, maps, volume, header.key, &page).await;
            }
        }
        Found::Page { .. } => {}
        Found::Lost { level, key, ptr } => {
            let chunks = keys_beneath(level, key);
            let text = format!(
                "shard {}: a page of the map of volume {} is lost at {}:{} (level {level}, {} chunks from {key})",
                view.id,
                inspection.pool.volume_name(volume),
                ptr.place.vdrive(),
                ptr.place.block(),
                u64::from(chunks.end() - chunks.start()) + 1
            );
            inspection.find(Verdict::Repairable, text);
            lose_chunks(inspection, view.id, volume, &chunks);
            let subjects = view.subjects.iter();
            let beneath =
                |subject: &&(u32, u32)| subject.0 == volume && chunks.contains(&subject.1);
            maps.lost.extend(subjects.filter(beneath));
            maps.partial = true;
        }
    }
}

/// A part of a volume's map is lost: what it has in this shard cannot be reached.
fn lose_chunks(inspection: &Inspection<'_>, shard: u16, volume: u32, chunks: &RangeInclusive<u32>) {
    let shards = usize::from(inspection.pool.config().shards);
    let mut report = inspection.report.borrow_mut();
    let config = inspection.pool.config();
    let root = config.root(volume);
    let seen = seen_through(config, volume);
    let sizes = report
        .volumes
        .iter()
        .filter(|known| seen.contains(&known.id));
    let Some(size) = sizes.map(|known| known.size).max() else {
        return;
    };
    let (first, last) = (u64::from(*chunks.start()), u64::from(*chunks.end()));
    let mut chunk = first;
    while chunk <= last && chunk * (CHUNK as u64) < size {
        let region = chunk / REGION_CHUNKS;
        let end = ((region + 1) * REGION_CHUNKS).min(last + 1);
        if shard_of(root, region, shards) == usize::from(shard) {
            let bytes = (end - chunk) * CHUNK as u64;
            for volume in &seen {
                report.lose(*volume, chunk * CHUNK as u64, bytes);
            }
        }
        chunk = end;
    }
}

/// Volumes that see something of a layer, perhaps: those that stand on it.
fn seen_through(config: &PoolConfig, layer: u32) -> Vec<u32> {
    let sees = |volume: &&VolumeConfig| config.path(volume.live()).contains(&layer);
    config
        .volumes
        .iter()
        .filter(sees)
        .map(|volume| volume.id)
        .collect()
}

fn lose_volumes(inspection: &Inspection<'_>, shard: u16, range: &RangeInclusive<u32>) {
    let config = inspection.pool.config();
    let live = config.volumes.iter().map(VolumeConfig::live);
    let layers = live.chain(config.layers.iter().map(|layer| layer.id));
    let lost: BTreeSet<u32> = layers.filter(|id| range.contains(id)).collect();
    for id in lost {
        lose_chunks(inspection, shard, id, &(0..=u32::MAX));
    }
}

async fn check_chunk(
    inspection: &Inspection<'_>,
    shard: u16,
    maps: &mut Maps,
    volume: u32,
    number: u32,
    page: &ChunkPage,
) {
    let pool = inspection.pool;
    let shards = usize::from(pool.config().shards);
    let who = || format!("chunk {number} of volume {}", pool.volume_name(volume));
    let root = pool.config().root(volume);
    if shard_of_chunk(root, number, shards) != usize::from(shard) {
        let text = format!(
            "{} is in the map of shard {shard}, but belongs to another",
            who()
        );
        inspection.find(Verdict::Repairable, text);
    }
    if let Err(found) = pool.check_chunk(page) {
        let text = format!(
            "{} refers to {found}: the pool cannot read it; `convect restore` copies out what is intact",
            who()
        );
        inspection.find(Verdict::Lost, text);
    }
    for block in 0..units::CHUNK_BLOCKS {
        if page.slot(block).is_some() {
            let claim = maps.refers.claim_slot(pool, page.slot(block));
            tell_claim(inspection, claim, page.slot(block), &who);
        }
    }
    if page.home().is_some() {
        let claim = maps.refers.claim_home(pool, page.home());
        tell_claim(inspection, claim, page.home(), &who);
    }
    let stored = chunk::stored(page).count() as u64;
    let lost = if inspection.data {
        chunk::verify(inspection, page).await
    } else {
        chunk::stored(page)
            .filter(|block| !chunk::places(page, *block).any(|place| chunk::is_here(pool, place)))
            .collect()
    };
    let seen = match lost.is_empty() {
        true => Vec::new(),
        false => seen_through(pool.config(), volume),
    };
    let mut report = inspection.report.borrow_mut();
    for block in lost {
        let offset = u64::from(number) * CHUNK as u64 + (block * BLOCK) as u64;
        for volume in &seen {
            report.lose(*volume, offset, BLOCK as u64);
        }
    }
    let live = pool
        .config()
        .volumes
        .iter()
        .find(|known| known.live() == volume);
    let live = live.map(|known| known.id);
    let known = report
        .volumes
        .iter_mut()
        .find(|known| Some(known.id) == live);
    if let Some(known) = known {
        known.blocks += stored;
    }
    drop(report);
    inspection.passed(stored);
}

fn tell_claim(inspection: &Inspection<'_>, claim: Claim, place: Place, who: &dyn Fn() -> String) {
    let (vdrive, block) = (place.vdrive(), place.block());
    match claim {
        Claim::New => {}
        Claim::Taken => {
            let text = format!(
                "{} shares block {block} of vdrive {vdrive} with another: one of them is overwritten; --data shows which",
                who()
            );
            inspection.find(Verdict::Lost, text);
        }
        Claim::Nowhere => {
            let text = format!(
                "{} is at block {block} of vdrive {vdrive}, outside of the pool",
                who()
            );
            inspection.find(Verdict::Lost, text);
        }
    }
}

/// Bitmaps have to be what the maps refer to, no more and no less.
fn compare(inspection: &Inspection<'_>, view: &ShardView, mut maps: Maps) {
    for place in &view.pages {
        let who = || format!("a page of shard {}", view.id);
        let claim = maps.refers.claim_slot(inspection.pool, *place);
        tell_claim(inspection, claim, *place, &who);
    }
    let shard = view.id;
    if !view.space_whole {
        let text = format!(
            "shard {shard}: part of its space bitmaps is lost; volumes can be read without them, \
             but the pool cannot be opened"
        );
        inspection.find(Verdict::Repairable, text);
        return;
    }
    let (blocks, chunks) = maps.refers.beyond(&view.space);
    if blocks + chunks > 0 {
        let text = format!(
            "shard {shard}: {blocks} blocks and {chunks} homes in use are marked as free: do not open the pool"
        );
        inspection.find(Verdict::Repairable, text);
    }
    let (blocks, chunks) = view.space.beyond(&maps.refers);
    if blocks + chunks > 0 && !maps.partial {
        let text = format!(
            "shard {shard}: {blocks} blocks and {chunks} homes that nothing refers to are marked as used: space is wasted"
        );
        inspection.find(Verdict::Repairable, text);
    }
}
