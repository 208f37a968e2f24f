//! Opening what a crash left, and comparing it with the oracle.

use crate::compare::Look;
use crate::image::{Block, Crashed, Image};
use crate::instant::{Instant, Sight, Turns};
use crate::medium::Loss;
use crate::oracle::{Oracle, Wrong};
use crate::random::Random;
use block::IoBuf;
use drives::OpenDrive;
use engine::EngineConfig;
use engine::harness::{Harness, Located};
use format::{Label, LayoutConfig, PartConfig, label_offsets};
use reactor::{Clock, Handle};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{BLOCK, DriveId};

/// Blocks read together.
pub const LONGEST: u64 = 16;
/// First blocks of a label that are looked at to see whether it is the one that is known.
const LABEL_BLOCKS: u64 = 4;
/// Labels that are remembered.
const LABELS: usize = 64;
/// One state in so many is opened a second time, and has to be the same then.
const TWICE: u64 = 64;
/// One state in so many is compared block by block; of the others what no flush has covered.
const WHOLE: u64 = 16;
/// One state in so many is read as hosts read.
const READ: u64 = 16;
/// One state in so many of a mirror that is whole is opened without one of its legs.
const WITHOUT: u64 = 4;
/// The books of one state in so many are audited.
const AUDIT: u64 = 8;
/// One state in so many is read by the recovery tools, too.
const TOOLS: u64 = 128;
/// One state in so many crashes again at some moment of its opening: that is a state, too.
const AGAIN: u64 = 3;
/// Such crashes in a row, at most.
const CRASHES: usize = 3;

/// Turns that an opening may take.
const TURNS: usize = 1_000_000;

/// Memory of an engine over small drives.
pub const MEMORY: EngineConfig = EngineConfig {
    cores: reactor::Cores::Free,
    threads: 1,
    ram_tier: 1 << 20,
    map_cache: 2 << 20,
    journal_blocks: None,
    meta_groups: None,
    spare_groups: 1,
    drive_limits: engine::DriveLimits {
        deadline_ns: 30_000_000_000,
        slow_factor: 10,
    },
    lasting: block::Lasting::NONE,
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

/// A label's first blocks.
type LabelBlocks = [Option<Arc<Block>>; LABEL_BLOCKS as usize];
/// Blocks of all labels of a drive, and its newest label.
type Newest = (Vec<Option<Arc<Block>>>, Option<Arc<Label>>);
/// What labels say, by the addresses of their blocks, which are kept so that they stay theirs.
type Known = BTreeMap<[usize; LABEL_BLOCKS as usize], (LabelBlocks, Option<Arc<Label>>)>;

/// A pool that was opened, its label, and the drives that were given.
pub struct Opened {
    pub harness: Harness,
    pub label: Arc<Label>,
    pub drives: Vec<(DriveId, Sight)>,
}

/// Opens states and compares them.
pub struct Checker {
    handle: Handle,
    pub(crate) random: RefCell<Random>,
    states: Cell<u64>,
    /// Snapshots of several volumes that a crash left when they had just been taken.
    pub(crate) groups: Cell<u64>,
    /// The moment that is looked at is rare.
    rare: Cell<bool>,
    labels: RefCell<Known>,
    /// Each drive's newest label, and the blocks that it was found in.
    newest: RefCell<Vec<Newest>>,
    drives: Vec<(Kind, Arc<Instant>)>,
    turns: Turns,
    /// Memory to read into, by number of blocks.
    pub(crate) bufs: Cell<Vec<IoBuf>>,
    /// Memory for where blocks lie.
    pub(crate) located: Cell<Vec<Located>>,
    /// A leg that goes wrong without saying so: it cannot be the only one.
    fragile: Option<usize>,
    /// A drive that is away.
    absent: Cell<Option<usize>>,
}

impl Checker {
    /// A checker of pools on these drives, whose choices follow from a seed.
    ///
    /// # Panics
    /// When the system has no event descriptor left.
    pub fn new(seed: u64, kinds: Vec<Kind>, fragile: Option<usize>) -> Self {
        let turns = Turns::default();
        let drive = |kind: Kind| {
            let drive = Instant::new(&kind.spec, kind.size, turns.clone());
            (kind, drive)
        };
        let bufs = (0..=LONGEST).map(|count| IoBuf::zeroed(count as usize * BLOCK));
        Self {
            handle: Handle::simulated(Box::new(Still), seed).expect("an event descriptor"),
            random: RefCell::new(Random::new(seed)),
            states: Cell::new(0),
            groups: Cell::new(0),
            rare: Cell::new(false),
            labels: RefCell::default(),
            newest: RefCell::default(),
            drives: kinds.into_iter().map(drive).collect(),
            turns,
            bufs: Cell::new(bufs.collect()),
            located: Cell::default(),
            fragile,
            absent: Cell::new(None),
        }
    }

    /// A drive is away, or none is.
    pub fn set_absent(&self, drive: Option<usize>) {
        self.absent.set(drive);
    }

    /// States that were opened and compared.
    pub fn states(&self) -> u64 {
        self.states.get()
    }

    /// Snapshots of several volumes that were compared when their label had just been written.
    pub fn groups(&self) -> u64 {
        self.groups.get()
    }

    /// Opens the pool that these drives bear, and compares it; then, perhaps, what a crash during
    /// that opening would have left. Whether there is a pool at all is the caller's to know:
    /// `wanted`. A `rare` moment is looked at in every way more often.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        mut crashed: Vec<Crashed>,
        oracle: &Oracle,
        wanted: bool,
        rare: bool,
    ) -> Result<(), Wrong> {
        self.rare.set(rare);
        let mut away = None;
        for crash in 1.. {
            self.compare(crashed, oracle, wanted, &mut away)
                .map_err(|Wrong(what)| {
                    let without =
                        away.map_or_else(String::new, |away| format!("without drive {away}: "));
                    match crash {
                        1 => Wrong(format!("{without}{what}")),
                        _ => Wrong(format!("{without}after crash {crash} in a row: {what}")),
                    }
                })?;
            let turns = self.turns.load(Ordering::Relaxed);
            if crash == CRASHES || turns == 0 || !self.chance(AGAIN) {
                break;
            }
            crashed = self.crash_while_opening(turns);
        }
        Ok(())
    }

    /// Once in so many; every other time at rare moments.
    fn chance(&self, once_in: u64) -> bool {
        let once_in = if self.rare.get() { 2 } else { once_in };
        self.random.borrow_mut().one_in(once_in)
    }

    /// A drive that an opening has to do without, if any.
    fn without(&self, labels: &[Option<Arc<Label>>]) -> Option<usize> {
        let spare = self.spare(labels);
        let away = !spare.is_empty() && self.chance(WITHOUT);
        away.then(|| *self.random.borrow_mut().pick(&spare))
    }

    /// Drives that an opening can do without, of drives that hold this, and that may come back: one that
    /// alone has the newest label would be taken for one that was used without the others.
    pub fn spare_of(&self, images: &[Image]) -> Vec<usize> {
        let labels = images.iter().enumerate();
        let labels: Vec<_> = labels
            .map(|(drive, image)| self.label(drive, &Crashed::unchanged(image.clone())))
            .collect();
        let newest = labels.iter().flatten().map(|label| label.generation).max();
        let has_newest = |drive: usize| {
            let generation = labels[drive].as_ref().map(|label| label.generation);
            generation == newest
        };
        let mut spare = self.spare(&labels);
        spare.retain(|drive| (0..labels.len()).any(|other| other != *drive && has_newest(other)));
        spare
    }

    /// Drives that an opening can do without: the newest label says that other legs have all that
    /// they have, and so does the newest one without them, which is all that is known then.
    fn spare(&self, labels: &[Option<Arc<Label>>]) -> Vec<usize> {
        let without = |number: usize| {
            let others = labels.iter().enumerate();
            let others = others.filter(|(other, _)| *other != number);
            newest(others.filter_map(|(_, label)| label.as_ref()))
        };
        let Some(known) = newest(labels.iter().flatten()) else {
            return Vec::new();
        };
        let id = |label: &Option<Arc<Label>>| Some(label.as_ref()?.drive.to_string());
        let ids: Vec<_> = labels.iter().map(id).collect();
        let spare = |number: &usize| {
            Some(*number) != self.absent.get()
                && self.is_spare(&ids, &known, *number)
                && without(*number).is_some_and(|known| self.is_spare(&ids, &known, *number))
        };
        (0..labels.len()).filter(spare).collect()
    }

    /// Whether other legs have all that a drive has, as a label says; of all drives the `ids`, as far as they are known.
    fn is_spare(&self, ids: &[Option<String>], known: &Label, number: usize) -> bool {
        let parts = known.config.vdrives.iter().map(|vdrive| &vdrive.parts);
        let groups: Vec<_> = std::iter::once(&known.config.meta.parts)
            .chain(parts)
            .collect();
        let mirrors = known.config.vdrives.iter();
        let mirrors = mirrors.map(|vdrive| vdrive.layout == LayoutConfig::Mirror);
        let mirrors: Vec<bool> = std::iter::once(true).chain(mirrors).collect();
        let counts =
            |number: usize| Some(number) != self.absent.get() && Some(number) != self.fragile;
        let sure = |part: &PartConfig| {
            let at = ids.iter().position(|id| id.as_deref() == Some(&part.drive));
            !part.out && at.is_some_and(|at| at != number && counts(at))
        };
        let Some(id) = ids[number].as_deref() else {
            return false;
        };
        let is_here = |parts: &&Vec<PartConfig>| parts.iter().any(|part| part.drive == id);
        groups.iter().any(is_here)
            && groups
                .iter()
                .zip(&mirrors)
                .all(|(parts, mirror)| !is_here(parts) || *mirror && parts.iter().any(&sure))
    }

    fn crash_while_opening(&self, turns: u64) -> Vec<Crashed> {
        let mut random = self.random.borrow_mut();
        let turn = random.below(turns);
        let loss = *random.pick(&Loss::ALL);
        let drives = self.drives.iter();
        drives
            .map(|(_, drive)| drive.crash(turn, loss, &mut random))
            .collect()
    }

    fn compare(
        &self,
        crashed: Vec<Crashed>,
        oracle: &Oracle,
        wanted: bool,
        away: &mut Option<usize>,
    ) -> Result<(), Wrong> {
        self.states.set(self.states.get() + 1);
        self.turns.store(0, Ordering::Relaxed);
        let labels = (0..self.drives.len()).map(|drive| self.label(drive, &crashed[drive]));
        let labels: Vec<_> = labels.collect();
        for ((_, drive), crashed) in self.drives.iter().zip(crashed) {
            drive.load(crashed);
        }
        let spared = oracle.hits.is_empty() && oracle.state_hits.is_empty() && !oracle.wild;
        if wanted && spared && self.random.borrow_mut().one_in(TOOLS) {
            let drives: Vec<_> = self.drives.iter().map(|(_, drive)| drive.clone()).collect();
            self.run(crate::tools::compare(&self.handle, &drives, oracle))?;
        }
        // A leg that was away is older from then on.
        *away = away.or_else(|| self.without(&labels));
        let without = *away;
        let opened = match self.open(&labels, without) {
            Ok(Some(opened)) => opened,
            Ok(None) if wanted => return Err(Wrong("no drive has a label".into())),
            // A pool without a copy of its metadata may be refused.
            Err(_) if oracle.wild => return Ok(()),
            Err(failed) if wanted => return Err(Wrong(format!("it does not open: {failed}"))),
            _ => return Ok(()),
        };
        let look = Look {
            whole: self.chance(WHOLE),
            by_reading: self.random.borrow_mut().one_in(READ),
        };
        self.compare_volumes(&opened, oracle, look, None)?;
        if look.whole {
            self.compare_copy(&opened, oracle)?;
        }
        self.compare_group(&opened, oracle)?;
        if !oracle.wild && self.chance(AUDIT) {
            self.audit(&opened.harness)?;
        }
        drop(opened);
        if spared && without.is_none() && self.random.borrow_mut().one_in(TWICE) {
            self.open_twice(&labels, oracle)?;
        }
        self.handle.run_ready(TURNS);
        self.handle.drop_tasks();
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
    fn open_twice(&self, labels: &[Option<Arc<Label>>], oracle: &Oracle) -> Result<(), Wrong> {
        let mut digests = [0; 2];
        for digest in &mut digests {
            let opened = self
                .open(labels, None)
                .map_err(|failed| Wrong(format!("it opens once only: {failed}")))?;
            let Some(opened) = opened else {
                return Err(Wrong("the labels are gone after an opening".into()));
            };
            let look = Look {
                whole: true,
                by_reading: false,
            };
            self.compare_volumes(&opened, oracle, look, Some(digest))?;
        }
        if digests[0] != digests[1] {
            return Err(Wrong("opened again it holds something else".into()));
        }
        Ok(())
    }

    fn open(
        &self,
        labels: &[Option<Arc<Label>>],
        without: Option<usize>,
    ) -> Result<Option<Opened>, String> {
        let here = |number: usize| Some(number) != without && Some(number) != self.absent.get();
        let labels = labels.iter().enumerate();
        let labels = labels.filter_map(|(number, label)| Some((number, label.as_ref()?)));
        let labels: Vec<_> = labels.filter(|(number, _)| here(*number)).collect();
        let Some(newest) = newest(labels.iter().map(|(_, label)| *label)) else {
            return Ok(None);
        };
        let drives = labels.iter();
        let drives = drives.map(|(number, label)| (label.drive, &self.drives[*number].1));
        let members = drives.clone().map(|(id, drive)| (id, drive.clone() as _));
        let members: Vec<(DriveId, Arc<dyn OpenDrive>)> = members.collect();
        let (handle, label) = (self.handle.clone(), newest.clone());
        let opened = self.run(async move {
            Harness::open(&handle, label.pool, &label.config, &members, &MEMORY).await
        });
        match opened {
            Ok(harness) => Ok(Some(Opened {
                harness,
                label: newest,
                drives: drives.map(|(id, drive)| (id, drive.sight())).collect(),
            })),
            Err(failed) => Err(failed.to_string()),
        }
    }

    /// The newest label of a drive. Decoding is the dear part: labels rarely change.
    fn label(&self, drive: usize, crashed: &Crashed) -> Option<Arc<Label>> {
        let offsets = label_offsets(self.drives[drive].0.size);
        let firsts = offsets.map(|offset| offset / BLOCK as u64);
        let within = |block: &u64| {
            firsts
                .iter()
                .any(|at| (*at..*at + LABEL_BLOCKS).contains(block))
        };
        let changed = crashed.changed.iter().any(|(block, _)| within(block));
        let mut known = self.newest.borrow_mut();
        let count = known.len().max(drive + 1);
        known.resize_with(count, Newest::default);
        let blocks = || firsts.iter().flat_map(|first| *first..first + LABEL_BLOCKS);
        let address = |block: Option<&Arc<Block>>| block.map(Arc::as_ptr);
        let now = blocks().map(|block| address(crashed.base.get(block)));
        let before = known[drive].0.iter().map(|block| address(block.as_ref()));
        if !changed && now.eq(before) {
            return known[drive].1.clone();
        }
        let found = firsts.iter().filter_map(|first| {
            let blocks: LabelBlocks = std::array::from_fn(|index| {
                let block = first + index as u64;
                match changed {
                    true => crashed.get(block),
                    false => crashed.base.get(block).cloned(),
                }
            });
            self.decode(blocks)
        });
        let newest = found.max_by_key(|label| label.generation);
        if !changed {
            let blocks = blocks().map(|block| crashed.base.get(block).cloned());
            known[drive] = (blocks.collect(), newest.clone());
        }
        newest
    }

    fn decode(&self, blocks: LabelBlocks) -> Option<Arc<Label>> {
        let address = |block: &Option<Arc<Block>>| {
            block
                .as_ref()
                .map_or(0, |block| Arc::as_ptr(block) as usize)
        };
        let key = blocks.each_ref().map(address);
        let mut labels = self.labels.borrow_mut();
        if let Some((_, label)) = labels.get(&key) {
            return label.clone();
        }
        let content = blocks.iter().map(|block| match block {
            Some(block) => &block[..],
            None => &[0; BLOCK],
        });
        let label = Label::decode(&content.collect::<Vec<_>>().concat()).ok();
        let label = label.map(Arc::new);
        if labels.len() == LABELS {
            labels.clear();
        }
        labels.insert(key, (blocks, label.clone()));
        label
    }

    /// Runs a future to its end: its drives answer at once.
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
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

fn newest<'a>(labels: impl Iterator<Item = &'a Arc<Label>>) -> Option<Arc<Label>> {
    labels.max_by_key(|label| label.generation).cloned()
}
