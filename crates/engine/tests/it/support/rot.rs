//! Bits that turn over on drives in memory, and what a pool makes of it.
//!
//! A pool is made, filled, and closed in order; its drives are the image. Each try turns some bits
//! of the image over, opens the pool, scrubs it, reads everything, and puts the image back.

use super::memory::{MemoryDrive, attach, detach};
use super::{BLOCK, Client, MIB, Random, pattern, pool, vdrive, volume, wait_job, wait_status};
use block::ErrorKind;
use engine::{Engine, EngineConfig, LayoutSpec, ScrubSpec, ScrubStatus, Tier};
use std::collections::{BTreeMap, BTreeSet};

/// MiB of each drive.
const DRIVE: u64 = 48;
const VOLUME: u64 = 24;
const READ: u64 = 16 * BLOCK;

/// What became of the flips.
#[derive(Default, Debug)]
pub struct Tally {
    /// Bits turned over.
    pub flips: u64,
    /// Of those, in blocks that hold a volume's data.
    pub in_data: u64,
    /// Bytes that are as they were again.
    pub mended: u64,
    /// Bytes that were written again with something else: pages, labels, journals.
    pub rewritten: u64,
    /// Bytes that are still wrong, in space that nothing needs, or without a copy.
    pub left: u64,
    /// Copies that the pool counted as repaired from another one, and those that it could not repair.
    pub counted: u64,
    /// Blocks of the volume that gave an I/O error.
    pub errors: u64,
    /// Openings.
    pub openings: u64,
}

/// A pool on drives that rot.
pub struct Scene {
    engine: Engine,
    drives: Vec<MemoryDrive>,
    images: Vec<Vec<u8>>,
    /// The volume's block that a block of a drive holds.
    holds: BTreeMap<(usize, u64), u64>,
    mirrored: bool,
    random: Random,
}

fn wanted(block: u64) -> Vec<u8> {
    pattern(block + 1, BLOCK as usize)
}

impl Scene {
    /// Four drives of 48 MiB: two fast, two slow, mirrors or one after the other. The metadata lies
    /// on both fast ones in any case. `in_place`: they are memory, which the engine reads and writes itself.
    pub fn new(mirrored: bool, in_place: bool, seed: u64) -> Self {
        let engine = Engine::start(&EngineConfig {
            threads: 1,
            ram_tier: 1 << 20,
            map_cache: 1 << 20,
            journal_blocks: Some(256),
            meta_groups: None,
            ..EngineConfig::default()
        })
        .unwrap();
        let name = match (mirrored, in_place) {
            (true, true) => "p",
            (true, false) => "m",
            (false, _) => "c",
        };
        let drives = (0..4).map(|number| MemoryDrive::new(&format!("rot:{name}{number}"), DRIVE));
        let drives: Vec<_> = match in_place {
            true => drives.map(MemoryDrive::in_place).collect(),
            false => drives.collect(),
        };
        attach(&drives);
        let specs: Vec<String> = drives.iter().map(|drive| drive.spec().to_owned()).collect();
        let layout = || match mirrored {
            true => LayoutSpec::Mirror,
            false => LayoutSpec::Concat,
        };
        let vdrives = vec![
            vdrive(Tier::Fast, layout(), &specs[..2]),
            vdrive(Tier::Slow, layout(), &specs[2..]),
        ];
        engine.pool_create(&pool("p", 1, vdrives)).unwrap();
        detach(&drives);
        engine.volume_create("p", &volume("v", VOLUME)).unwrap();
        let client = Client::open(&engine, "p", "v");
        for first in (0..VOLUME * MIB / BLOCK).step_by(16) {
            let bytes: Vec<u8> = (first..first + 16).flat_map(wanted).collect();
            client.write(first * BLOCK, &bytes).unwrap();
        }
        client.flush().unwrap();
        drop(client);
        if mirrored {
            // On both tiers of every drive.
            let settled = |status: &engine::PoolStatus| {
                status.fast_dirty == 0 && status.fast_shadow == VOLUME * MIB
            };
            wait_status(&engine, "p", settled);
        } else {
            // One copy of each block, at home.
            engine.pool_cool("p").unwrap();
        }
        engine.pool_export("p").unwrap();
        let mut scene = Self {
            engine,
            images: drives.iter().map(|drive| drive.image()).collect(),
            drives,
            holds: BTreeMap::new(),
            mirrored,
            random: Random(seed | 1),
        };
        scene.look();
        scene.drives.iter().for_each(MemoryDrive::forget_written);
        scene
    }

    /// Finds what each block of the drives holds.
    fn look(&mut self) {
        let known: BTreeMap<Vec<u8>, u64> = (0..VOLUME * MIB / BLOCK)
            .map(|block| (wanted(block)[..32].to_vec(), block))
            .collect();
        // What has been demoted leaves free slots behind that still look like it.
        let stale = |drive: usize| !self.mirrored && drive < 2;
        let images = self.images.iter().enumerate();
        for (drive, image) in images.filter(|(drive, _)| !stale(*drive)) {
            for (at, bytes) in image.chunks_exact(BLOCK as usize).enumerate() {
                if let Some(block) = known.get(&bytes[..32]) {
                    assert!(bytes == wanted(*block));
                    self.holds.insert((drive, at as u64), *block);
                }
            }
        }
    }

    /// Places in different blocks, so that no block loses both its copies.
    fn choose(&mut self, count: u64) -> Vec<(usize, u64, u8)> {
        let mut chosen = Vec::new();
        let mut taken = BTreeSet::new();
        while chosen.len() < count as usize {
            let drive = self.random.below(4) as usize;
            let byte = self.random.below(DRIVE * MIB);
            let bit = self.random.below(8) as u8;
            let data = self.holds.get(&(drive, byte / BLOCK));
            let new = match (data, self.mirrored) {
                // A volume's block has one place on each tier, or one in all.
                (Some(block), _) => taken.insert((4, *block)),
                (None, _) => taken.insert((drive / 2, byte / BLOCK)),
            };
            if new {
                chosen.push((drive, byte, bit));
            }
        }
        chosen
    }

    fn scrub(&self) -> ScrubStatus {
        let spec = ScrubSpec {
            rate: 1 << 40,
            began_s: 1,
        };
        let job = self.engine.pool_scrub("p", &spec).unwrap();
        assert_eq!(wait_job(&self.engine, job), ("done".into(), String::new()));
        self.engine.pool_scrub_status("p").unwrap()
    }

    /// The volume's blocks that cannot be read; all others are right.
    fn read_all(&self) -> BTreeSet<u64> {
        let client = Client::open(&self.engine, "p", "v");
        let mut failed = BTreeSet::new();
        for offset in (0..VOLUME * MIB).step_by(READ as usize) {
            let first = offset / BLOCK;
            let right: Vec<u8> = (first..first + 16).flat_map(wanted).collect();
            match client.read(offset, READ as usize) {
                Ok(bytes) => assert!(bytes == right, "wrong data at {offset}"),
                Err(_) => {
                    for block in first..first + 16 {
                        match client.read(block * BLOCK, BLOCK as usize) {
                            Ok(bytes) => assert!(bytes == wanted(block), "wrong data"),
                            Err(error) => {
                                assert_eq!(error.kind, ErrorKind::Medium, "{error}");
                                failed.insert(block);
                            }
                        }
                    }
                }
            }
        }
        failed
    }

    /// Turns `count` bits over, examines what becomes of them, and puts everything back.
    pub fn round(&mut self, count: u64, tally: &mut Tally) {
        let flips = self.choose(count);
        for (drive, byte, bit) in &flips {
            self.drives[*drive].flip(*byte, *bit);
        }
        let specs: Vec<String> = self
            .drives
            .iter()
            .map(|drive| drive.spec().to_owned())
            .collect();
        attach(&self.drives);
        self.engine.pool_import(&specs, "p", false).unwrap();
        detach(&self.drives);
        let scrub = self.scrub();
        let failed = self.read_all();
        let again = self.scrub();
        let lost: BTreeSet<u64> = flips
            .iter()
            .filter_map(|(drive, byte, _)| self.holds.get(&(*drive, byte / BLOCK)))
            .copied()
            .filter(|_| !self.mirrored)
            .collect();
        assert_eq!(failed, lost, "exactly the blocks without a right copy");
        assert_eq!(scrub.lost, lost.len() as u64, "{scrub:?}");
        assert_eq!(
            (again.errors, again.lost),
            (scrub.lost, scrub.lost),
            "{again:?}"
        );
        let status = self.engine.pool_status("p").unwrap();
        let drives = status.vdrives.iter().flat_map(|vdrive| &vdrive.drives);
        let counted = scrub.lost + drives.map(|drive| drive.repaired).sum::<u64>();
        self.engine.pool_export("p").unwrap();
        for (drive, byte, bit) in &flips {
            tally.flips += 1;
            let was = self.images[*drive][*byte as usize];
            let is = self.drives[*drive].byte(*byte);
            let data = self.holds.get(&(*drive, byte / BLOCK));
            tally.in_data += u64::from(data.is_some());
            match is {
                same if same == was => tally.mended += 1,
                wrong if wrong == was ^ 1 << bit => tally.left += 1,
                _ => tally.rewritten += 1,
            }
            assert!(
                data.is_none() || !self.mirrored || is == was,
                "a copy is not mended"
            );
        }
        tally.counted += counted;
        tally.errors += failed.len() as u64;
        tally.openings += 1;
        for (drive, image) in self.drives.iter().zip(&self.images) {
            drive.restore(image);
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}
