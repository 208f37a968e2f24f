//! One seed: a pool's lives, each ended by a power cut, with every crash in between looked at.

use crate::check::{Checker, Kind, MEMORY};
use crate::client::{Client, Target};
use crate::drive::{Faults, Moment, SimDrive, set_hook};
use crate::image::Image;
use crate::medium::Loss;
use crate::oracle::{SECTOR, Volume, Wrong};
use crate::plan::{CHUNKS, Plan};
use crate::random::Random;
use crate::world::World;
use engine::{Engine, EngineConfig};
use reactor::control::{self, Simulation};
use reactor::mix;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use units::CHUNK;

/// Virtual time after which an operation without faults has to have ended, in nanoseconds.
const PATIENCE_NS: u64 = 600_000_000_000;
/// Steps without an end that are a hang.
const STEPS: u64 = 50_000_000;
/// The pool of a run.
const POOL: &str = "tank";

/// What a run did.
#[derive(Clone, Copy, Default, Debug)]
pub struct Outcome {
    /// States that were opened and compared.
    pub states: u64,
    /// Writes and flushes of drives.
    pub moments: u64,
    /// Operations that ended well.
    pub operations: u64,
    /// Power cuts that the run went on after.
    pub cuts: u64,
    /// Changes of the pool.
    pub changes: u64,
    /// Virtual seconds.
    pub seconds: u64,
    /// Digest of everything that happened.
    pub trace: u64,
}

/// How long a run is and what is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    /// States to look at; the run ends when there were so many.
    pub states: u64,
    /// Changes of the pool at most.
    pub changes: u64,
}

/// A run that found something.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What.
    pub wrong: Wrong,
    /// What the run did until then.
    pub outcome: Outcome,
}

/// What the hook sees; shared with the drives' moments.
struct Watch {
    checker: Checker,
    client: Rc<Client>,
    drives: RefCell<Vec<Arc<SimDrive>>>,
    kinds: RefCell<Vec<Kind>>,
    random: RefCell<Random>,
    wanted: Cell<bool>,
    moments: Cell<u64>,
    limit: u64,
    trace: Cell<u64>,
    wrong: RefCell<Option<Wrong>>,
}

impl Watch {
    fn moment(&self, drive: usize, moment: Moment) {
        let digest = match moment {
            Moment::Write(first, count, digest) => first ^ count << 40 ^ digest,
            Moment::Flushed => 1,
        };
        let mixed = mix(self.trace.get() ^ digest ^ (drive as u64) << 56);
        self.trace.set(mixed);
        self.moments.set(self.moments.get() + 1);
        if self.wrong.borrow().is_some() || self.checker.states() >= self.limit {
            return;
        }
        let losses: &[Loss] = match moment {
            Moment::Write(..) => &[Loss::Torn],
            Moment::Flushed => &[Loss::All, Loss::None, Loss::Some],
        };
        let loss = *self.random.borrow_mut().pick(losses);
        let images = self.crash(loss);
        let oracle = self.client.oracle.borrow();
        let wanted = self.wanted.get();
        let checked = self
            .checker
            .check(&self.kinds.borrow(), &images, &oracle, wanted);
        if let Err(Wrong(what)) = checked {
            let at = self.moments.get();
            let wrong = Wrong(format!(
                "crash at moment {at} (drive {drive}, {moment:?}, {loss:?}): {what}"
            ));
            *self.wrong.borrow_mut() = Some(wrong);
        }
    }

    fn crash(&self, loss: Loss) -> Vec<Image> {
        let mut random = self.random.borrow_mut();
        let drives = self.drives.borrow();
        drives
            .iter()
            .map(|drive| drive.crash(loss, &mut random))
            .collect()
    }
}

/// A run under way.
pub struct Run {
    plan: Plan,
    random: Random,
    watch: Rc<Watch>,
    client: Rc<Client>,
    world: Rc<World>,
    simulation: Option<Simulation>,
    engine: Option<Engine>,
    length: Length,
    volumes: Vec<(String, u32)>,
    named: u64,
    outcome: Outcome,
}

type Step = Result<(), Wrong>;

/// Runs a seed to its end.
///
/// # Errors
/// What it found.
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
        let mut random = Random::new(seed);
        let plan = Plan::new(&mut random);
        let client = Client::new(random.next());
        let watch = Rc::new(Watch {
            checker: Checker::new(
                random.next(),
                if plan.faulty.is_some() { 0 } else { plan.legs },
            ),
            client: client.clone(),
            drives: RefCell::default(),
            kinds: RefCell::new(plan.kinds()),
            random: RefCell::new(Random::new(random.next())),
            wanted: Cell::new(false),
            moments: Cell::new(0),
            limit: length.states,
            trace: Cell::new(seed),
            wrong: RefCell::default(),
        });
        let world = World::new(plan.loops, random.next());
        let told = watch.clone();
        set_hook(Some(Rc::new(move |drive, moment| {
            told.moment(drive, moment)
        })));
        Self {
            plan,
            random,
            watch,
            client,
            world,
            simulation: None,
            engine: None,
            length,
            volumes: Vec::new(),
            named: 0,
            outcome: Outcome::default(),
        }
    }

    fn end(&mut self) -> Outcome {
        self.pull_the_plug();
        set_hook(None);
        Outcome {
            states: self.watch.checker.states(),
            moments: self.watch.moments.get(),
            operations: self.client.counts.get().0,
            trace: mix(self.watch.trace.get() ^ self.client.trace.get() ^ self.world.now_ns()),
            ..self.outcome
        }
    }

    fn found(&self) -> Step {
        let wrong = self.watch.wrong.borrow().clone();
        wrong.or_else(|| self.client.wrong()).map_or(Ok(()), Err)
    }

    fn is_over(&self) -> bool {
        self.watch.checker.states() >= self.length.states
            || self.outcome.changes >= self.length.changes
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("a life has an engine")
    }

    /// A new world over drives that hold `images`.
    fn begin_life(&mut self, images: Vec<Image>) {
        self.world = World::new(self.plan.loops, self.random.next());
        let (world, client) = (self.world.clone(), self.client.clone());
        let step = move || {
            client.tick();
            world.step()
        };
        self.simulation = Some(control::simulate(self.random.next(), step));
        let config = EngineConfig {
            journal_blocks: Some(self.plan.journal_blocks),
            ..MEMORY
        };
        let drives: Vec<_> = self
            .plan
            .drives
            .iter()
            .zip(images)
            .enumerate()
            .map(|(number, (drive, image))| {
                let made = SimDrive::new(number, &drive.spec, drive.size, image, drive.slow);
                let opened = made.clone();
                drives::give(&drive.spec, Some(Rc::new(move || opened.open())));
                made
            })
            .collect();
        *self.watch.drives.borrow_mut() = drives;
        self.engine = Some(Engine::on_loops(&config, self.world.remotes()));
    }

    fn pull_the_plug(&mut self) {
        self.outcome.seconds += self.world.now_ns() / 1_000_000_000;
        self.client.abandon();
        self.world.abandon();
        self.engine = None;
        self.simulation = None;
        engine::harness::forget_local();
        for drive in &self.plan.drives {
            drives::give(&drive.spec, None);
        }
    }

    fn live(&mut self) -> Step {
        let empty = self.plan.drives.iter().map(|drive| Image::new(drive.size));
        let empty = empty.collect();
        self.begin_life(empty);
        let spec = self.plan.pool(POOL);
        self.engine()
            .pool_create(&spec)
            .map_err(|failed| Wrong(format!("no pool: {failed}")))?;
        self.watch.wanted.set(true);
        self.create_volume()?;
        self.create_volume()?;
        self.fault(true);
        loop {
            let changes = self.random.within(1..=4);
            for _ in 0..changes {
                self.load()?;
                if self.is_over() {
                    return self.finish();
                }
                self.change()?;
            }
            self.cut_power()?;
        }
    }

    /// Operations for a while.
    fn load(&mut self) -> Step {
        // A storm now and then fills several pages of the journal at once.
        let storm = self.random.one_in(4);
        let depth = if storm { 64..=128 } else { 1..=12 };
        self.client.pace.set(if storm { 1 } else { 3 });
        self.client.depth.set(self.random.within(depth) as usize);
        self.client.turn();
        let steps = self.random.within(200..=3000);
        for _ in 0..steps {
            if !control::step() {
                return Err(Wrong("everything has come to rest under load".into()));
            }
        }
        self.found()
    }

    /// Waits until the client has all its answers.
    fn drain(&mut self) -> Step {
        self.client.depth.set(0);
        let deadline = self.world.now_ns() + PATIENCE_NS;
        for _ in 0..STEPS {
            if self.client.is_idle() {
                return self.found();
            }
            if !control::step() || self.world.now_ns() > deadline {
                break;
            }
        }
        let left = self.client.in_flight();
        Err(Wrong(format!("{left} operations never end")))
    }

    /// Lets virtual time pass.
    fn rest(&mut self, ns: u64) -> Step {
        let until = self.world.now_ns() + ns;
        self.client.pace.set(500);
        while self.world.now_ns() < until && control::step() {}
        self.client.pace.set(3);
        self.found()
    }

    fn change(&mut self) -> Step {
        self.outcome.changes += 1;
        match self.random.below(12) {
            0 => self.rest(self.plan.pause_ns)?,
            1 | 2 => self.cool()?,
            3 => self.grow()?,
            4 => self.shrink()?,
            5 => self.create_volume()?,
            6 => self.delete_volume()?,
            7 => self.audit()?,
            8 => self.reimport()?,
            9 => self.add_vdrive()?,
            10 => self.remove_vdrive()?,
            _ => self.rest(40_000_000_000)?,
        }
        while let Some(work) = self.simulation.as_ref().and_then(Simulation::take_work) {
            work();
        }
        self.found()
    }

    fn cool(&mut self) -> Step {
        self.client.pace.set(500);
        let cooled = self.engine().pool_cool(POOL);
        self.client.pace.set(3);
        cooled.map_err(|failed| Wrong(format!("it does not cool: {failed}")))
    }

    fn create_volume(&mut self) -> Step {
        if self.volumes.len() >= 4 {
            return Ok(());
        }
        self.named += 1;
        let name = format!("v{}", self.named);
        let spec = self.plan.volume(&name, &mut self.random);
        self.engine()
            .volume_create(POOL, &spec)
            .map_err(|failed| Wrong(format!("no volume: {failed}")))?;
        let number = self.named as u32;
        let known = Volume::of(spec.size);
        self.client
            .oracle
            .borrow_mut()
            .volumes
            .insert(number, known);
        self.volumes.push((name, number));
        self.open_volume(self.volumes.len() - 1)
    }

    fn open_volume(&mut self, index: usize) -> Step {
        let (name, number) = self.volumes[index].clone();
        let device = self
            .engine()
            .volume_open(POOL, &name)
            .map_err(|failed| Wrong(format!("{name} does not open: {failed}")))?;
        let least = u64::from(device.geometry().lba_size) / SECTOR as u64;
        self.client.add(Target {
            volume: number,
            device,
            chunks: CHUNKS.to_vec(),
            least,
        });
        Ok(())
    }

    fn delete_volume(&mut self) -> Step {
        if self.volumes.len() < 2 {
            return Ok(());
        }
        self.drain()?;
        let at = self.random.below(self.volumes.len() as u64) as usize;
        let (name, number) = self.volumes.remove(at);
        self.client.remove(number);
        self.client.oracle.borrow_mut().volumes.remove(&number);
        let deleted = self.engine().volume_delete(POOL, &name);
        deleted.map_err(|failed| Wrong(format!("{name} cannot be deleted: {failed}")))?;
        Ok(())
    }

    fn grow(&mut self) -> Step {
        let (name, number) = self.random.pick(&self.volumes).clone();
        let size = self.client.oracle.borrow().volumes[&number].size;
        let more = size + self.random.within(1..=64) * CHUNK as u64;
        let grown = self.engine().volume_resize(POOL, &name, more, false);
        grown.map_err(|failed| Wrong(format!("{name} does not grow: {failed}")))?;
        if let Some(known) = self.client.oracle.borrow_mut().volumes.get_mut(&number) {
            known.size = more;
        }
        Ok(())
    }

    fn shrink(&mut self) -> Step {
        self.drain()?;
        let (name, number) = self.random.pick(&self.volumes).clone();
        let size = self.client.oracle.borrow().volumes[&number].size;
        let less = (size / 2 / 4096 * 4096).max(CHUNK as u64);
        self.client.oracle.borrow_mut().cut(number, less);
        let shrunk = self.engine().volume_resize(POOL, &name, less, true);
        shrunk.map_err(|failed| Wrong(format!("{name} does not shrink: {failed}")))?;
        Ok(())
    }

    fn add_vdrive(&mut self) -> Step {
        let Some(spec) = self.plan.another_vdrive() else {
            return Ok(());
        };
        let added = self.engine().vdrive_add(POOL, &spec, false);
        let id = added.map_err(|failed| Wrong(format!("no vdrive: {failed}")))?;
        self.plan.added = Some(id);
        Ok(())
    }

    fn remove_vdrive(&mut self) -> Step {
        let Some(id) = self.plan.added else {
            return Ok(());
        };
        match self.engine().vdrive_remove(POOL, id) {
            Ok(_) => self.plan.leaving(),
            // What the pool holds may not fit without it.
            Err(failed) if failed.code == engine::ErrorCode::NoSpace => {}
            Err(failed) => return Err(Wrong(format!("the vdrive does not leave: {failed}"))),
        }
        Ok(())
    }

    fn audit(&mut self) -> Step {
        self.drain()?;
        // What is under way in the background ends within this.
        self.rest(3_000_000_000)?;
        let audit = self.engine().pool_audit(POOL);
        let audit = audit.map_err(|failed| Wrong(format!("no audit: {failed}")))?;
        match audit.wrong.first() {
            Some(wrong) => Err(Wrong(format!(
                "{} wrong in the books: {wrong}",
                audit.count
            ))),
            None => Ok(()),
        }
    }

    fn reimport(&mut self) -> Step {
        self.drain()?;
        let volumes: Vec<u32> = self.volumes.iter().map(|volume| volume.1).collect();
        volumes
            .iter()
            .for_each(|volume| self.client.remove(*volume));
        let exported = self.engine().pool_export(POOL);
        exported.map_err(|failed| Wrong(format!("it does not close: {failed}")))?;
        self.import()
    }

    /// The faulty drive goes wrong from now on, or behaves.
    fn fault(&self, on: bool) {
        if let Some((drive, faults)) = self.plan.faulty {
            let faults = if on { faults } else { Faults::default() };
            self.watch.drives.borrow()[drive].set_faults(faults);
        }
    }

    fn import(&mut self) -> Step {
        self.fault(false);
        let specs = self.plan.specs();
        let imported = self.engine().pool_import(&specs, POOL, false);
        imported.map_err(|failed| Wrong(format!("it does not open again: {failed}")))?;
        (0..self.volumes.len()).try_for_each(|index| self.open_volume(index))?;
        self.fault(true);
        Ok(())
    }

    /// The power goes, and comes back.
    fn cut_power(&mut self) -> Step {
        self.outcome.cuts += 1;
        let loss = *self
            .random
            .pick(&[Loss::None, Loss::All, Loss::Some, Loss::Torn]);
        let images = self.watch.crash(loss);
        self.pull_the_plug();
        self.client.oracle.borrow_mut().forget_in_flight();
        self.begin_life(images);
        self.import()?;
        self.read_everything()
    }

    /// Every sector that was ever written is what it may be, through the volumes themselves; from
    /// then on it stays so.
    fn read_everything(&mut self) -> Step {
        self.client.depth.set(0);
        for (_, number) in self.volumes.clone() {
            self.client.read_all(number);
            self.drain()?;
        }
        self.found()
    }

    fn finish(&mut self) -> Step {
        self.drain()?;
        self.audit()?;
        self.reimport()?;
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
    };

    #[test]
    fn the_same_seed_does_the_same_twice_and_another_something_else() {
        let trace = |seed| run(seed, SHORT).map(|outcome| (outcome.trace, outcome.moments));
        let (first, again, other) = (trace(1), trace(1), trace(2));
        let first = first.expect("nothing is wrong");
        assert_eq!(first, again.expect("nothing is wrong"));
        assert_ne!(first, other.expect("nothing is wrong"));
    }

    #[cfg(feature = "mutations")]
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
