//! Pools damaged at random, and the results of repairing them.

use super::client::{Made, SHAPES, made};
use super::image::{Image, Random};
use engine::EngineConfig;
use engine::harness::Harness;
use inspect::{Inspection, Mode, Options, Pool, Report, Verdict, inspect_drives, restore_volume};
use reactor::{Handle, Reactor};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks of a label's place.
const LABEL: u64 = 256;

/// Blocks that can be read, by volume and number.
type Readable = BTreeMap<(String, u64), Vec<u8>>;

/// What was done to pools, and what came of it.
#[derive(Default, Debug)]
pub struct Tally {
    pub pools: u64,
    /// Damages by kind.
    pub damages: BTreeMap<&'static str, u64>,
    /// Verdicts of a check before and after the repair.
    pub before: [u64; 3],
    pub after: [u64; 3],
    /// Pools without any label left.
    pub unreadable: u64,
    pub mended: u64,
    /// Blocks that could be read before the repair, and those of them that could not, or were
    /// otherwise, after it.
    pub readable: u64,
    pub lost_by_repair: u64,
    /// Blocks that could be read only after it.
    pub won: u64,
    /// Blocks that were read, before or after, as something else than their last content, and not
    /// marked so: a journal's last page may be lost without a sign.
    pub wrong: u64,
    /// Pools that the engine opens before and after, and those that it opened only before.
    pub opens_before: u64,
    pub opens_after: u64,
    pub closed_by_repair: u64,
}

impl Tally {
    /// The table that the benchmark prints.
    pub fn table(&self) -> String {
        let kinds: Vec<String> = self
            .damages
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        format!(
            "pools damaged at random                  {:>9}\n\
             damages                                  {}\n\
             check before: whole, repairable, lost    {:?}\n\
             check after: whole, repairable, lost     {:?}\n\
             without any label                        {:>9}\n\
             copies mended                            {:>9}\n\
             blocks readable before                   {:>9}\n\
             of them lost or changed by the repair    {:>9}\n\
             blocks readable only after               {:>9}\n\
             reads of older content, not marked so    {:>9}\n\
             pools that the engine opens before       {:>9}\n\
             pools that it opens after                {:>9}\n\
             pools that it opened only before         {:>9}\n",
            self.pools,
            kinds.join(", "),
            self.before,
            self.after,
            self.unreadable,
            self.mended,
            self.readable,
            self.lost_by_repair,
            self.won,
            self.wrong,
            self.opens_before,
            self.opens_after,
            self.closed_by_repair
        )
    }
}

/// Garbage for a block: random bytes, zeroes, or the block with its second half replaced.
fn spoil(image: &Image, block: u64, random: &mut Random) {
    let mut bytes = image.block(block);
    match random.below(3) {
        0 => bytes.fill(0),
        1 => bytes
            .iter_mut()
            .for_each(|byte| *byte = random.next() as u8),
        _ => bytes[512..].fill(random.next() as u8),
    }
    image.set_block(block, bytes);
}

fn used(image: &Image, range: std::ops::Range<u64>) -> Vec<u64> {
    range.filter(|block| image.is_used(*block)).collect()
}

/// Some of the blocks that hold something.
fn some(image: &Image, range: std::ops::Range<u64>, most: u64, random: &mut Random) -> Vec<u64> {
    let used = used(image, range);
    if used.is_empty() {
        return used;
    }
    (0..1 + random.below(most))
        .map(|_| used[random.below(used.len() as u64) as usize])
        .collect()
}

/// Blocks of a drive that the metadata region may have in these pools.
fn meta(image: &Image) -> std::ops::Range<u64> {
    2 * LABEL..(2 * LABEL + 4096).min(image.blocks() - 2 * LABEL)
}

/// Damages one drive; says how.
fn damage(images: &mut Vec<Image>, random: &mut Random) -> &'static str {
    let index = random.below(images.len() as u64) as usize;
    let image = &images[index];
    let blocks = image.blocks();
    let inner = 2 * LABEL..blocks - 2 * LABEL;
    match random.below(9) {
        0 | 1 => {
            for block in some(image, inner, 20, random) {
                let mut bytes = image.block(block);
                bytes[random.below(4096) as usize] ^= 1 << random.below(8);
                image.set_block(block, bytes);
            }
            "flipped bits"
        }
        2 => {
            for block in some(image, inner, 20, random) {
                spoil(image, block, random);
            }
            "spoiled blocks"
        }
        3 | 4 => {
            for block in some(image, meta(image), 10, random) {
                spoil(image, block, random);
            }
            "spoiled blocks of metadata"
        }
        5 => {
            let slot = [0, LABEL, blocks - 2 * LABEL, blocks - LABEL][random.below(4) as usize];
            spoil(image, slot, random);
            "torn labels"
        }
        6 => {
            let first = inner.start + random.below(inner.end - inner.start - 256);
            for block in first..first + 1 + random.below(256) {
                spoil(image, block, random);
            }
            "spoiled ranges"
        }
        7 => {
            for block in used(image, inner) {
                image.set_block(block, vec![0; 4096]);
            }
            "emptied drives"
        }
        _ if images.len() > 1 => {
            images.remove(index);
            "missing drives"
        }
        _ => "nothing",
    }
}

struct Read {
    blocks: Readable,
    /// Volumes' blocks that may be older than what was written last.
    doubtful: BTreeSet<(String, u64)>,
    /// Part of the journal or a checkpoint is lost, or may be: anything may be older.
    all_doubtful: bool,
}

async fn read_all(handle: &Handle, images: &[Image]) -> Option<Read> {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    let pool = Pool::open(handle, &drives).await.ok()?;
    let mut read = Read {
        blocks: Readable::new(),
        doubtful: BTreeSet::new(),
        all_doubtful: false,
    };
    let names: Vec<String> = pool
        .config()
        .volumes
        .iter()
        .map(|volume| volume.name.clone())
        .collect();
    for name in names {
        let inspection = Inspection::new(&pool, Mode::Look, false, &|_| ());
        let mut sink = |offset: u64, bytes: &[u8]| {
            read.blocks
                .insert((name.clone(), offset / 4096), bytes.to_vec());
            Ok(())
        };
        let restored = restore_volume(&inspection, &name, &mut sink).await.ok()?;
        let older = restored.perhaps_older.iter();
        let older = older.flat_map(|range| range.offset / 4096..(range.offset + range.len) / 4096);
        read.doubtful
            .extend(older.map(|block| (name.clone(), block)));
        read.all_doubtful |= !restored.journals_cut.is_empty();
        read.all_doubtful |= inspection.report.borrow().verdict == Verdict::Lost;
    }
    Some(read)
}

async fn look(handle: &Handle, images: &[Image], mode: Mode) -> Option<Report> {
    let drives: Vec<_> = images.iter().map(Image::drive).collect();
    inspect_drives(handle, &drives, mode, Options { data: true }, &|_| ())
        .await
        .ok()
}

/// Whether the engine opens the pool, on a copy of the drives.
async fn opens(handle: &Handle, images: &[Image]) -> bool {
    let copies: Vec<Image> = images.iter().map(Image::copy).collect();
    let drives: Vec<_> = copies.iter().map(Image::drive).collect();
    let Ok(pool) = Pool::open(handle, &drives).await else {
        return false;
    };
    if pool.config().drives.len() != images.len() || !pool.unlabelled.is_empty() {
        return false;
    }
    let members: Vec<_> = pool
        .disks
        .iter()
        .zip(&drives)
        .filter_map(|(disk, drive)| Some((disk.newest()?.drive, drive.clone())))
        .collect();
    let memory = EngineConfig {
        ram_tier: 1 << 20,
        map_cache: 4 << 20,
        ..EngineConfig::default()
    };
    Harness::open(handle, pool.id, pool.config(), &members, &memory)
        .await
        .is_ok()
}

async fn one(handle: &Handle, base: &Made, random: &mut Random, tally: &mut Tally) {
    let mut images = base.copy();
    for _ in 0..1 + random.below(4) {
        *tally
            .damages
            .entry(damage(&mut images, random))
            .or_default() += 1;
    }
    tally.pools += 1;
    let Some(before) = read_all(handle, &images).await else {
        tally.unreadable += 1;
        return;
    };
    let opened = opens(handle, &images).await;
    let checked = look(handle, &images, Mode::Look)
        .await
        .expect("it was read before");
    tally.before[checked.verdict as usize] += 1;
    let mended = look(handle, &images, Mode::Mend)
        .await
        .expect("it was read before");
    assert_eq!(
        mended.mends, checked.mends,
        "a repair does what the dry run said"
    );
    tally.mended += mended.mend_count();
    let left = look(handle, &images, Mode::Look)
        .await
        .expect("it was read before");
    assert_eq!(
        left.mend_count(),
        0,
        "a second repair has nothing to do: {left:#?}"
    );
    assert!(left.verdict <= checked.verdict, "{checked:#?}\n{left:#?}");
    tally.after[left.verdict as usize] += 1;
    let after = read_all(handle, &images).await.expect("it was read before");
    tally.readable += before.blocks.len() as u64;
    for (key, bytes) in &before.blocks {
        if after.blocks.get(key) != Some(bytes) {
            tally.lost_by_repair += 1;
        }
    }
    for key in after.blocks.keys() {
        tally.won += u64::from(!before.blocks.contains_key(key));
    }
    let (opens_now, closed) = (opens(handle, &images).await, opened);
    tally.opens_before += u64::from(opened);
    tally.opens_after += u64::from(opens_now);
    tally.closed_by_repair += u64::from(closed && !opens_now);
    for read in [before, after] {
        for ((name, block), bytes) in &read.blocks {
            let key = (name.clone(), *block);
            let right = base.volumes[name].1.get(block) == Some(bytes);
            if !right && !read.all_doubtful && !read.doubtful.contains(&key) {
                tally.wrong += 1;
            }
        }
    }
}

/// Damages and repairs `pools` pools.
pub fn run(pools: u64, seed: u64) -> Tally {
    let bases: Vec<Made> = SHAPES
        .into_iter()
        .zip(seed..)
        .map(|(shape, seed)| made(shape, seed))
        .collect();
    let reactor = Reactor::new(seed).unwrap();
    let handle = reactor.handle().clone();
    let ended = reactor.block_on(async move {
        let mut tally = Tally::default();
        for index in 0..pools {
            let base = &bases[index as usize % bases.len()];
            let mut random = Random(seed << 32 | index);
            one(&handle, base, &mut random, &mut tally).await;
        }
        tally
    });
    ended.unwrap()
}
