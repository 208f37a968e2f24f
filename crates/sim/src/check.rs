//! Opening what a crash left, and comparing it with the oracle.

use crate::image::{Block, Image};
use crate::instant::{Fuse, Instant};
use crate::medium::Loss;
use crate::oracle::{Oracle, Wrong};
use crate::random::Random;
use block::IoBuf;
use drives::OpenDrive;
use engine::EngineConfig;
use engine::harness::Harness;
use format::{Label, label_offsets};
use reactor::{Clock, Handle};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};
use units::{BLOCK, DriveId};

/// Blocks read together.
const LONGEST: u64 = 16;
/// First blocks of a label that are looked at to see whether it is the one that is known.
const LABEL_BLOCKS: u64 = 4;
/// One state in so many is opened a second time, and has to be the same then.
const TWICE: u64 = 32;
/// One state in so many is compared block by block; of the others what no flush has covered.
const WHOLE: u64 = 8;
/// One state in so many of a mirror that is whole is opened without one of its legs.
const WITHOUT: u64 = 4;
/// The books of one state in so many are audited.
const AUDIT: u64 = 4;
/// One state in so many is read by the recovery tools, too.
const TOOLS: u64 = 64;
/// One state in so many crashes again while it is being opened.
const AGAIN: u64 = 4;
/// Requests of an opening before it crashes again, at most.
const FUSE: u64 = 60;

/// Turns that an opening may take.
const TURNS: usize = 1_000_000;

/// Memory of an engine over small drives.
pub const MEMORY: EngineConfig = EngineConfig {
    threads: 1,
    ram_tier: 1 << 20,
    map_cache: 2 << 20,
    journal_blocks: None,
    drive_limits: engine::DriveLimits {
        deadline_ns: 30_000_000_000,
        slow_factor: 10,
    },
};

/// A drive as it was opened: its text and size in bytes.
#[derive(Clone, Debug)]
pub struct Kind {
    /// How it is opened.
    pub spec: String,
    /// Bytes.
    pub size: u64,
}

struct Still;

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        1
    }
}

/// Label blocks, and what they say.
type Known = (Vec<Option<Arc<Block>>>, Option<Arc<Label>>);

/// Opens states and compares them.
pub struct Checker {
    handle: Handle,
    random: RefCell<Random>,
    states: Cell<u64>,
    /// The moment that is looked at is rare.
    rare: Cell<bool>,
    labels: RefCell<Vec<Option<Known>>>,
    /// Legs of a mirror that is sure to be whole: the first so many drives.
    whole_legs: usize,
}

impl Checker {
    /// A checker whose choices follow from a seed.
    ///
    /// # Panics
    /// When the system has no event descriptor left.
    pub fn new(seed: u64, whole_legs: usize) -> Self {
        Self {
            handle: Handle::simulated(Box::new(Still), seed).expect("an event descriptor"),
            random: RefCell::new(Random::new(seed)),
            states: Cell::new(0),
            rare: Cell::new(false),
            labels: RefCell::default(),
            whole_legs,
        }
    }

    /// States that were opened and compared.
    pub fn states(&self) -> u64 {
        self.states.get()
    }

    /// Opens the pool that these drives bear, and compares it. Whether there is a pool at all is
    /// the caller's to know: `wanted`. A `rare` moment is looked at in every way more often.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        kinds: &[Kind],
        images: &[Image],
        oracle: &Oracle,
        wanted: bool,
        rare: bool,
    ) -> Result<(), Wrong> {
        self.rare.set(rare);
        if self.chance(AGAIN) {
            let images = self.crash_while_opening(kinds, images);
            self.compare(kinds, &images, oracle, wanted)
                .map_err(|Wrong(what)| Wrong(format!("after a second crash: {what}")))
        } else {
            self.compare(kinds, images, oracle, wanted)
        }
    }

    /// Once in so many; every other time at rare moments.
    fn chance(&self, once_in: u64) -> bool {
        let once_in = if self.rare.get() { 2 } else { once_in };
        self.random.borrow_mut().one_in(once_in)
    }

    fn crash_while_opening(&self, kinds: &[Kind], images: &[Image]) -> Vec<Image> {
        let fuse: Fuse = Arc::new(Mutex::new(self.random.borrow_mut().below(FUSE)));
        let drives = drives(kinds, images, Some(&fuse));
        // How it ends does not matter: the power was cut.
        let _ = self.open(kinds, images, &drives, None);
        let mut random = self.random.borrow_mut();
        let loss = *random.pick(&Loss::ALL);
        drives
            .iter()
            .map(|drive| drive.crash(loss, &mut random))
            .collect()
    }

    fn compare(
        &self,
        kinds: &[Kind],
        images: &[Image],
        oracle: &Oracle,
        wanted: bool,
    ) -> Result<(), Wrong> {
        self.states.set(self.states.get() + 1);
        let drives = drives(kinds, images, None);
        if wanted && self.random.borrow_mut().one_in(TOOLS) {
            self.run(crate::tools::compare(&self.handle, &drives, oracle))?;
        }
        let without = (self.whole_legs > 0 && self.chance(WITHOUT))
            .then(|| self.random.borrow_mut().below(self.whole_legs as u64) as usize);
        let opened = match self.open(kinds, images, &drives, without) {
            Ok(Some(opened)) => opened,
            Ok(None) if wanted => return Err(Wrong("no drive has a label".into())),
            Err(failed) if wanted => return Err(Wrong(format!("it does not open: {failed}"))),
            _ => return Ok(()),
        };
        let (harness, label) = opened;
        let whole = self.chance(WHOLE);
        self.compare_volumes(&harness, &label, oracle, whole)?;
        if self.chance(AUDIT) {
            self.audit(&harness)?;
        }
        drop(harness);
        if without.is_none() && self.random.borrow_mut().one_in(TWICE) {
            self.open_twice(kinds, &drives, oracle)?;
        }
        Ok(())
    }

    fn audit(&self, harness: &Harness) -> Result<(), Wrong> {
        let audit = self.run(async { harness.audit().await });
        let audit = audit.map_err(|failed| Wrong(format!("no audit: {failed}")))?;
        let count = audit.count;
        audit.wrong.first().map_or(Ok(()), |wrong| {
            Err(Wrong(format!("{count} wrong in the books: {wrong}")))
        })
    }

    /// What recovery left is recovered to the same.
    fn open_twice(
        &self,
        kinds: &[Kind],
        drives: &[Arc<Instant>],
        oracle: &Oracle,
    ) -> Result<(), Wrong> {
        let mut digests = Vec::new();
        for _ in 0..2 {
            let images: Vec<Image> = drives.iter().map(|drive| drive.image()).collect();
            let opened = self
                .open(kinds, &images, drives, None)
                .map_err(|failed| Wrong(format!("it opens once only: {failed}")))?;
            let Some((harness, label)) = opened else {
                return Err(Wrong("the labels are gone after an opening".into()));
            };
            digests.push(self.compare_volumes(&harness, &label, oracle, true)?);
        }
        if digests[0] != digests[1] {
            return Err(Wrong("opened again it holds something else".into()));
        }
        Ok(())
    }

    fn open(
        &self,
        kinds: &[Kind],
        images: &[Image],
        drives: &[Arc<Instant>],
        without: Option<usize>,
    ) -> Result<Option<(Harness, Arc<Label>)>, String> {
        let labels: Vec<Option<Arc<Label>>> = (0..kinds.len())
            .map(|drive| self.label(drive, kinds[drive].size, &images[drive]))
            .collect();
        let newest = labels.iter().flatten().max_by_key(|label| label.generation);
        let Some(newest) = newest.cloned() else {
            return Ok(None);
        };
        let members: Vec<(DriveId, Arc<dyn OpenDrive>)> = labels
            .iter()
            .zip(drives)
            .enumerate()
            .filter(|(number, _)| Some(*number) != without)
            .filter_map(|(_, (label, drive))| Some((label.as_ref()?.drive, drive.clone() as _)))
            .collect();
        let (handle, label) = (self.handle.clone(), newest.clone());
        let opened = self.run(async move {
            Harness::open(&handle, label.pool, &label.config, &members, &MEMORY).await
        });
        match opened {
            Ok(harness) => Ok(Some((harness, newest))),
            Err(failed) => Err(failed.to_string()),
        }
    }

    /// The newest label of a drive. Decoding is the dear part: labels rarely change.
    fn label(&self, drive: usize, size: u64, image: &Image) -> Option<Arc<Label>> {
        let at = label_offsets(size);
        let blocks = at
            .iter()
            .flat_map(|offset| (0..LABEL_BLOCKS).map(move |at| offset / BLOCK as u64 + at));
        let mut labels = self.labels.borrow_mut();
        let count = labels.len().max(drive + 1);
        labels.resize_with(count, || None);
        if let Some((known, label)) = &labels[drive]
            && blocks.clone().zip(known).all(|(block, known)| {
                image.get(block).map(Arc::as_ptr) == known.as_ref().map(Arc::as_ptr)
            })
        {
            return label.clone();
        }
        let blocks: Vec<_> = blocks.map(|block| image.get(block).cloned()).collect();
        let decode = |offset: &u64| {
            let mut bytes = vec![0; LABEL_BLOCKS as usize * BLOCK];
            image.read(offset / BLOCK as u64, &mut bytes);
            Label::decode(&bytes).ok()
        };
        let newest = at
            .iter()
            .filter_map(decode)
            .max_by_key(|label| label.generation);
        let newest = newest.map(Arc::new);
        labels[drive] = Some((blocks, newest.clone()));
        newest
    }

    /// Reads everything that was ever written, or what may be lost; returns a digest of it.
    fn compare_volumes(
        &self,
        harness: &Harness,
        label: &Label,
        oracle: &Oracle,
        whole: bool,
    ) -> Result<u64, Wrong> {
        self.run(async move {
            let mut digest = 0;
            for (number, known) in &oracle.volumes {
                let Some(volume) = label
                    .config
                    .volumes
                    .iter()
                    .find(|known| known.id == *number)
                else {
                    return Err(Wrong(format!("volume {number} is not there")));
                };
                if volume.size < known.size {
                    let (has, wants) = (volume.size, known.size);
                    return Err(Wrong(format!("volume {number} has {has} bytes of {wants}")));
                }
                let ranges = if whole {
                    oracle.ranges(*number, LONGEST)
                } else {
                    oracle.unsettled(*number, LONGEST)
                };
                for (first, count) in ranges {
                    let mut buf = IoBuf::zeroed(count as usize * BLOCK);
                    let offset = first * BLOCK as u64;
                    let read = harness.read(*number, offset, &mut buf).await;
                    read.map_err(|failed| {
                        Wrong(format!("volume {number}, block {first}+{count}: {failed}"))
                    })?;
                    let bytes = buf.as_bytes().expect("private memory");
                    oracle.check_crashed(*number, offset, bytes)?;
                    for sector in bytes.chunks_exact(crate::oracle::SECTOR) {
                        let word: [u8; 8] = sector[..8].try_into().expect("8 bytes");
                        digest = reactor::mix(digest ^ u64::from_le_bytes(word));
                    }
                }
            }
            Ok(digest)
        })
    }

    /// Runs a future to its end: its drives answer at once.
    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..TURNS {
            if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            self.handle.run_ready(1);
        }
        panic!("an opening waits for something that never comes")
    }
}

fn drives(kinds: &[Kind], images: &[Image], fuse: Option<&Fuse>) -> Vec<Arc<Instant>> {
    kinds
        .iter()
        .zip(images)
        .map(|(kind, image)| {
            let fuse = fuse.cloned();
            Instant::new(&kind.spec, kind.size, image.clone(), fuse)
        })
        .collect()
}
