//! Events of a pool besides operations: changes of its configuration, and moves between tiers.

use crate::client::{HOT, SAFE, UNFLUSHED, USUAL};
use crate::oracle::{Volume, Wrong};
use crate::plan::Bent;
use crate::request::Faults;
use crate::run::{POOL, Run, Step};
use engine::{ErrorCode, ScrubSpec};
use reactor::control::Simulation;
use units::{BLOCK, CHUNK};

/// Changes of a run in which data goes up and down.
const TIERS: [u64; 10] = [0, 1, 1, 2, 2, 15, 15, 15, 7, 17];
/// Bytes a second that a scrub reads.
pub const SCRUB_RATE: u64 = 1 << 30;

impl Run {
    pub fn change(&mut self) -> Step {
        self.outcome.changes += 1;
        if self.client.lenient.get() {
            return self.rest(self.plan.pause_ns);
        }
        if self.plan.knobs && self.knobs.one_in(3) {
            self.turn_knobs()?;
            return self.found();
        }
        if self.plan.policies && self.policies.one_in(4) {
            return self.set_policy();
        }
        let often = if self.plan.bent == Bent::Limits { 1 } else { 4 };
        if self.plan.limits && self.random.one_in(often) {
            self.limit()?;
            return self.found();
        }
        if self.plan.rich {
            let turn = self.races.below(12);
            match self.plan.bent {
                Bent::Control if turn > 0 => return self.control(),
                Bent::Races if turn > 1 => return self.race(),
                Bent::Control | Bent::Races => {}
                _ if turn < 3 => return self.race(),
                _ if turn == 3 => return self.reserve(),
                _ => {}
            }
        }
        if self.plan.snapshots && self.random.one_in(2) {
            self.change_snapshots()?;
            self.work();
            return self.found();
        }
        match self.plan.bent {
            Bent::Scrubs => self.scrub_under_load()?,
            Bent::Sinking => self.pound()?,
            Bent::Snapshots => self.cool()?,
            Bent::Openings => self.reimport()?,
            Bent::Races => self.race()?,
            Bent::Control => self.control()?,
            _ => self.change_anything()?,
        }
        self.work();
        self.found()
    }

    /// An action of the control plane with limits, clones or streams, under load.
    fn control(&mut self) -> Step {
        self.load_for(20..=200, USUAL)?;
        match self.random.below(12) {
            0 | 1 => self.limit()?,
            2 => self.reserve()?,
            3 | 4 => self.take_snapshot()?,
            5 => self.clone_snapshot()?,
            6 | 7 => {
                self.promote()?;
                self.load_for(50..=300, UNFLUSHED)?;
            }
            8 => self.delete_snapshot()?,
            9 => self.audit()?,
            _ => self.transfer()?,
        }
        self.work();
        self.is_within_quotas()?;
        self.found()
    }

    fn change_anything(&mut self) -> Step {
        let which = match self.plan.bent {
            Bent::Tiers => *self.random.pick(&TIERS),
            _ => self.random.below(19),
        };
        match which {
            0 => self.rest(self.plan.pause_ns),
            1 => self.cool(),
            2 | 14 => self.churn(),
            3 => self.grow(),
            4 => self.shrink(),
            5 => self.create_volume(),
            6 => self.delete_volume(),
            7 => self.audit(),
            8 => self.reimport(),
            9 | 10 => self.add_vdrive(),
            11..=13 => self.remove_vdrive(),
            15 => self.sink(),
            16 => self.stop(),
            17 if self.random.one_in(2) => self.scrub(),
            17 => self.scrub_under_load(),
            _ => self.rest(40_000_000_000),
        }
    }

    /// Jobs go on until they end.
    pub fn work(&self) {
        while let Some(work) = self.simulation.as_ref().and_then(Simulation::take_work) {
            self.world.wait();
            work();
        }
    }

    /// Every copy of everything is read: of what no drive damaged each is right.
    pub fn scrub(&mut self) -> Step {
        self.drain()?;
        self.fault(false);
        self.slow(false);
        self.rest(10_000_000_000)?;
        self.scrub_all()
    }

    /// The same while all of it changes.
    fn scrub_under_load(&mut self) -> Step {
        // There are many checkpoints.
        self.load_with(true, SAFE)?;
        self.fault(false);
        self.scrub_all()
    }

    pub fn scrub_all(&mut self) -> Step {
        let spec = ScrubSpec {
            rate: SCRUB_RATE,
            began_s: 1,
        };
        let begun = self.engine().pool_scrub(POOL, &spec);
        if self.granted("no scrub", begun)?.is_none() {
            return Ok(());
        }
        self.work();
        let status = self.engine().pool_scrub_status(POOL);
        self.slow(true);
        self.fault(true);
        let Some(status) = self.granted("no scrub", status)? else {
            return Ok(());
        };
        if self.watch.alone || self.plan.fragile().is_some() {
            return Ok(());
        }
        match (status.state.as_str(), status.errors + status.lost) {
            ("done", 0) => Ok(()),
            (state, wrong) => Err(Wrong(format!(
                "a scrub is {state} and finds {wrong} wrong: {:?}",
                status.faults.first()
            ))),
        }
    }

    /// One loop stands still for seconds under load, or everything for hours while nothing is
    /// in progress.
    fn stop(&mut self) -> Step {
        if self.random.one_in(2) {
            self.world
                .stop_one(self.random.within(1..=20) * 1_000_000_000);
            return self.load();
        }
        self.drain()?;
        self.rest(10_000_000_000)?;
        self.world
            .stop_all(self.random.within(1..=48) * 3_600_000_000_000);
        self.load()
    }

    pub fn cool(&mut self) -> Step {
        let (pace, budget) = *self.random.pick(&[(3, 100), (3, 400), (20, 10), (20, 100)]);
        self.cool_under(pace, budget)
    }

    /// Everything is demoted; it ends only when hosts pause after a number of operations.
    pub fn cool_under(&mut self, pace: u64, budget: u64) -> Step {
        self.client.pace.set(pace);
        self.client.budget.set(budget);
        let cooled = self.engine().pool_cool(POOL);
        self.client.pace.set(3);
        self.client.budget.set(u64::MAX);
        // What is left may be more than the slow tier has room for.
        if cooled
            .as_ref()
            .is_err_and(|failed| failed.code == ErrorCode::NoSpace)
        {
            return self.found();
        }
        self.granted("it does not cool", cooled).map(drop)
    }

    /// Promoted data is demoted repeatedly, while one chunk is mostly read and sometimes written.
    fn churn(&mut self) -> Step {
        self.client.mix.set(HOT);
        self.client.favour();
        self.client.depth.set(32);
        (0..4).try_for_each(|_| self.cool_under(1, 600))
    }

    /// A few blocks are written again and again while they be demoted.
    fn pound(&mut self) -> Step {
        self.client.mix.set(SAFE);
        self.client.depth.set(6);
        self.cool_under(1, 10_000)
    }

    /// A new volume is demoted for the first time, while every write makes itself durable.
    fn sink(&mut self) -> Step {
        if self.volumes.len() >= 4 {
            self.delete_volume()?;
        }
        self.create_volume()?;
        let number = self.volumes[self.volumes.len() - 1].1;
        if self.is_receiving(number) {
            return Ok(());
        }
        self.client.mix.set(SAFE);
        self.client.depth.set(12);
        self.client.fill(number);
        self.cool_under(3, 400)
    }

    /// In some pools a volume that is written once takes most of the fast tier.
    pub fn create_ballast(&mut self) -> Step {
        if !self.plan.tight {
            return Ok(());
        }
        let status = self.engine().pool_status(POOL);
        let status = status.map_err(|failed| Wrong(format!("no status: {failed}")))?;
        let blocks = status.capacity / BLOCK as u64;
        let used = self.plan.blocks[0] + self.plan.blocks[1] * (self.plan.chunks.len() as u64 - 1);
        let left = 2 * used + self.random.within(32..=256);
        self.plan.ballast = blocks.saturating_sub(left);
        self.still = Some(self.named as u32 + 1);
        self.create_volume()?;
        if !self.plan.filled {
            self.client.fill(self.named as u32);
            self.drain()?;
            self.client.flush(self.named as u32);
        }
        Ok(())
    }

    pub fn create_volume(&mut self) -> Step {
        let most = match self.length.groups {
            true => usize::MAX,
            false if self.still.is_some() => 3,
            false => 4,
        };
        if self.volumes.len() >= most {
            return Ok(());
        }
        self.named += 1;
        let name = format!("v{}", self.named);
        let spec = self.plan.volume(&name, &mut self.random);
        let made = self.engine().volume_create(POOL, &spec);
        let number = made
            .map_err(|failed| Wrong(format!("no volume: {failed}")))?
            .id;
        let known = Volume::of(number, spec.size);
        self.client
            .oracle
            .borrow_mut()
            .volumes
            .insert(number, known);
        self.volumes.push((name, number));
        self.open_volume(self.volumes.len() - 1)?;
        if self.plan.filled {
            self.client.fill(number);
            self.drain()?;
            self.client.flush(number);
        }
        Ok(())
    }

    pub fn delete_volume(&mut self) -> Step {
        if self.volumes.len() < 2 {
            return Ok(());
        }
        self.drain()?;
        let at = self.random.below(self.volumes.len() as u64) as usize;
        let number = self.volumes[at].1;
        if self.has_snapshots(number) || self.is_receiving(number) {
            return Ok(());
        }
        let (name, number) = self.volumes.remove(at);
        self.clones.remove(&number);
        self.client.remove(number);
        self.client.oracle.borrow_mut().volumes.remove(&number);
        let deleted = self.engine().volume_delete(POOL, &name);
        deleted.map_err(|failed| Wrong(format!("{name} cannot be deleted: {failed}")))?;
        Ok(())
    }

    fn grow(&mut self) -> Step {
        let (name, number) = self.random.pick(&self.volumes).clone();
        if self.is_receiving(number) {
            return Ok(());
        }
        let size = self.client.oracle.borrow().volumes[&number].size;
        let more = size + self.random.within(1..=64) * CHUNK as u64;
        match self.engine().volume_resize(POOL, &name, more, false) {
            Ok(_) => {}
            // One that is pinned as a whole would have more of the fast tier for itself than there is.
            Err(refused) if refused.message.contains("by pins or its floor") => return Ok(()),
            Err(failed) => return Err(Wrong(format!("{name} does not grow: {failed}"))),
        }
        if let Some(known) = self.client.oracle.borrow_mut().volumes.get_mut(&number) {
            known.size = more;
        }
        Ok(())
    }

    fn shrink(&mut self) -> Step {
        // It fails when a flush does, and then it is unknown what was truncated.
        let stops = |faults: Faults| faults.flush_error + faults.hang > 0;
        if self.plan.bad.is_some_and(|(_, faults)| stops(faults)) {
            return Ok(());
        }
        self.drain()?;
        let (name, number) = self.random.pick(&self.volumes).clone();
        if self.is_receiving(number) {
            return Ok(());
        }
        let size = self.client.oracle.borrow().volumes[&number].size;
        let less = (size / 2 / 4096 * 4096).max(CHUNK as u64);
        self.client.oracle.borrow_mut().cut(number, less);
        let shrunk = self.engine().volume_resize(POOL, &name, less, true);
        shrunk.map_err(|failed| Wrong(format!("{name} does not shrink: {failed}")))?;
        Ok(())
    }

    pub fn add_vdrive(&mut self) -> Step {
        let Some(spec) = self.plan.another_vdrive() else {
            return Ok(());
        };
        match self.engine().vdrive_add(POOL, &spec, false) {
            Ok(id) => self.plan.added = Some(id),
            // It may not have left yet when the power went.
            Err(_) if self.plan.left => {}
            Err(failed) => return Err(Wrong(format!("no vdrive: {failed}"))),
        }
        Ok(())
    }

    pub fn remove_vdrive(&mut self) -> Step {
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

    pub fn audit(&mut self) -> Step {
        self.drain()?;
        // Space of a timed-out write stays taken until the pool is opened again, and what
        // cannot be read is tried again forever, so that the pool is never at rest.
        if self.is_excused() {
            return Ok(());
        }
        // What is in progress in the background ends within this, on drives that take no longer
        // than usual; of mirrors one may still keep it waiting.
        self.fault(false);
        self.slow(false);
        self.rest(self.hangs_for_ns() + 10_000_000_000)?;
        let audit = self.engine().pool_audit(POOL);
        let over = self.is_overpromised();
        self.slow(true);
        self.fault(true);
        if !self.over && over? {
            return Err(Wrong("more is promised than there is".into()));
        }
        let audit = audit.map_err(|failed| Wrong(format!("no audit: {failed}")))?;
        match audit.wrong.first() {
            Some(wrong) => Err(Wrong(format!(
                "{} wrong in the books: {wrong}",
                audit.count
            ))),
            None => Ok(()),
        }
    }

    /// For how long a request of a drive still hangs, in nanoseconds.
    fn hangs_for_ns(&self) -> u64 {
        self.world.wait();
        let drives = self.watch.drives.borrow();
        let ends = drives.iter().map(|drive| drive.hangs_until_ns()).max();
        ends.map_or(0, |ends| ends.saturating_sub(self.world.now_ns()))
    }

    pub fn reimport(&mut self) -> Step {
        // A job that an opening resumed is a thread of its own; here only this runs it.
        self.work();
        self.drain()?;
        let volumes: Vec<u32> = self.volumes.iter().map(|volume| volume.1).collect();
        volumes
            .iter()
            .for_each(|volume| self.client.remove(*volume));
        let exported = self.engine().pool_export(POOL);
        self.granted("it does not close", exported)?;
        // When a flush failed in that, its space seems to be in use, and its state is unknown.
        match self.client.lenient.get() && !self.plan.wild {
            true => self.cut_power(),
            false => self.import(),
        }
    }
}
