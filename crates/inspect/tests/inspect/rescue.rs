//! Volumes are restored from pools that lost part of their metadata.

use crate::support::client::{
    Made, SHAPES, changed_since_a_snapshot, journal_pages, made, written_in_pages, written_twice,
};
use crate::support::image::Image;
use inspect::{Inspection, Mode, Pool, Restored, restore_volume};
use reactor::Reactor;
use std::collections::BTreeMap;

/// What of a volume can be copied out.
fn rescue(images: &[Image], name: &'static str) -> (Restored, BTreeMap<u64, Vec<u8>>) {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let ended = reactor.block_on(async move {
        let pool = Pool::open(&handle, &drives).await.unwrap();
        let inspection = Inspection::new(&pool, Mode::Look, false, &|_| ());
        let mut blocks = BTreeMap::new();
        let mut sink = |offset: u64, bytes: &[u8]| {
            blocks.insert(offset / 4096, bytes.to_vec());
            Ok(())
        };
        let restored = restore_volume(&inspection, name, &mut sink).await.unwrap();
        (restored, blocks)
    });
    ended.unwrap()
}

/// Empties every page of the metadata that `wanted` says: its kind and owner.
fn empty_pages(images: &[Image], wanted: impl Fn(u8, u32) -> bool) -> usize {
    let mut count = 0;
    for image in images {
        for block in 0..image.blocks() {
            let bytes = image.block(block);
            let owner = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
            if bytes.starts_with(b"CVPG") && wanted(bytes[4], owner) {
                image.set_block(block, vec![0; 4096]);
                count += 1;
            }
        }
    }
    count
}

const NODE: u8 = 1;
const CHUNK: u8 = 2;
const VOLUME: u8 = 3;

fn comes_back(made: &Made, images: &[Image]) {
    for name in ["small", "wide"] {
        let (restored, blocks) = rescue(images, name);
        assert!(blocks == made.volumes[name].1, "{name}: {restored:#?}");
        assert_eq!(
            restored.perhaps_older,
            [],
            "{name}: the bitmaps tell which pages count"
        );
    }
}

#[test]
fn a_volume_whose_nodes_and_directory_are_lost_comes_back_whole() {
    for (seed, shape) in SHAPES.into_iter().enumerate() {
        let made = made(shape, 40 + seed as u64);
        comes_back(&made, &made.drives);
        let images = made.copy();
        let emptied = empty_pages(&images, |kind, owner| {
            kind == NODE && owner < u32::MAX - 2 || kind == VOLUME
        });
        assert!(emptied > 8, "{shape:?}");
        comes_back(&made, &images);
    }
}

#[test]
fn what_has_no_page_left_is_a_hole_and_listed_and_nothing_else_is() {
    let made = made(SHAPES[0], 50);
    let images = made.copy();
    // The first volume's map is gone; the second's is not.
    assert!(empty_pages(&images, |kind, owner| kind == CHUNK && owner == 1) > 0);
    let (restored, blocks) = rescue(&images, "small");
    assert!(
        blocks.is_empty() && restored.volume.lost_bytes > 0,
        "{restored:#?}"
    );
    let (restored, blocks) = rescue(&images, "wide");
    assert!(blocks == made.volumes["wide"].1, "{restored:#?}");
    assert_eq!(restored.volume.lost_bytes, 0);
}

#[test]
fn what_was_discarded_after_a_snapshot_is_not_copied_out_with_what_it_had() {
    let made = changed_since_a_snapshot();
    for name in ["v", "v@s"] {
        let (restored, mut blocks) = rescue(&made.drives, name);
        assert_eq!(restored.volume.lost_bytes, 0);
        // Zeroes are written over what is beneath.
        blocks.retain(|_, bytes| bytes.iter().any(|byte| *byte != 0));
        assert!(blocks == made.volumes[name].1, "{name}: {restored:#?}");
    }
}

/// A pool that was not exported.
fn ended_hard(seed: u64) -> Made {
    let shape = SHAPES
        .into_iter()
        .find(|shape| !shape.clean && !shape.mirrored);
    made(shape.unwrap(), seed)
}

#[test]
fn a_block_of_which_only_an_older_content_is_left_is_listed_as_such() {
    let made = written_twice();
    let right = &made.volumes["v"].1;
    let (restored, blocks) = rescue(&made.drives, "v");
    assert!(blocks == *right && restored.perhaps_older.is_empty());
    // The newest content of a block is damaged: the journal names it, and the one before is there.
    let images = made.copy();
    let newest = (0..images[0].blocks()).find(|block| images[0].block(*block) == right[&5]);
    let mut bytes = right[&5].clone();
    bytes[9] ^= 1;
    images[0].set_block(newest.unwrap(), bytes);
    let (restored, blocks) = rescue(&images, "v");
    assert!(blocks[&5] != right[&5]);
    let marked: Vec<_> = restored
        .perhaps_older
        .iter()
        .map(|range| (range.offset, range.len))
        .collect();
    assert_eq!(marked, [(5 * 4096, 4096)], "{restored:#?}");
}

#[test]
fn a_last_page_of_a_journal_that_is_not_whole_is_told_of() {
    let made = ended_hard(70);
    assert!(rescue(&made.drives, "wide").0.journals_cut.is_empty());
    let images = made.copy();
    let label: Vec<u8> = (0..256).flat_map(|block| images[0].block(block)).collect();
    let pool = format::Label::decode(&label).unwrap().pool;
    let mut cut = Vec::new();
    for shard in 0..2 {
        let header = |block: &u64| {
            let bytes = images[0].block(*block);
            format::JournalHeader::read(&bytes, pool, units::ShardId(shard))
        };
        let pages = (0..images[0].blocks()).filter_map(|block| Some((header(&block)?, block)));
        let last = pages.max_by_key(|(header, _)| (header.epoch, header.sequence));
        let Some((_, block)) = last else { continue };
        let mut bytes = images[0].block(block);
        bytes[4000] ^= 1;
        images[0].set_block(block, bytes);
        cut.push(shard);
    }
    assert!(!cut.is_empty());
    assert_eq!(rescue(&images, "wide").0.journals_cut, cut);
}

#[test]
fn pages_after_one_that_is_lost_are_used_and_what_may_be_older_is_listed() {
    const BLOCKS: u64 = 20;
    const LOST: u64 = 7;
    let made = written_in_pages(BLOCKS);
    let right = &made.volumes["v"].1;
    assert!(rescue(&made.drives, "v").1 == *right);
    let images = made.copy();
    let tells = |records: &[format::Record]| {
        records.iter().any(|record| {
            let format::Record::Write { first, crcs, .. } = record else {
                return false;
            };
            u64::from(*first) == LOST && crcs.len() == 1
        })
    };
    let pages = journal_pages(&images[0], tells);
    assert_eq!(pages.len(), 1);
    images[0].set_block(pages[0].0, vec![0; 4096]);
    let (restored, blocks) = rescue(&images, "v");
    assert!(blocks[&LOST] != right[&LOST], "its newest content is lost");
    for block in LOST + 1..BLOCKS {
        assert!(blocks[&block] == right[&block], "block {block}");
    }
    let is_listed = |block: u64| {
        let byte = block * 4096;
        let mut ranges = restored.perhaps_older.iter();
        ranges.any(|range| range.offset <= byte && byte < range.offset + range.len)
    };
    assert!(
        is_listed(LOST) && is_listed(BLOCKS),
        "{:?}",
        restored.perhaps_older
    );
    assert!(
        !(LOST + 1..BLOCKS).any(is_listed),
        "{:?}",
        restored.perhaps_older
    );
}
