//! Background work that races: two pieces of it are begun together, on the chunks that hosts use most.
//!
//! Long-running work waits in a simulation until it is run. Here the next piece is run in the middle of what waits for the
//! one before: in the shards both run concurrently, together with hosts' requests.

use crate::changes::SCRUB_RATE;
use crate::client::{HOT, PARTS, SAFE, UNFLUSHED, USUAL};
use crate::oracle::Wrong;
use crate::plan::Plan;
use crate::random::Random;
use crate::run::{POOL, Run, Step};
use engine::{Engine, ErrorCode, ScrubSpec};
use reactor::control;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Pieces of long work that wait within one another.
const DEEPEST: u64 = 3;
/// Steps until the next one is begun, about.
const OFTEN: u64 = 40;

/// A piece of background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// All is demoted, and copies leave the fast tier.
    Cool,
    /// Everything is read and compared.
    Scrub,
    /// A vdrive leaves.
    Evacuate,
    /// A snapshot is deleted: its layer goes into the one beneath.
    Merge,
    /// A member of a mirror comes back.
    Resync,
    /// A volume is deleted.
    Free,
}

impl Activity {
    /// Whether a pool has the drives for it.
    pub fn suits(self, plan: &Plan) -> bool {
        match self {
            Self::Cool => plan.has_slow_tier(),
            Self::Merge => plan.snapshots,
            Self::Resync => !plan.drives_where(true).is_empty() && plan.faulty.is_none(),
            Self::Scrub | Self::Evacuate | Self::Free => true,
        }
    }

    /// Two that suit a pool.
    fn pair(plan: &Plan, random: &mut Random) -> [Self; 2] {
        let all = [
            Self::Cool,
            Self::Cool,
            Self::Scrub,
            Self::Evacuate,
            Self::Merge,
            Self::Resync,
            Self::Free,
        ];
        let all: Vec<Self> = all.into_iter().filter(|it| it.suits(plan)).collect();
        let one = *random.pick(&all);
        let others: Vec<Self> = all.into_iter().filter(|it| *it != one).collect();
        [one, *random.pick(&others)]
    }
}

/// Runs long work within other long work, while that is wanted.
pub struct Together {
    wanted: Cell<bool>,
    depth: Cell<u64>,
    random: RefCell<Random>,
    engine: RefCell<Weak<Engine>>,
    /// One activity in the middle of other work, before more is begun.
    once: RefCell<Option<Once>>,
}

type Once = Box<dyn FnOnce(&Engine)>;

impl Together {
    /// Nothing is wanted yet.
    pub fn new(seed: u64) -> Rc<Self> {
        Rc::new(Self {
            wanted: Cell::new(false),
            depth: Cell::new(0),
            random: RefCell::new(Random::new(seed)),
            engine: RefCell::default(),
            once: RefCell::default(),
        })
    }

    /// Whether it is wanted from now on.
    pub fn wanted(&self, wanted: bool) {
        self.wanted.set(wanted);
    }

    /// This activity runs once in the middle of the next awaited work.
    pub fn once(&self, what: impl FnOnce(&Engine) + 'static) {
        self.once.replace(Some(Box::new(what)));
    }

    /// Activities that were skipped, since there was no such work.
    pub fn take_once(&self) -> Option<Once> {
        self.once.take()
    }

    /// This is the engine from now on, and nothing is in progress.
    pub fn begin(&self, engine: &Rc<Engine>) {
        self.wanted.set(false);
        self.once.take();
        self.engine.replace(Rc::downgrade(engine));
    }

    /// A step of the simulation: perhaps the next piece of work is begun, and runs to its end.
    pub fn step(&self) {
        if !self.wanted.get()
            || self.depth.get() >= DEEPEST
            || !self.random.borrow_mut().one_in(OFTEN)
        {
            return;
        }
        // Who holds the pool's description would be waited for, forever.
        let engine = self.engine.borrow().upgrade();
        let Some(engine) = engine.filter(|engine| engine.pool_is_steady(POOL) == Ok(true)) else {
            return;
        };
        let once = self.once.take();
        if let Some(once) = once {
            self.depth.set(self.depth.get() + 1);
            once(&engine);
            self.depth.set(self.depth.get() - 1);
        }
        if let Some(work) = control::take_work() {
            self.depth.set(self.depth.get() + 1);
            work();
            self.depth.set(self.depth.get() - 1);
        }
    }
}

impl Run {
    /// Two pieces of background work, and hosts, on the same chunks.
    pub fn race(&mut self) -> Step {
        if let Some(aim) = self.plan.aim {
            return self.aim_at(aim);
        }
        let pair = match self.plan.pair {
            Some(pair) => pair,
            None => Activity::pair(&self.plan, &mut self.random),
        };
        for activity in pair {
            self.prepare(activity)?;
        }
        if self.away.is_some() && self.races.one_in(3) {
            // What no cache had flushed is gone, on the member that is away, too.
            self.cut_power()?;
        }
        // An opening makes members the same again where nothing was flushed.
        let (cuts, mended) = (self.outcome.cuts, self.mended()?);
        let mut begun = Vec::new();
        for activity in pair {
            if !begun.contains(&activity) && self.begin(activity)? {
                begun.push(activity);
            }
        }
        let mixes = [HOT, PARTS, PARTS, UNFLUSHED, USUAL, SAFE];
        self.client.mix.set(*self.random.pick(&mixes));
        self.client.depth.set(*self.random.pick(&[4, 16, 64]));
        self.client.favour();
        self.together.wanted.set(true);
        let ended = match pair.contains(&Activity::Cool) {
            true => self.cool_under(1, 2000),
            false => {
                self.client.pace.set(1);
                Ok(())
            }
        };
        self.work();
        self.together.wanted.set(false);
        self.client.pace.set(3);
        ended?;
        if begun.contains(&Activity::Scrub) {
            self.scrubbed()?;
        }
        self.found()?;
        let compares = |pair: [Activity; 2]| {
            pair.contains(&Activity::Resync) || pair.contains(&Activity::Scrub)
        };
        let healthy = self.plan.faulty.is_none() && !self.client.lenient.get();
        if self.plan.pair.is_some_and(compares) && healthy {
            // Soon, as reads mend what they find.
            self.scrub_all()?;
        }
        match self.outcome.cuts == cuts && self.mended()? > mended {
            true => Err(Wrong("members of a mirror were not the same".into())),
            false => Ok(()),
        }
    }

    /// Blocks that members of mirrors had wrong since the pool was opened; none where a drive goes wrong.
    fn mended(&self) -> Result<u64, Wrong> {
        if self.watch.alone || self.plan.faulty.is_some() {
            return Ok(0);
        }
        let status = self.engine().pool_status(POOL);
        let status = self.granted("no status", status)?;
        let drives = status.into_iter().flat_map(|status| status.vdrives);
        let drives = drives.flat_map(|vdrive| vdrive.drives);
        Ok(drives.map(|drive| drive.repaired).sum())
    }

    /// Creates the objects that some work needs.
    fn prepare(&mut self, activity: Activity) -> Step {
        let mix = *self.random.pick(&[HOT, USUAL, PARTS]);
        match activity {
            Activity::Cool => self.load_for(20..=400, mix),
            Activity::Scrub => Ok(()),
            Activity::Evacuate => {
                if self.plan.added.is_none() {
                    self.add_vdrive()?;
                    self.load_for(100..=800, UNFLUSHED)?;
                }
                match self.random.one_in(2) && !self.client.lenient.get() {
                    true => self.cool(),
                    false => Ok(()),
                }
            }
            Activity::Merge => {
                if self.snapshots.len() < 3 || self.random.one_in(2) {
                    self.take_snapshot()?;
                    self.load_for(20..=300, mix)?;
                    if self.random.one_in(2) && !self.client.lenient.get() {
                        self.cool()?;
                    }
                }
                self.load_for(20..=300, HOT)
            }
            Activity::Resync => self.send_away(),
            Activity::Free => self.create_volume(),
        }
    }

    /// Queues some work. False if there is nothing to do.
    fn begin(&mut self, activity: Activity) -> Result<bool, Wrong> {
        if self.client.lenient.get() {
            return Ok(false);
        }
        match activity {
            Activity::Cool => {}
            Activity::Scrub => {
                let spec = ScrubSpec {
                    rate: SCRUB_RATE,
                    began_s: 1,
                };
                let begun = self.engine().pool_scrub(POOL, &spec);
                return Ok(self.granted("no scrub", begun)?.is_some());
            }
            Activity::Evacuate => self.remove_vdrive()?,
            Activity::Merge => self.delete_snapshot()?,
            Activity::Resync => return self.call_back(),
            Activity::Free => self.delete_volume()?,
        }
        Ok(true)
    }

    /// Result of a completed scrub.
    fn scrubbed(&mut self) -> Step {
        let status = self.engine().pool_scrub_status(POOL);
        let Some(status) = self.granted("no scrub", status)? else {
            return Ok(());
        };
        // What a drive gave while it was wrong was repaired.
        if self.watch.alone || self.plan.faulty.is_some() {
            return Ok(());
        }
        match (status.state.as_str(), status.errors + status.lost) {
            ("done", 0) => Ok(()),
            (state, wrong) => Err(Wrong(format!(
                "a scrub beside other work is {state} and finds {wrong} wrong: {:?}",
                status.faults.first()
            ))),
        }
    }

    /// A member of a mirror is taken offline manually, and lacks later writes.
    fn send_away(&mut self) -> Step {
        if !self.take_offline()? {
            return Ok(());
        }
        let mix = *self.random.pick(&[USUAL, SAFE, UNFLUSHED]);
        self.load_for(50..=600, mix)
    }

    /// A member of a mirror is taken offline manually, if the others suffice. False if the pool has no mirror, or a
    /// member is missing.
    pub fn take_offline(&mut self) -> Result<bool, Wrong> {
        let mirrored = self.plan.drives_where(true);
        // What goes wrong would be alone.
        let alone = self.plan.faulty.is_some();
        if mirrored.is_empty() || alone || self.away.is_some() || self.absent.is_some() {
            return Ok(false);
        }
        let drive = *self.random.pick(&mirrored);
        let spec = self.plan.drives[drive].spec.clone();
        match self.engine().drive_offline(POOL, &spec) {
            Ok(()) => self.away = Some(spec),
            // Nothing else has what it holds just now.
            Err(failed) if matches!(failed.code, ErrorCode::Refused | ErrorCode::Busy) => {}
            failed => drop(self.granted("a member cannot leave", failed)?),
        }
        Ok(true)
    }

    /// It comes back, and is resynced. False when none is away.
    pub fn call_back(&mut self) -> Result<bool, Wrong> {
        // One that is not there in this life comes back in a later one.
        let absent = self.absent.as_ref().map(|absent| absent.0);
        let absent = absent.map(|drive| self.plan.drives[drive].spec.clone());
        let Some(spec) = self.away.take_if(|spec| Some(&*spec) != absent.as_ref()) else {
            return Ok(false);
        };
        match self.engine().drive_online(POOL, &spec, false) {
            Ok(_) => Ok(true),
            failed => Ok(self.granted("a member cannot come back", failed)?.is_some()),
        }
    }
}
