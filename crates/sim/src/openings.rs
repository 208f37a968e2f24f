//! A cache of pools that were opened after crashes, for the next states.
//!
//! An opening follows from what it reads and from nothing else. A state that has the same in every block that an opening of
//! another one has read so far, and the same labels and drives, would be opened in the same way, write by write: it takes
//! over what was opened, with its own blocks beneath. Mostly these are states of one moment, that differ in what hosts wrote.

use crate::image::{Block, Crashed};
use crate::instant::{Instant, Places, SharedShadow, Sight, Turns};
use drives::OpenDrive;
use engine::harness::Harness;
use format::Label;
use reactor::{Clock, Handle};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::DriveId;

/// Openings that are kept.
const KEPT: usize = 8;
/// Steps that an opening may take.
const STEPS: usize = 1_000_000;

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

/// The newest label of each drive that is there.
pub type Labels = Vec<Option<Arc<Label>>>;

/// A pool that was opened, its label, and the drives that were given.
pub struct Opened {
    pub harness: Harness,
    pub label: Arc<Label>,
    pub drives: Vec<(DriveId, Sight)>,
    /// Verified results of a comparison.
    pub right: RefCell<Right>,
    handle: Handle,
}

/// Blocks in which a comparison of a moment found what has to be there, and what that was: a state of the same moment
/// that has the same there is right as well.
#[derive(Default)]
pub struct Right {
    /// 0: none was compared.
    moment: u64,
    found: Vec<Held>,
}

/// A drive, by its place among those that were given, its block, and what that held; nothing is zeroes.
pub type Held = (usize, u64, Option<Arc<Block>>);

impl Right {
    /// All that was compared at this moment was `found` right.
    pub fn set(&mut self, moment: u64, found: Vec<Held>) {
        *self = Self { moment, found };
    }

    /// Whether that is still so for what the drives hold now.
    pub fn holds(&self, moment: u64, drives: &[(DriveId, Sight)]) -> bool {
        let holds = |(drive, block, content): &Held| drives[*drive].1.holds(*block, content);
        self.moment == moment && self.found.iter().all(holds)
    }
}

impl Opened {
    /// Runs a future to its end.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        run(&self.handle, future)
    }
}

/// Drives with what a crash left, and the pool that was opened of them.
pub struct Opening {
    handle: Handle,
    drives: Vec<Arc<Instant>>,
    turns: Turns,
    labels: Labels,
    opened: Option<Opened>,
    /// The books of it were examined.
    pub audited: bool,
}

impl Opening {
    fn new(kinds: &[Kind], shadows: &[SharedShadow], seed: u64) -> Self {
        let turns = Turns::default();
        let drive = |(kind, shadow): (&Kind, &SharedShadow)| {
            Instant::new(&kind.spec, kind.size, turns.clone(), shadow.clone())
        };
        Self {
            handle: Handle::simulated(Box::new(Still), seed).expect("an event descriptor"),
            drives: kinds.iter().zip(shadows).map(drive).collect(),
            turns: turns.clone(),
            labels: Vec::new(),
            opened: None,
            audited: false,
        }
    }

    /// Its drives.
    pub fn drives(&self) -> &[Arc<Instant>] {
        &self.drives
    }

    /// The loop of its tasks.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Writes and flushes requested from the drives since they got their content.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Runs a future to its end.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        run(&self.handle, future)
    }

    /// Its drives hold this from now on; what was opened is gone.
    pub fn load(&mut self, crashed: Vec<Crashed>) {
        self.close();
        self.turns.store(0, Ordering::Relaxed);
        for (drive, crashed) in self.drives.iter().zip(crashed) {
            drive.load(crashed);
        }
    }

    /// Drops the opened pool; its writes stay on the drives.
    pub fn close(&mut self) {
        self.opened = None;
        self.audited = false;
        self.handle.drop_tasks();
    }

    /// The opened pool.
    pub fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// Opens the pool whose drives bear these labels, of those that have one. False when none has.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(&mut self, labels: &Labels) -> Result<bool, String> {
        self.close();
        let here = labels.iter().zip(&self.drives);
        let here = here.filter_map(|(label, drive)| Some((label.as_ref()?, drive)));
        let here: Vec<_> = here.collect();
        let Some(newest) = newest(here.iter().map(|(label, _)| *label)) else {
            return Ok(false);
        };
        let members = here.iter();
        let members = members.map(|(label, drive)| (label.drive, (*drive).clone() as _));
        let members: Vec<(DriveId, Arc<dyn OpenDrive>)> = members.collect();
        let (handle, label) = (self.handle.clone(), newest.clone());
        let opened = self.run(async move {
            let memory = &crate::check::MEMORY;
            Harness::open(&handle, label.pool, &label.config, &members, memory).await
        });
        let sights = here.iter();
        let sights = sights.map(|(label, drive)| (label.drive, drive.sight()));
        let opened = Opened {
            harness: opened.map_err(|failed| failed.to_string())?,
            label: newest,
            drives: sights.collect(),
            right: RefCell::default(),
            handle: self.handle.clone(),
        };
        self.labels.clone_from(labels);
        self.opened = Some(opened);
        Ok(true)
    }

    /// Whether what was opened is what an opening of this would be.
    fn is_of(&self, crashed: &[Crashed], places: &[Places], labels: &Labels) -> bool {
        let Some(opened) = &self.opened else {
            return false;
        };
        let id = |label: &Option<Arc<Label>>| label.as_ref().map(|label| label.drive);
        let mut drives = self.drives.iter().zip(crashed.iter().zip(places));
        self.labels.iter().map(id).eq(labels.iter().map(id))
            && newest(labels.iter().flatten()).is_some_and(|now| says_the_same(&now, &opened.label))
            && drives.all(|(drive, (crashed, places))| drive.looks_like(crashed, places))
    }
}

/// The openings, that of the last state first.
pub struct Openings {
    all: Vec<Opening>,
    places: Vec<Places>,
}

impl Openings {
    /// Openings of nothing, on such drives.
    ///
    /// # Panics
    /// When the system has no event descriptor left.
    pub fn new(kinds: &[Kind], seed: u64) -> Self {
        let places = kinds.iter().map(|kind| Places::new(kind.size));
        let shadows: Vec<_> = kinds.iter().map(|_| SharedShadow::default()).collect();
        let opening = |_| Opening::new(kinds, &shadows, seed);
        Self {
            all: (0..KEPT).map(opening).collect(),
            places: places.collect(),
        }
    }

    /// That of the last state.
    pub fn last(&mut self) -> &mut Opening {
        &mut self.all[0]
    }

    /// An opening that is this state's as well becomes the last one, and has its blocks; else the state is given back.
    pub fn take_over(&mut self, crashed: Vec<Crashed>, labels: &Labels) -> Option<Vec<Crashed>> {
        for (places, crashed) in self.places.iter_mut().zip(&crashed) {
            places.load(crashed);
        }
        let mut all = self.all.iter();
        let Some(at) = all.position(|one| one.is_of(&crashed, &self.places, labels)) else {
            return Some(crashed);
        };
        self.all[..=at].rotate_right(1);
        for (drive, crashed) in self.all[0].drives.iter().zip(crashed) {
            drive.replace(crashed);
        }
        None
    }

    /// The opening that was used longest ago becomes the last one, with drives that hold this.
    pub fn load(&mut self, crashed: Vec<Crashed>) {
        self.all.rotate_right(1);
        self.all[0].load(crashed);
    }
}

/// Whether two labels say the same of the pool, which is all that an opening takes from the newest one.
fn says_the_same(one: &Arc<Label>, other: &Arc<Label>) -> bool {
    Arc::ptr_eq(one, other) || one.pool == other.pool && one.config == other.config
}

/// The label that was written last.
pub fn newest<'a>(labels: impl Iterator<Item = &'a Arc<Label>>) -> Option<Arc<Label>> {
    labels.max_by_key(|label| label.generation).cloned()
}

/// Runs a future to its end: its drives complete immediately.
fn run<T>(handle: &Handle, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..STEPS {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        handle.run_ready(1);
    }
    panic!("an opening waits for something that never comes")
}
