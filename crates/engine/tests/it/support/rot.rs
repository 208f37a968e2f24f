//! Bits that turn over on drives in memory, and what a pool makes of it.
//!
//! A pool is made, filled, and closed in order; its drives are the image. Each try turns some bits
//! of the image over, opens the pool, scrubs it, reads everything, and puts the image back.

use super::{BLOCK, Client, MIB, Random, pattern, pool, vdrive, volume, wait_job, wait_status};
use block::{
    Drive, DriveError, DriveIo, DriveIoKind, DriveQueue, ErrorKind, Lent, Rotation, Shown,
};
use drives::OpenDrive;
use engine::{Engine, EngineConfig, LayoutSpec, ScrubSpec, ScrubStatus, Tier};
use reactor::Handle;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

const VOLUME: u64 = 24;
const READ: u64 = 16 * BLOCK;

#[derive(Default)]
struct Medium {
    bytes: Vec<u8>,
    written: BTreeSet<u64>,
    /// Blocks of which the next read fails.
    fails_once: BTreeSet<u64>,
    fails_flushes: bool,
    /// A write of a block with this content fails.
    fails_write_of: Option<Vec<u8>>,
    /// All of it, as it was when the next checkpoint's record came.
    before_record: Option<Vec<u8>>,
}

/// A drive in memory whose bytes can be looked at and changed.
#[derive(Clone)]
pub struct Rotting {
    spec: String,
    size: u64,
    in_place: bool,
    medium: Arc<Mutex<Medium>>,
}

impl Rotting {
    /// It is read and written in place from here on.
    pub fn in_place(self) -> Self {
        Self {
            in_place: true,
            ..self
        }
    }

    /// An empty one.
    pub fn new(spec: &str, mib: u64) -> Self {
        let medium = Medium {
            bytes: vec![0; (mib * MIB) as usize],
            ..Medium::default()
        };
        Self {
            spec: spec.to_owned(),
            size: mib * MIB,
            in_place: false,
            medium: Arc::new(Mutex::new(medium)),
        }
    }

    /// The next read of each block that was written fails; returns how many those are.
    pub fn fail_once(&self) -> usize {
        let mut medium = self.medium();
        medium.fails_once = medium.written.clone();
        medium.fails_once.len()
    }

    /// No flush succeeds from here on.
    pub fn fail_flushes(&self) {
        self.medium().fails_flushes = true;
    }

    /// Writes that have a block with this content fail, until the next call.
    pub fn fail_write_of(&self, content: Option<Vec<u8>>) {
        self.medium().fails_write_of = content;
    }

    /// Empties the blocks that are `wanted`; returns how many.
    pub fn empty(&self, wanted: impl Fn(&[u8]) -> bool) -> usize {
        let mut medium = self.medium();
        let blocks = medium.bytes.chunks_exact_mut(BLOCK as usize);
        blocks
            .filter_map(|block| wanted(block).then(|| block.fill(0)))
            .count()
    }

    /// Forgets what [`Self::before_record`] tells: the next checkpoint counts.
    pub fn await_record(&self) {
        self.medium().before_record = None;
    }

    /// All bytes, as they were when the first record of a checkpoint came since [`Self::await_record`].
    pub fn before_record(&self) -> Option<Vec<u8>> {
        self.medium().before_record.clone()
    }

    fn medium(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap()
    }

    fn image(&self) -> Vec<u8> {
        self.medium().bytes.clone()
    }

    /// Everything that was written since the last time is as in `image` again.
    fn restore(&self, image: &[u8]) {
        let mut medium = self.medium();
        for block in std::mem::take(&mut medium.written) {
            let at = (block * BLOCK) as usize;
            medium.bytes[at..at + BLOCK as usize].copy_from_slice(&image[at..at + BLOCK as usize]);
        }
    }

    fn flip(&self, byte: u64, bit: u8) {
        let mut medium = self.medium();
        medium.bytes[byte as usize] ^= 1 << bit;
        medium.written.insert(byte / BLOCK);
    }
}

impl Drive for Rotting {
    fn info(&self) -> block::DriveInfo {
        block::DriveInfo {
            spec: self.spec.clone(),
            size: self.size,
            logical_sector: 512,
            physical_sector: 4096,
            rotation: Rotation::Solid,
            write_cache: false,
            persistent: true,
        }
    }
}

impl OpenDrive for Rotting {
    fn queue(&self, _: &Handle) -> std::io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(Queue {
            medium: self.medium.clone(),
            in_place: self.in_place,
        }))
    }
}

struct Queue {
    medium: Arc<Mutex<Medium>>,
    in_place: bool,
}

impl DriveQueue for Queue {
    fn submit(&self, mut io: DriveIo) {
        let mut medium = self.medium.lock().unwrap();
        let range = io.offset as usize..(io.offset + io.len) as usize;
        let blocks = io.offset / BLOCK..(io.offset + io.len).div_ceil(BLOCK);
        let mut failed = io.kind == DriveIoKind::Flush && medium.fails_flushes;
        if io.kind == DriveIoKind::Read {
            for block in blocks.clone() {
                failed |= medium.fails_once.remove(&block);
            }
        }
        match (io.kind, &mut io.buf) {
            (DriveIoKind::Read, Some(buf)) => buf.copy_from_slice(&medium.bytes[range]),
            (DriveIoKind::Write, Some(buf)) => {
                let bad = medium.fails_write_of.as_deref();
                failed |= bad.is_some_and(|bad| buf.chunks(bad.len()).any(|block| block == bad));
                if buf.starts_with(b"CVCP") && medium.before_record.is_none() {
                    medium.before_record = Some(medium.bytes.clone());
                }
                medium.bytes[range].copy_from_slice(buf);
                medium.written.extend(blocks);
            }
            _ => {}
        }
        drop(medium);
        let result = match failed {
            true => Err(DriveError::Os(5)),
            false => Ok(()),
        };
        io.done.send((io.buf, result));
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn is_in_memory(&self) -> bool {
        self.in_place
    }

    fn read_in_place(&self, offset: u64, len: usize, see: &mut dyn FnMut(Shown<'_>)) -> bool {
        if self.in_place {
            let medium = self.medium.lock().unwrap();
            see((&medium.bytes[offset as usize..][..len]).into());
        }
        self.in_place
    }

    fn write_in_place(&self, offset: u64, len: usize, fill: &mut dyn FnMut(Lent<'_>)) -> bool {
        if self.in_place {
            let mut medium = self.medium.lock().unwrap();
            fill((&mut medium.bytes[offset as usize..][..len]).into());
            let blocks = offset / BLOCK..(offset + len as u64).div_ceil(BLOCK);
            medium.written.extend(blocks);
        }
        self.in_place
    }
}

/// What became of the flips.
#[derive(Default, Debug)]
pub struct Tally {
    /// Bits turned over.
    pub flips: u64,
    /// Of those, in blocks that hold a volume's data.
    pub in_data: u64,
    /// Bytes that are as they were again.
    pub mended: u64,
    /// Bytes that were written anew with something else: pages, labels, journals.
    pub rewritten: u64,
    /// Bytes that are still wrong, in space that nothing needs, or without a copy.
    pub left: u64,
    /// Copies that the pool counted as mended from another one, and those that it could not mend.
    pub counted: u64,
    /// Blocks of the volume that gave an I/O error.
    pub errors: u64,
    /// Openings.
    pub openings: u64,
}

/// A pool on drives that rot.
pub struct Scene {
    engine: Engine,
    drives: Vec<Rotting>,
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
        let drives = (0..4).map(|number| Rotting::new(&format!("rot:{name}{number}"), 48));
        let drives: Vec<_> = match in_place {
            true => drives.map(Rotting::in_place).collect(),
            false => drives.collect(),
        };
        attach(&drives);
        let specs: Vec<String> = drives.iter().map(|drive| drive.spec.clone()).collect();
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
        scene.drives.iter().for_each(|drive| {
            drive.medium().written.clear();
        });
        scene
    }

    /// Finds what each block of the drives holds.
    fn look(&mut self) {
        let known: BTreeMap<Vec<u8>, u64> = (0..VOLUME * MIB / BLOCK)
            .map(|block| (wanted(block)[..32].to_vec(), block))
            .collect();
        // What has sunk leaves free slots behind that still look like it.
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
            let byte = self.random.below(self.drives[drive].size);
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

    /// Turns `count` bits over, looks at what becomes of them, and puts everything back.
    pub fn round(&mut self, count: u64, tally: &mut Tally) {
        let flips = self.choose(count);
        for (drive, byte, bit) in &flips {
            self.drives[*drive].flip(*byte, *bit);
        }
        let specs: Vec<String> = self.drives.iter().map(|drive| drive.spec.clone()).collect();
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
            let is = self.drives[*drive].medium().bytes[*byte as usize];
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

/// Lets the calling thread open the drives.
pub fn attach(drives: &[Rotting]) {
    for drive in drives {
        let opened = drive.clone();
        drives::give(
            &drive.spec,
            Some(std::rc::Rc::new(move || Arc::new(opened.clone()))),
        );
    }
}

/// Only the pool holds them from here on, so that closing it need not wait for anybody.
pub fn detach(drives: &[Rotting]) {
    drives
        .iter()
        .for_each(|drive| drives::give(&drive.spec, None));
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}
