//! Other values in the structures of a pool, under right checksums.

use super::disk::Disk;
use super::label;
use crate::random::Random;
use format::{
    BlockMask, Checkpoint, Few, JournalHeader, JournalPage, Label, NodePage, PAGE, Page, PageKind,
    PagePtr, PoolConfig, Record, VolumePage, checkpoint_block, crc32c, journal_start,
};
use std::collections::BTreeSet;
use units::{BLOCK, Place, ShardId};

/// Bytes of a page that nothing uses, and that make its checksum what it was.
const SPARE: std::ops::Range<usize> = 60..64;
const BODY: usize = 64;
/// Fields of a chunk's page: the home, the blocks that are valid there, checksums, slots, epochs.
const HOME: usize = 64;
const HOME_VALID: std::ops::Range<usize> = 72..104;
const SLOTS: usize = 128 + 4 * 256;
const FROM: usize = SLOTS + 6 * 256;
/// Pages of one pool that are examined, and levels of a tree.
const PAGES: usize = 4096;

/// A page of a tree: its block in the metadata region, its checksum, and what it is.
struct Known {
    block: u64,
    crc: u32,
    kind: PageKind,
}

/// A pool's drives, and what its newest label says.
pub struct Pool<'a> {
    disks: &'a [Disk],
    label: Label,
    /// The metadata region's parts: a drive, and the first block there.
    meta: Vec<(usize, u64)>,
}

impl<'a> Pool<'a> {
    /// The pool on these drives.
    pub fn of(disks: &'a [Disk]) -> Option<Self> {
        let labels: Vec<Option<Label>> = disks.iter().map(label::newest).collect();
        let newest = labels.iter().flatten().max_by_key(|label| label.generation);
        let newest = newest?.clone();
        let meta = newest.config.meta.parts.iter().filter_map(|part| {
            let bears = |label: &Option<Label>| {
                let id = label.as_ref().map(|label| label.drive.to_string());
                id.as_ref() == Some(&part.drive)
            };
            let disk = labels.iter().position(bears)?;
            Some((disk, part.offset / BLOCK as u64))
        });
        Some(Self {
            meta: meta.collect(),
            label: newest,
            disks,
        })
    }

    fn config(&self) -> &PoolConfig {
        &self.label.config
    }

    fn read(&self, block: u64) -> [u8; PAGE] {
        let mut bytes = [0; PAGE];
        if let Some((disk, first)) = self.meta.first() {
            self.disks[*disk].read(first.saturating_add(block), &mut bytes);
        }
        bytes
    }

    fn write(&self, block: u64, bytes: &[u8]) {
        for (disk, first) in &self.meta {
            self.disks[*disk].write(first + block, bytes);
        }
    }

    fn checkpoint(&self, shard: u16) -> Option<Checkpoint> {
        let slots = (0..2).map(|generation| self.read(checkpoint_block(shard, generation)));
        let found =
            slots.filter_map(|bytes| Checkpoint::decode(&bytes, self.label.pool, ShardId(shard)));
        found.max_by_key(|found| found.generation)
    }

    /// The pages of a shard's trees.
    fn pages(&self, checkpoint: &Checkpoint) -> Vec<Known> {
        let mut todo = vec![checkpoint.directory, checkpoint.slots, checkpoint.homes];
        let (mut known, mut seen) = (Vec::new(), BTreeSet::new());
        while let Some(ptr) = todo.pop() {
            let block = ptr.place.block();
            if ptr.place.is_none() || known.len() >= PAGES || !seen.insert(block) {
                continue;
            }
            let bytes = self.read(block);
            let Some(page) = Page::found(&bytes) else {
                continue;
            };
            let Some(header) = page.header() else {
                continue;
            };
            match header.kind {
                PageKind::Node => {
                    let used = NodePage::used(&page).blocks();
                    todo.extend(used.map(|at| NodePage::get(&page, at)));
                }
                PageKind::Volume => todo.push(VolumePage::decode(&page).0),
                _ => {}
            }
            known.push(Known {
                block,
                crc: ptr.crc,
                kind: header.kind,
            });
        }
        known
    }

    /// Blocks of a vdrive; 0 is the metadata region.
    fn blocks_of(&self, vdrive: u8) -> u64 {
        let config = self.config();
        let parts = match vdrive {
            0 => Some(&config.meta.parts),
            _ => {
                let mut vdrives = config.vdrives.iter();
                let found = vdrives.find(|known| known.id == vdrive);
                found.map(|known| &known.parts)
            }
        };
        parts.map_or(1 << 20, |parts| parts.iter().map(|part| part.blocks).sum())
    }

    /// Some place, mostly one that no pool has.
    fn place(&self, random: &mut Random) -> Place {
        let vdrive = *random.pick(&[0u8, 1, 1, 2, 2, 2, 3, 255]);
        let blocks = self.blocks_of(vdrive);
        let last = (1u64 << Place::BLOCK_BITS) - 1;
        let within = random.below(blocks.max(1));
        let some = [
            0,
            1,
            blocks.saturating_sub(1),
            blocks,
            blocks + 1,
            blocks.saturating_sub(255),
            blocks.next_multiple_of(256),
            blocks * 2,
            within,
            within / 256 * 256,
            last,
            last - 255,
            last - 256,
            random.below(last),
        ];
        Place::from_bits(u64::from(vdrive) << Place::BLOCK_BITS | *random.pick(&some))
    }

    /// Changes something of the pool.
    pub fn forge(&self, random: &mut Random) {
        let shard = random.below(u64::from(self.config().shards)) as u16;
        let Some(checkpoint) = self.checkpoint(shard) else {
            return label::forge(self.disks, random);
        };
        match random.below(16) {
            0..=1 => label::forge(self.disks, random),
            2 => self.forge_checkpoint(checkpoint, random),
            3..=6 => self.forge_journal(&checkpoint, random),
            _ => self.forge_page(&checkpoint, random),
        }
    }

    /// Changes all pages of a kind in the same way; returns how many there are.
    #[cfg(test)]
    pub fn change_all(&self, kind: PageKind, change: impl Fn(&mut [u8; PAGE])) -> usize {
        let shards = 0..self.config().shards;
        let checkpoints = shards.filter_map(|shard| self.checkpoint(shard));
        let pages = checkpoints.flat_map(|checkpoint| self.pages(&checkpoint));
        let pages: Vec<Known> = pages.filter(|page| page.kind == kind).collect();
        for known in &pages {
            let mut bytes = self.read(known.block);
            change(&mut bytes);
            restore_crc(&mut bytes, known.crc);
            self.write(known.block, &bytes);
        }
        pages.len()
    }

    /// Adds a record to the end of a shard's journal, which counts.
    #[cfg(test)]
    pub fn add_record(&self, record: &Record) {
        let checkpoint = self.checkpoint(0).expect("a checkpoint");
        self.append(&checkpoint, &[vec![record.clone()], Vec::new()], None);
    }

    fn forge_page(&self, checkpoint: &Checkpoint, random: &mut Random) {
        let pages = self.pages(checkpoint);
        let kinds = [
            PageKind::Chunk,
            PageKind::Chunk,
            PageKind::Chunk,
            PageKind::Node,
            PageKind::Volume,
            PageKind::Slots,
            PageKind::Homes,
        ];
        let kind = *random.pick(&kinds);
        let of_kind: Vec<&Known> = pages.iter().filter(|page| page.kind == kind).collect();
        if of_kind.is_empty() {
            return;
        }
        let known = *random.pick(&of_kind);
        let mut bytes = self.read(known.block);
        for _ in 0..random.within(1..=3) {
            match (random.below(10), kind) {
                (0, _) => {
                    let at = random.below(PAGE as u64 / 8) as usize * 8;
                    put(&mut bytes, at, &number(random).to_le_bytes());
                }
                (1, _) => {
                    let (at, len) = *random.pick(&[(4, 1), (5, 1), (8, 4), (12, 4), (16, 8)]);
                    put(&mut bytes, at, &number(random).to_le_bytes()[..len]);
                }
                (_, PageKind::Chunk) => self.forge_chunk(&mut bytes, random),
                (_, PageKind::Node) => self.forge_node(&mut bytes, &pages, random),
                (_, PageKind::Volume) => self.forge_volume(&mut bytes, &pages, random),
                _ => {
                    let at = BODY + 8 * random.below(256) as usize;
                    put(&mut bytes, at, &number(random).to_le_bytes());
                }
            }
        }
        restore_crc(&mut bytes, known.crc);
        self.write(known.block, &bytes);
    }

    fn forge_chunk(&self, bytes: &mut [u8; PAGE], random: &mut Random) {
        let first = random.below(256) as usize;
        let count = *random.pick(&[1, 16, 256 - first]);
        let blocks = first..(first + count).min(256);
        match random.below(6) {
            0 => {
                let home = self.place(random);
                put(bytes, HOME, &home.bits().to_le_bytes());
                let valid = *random.pick(&[0xff, 0x01]);
                bytes[HOME_VALID].fill(valid);
            }
            1 => put(bytes, HOME, &number(random).to_le_bytes()),
            2 => {
                let from = number(random) as u32;
                for block in blocks {
                    put(bytes, FROM + 4 * block, &from.to_le_bytes());
                }
            }
            3 => {
                let valid = number(random) as u8;
                bytes[HOME_VALID].fill(valid);
            }
            4 => {
                // Two blocks in one place.
                let other = random.below(256) as usize;
                let slot: [u8; 6] = bytes[SLOTS + 6 * other..][..6].try_into().expect("a slot");
                put(bytes, SLOTS + 6 * first, &slot);
            }
            _ => {
                let slot = self.place(random);
                let grows = random.one_in(2);
                for (index, block) in blocks.enumerate() {
                    let more = if grows { index as u64 } else { 0 };
                    let slot = Place::from_bits(slot.bits().wrapping_add(more));
                    put(bytes, SLOTS + 6 * block, &slot.bits().to_le_bytes()[..6]);
                }
            }
        }
    }

    fn forge_node(&self, bytes: &mut [u8; PAGE], pages: &[Known], random: &mut Random) {
        let used: Vec<usize> = (0..256)
            .filter(|at| PagePtr::decode(bytes, BODY + 12 * at).place.is_some())
            .collect();
        let at = match random.one_in(3) || used.is_empty() {
            true => random.below(256) as usize,
            false => *random.pick(&used),
        };
        self.ptr(pages, random).encode(bytes, BODY + 12 * at);
    }

    fn forge_volume(&self, bytes: &mut [u8; PAGE], pages: &[Known], random: &mut Random) {
        match random.one_in(4) {
            true => self.ptr(pages, random).encode(bytes, BODY),
            false => {
                let at = BODY + 16 + 8 * random.below(4) as usize;
                put(bytes, at, &number(random).to_le_bytes());
            }
        }
    }

    /// A pointer: to some page of the pool with its checksum, or to where none is.
    fn ptr(&self, pages: &[Known], random: &mut Random) -> PagePtr {
        let known = random.pick(pages);
        let vdrive = u64::from(random.one_in(8)) << Place::BLOCK_BITS;
        PagePtr {
            place: match random.one_in(2) {
                true => Place::from_bits(vdrive | known.block),
                false => self.place(random),
            },
            crc: known.crc,
            hint: number(random) as u16,
        }
    }

    fn forge_checkpoint(&self, checkpoint: Checkpoint, random: &mut Random) {
        let pages = self.pages(&checkpoint);
        let mut forged = checkpoint;
        for _ in 0..random.within(1..=2) {
            match random.below(6) {
                0 => forged.generation = number(random).max(checkpoint.generation),
                1 => forged.epoch = number(random),
                2 => forged.journal_from = number(random),
                _ if pages.is_empty() => {}
                3 => forged.directory = self.ptr(&pages, random),
                4 => forged.slots = self.ptr(&pages, random),
                _ => forged.homes = self.ptr(&pages, random),
            }
        }
        let block = checkpoint_block(checkpoint.shard.0, forged.generation);
        self.write(block, &forged.encode());
        // What an older one says is not to hide it.
        let other = checkpoint_block(checkpoint.shard.0, forged.generation.wrapping_add(1));
        if forged.generation == checkpoint.generation || random.one_in(4) {
            self.write(other, &[0; PAGE]);
        }
        self.forge_journal(&forged, random);
    }

    /// Adds records to the end of a journal.
    fn forge_journal(&self, checkpoint: &Checkpoint, random: &mut Random) {
        let count = random.within(1..=3);
        let durable = match random.below(4) {
            0 => Some(0),
            1 => Some(number(random)),
            _ => None,
        };
        let mut records = || {
            let count = random.within(1..=4);
            (0..count).map(|_| self.record(random)).collect()
        };
        let pages: Vec<Vec<Record>> = (0..count).map(|_| records()).collect();
        self.append(checkpoint, &pages, durable);
    }

    /// Adds pages of records to the end of a journal, with a durable mark; none: all count.
    fn append(&self, checkpoint: &Checkpoint, pages: &[Vec<Record>], durable: Option<u64>) {
        let config = self.config();
        let ring = config.meta.journal_blocks;
        let (pool, shard) = (self.label.pool, checkpoint.shard);
        let base = journal_start(config.shards, shard.0, ring);
        let mut next = checkpoint.journal_from;
        for _ in 0..ring {
            let bytes = self.read(base + next % ring);
            let header = JournalHeader::read(&bytes, pool, shard);
            let follows =
                |header: JournalHeader| header.epoch == checkpoint.epoch && header.sequence == next;
            if !header.is_some_and(follows) {
                break;
            }
            next = next.wrapping_add(1);
        }
        let durable = durable.unwrap_or(next.wrapping_add(pages.len() as u64));
        for (index, records) in (0u64..).zip(pages) {
            let mut page = JournalPage::new();
            for record in records {
                page.push(record);
            }
            let header = JournalHeader {
                pool,
                shard,
                epoch: checkpoint.epoch,
                sequence: next.wrapping_add(index),
                durable_below: durable,
            };
            let mut bytes = [0; PAGE];
            page.seal(header, &mut bytes);
            self.write(base + header.sequence % ring, &bytes);
        }
    }

    fn record(&self, random: &mut Random) -> Record {
        let config = self.config();
        let known = config.volumes.iter().map(|volume| volume.id);
        let known: Vec<u32> = known
            .chain(config.layers.iter().map(|layer| layer.id))
            .collect();
        let layer = |random: &mut Random| match random.below(6) {
            0 => number(random) as u32,
            _ if known.is_empty() => 1,
            _ => *random.pick(&known),
        };
        let volume = layer(random);
        let chunk = match random.below(6) {
            0 => number(random) as u32,
            _ => *random.pick(&[0u32, 1, 2, 3, 256]),
        };
        let first = random.below(256) as u8;
        let most = 256 - usize::from(first);
        let count = (*random.pick(&[1usize, 2, 16, 100])).min(most);
        let count16 = count as u16;
        let place = self.place(random);
        let olds = match random.below(3) {
            0 => Few::new(),
            _ => (0..count).map(|_| self.place(random)).collect(),
        };
        match random.below(7) {
            0 => Record::Write {
                volume,
                chunk,
                first,
                slot: place,
                crcs: (0..count).map(|_| crc32c(&[0; BLOCK])).collect(),
                old: olds,
            },
            1 => Record::Trim {
                volume,
                chunk,
                first,
                count: count16,
                old: olds,
            },
            2 => Record::Promote {
                volume,
                chunk,
                first,
                count: count16,
                slot: place,
            },
            3 => {
                let mask = BlockMask::of(usize::from(first), count);
                let old = mask.blocks().map(|_| self.place(random)).collect();
                Record::Evict {
                    volume,
                    chunk,
                    mask,
                    old,
                }
            }
            4 => Record::Home {
                volume,
                chunk,
                home: place,
                mask: BlockMask::of(usize::from(first), count),
            },
            5 => Record::MoveHome {
                volume,
                chunk,
                new: self.place(random),
                old: place,
            },
            _ => Record::Merge {
                volume,
                chunk,
                lower: layer(random),
            },
        }
    }
}

/// A number: small, large, or where some field ends.
pub fn number(random: &mut Random) -> u64 {
    let some = [
        0,
        1,
        2,
        255,
        256,
        0xffff,
        0x7fff_ffff,
        0xffff_ffff,
        1 << 32,
        1 << 40,
        (1 << 48) - 1,
        i64::MAX as u64,
        u64::MAX - 1,
        u64::MAX,
        u64::MAX,
        random.next() % 1000,
        random.next(),
        1 << random.below(64),
    ];
    *random.pick(&some)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    let end = (at + value.len()).min(bytes.len());
    bytes[at..end].copy_from_slice(&value[..end - at]);
}

/// Sets the spare bytes of a page so that its checksum is `wanted`: the checksum is linear in them.
fn restore_crc(bytes: &mut [u8; PAGE], wanted: u32) {
    bytes[SPARE].fill(0);
    let mut rest = crc32c(&bytes[..]) ^ wanted;
    let zero = [0; PAGE];
    let plain = crc32c(&zero);
    // A basis of what single bits do, each with the bits that do it, by its highest bit.
    let mut basis = [(0u32, 0u32); 32];
    for bit in 0..32 {
        let mut one = zero;
        one[SPARE].copy_from_slice(&(1u32 << bit).to_le_bytes());
        let (mut effect, mut bits) = (crc32c(&one) ^ plain, 1 << bit);
        while effect != 0 {
            let highest = effect.ilog2() as usize;
            if basis[highest].0 == 0 {
                basis[highest] = (effect, bits);
                break;
            }
            effect ^= basis[highest].0;
            bits ^= basis[highest].1;
        }
    }
    let mut spare = 0;
    while rest != 0 {
        let (effect, bits) = basis[rest.ilog2() as usize];
        assert!(effect != 0, "the spare bits reach every checksum");
        rest ^= effect;
        spare ^= bits;
    }
    bytes[SPARE].copy_from_slice(&spare.to_le_bytes());
}
