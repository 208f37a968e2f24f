//! Opening a pool after a crash, and comparing it with the oracle.

use crate::compare::Look;
use crate::image::{Block, Crashed, Image};
use crate::medium::Loss;
use crate::openings::{Kind, Labels, Opened, Openings, newest};
use crate::oracle::{Oracle, Wrong};
use crate::random::Random;
use block::IoBuf;
use engine::EngineConfig;
use engine::harness::Located;
use format::{Label, LayoutConfig, PartConfig, label_offsets};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{BLOCK, invariant};

/// Blocks read together.
pub const LONGEST: u64 = 16;
/// Number of first blocks of a label that are compared with the known one.
const LABEL_BLOCKS: u64 = 4;
/// Labels that are remembered.
const LABELS: usize = 64;
/// One state in this many is opened a second time, with the same result.
const TWICE: u64 = 64;
/// One state in this many is compared block by block; of the others only unflushed blocks.
const WHOLE: u64 = 16;
/// One state in this many is read as hosts read.
const READ: u64 = 16;
/// One state in this many of an intact mirror is opened without one of its members.
const WITHOUT: u64 = 4;
/// One state in this many is audited.
const AUDIT: u64 = 8;
/// One state in this many is also read by the recovery tools.
const TOOLS: u64 = 128;
/// One state in this many crashes again at some moment of its opening: that is a further state.
const AGAIN: u64 = 3;
/// One state in this many that reuse the opening of another one is also opened itself, with the same result.
const SURE: u64 = 128;
/// Such crashes in a row, at most.
const CRASHES: usize = 3;

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

/// All that a volume has, by where it lies.
const EVERYTHING: Look = Look {
    whole: true,
    by_reading: false,
};

/// A label's first blocks.
type LabelBlocks = [Option<Arc<Block>>; LABEL_BLOCKS as usize];
/// Blocks of all labels of a drive, and its newest label.
type Newest = (Vec<Option<Arc<Block>>>, Option<Arc<Label>>);
/// Content of labels, by the addresses of their blocks, which are kept so that they are not reused.
type Known = BTreeMap<[usize; LABEL_BLOCKS as usize], (LabelBlocks, Option<Arc<Label>>)>;

/// Opens states and compares them.
pub struct Checker {
    kinds: Vec<Kind>,
    openings: RefCell<Openings>,
    pub(crate) random: RefCell<Random>,
    states: Cell<u64>,
    /// States that took over what was opened of another one that reads the same.
    shared: Cell<u64>,
    /// Snapshots of several volumes that a crash left when they had just been taken.
    pub(crate) groups: Cell<u64>,
    /// Which moment is examined: the oracle says the same of all states of one.
    moment: Cell<u64>,
    /// It is rare.
    rare: Cell<bool>,
    labels: RefCell<Known>,
    /// Each drive's newest label, and the blocks that it was found in.
    newest: RefCell<Vec<Newest>>,
    /// Memory to read into, by number of blocks.
    pub(crate) bufs: Cell<Vec<IoBuf>>,
    /// Memory for where blocks lie.
    pub(crate) located: Cell<Vec<Located>>,
    /// A member that goes wrong without saying so: it cannot be the only one.
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
        let bufs = (0..=LONGEST).map(|count| IoBuf::zeroed(count as usize * BLOCK));
        Self {
            openings: RefCell::new(Openings::new(&kinds, seed)),
            kinds,
            random: RefCell::new(Random::new(seed)),
            states: Cell::new(0),
            shared: Cell::new(0),
            groups: Cell::new(0),
            moment: Cell::new(1),
            rare: Cell::new(false),
            labels: RefCell::default(),
            newest: RefCell::default(),
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

    /// Of these, states that took over what was opened of another one that reads the same.
    pub fn shared(&self) -> u64 {
        self.shared.get()
    }

    /// Snapshots of several volumes that were compared when their label had just been written.
    pub fn groups(&self) -> u64 {
        self.groups.get()
    }

    /// States of another moment follow: the oracle may say something else by now.
    pub fn begin_moment(&self) {
        self.moment.set(self.moment.get() + 1);
    }

    /// Which moment is examined.
    pub(crate) fn moment(&self) -> u64 {
        self.moment.get()
    }

    /// Opens the pool that these drives bear, and compares it; then, perhaps, what a crash during
    /// that opening would have left. Whether there is a pool at all is the caller's to know:
    /// `wanted`. A `rare` moment is examined in every way more often.
    ///
    /// # Errors
    /// The fault.
    pub fn check(
        &self,
        crashed: Vec<Crashed>,
        oracle: &Oracle,
        wanted: bool,
        rare: bool,
    ) -> Result<(), Wrong> {
        self.rare.set(rare);
        // Nothing races while an opening runs by itself, and each write of it would be noted.
        let was_watched = invariant::watch(false);
        let checked = self.check_each(crashed, oracle, wanted);
        invariant::watch(was_watched);
        checked
    }

    fn check_each(
        &self,
        mut crashed: Vec<Crashed>,
        oracle: &Oracle,
        wanted: bool,
    ) -> Result<(), Wrong> {
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
            let turns = self.openings.borrow_mut().last().turns();
            if crash == CRASHES || turns == 0 || !self.chance(AGAIN) {
                break;
            }
            crashed = self.crash_while_opening(turns);
        }
        Ok(())
    }

    /// Once in this many; every other time at rare moments.
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

    /// Drives that an opening can do without: the newest label says that other members have all that
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

    /// Whether other members have all that a drive has, as a label says; of all drives the `ids`, as far as they are known.
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
        let mut openings = self.openings.borrow_mut();
        let drives = openings.last().drives().iter();
        drives
            .map(|drive| drive.crash(turn, loss, &mut random))
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
        let labels = (0..self.kinds.len()).map(|drive| self.label(drive, &crashed[drive]));
        let mut labels: Labels = labels.collect();
        let spared = oracle.hits.is_empty() && oracle.state_hits.is_empty() && !oracle.wild;
        let by_tools = wanted && spared && self.random.borrow_mut().one_in(TOOLS);
        // A member that was away is older from then on.
        *away = away.or_else(|| self.without(&labels));
        for away in away.iter().chain(&self.absent.get()) {
            labels[*away] = None;
        }
        let openings = &mut *self.openings.borrow_mut();
        let mut itself = None;
        let fresh = match by_tools {
            true => Some(crashed),
            false => {
                let sure = spared && (self.shared.get() + 1).is_multiple_of(SURE);
                itself = sure.then(|| crashed.clone());
                openings.take_over(crashed, &labels)
            }
        };
        if let Some(crashed) = fresh {
            itself = None;
            openings.load(crashed);
            let opening = openings.last();
            if by_tools {
                opening.run(crate::tools::compare(opening, oracle))?;
            }
            match opening.open(&labels) {
                Ok(true) => {}
                Ok(false) if wanted => return Err(Wrong("no drive has a label".into())),
                // A pool without a copy of its metadata may be refused.
                Err(_) if oracle.wild => return Ok(()),
                Err(failed) if wanted => return Err(Wrong(format!("it does not open: {failed}"))),
                _ => return Ok(()),
            }
        } else {
            self.shared.set(self.shared.get() + 1);
        }
        let look = Look {
            whole: self.chance(WHOLE),
            by_reading: self.random.borrow_mut().one_in(READ),
        };
        let opening = openings.last();
        let opened = opening.opened().expect("opened just now, or before");
        self.compare_volumes(opened, oracle, look, None)?;
        if look.whole {
            self.compare_copy(opened, oracle)?;
        }
        self.compare_group(opened, oracle)?;
        if !oracle.wild {
            oracle.check_reservations(opened)?;
            oracle.check_policies(opened)?;
        }
        if !oracle.wild && self.chance(AUDIT) && !opening.audited {
            self.audit(opened)?;
            opening.audited = true;
        }
        if let Some(crashed) = itself {
            self.open_itself(openings, crashed, &labels, oracle)?;
        }
        if spared && away.is_none() && self.random.borrow_mut().one_in(TWICE) {
            self.open_twice(openings, &labels, oracle)?;
        }
        Ok(())
    }

    fn audit(&self, opened: &Opened) -> Result<(), Wrong> {
        let audit = opened.run(async { opened.harness.audit().await });
        let audit = audit.map_err(|failed| Wrong(format!("no audit: {failed}")))?;
        let count = audit.count;
        audit.wrong.first().map_or(Ok(()), |wrong| {
            Err(Wrong(format!("{count} wrong in the books: {wrong}")))
        })
    }

    /// A state that took over another one's opening is the same when it is opened itself.
    fn open_itself(
        &self,
        openings: &mut Openings,
        crashed: Vec<Crashed>,
        labels: &Labels,
        oracle: &Oracle,
    ) -> Result<(), Wrong> {
        let mut digests = [0; 2];
        if let Some(opened) = openings.last().opened() {
            self.compare_volumes(opened, oracle, EVERYTHING, Some(&mut digests[0]))?;
        }
        openings.last().load(crashed);
        digests[1] = self.digest(openings, labels, oracle)?;
        if digests[0] != digests[1] {
            let what = "it holds something else than a state in which recovery reads the same";
            return Err(Wrong(what.into()));
        }
        Ok(())
    }

    /// Recovery of a recovered state returns the same.
    fn open_twice(
        &self,
        openings: &mut Openings,
        labels: &Labels,
        oracle: &Oracle,
    ) -> Result<(), Wrong> {
        let first = self.digest(openings, labels, oracle)?;
        let second = self.digest(openings, labels, oracle)?;
        // What these wrote is not what an opening of the state writes.
        openings.last().close();
        if first != second {
            return Err(Wrong("opened again it holds something else".into()));
        }
        Ok(())
    }

    /// Opens what the last opening's drives hold, and digests all of it.
    fn digest(
        &self,
        openings: &mut Openings,
        labels: &Labels,
        oracle: &Oracle,
    ) -> Result<u64, Wrong> {
        let opened = openings.last().open(labels);
        opened.map_err(|failed| Wrong(format!("it opens once only: {failed}")))?;
        let Some(opened) = openings.last().opened() else {
            return Err(Wrong("the labels are gone after an opening".into()));
        };
        let mut digest = 0;
        self.compare_volumes(opened, oracle, EVERYTHING, Some(&mut digest))?;
        Ok(digest)
    }

    /// The newest label of a drive. Decoding is the dear part: labels rarely change.
    pub(crate) fn label(&self, drive: usize, crashed: &Crashed) -> Option<Arc<Label>> {
        let offsets = label_offsets(self.kinds[drive].size);
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
}
