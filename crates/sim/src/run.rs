//! One seed: a pool's lives, each ended by a power cut, with every crash in between examined.

use crate::check::Checker;
use crate::client::{Answers, Client, MIXES, Mix, PARTS, Target, UNFLUSHED, USUAL};
use crate::content::SECTOR;
use crate::drive::{Moment, SimDrive, set_hook};
use crate::groups::Group;
use crate::image::{Crashed, Image};
use crate::kills::{self, Kills};
use crate::lives::Left;
use crate::medium::Loss;
use crate::oracle::Wrong;
use crate::plan::{ALL_CHUNKS, Bent, Focus, Plan};
use crate::races::Together;
use crate::random::Random;
use crate::tamper::History;
use crate::transfer::Transfer;
use crate::world::World;
use block::{Completion, HostMemory};
use engine::Engine;
use reactor::control::{self, Simulation};
use reactor::mix;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use units::invariant;

/// Virtual time after which an operation without faults has to have ended, in nanoseconds.
const PATIENCE_NS: u64 = 600_000_000_000;
/// One moment in this many is examined while a snapshot of a group is taken.
const GROUP_LOOKS: u64 = 64;
/// Steps without an end that are a hang.
const STEPS: u64 = 50_000_000;
/// The pool of a run.
pub const POOL: &str = "tank";

/// Statistics of a run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Outcome {
    /// States that were opened and compared.
    pub states: u64,
    /// Of these, states that took over what was opened of another one that reads the same.
    pub shared: u64,
    /// Writes and flushes of drives.
    pub moments: u64,
    /// Operations that ended well.
    pub operations: u64,
    /// Power cuts that the run went on after.
    pub cuts: u64,
    /// Changes of the pool.
    pub changes: u64,
    /// Differences of snapshots that were examined.
    pub differences: u64,
    /// Snapshots that were received.
    pub received: u64,
    /// Snapshots of several volumes at one moment whose order was examined, and those that fell between
    /// changes that were in progress meanwhile.
    pub groups: u64,
    pub between: u64,
    /// Such snapshots that crashes left when they had just been taken.
    pub crashed_groups: u64,
    /// Virtual seconds.
    pub seconds: u64,
    /// Digest of everything that happened.
    pub trace: u64,
}

/// How long a run is and what is examined.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// States to examine; the run ends after this many.
    pub states: u64,
    /// Changes of the pool at most.
    pub changes: u64,
    /// Cuts at a moment for each that the plan has: they lose this or that, and many of them share what is recovered.
    pub cuts: u64,
    /// No drive goes wrong.
    pub healthy: bool,
    /// Nothing but snapshots of several volumes with writes that depend on one another.
    pub groups: bool,
    /// Events that happen more often than usual.
    pub focus: Option<Focus>,
    /// Tasks go in the order in which they became ready, and nothing races on purpose.
    pub plain: bool,
}

impl Length {
    /// Whether a seed's pool has the drives for what is to happen more than usual.
    pub fn suits(&self, seed: u64) -> bool {
        let suits = |focus: Focus| focus.suits(&Plan::of(seed, self));
        self.focus.is_none_or(suits)
    }

    /// Whether a seed's run has orders and races of its own: most have, one in four goes as an engine in use does.
    pub fn is_rich(&self, seed: u64) -> bool {
        let races = self.focus.is_some_and(Focus::races);
        !self.plain && !self.groups && (races || !Random::new(seed.rotate_left(12)).one_in(4))
    }
}

/// A run that found something.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The fault.
    pub wrong: Wrong,
    /// Statistics of the run until then.
    pub outcome: Outcome,
}

/// State of the hook; shared with the drives' moments.
pub struct Watch {
    pub checker: Checker,
    pub client: Rc<Client>,
    pub drives: RefCell<Vec<Arc<SimDrive>>>,
    pub random: RefCell<Random>,
    pub wanted: Cell<bool>,
    pub moments: Cell<u64>,
    pub limit: u64,
    pub every: u64,
    pub looks: u64,
    pub cuts: u64,
    /// The drive that goes wrong has no copy.
    pub alone: bool,
    /// Nothing but snapshots of groups are examined.
    pub groups: bool,
    /// Moments of a life's first load that are all examined: what is left of the life before is
    /// near.
    pub fresh: Cell<u64>,
    pub trace: Cell<u64>,
    pub wrong: RefCell<Option<Wrong>>,
    /// Writes and flushes of drives until the power goes; never at 0.
    pub cut_in: Cell<u64>,
    /// The state that it left.
    pub left: RefCell<Option<Left>>,
    /// The same of the end of the engine alone.
    pub kills: Kills,
}

impl Watch {
    fn moment(&self, drive: usize, moment: Moment) {
        let digest = match moment {
            Moment::Write(first, count, digest)
            | Moment::Journal(first, count, digest)
            | Moment::Record(first, count, digest) => first ^ count << 40 ^ digest,
            Moment::Flushed => 1,
            Moment::Hit(..) | Moment::Refused(..) | Moment::Twice(_) | Moment::Stopped => 2,
        };
        let mixed = mix(self.trace.get() ^ digest ^ (drive as u64) << 56);
        self.trace.set(mixed);
        match moment {
            Moment::Hit(volume, block) if self.alone => {
                self.client.oracle.borrow_mut().hits.insert((volume, block));
                return;
            }
            Moment::Refused(volume, block) if self.alone => {
                let mut oracle = self.client.oracle.borrow_mut();
                oracle.refused.insert((volume, block));
                return;
            }
            Moment::Twice(block) => {
                let text = format!(
                    "drive {drive}: two writes from block {block} on are in flight concurrently"
                );
                self.wrong.borrow_mut().get_or_insert(Wrong(text));
                return;
            }
            Moment::Stopped if self.alone => return self.client.lenient.set(true),
            Moment::Hit(..) | Moment::Refused(..) | Moment::Stopped => return,
            _ => {}
        }
        self.moments.set(self.moments.get() + 1);
        self.checker.begin_moment();
        self.count_down();
        self.count_kill();
        if self.is_blind() {
            return;
        }
        if self.groups {
            // What a power cut leaves of snapshots that are being taken; it goes often enough besides.
            let taking = self.client.oracle.borrow().taking.is_some();
            let over = self.wrong.borrow().is_some() || self.checker.states() >= self.limit;
            if taking && !over && self.random.borrow_mut().one_in(GROUP_LOOKS) {
                self.look(drive, moment);
            }
            return;
        }
        // Records are rare, and what makes them valid is easily wrong.
        let fresh = self.fresh.get();
        let looks = match moment {
            Moment::Record(..) => self.looks,
            Moment::Journal(..) | Moment::Flushed if fresh > 0 => {
                self.fresh.set(fresh - 1);
                1
            }
            // The same moment may lose this or that: several cuts, more where much happens in between.
            _ if self.random.borrow_mut().one_in(self.every) => {
                (self.every * self.looks / 24).max(3)
            }
            _ => 0,
        };
        for _ in 0..looks * self.cuts {
            if self.wrong.borrow().is_some() || self.checker.states() >= self.limit {
                return;
            }
            self.look(drive, moment);
        }
    }

    /// Examines what a crash right now leaves.
    fn look(&self, drive: usize, moment: Moment) {
        let losses: &[Loss] = match moment {
            Moment::Write(..) | Moment::Journal(..) => {
                &[Loss::Torn, Loss::Torn, Loss::Some, Loss::Few]
            }
            _ => &Loss::ALL,
        };
        let loss = *self.random.borrow_mut().pick(losses);
        let images = self.crash(loss);
        self.client.oracle.borrow_mut().state_hits = self.lied();
        let oracle = self.client.oracle.borrow();
        let wanted = self.wanted.get();
        let rare = matches!(moment, Moment::Record(..)) || self.fresh.get() > 0;
        let checked = self.checker.check(images, &oracle, wanted, rare);
        if let Err(Wrong(what)) = checked {
            let at = self.moments.get();
            let wrong = Wrong(format!(
                "crash at moment {at} (drive {drive}, {moment:?}, {loss:?}): {what}"
            ));
            *self.wrong.borrow_mut() = Some(wrong);
        }
        drop(oracle);
        self.client.oracle.borrow_mut().state_hits.clear();
    }

    /// Pages of journals on the drive that has most of them that a power cut may take.
    pub fn unflushed_pages(&self) -> usize {
        let drives = self.drives.borrow();
        let pages = drives.iter().map(|drive| drive.unflushed_pages());
        pages.max().unwrap_or(0)
    }

    /// Falsely flushed data, which a power cut may lose if no other copy exists.
    pub fn lied(&self) -> BTreeSet<(u32, u64)> {
        if !self.alone {
            return BTreeSet::new();
        }
        let drives = self.drives.borrow();
        drives.iter().flat_map(|drive| drive.lied()).collect()
    }

    /// Content of all drives after a power cut now; now and then each loses data in a different way.
    pub fn crash(&self, loss: Loss) -> Vec<Crashed> {
        let mut random = self.random.borrow_mut();
        let apart = random.one_in(3);
        let drives = self.drives.borrow();
        let crash = |drive: &Arc<SimDrive>| {
            let own = *random.pick(&Loss::ALL);
            drive.crash(if apart { own } else { loss }, &mut random)
        };
        drives.iter().map(crash).collect()
    }
}

/// A run in progress.
pub struct Run {
    pub plan: Plan,
    pub random: Random,
    /// Settings of volumes are turned by chances of their own: the rest of the run is drawn as without.
    pub knobs: Random,
    /// The same of policies, and of races.
    pub policies: Random,
    pub races: Random,
    /// Long work within other long work.
    pub together: Rc<Together>,
    /// A member of a mirror that was taken offline manually.
    pub away: Option<String>,
    /// Memory for the tails of journals, on every other host.
    pub memory: Option<Arc<HostMemory>>,
    /// Number of the first drive, by which drives are known from copies of them.
    pub first_number: u64,
    pub watch: Rc<Watch>,
    pub client: Rc<Client>,
    pub world: Rc<World>,
    pub simulation: Option<Simulation>,
    pub engine: Option<Rc<Engine>>,
    pub length: Length,
    pub volumes: Vec<(String, u32)>,
    pub named: u64,
    /// Snapshots, by the oracle's numbers.
    pub snapshots: Vec<u32>,
    /// Snapshots that were taken together and not examined yet.
    pub groups: Vec<Group>,
    /// Clones, and the snapshots that they were made from.
    pub clones: BTreeMap<u32, u32>,
    /// The stream being sent.
    pub transfer: Option<Transfer>,
    /// Snapshots that were sent, and what they became.
    pub received: Vec<(u32, u32)>,
    /// A volume that is left alone.
    pub still: Option<u32>,
    /// A member that is away, and what it held when it went.
    pub absent: Option<(usize, Image)>,
    /// A member that was away once.
    pub returned: Option<usize>,
    /// A drive of another pool.
    pub foreign: Option<Image>,
    /// The pool does not open any longer, and may do so.
    pub lost: bool,
    /// More was promised than there is when this life began.
    pub over: bool,
    /// Volumes that held more than their quotas then.
    pub beyond: BTreeSet<u32>,
    /// Earlier moments that drives may be put back to.
    pub tampering: History,
    pub outcome: Outcome,
}

/// Nothing is wrong, or what is.
pub type Step = Result<(), Wrong>;

/// Runs a seed to its end.
///
/// # Errors
/// Its findings.
pub fn run(seed: u64, length: Length) -> Result<Outcome, Failure> {
    let mut run = Run::new(seed, length);
    let result = run.live();
    let outcome = run.end();
    match result.and_then(|()| run.found()) {
        Ok(()) => Ok(outcome),
        Err(wrong) => Err(Failure { wrong, outcome }),
    }
}

impl Run {
    fn new(seed: u64, length: Length) -> Self {
        // What another run on this thread left.
        invariant::watch(true);
        invariant::take();
        let mut random = Random::new(seed);
        let mut plan = Plan::new(&mut random, seed, &length);
        if let Some(focus) = length.focus {
            plan.focus(focus, &mut random.clone());
        }
        if length.healthy {
            (plan.faulty, plan.bad, plan.wild) = (None, None, false);
        }
        let client = Client::new(random.next());
        client.oracle.borrow_mut().wild = plan.wild;
        let watch = Rc::new(Watch {
            checker: Checker::new(random.next(), plan.kinds(), plan.fragile()),
            client: client.clone(),
            drives: RefCell::default(),
            random: RefCell::new(Random::new(random.next())),
            wanted: Cell::new(false),
            moments: Cell::new(0),
            limit: length.states,
            every: plan.every,
            looks: plan.looks,
            cuts: length.cuts,
            alone: plan.bad.is_some(),
            groups: length.groups,
            fresh: Cell::new(0),
            trace: Cell::new(seed),
            wrong: RefCell::default(),
            cut_in: Cell::new(0),
            left: RefCell::default(),
            kills: Kills::new(seed),
        });
        let world = World::new(plan.loops, plan.order, random.next());
        let told = watch.clone();
        set_hook(Some(Rc::new(move |drive, moment| {
            told.moment(drive, moment)
        })));
        let lasts = Random::new(seed.rotate_left(30)).one_in(2) || plan.killed;
        Self {
            plan,
            random,
            knobs: Random::new(seed.rotate_left(20)),
            policies: Random::new(seed.rotate_left(28)),
            races: Random::new(seed.rotate_left(52)),
            together: Together::new(seed.rotate_left(56)),
            away: None,
            memory: lasts.then(kills::memory),
            first_number: 0,
            watch,
            client,
            world,
            simulation: None,
            engine: None,
            length,
            volumes: Vec::new(),
            named: 0,
            snapshots: Vec::new(),
            groups: Vec::new(),
            clones: BTreeMap::new(),
            transfer: None,
            received: Vec::new(),
            still: None,
            absent: None,
            returned: None,
            foreign: None,
            lost: false,
            over: false,
            beyond: BTreeSet::new(),
            tampering: History::new(seed),
            outcome: Outcome::default(),
        }
    }

    fn end(&mut self) -> Outcome {
        self.pull_the_plug();
        set_hook(None);
        self.watch.unwatch_memory();
        Outcome {
            states: self.watch.checker.states(),
            shared: self.watch.checker.shared(),
            moments: self.watch.moments.get(),
            crashed_groups: self.watch.checker.groups(),
            operations: self.client.counts.get().0,
            trace: mix(self.watch.trace.get() ^ self.client.trace.get() ^ self.world.now_ns()),
            ..self.outcome
        }
    }

    pub fn found(&self) -> Step {
        if self.world.is_endless() {
            return Err(Wrong("what was asked for does not end under load".into()));
        }
        if let Some(breach) = invariant::take() {
            self.watch.wrong.borrow_mut().get_or_insert(Wrong(breach));
        }
        let wrong = self.watch.wrong.borrow().clone();
        wrong.or_else(|| self.client.wrong()).map_or(Ok(()), Err)
    }

    pub fn is_over(&self) -> bool {
        self.lost
            || self.watch.checker.states() >= self.length.states
            || self.outcome.changes >= self.length.changes
    }

    /// Requests to the engine may fail: a drive without a copy is faulty.
    pub fn is_excused(&self) -> bool {
        let oracle = self.client.oracle.borrow();
        self.client.lenient.get() || oracle.wild || !oracle.hits.is_empty()
    }

    /// An answer of the engine, which may be an error when that is excused.
    pub fn granted<T>(
        &self,
        what: &str,
        answer: Result<T, engine::EngineError>,
    ) -> Result<Option<T>, Wrong> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(_) if self.watch.alone || self.is_excused() => Ok(None),
            Err(failed) => Err(Wrong(format!("{what}: {failed}"))),
        }
    }

    pub fn engine(&self) -> &Engine {
        self.world.wait();
        self.engine.as_ref().expect("a life has an engine")
    }

    fn live(&mut self) -> Step {
        let empty = self.plan.drives.iter().map(|drive| Image::new(drive.size));
        let empty = empty.collect();
        self.begin_life(empty);
        self.meet_foreigner()?;
        let spec = self.plan.pool(POOL);
        self.engine()
            .pool_create(&spec)
            .map_err(|failed| Wrong(format!("no pool: {failed}")))?;
        self.watch.wanted.set(true);
        if self.length.groups {
            return self.live_in_groups();
        }
        self.create_volume()?;
        self.create_volume()?;
        self.create_ballast()?;
        self.fault(true);
        loop {
            if self.plan.bent == Bent::Lives && !self.random.one_in(4) {
                self.short_life()?;
                if self.is_over() {
                    return self.finish();
                }
                continue;
            }
            let changes = self.random.within(1..=4);
            for _ in 0..changes {
                self.load()?;
                if self.is_over() {
                    return self.finish();
                }
                if self.client.is_hopeless() {
                    break;
                }
                self.change()?;
                if self.away.is_some() && self.random.one_in(2) {
                    self.call_back()?;
                }
            }
            if self.lost {
                continue;
            }
            // The power goes when little is in progress, in the middle of a load, or when several
            // pages of the journal are not flushed.
            match self.random.below(3) {
                0 => {}
                1 => self.load()?,
                _ => self.load_with(true, UNFLUSHED)?,
            }
            self.end_life()?;
        }
    }

    /// A load at any depth for a number of steps.
    pub fn load_for(&mut self, steps: std::ops::RangeInclusive<u64>, mix: Mix) -> Step {
        self.client.pace.set(self.random.within(1..=2));
        self.client.depth.set(*self.random.pick(&[4, 16, 64, 128]));
        self.client.mix.set(mix);
        let steps = self.random.within(steps);
        self.steps(steps)
    }

    pub fn steps(&mut self, steps: u64) -> Step {
        if self.lost {
            return Ok(());
        }
        self.world.wait();
        for _ in 0..steps {
            if !control::step() && !self.client.is_hopeless() {
                return Err(Wrong("everything has come to rest under load".into()));
            }
        }
        self.found()
    }

    /// Operations for a while.
    pub fn load(&mut self) -> Step {
        // An occasional storm fills several pages of the journal together.
        let storm = self.random.one_in(4);
        let mix = match self.plan.bent {
            Bent::Snapshots => *self.random.pick(&[PARTS, USUAL]),
            _ => *self.random.pick(&MIXES),
        };
        self.load_with(storm, mix)
    }

    /// Many concurrent operations for a while.
    pub fn storm(&mut self) -> Step {
        let mix = *self.random.pick(&MIXES);
        self.load_with(true, mix)
    }

    pub fn load_with(&mut self, storm: bool, mix: Mix) -> Step {
        let depth = if storm { 64..=128 } else { 1..=12 };
        self.client.pace.set(if storm { 1 } else { 3 });
        self.client.depth.set(self.random.within(depth) as usize);
        self.client.turn();
        self.client.mix.set(mix);
        let steps = self.random.within(200..=3000);
        self.steps(steps)
    }

    /// Waits until the client has all its answers.
    pub fn drain(&mut self) -> Step {
        self.world.wait();
        self.client.depth.set(0);
        let began = self.world.now_ns();
        let mut why = "steps without end";
        for _ in 0..STEPS {
            if self.client.is_idle() {
                return self.found();
            }
            if !control::step() {
                why = "everything is at rest";
                break;
            }
            if self.world.now_ns() > began + PATIENCE_NS {
                why = "600 virtual seconds";
                break;
            }
        }
        let left = self.client.in_flight();
        let which = self.client.under_way();
        Err(Wrong(format!(
            "{left} operations never end: {why}: {which}"
        )))
    }

    /// Waits for a number of completions, while the client continues.
    pub fn wait_for(&self, answers: &Answers, count: usize) -> Result<Vec<Completion>, Wrong> {
        self.world.wait();
        let (mut found, began) = (answers.take(), self.world.now_ns());
        while found.len() < count {
            if !control::step() || self.world.now_ns() > began + PATIENCE_NS {
                let left = count - found.len();
                return Err(Wrong(format!("{left} operations of a stream never end")));
            }
            found.extend(answers.take());
        }
        Ok(found)
    }

    /// Lets virtual time pass.
    pub fn rest(&mut self, ns: u64) -> Step {
        self.world.wait();
        let until = self.world.now_ns() + ns;
        self.client.pace.set(500);
        while self.world.now_ns() < until && control::step() {}
        self.client.pace.set(3);
        self.found()
    }

    pub fn open_volume(&mut self, index: usize) -> Step {
        let (name, number) = self.volumes[index].clone();
        let device = self
            .engine()
            .volume_open(POOL, &name, None)
            .map_err(|failed| Wrong(format!("{name} does not open: {failed}")))?;
        let least = u64::from(device.geometry().lba_size) / SECTOR as u64;
        let fill = self.client.oracle.borrow().fill(number);
        let still = self.still == Some(number);
        self.client.add(Target {
            volume: number,
            fill,
            device,
            chunks: match still {
                true => ALL_CHUNKS.to_vec(),
                false => self.plan.chunks.to_vec(),
            },
            blocks: match still {
                true => [(self.plan.ballast / ALL_CHUNKS.len() as u64).clamp(1, 256); 2],
                false => self.plan.blocks,
            },
            least,
            still: still || self.is_receiving(number),
        });
        Ok(())
    }

    /// Whether a volume is being received: it has no other writers.
    pub fn is_receiving(&self, volume: u32) -> bool {
        let oracle = self.client.oracle.borrow();
        oracle
            .copying
            .as_ref()
            .is_some_and(|copying| copying.volume == volume)
    }

    /// Requests take long now and then, or not.
    pub fn slow(&self, on: bool) {
        let calm = if on {
            self.plan.calm
        } else {
            Default::default()
        };
        let drives = self.watch.drives.borrow();
        drives.iter().for_each(|drive| drive.set_faults(calm));
    }

    /// The faulty drive goes wrong from now on, or behaves.
    pub fn fault(&self, on: bool) {
        if let Some((drive, faults)) = self.plan.faulty.or(self.plan.bad) {
            let faults = if on { faults } else { self.plan.calm };
            self.watch.drives.borrow()[drive].set_faults(faults);
        }
    }

    /// Every sector that was ever written is what it may be, through the volumes themselves; from
    /// then on it stays so.
    pub fn read_everything(&mut self) -> Step {
        self.client.depth.set(0);
        for (_, number) in self.volumes.clone() {
            self.client.read_all(number);
            self.drain()?;
        }
        self.read_snapshots()?;
        self.found()
    }

    pub fn finish(&mut self) -> Step {
        if self.call_back()? {
            self.work();
        }
        self.drain()?;
        if self.lost {
            return Ok(());
        }
        self.audit()?;
        if self.client.lenient.get() {
            self.cut_power()?;
        }
        if !self.lost {
            self.reimport()?;
        }
        if self.lost {
            return Ok(());
        }
        self.scrub()?;
        self.read_everything()?;
        self.audit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Length = Length {
        states: 300,
        changes: 20,
        cuts: 1,
        healthy: false,
        groups: false,
        focus: None,
        plain: false,
    };

    #[test]
    fn the_same_seed_does_the_same_twice_and_another_something_else() {
        let trace = |seed| run(seed, SHORT).map(|outcome| (outcome.trace, outcome.moments));
        let (first, again, other) = (trace(1), trace(1), trace(2));
        let first = first.expect("nothing is wrong");
        assert_eq!(first, again.expect("nothing is wrong"));
        assert_ne!(first, other.expect("nothing is wrong"));
    }

    #[cfg(any(debug_assertions, feature = "mutations"))]
    #[test]
    fn a_known_bug_is_found_and_only_while_it_is_on() {
        use units::mutation::{Mutation, switch};
        switch(Some(Mutation::FlushNothing));
        let found = (1..20).find_map(|seed| run(seed, SHORT).err());
        switch(None);
        assert!(found.is_some());
        assert!(run(1, SHORT).is_ok());
    }
}
