//! How the lives of a pool end and begin: the power goes, between changes or in the middle of one, or the
//! engine is killed; the pool is opened again.

use crate::check::MEMORY;
use crate::client::{PARTS, UNFLUSHED, USUAL};
use crate::drive::SimDrive;
use crate::image::{Crashed, Image};
use crate::kills::Killed;
use crate::medium::{Loss, Medium};
use crate::oracle::{Oracle, Wrong};
use crate::run::{POOL, Run, Step, Watch};
use crate::transfer::Transfer;
use crate::world::World;
use block::Lasting;
use engine::{Engine, EngineConfig};
use reactor::control;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Pages of a journal and flushes of a life's first load that are all examined.
pub const FRESH: u64 = 16;
/// Pages of a journal that a short life leaves unflushed, if it can.
const PAGES: usize = 2;
/// Ends in a row, each in the middle of the opening that follows the one before.
const ENDS: u64 = 3;

/// How a life ended, and what that left.
pub enum End {
    /// The power went.
    Cut(Left),
    /// The engine was killed.
    Killed(Killed),
}

/// The state after a power cut.
pub struct Left {
    images: Vec<Crashed>,
    /// The hosts' view at that time, if it differs from the present one.
    oracle: Option<Oracle>,
    /// Blocks that a flush said were safe, and that may be gone.
    lied: BTreeSet<(u32, u64)>,
}

impl Watch {
    /// The state after a power cut now.
    fn cut_now(&self, loss: Loss, oracle: Option<Oracle>) -> Left {
        Left {
            images: self.crash(loss),
            oracle,
            lied: self.lied(),
        }
    }

    /// Power is cut after a number of further writes and flushes of drives: what is done until
    /// [`Self::take_left`] goes on to its end, as if the world did not know.
    pub fn cut_after(&self, moments: u64) {
        self.cut_in.set(moments);
    }

    /// The state after that power cut, if it was in time.
    pub fn take_left(&self) -> Option<Left> {
        self.cut_in.set(0);
        self.left.take()
    }

    /// A write or flush begins.
    pub fn count_down(&self) {
        let to_go = self.cut_in.get();
        self.cut_in.set(to_go.saturating_sub(1));
        if to_go == 1 {
            let loss = *self.random.borrow_mut().pick(&Loss::ALL);
            let oracle = self.client.oracle.borrow().clone();
            let left = self.cut_now(loss, Some(oracle));
            self.left.replace(Some(left));
        }
    }
}

impl Run {
    /// A new world over drives that hold `images`.
    pub fn begin_life(&mut self, images: Vec<Image>) {
        if let Some(memory) = &self.memory {
            memory.clear();
        }
        self.go_on(images.into_iter().map(Medium::new).collect());
    }

    /// A new world over drives with these contents.
    pub fn go_on(&mut self, contents: Vec<Medium>) {
        self.world = World::new(self.plan.loops, self.plan.order, self.random.next());
        let (world, client) = (self.world.clone(), self.client.clone());
        let together = self.together.clone();
        let step = move || {
            together.step();
            client.tick(world.now_ns());
            world.step()
        };
        self.simulation = Some(control::simulate(self.random.next(), step));
        let config = EngineConfig {
            journal_blocks: Some(self.plan.journal_blocks),
            meta_groups: self.plan.meta_groups(),
            map_cache: self.plan.map_cache,
            ram_tier: self.plan.ram_tier,
            spare_groups: self.plan.spare_groups,
            lasting: match &self.memory {
                Some(memory) => Lasting::of(memory.clone()),
                None => Lasting::NONE,
            },
            ..MEMORY
        };
        self.client.lenient.set(self.plan.wild);
        let absent = self.absent.as_ref().map(|absent| absent.0);
        let drives: Vec<_> = self
            .plan
            .drives
            .iter()
            .zip(contents)
            .enumerate()
            .map(|(number, (drive, content))| {
                let made = SimDrive::with(number, drive, content);
                made.set_faults(self.plan.calm);
                drives::give_number(&drive.spec, self.first_number + number as u64);
                let opened = made.clone();
                if Some(number) != absent {
                    drives::give(&drive.spec, Some(Rc::new(move || opened.open())));
                }
                made
            })
            .collect();
        *self.watch.drives.borrow_mut() = drives;
        self.watch.watch_memory(self.memory.as_ref());
        let engine = Rc::new(Engine::on_loops(&config, self.world.remotes()));
        self.together.begin(&engine);
        self.engine = Some(engine);
    }

    pub fn pull_the_plug(&mut self) {
        self.transfer.iter_mut().for_each(Transfer::interrupt);
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

    /// Perhaps everything is demoted, something is done and not flushed, and the power goes.
    pub fn short_life(&mut self) -> Step {
        self.outcome.changes += 1;
        match self.random.below(4) {
            0 if !self.client.lenient.get() => self.cool()?,
            1 => self.load_for(20..=200, USUAL)?,
            _ => {}
        }
        let mix = *self.random.pick(&[UNFLUSHED, UNFLUSHED, PARTS, USUAL]);
        self.load_for(20..=1000, mix)?;
        for _ in 0..self.random.below(5) * 1000 {
            if self.watch.unflushed_pages() >= PAGES {
                break;
            }
            self.steps(1)?;
        }
        self.end_life()
    }

    pub fn import(&mut self) -> Step {
        self.transfer.iter_mut().for_each(Transfer::interrupt);
        self.fault(false);
        let specs = self.present();
        let degraded = self.absent.is_some();
        let mut imported = self.engine().pool_import(&specs, POOL, degraded);
        if imported.is_err() && degraded && self.returned.is_some() {
            // The member that came back may still lack what only the other one has.
            self.bring_back();
            imported = self.engine().pool_import(&self.plan.specs(), POOL, false);
        }
        if imported.is_err() && self.plan.wild {
            self.lost = true;
            return Ok(());
        }
        imported.map_err(|failed| Wrong(format!("it does not open again: {failed}")))?;
        (0..self.volumes.len()).try_for_each(|index| self.open_volume(index))?;
        self.over = self.is_overpromised()?;
        self.beyond = self.beyond_quotas()?;
        self.look_at_reservations()?;
        self.look_at_policies()?;
        self.fault(true);
        Ok(())
    }

    pub fn end_life(&mut self) -> Step {
        if self.plan.tampered {
            return self.tamper();
        }
        match self.random.one_in(4) || self.plan.killed {
            true => self.kill(),
            false => self.cut_power(),
        }
    }

    /// The power goes, and comes back.
    pub fn cut_power(&mut self) -> Step {
        let loss = *self.random.pick(&Loss::ALL);
        self.go_on_from(self.watch.cut_now(loss, None))
    }

    /// The next life over what a power cut left.
    pub fn go_on_from(&mut self, left: Left) -> Step {
        self.begin_after(End::Cut(left))
    }

    /// The next life over what the end of the one before left; it may end again, in either way, while it begins.
    pub fn begin_after(&mut self, mut end: End) -> Step {
        for ends in 1.. {
            self.outcome.cuts += 1;
            self.pull_the_plug();
            let killed = matches!(end, End::Killed(_));
            match end {
                End::Cut(left) => self.begin_after_cut(left)?,
                End::Killed(killed) => self.begin_after_kill(killed),
            }
            if ends < ENDS {
                self.end_while_opening(killed);
            }
            self.import()?;
            let left = self.watch.take_left().map(End::Cut);
            match left.or(self.watch.take_killed().map(End::Killed)) {
                Some(next) => end = next,
                None => break,
            }
        }
        self.read_everything()?;
        self.is_bounded()?;
        self.watch.fresh.set(FRESH);
        Ok(())
    }

    /// The power went, and comes back.
    fn begin_after_cut(&mut self, left: Left) -> Step {
        let mut oracle = self.client.oracle.borrow_mut();
        oracle.power_went(left.oracle, left.lied);
        drop(oracle);
        let mut images: Vec<Image> = left.images.iter().map(Crashed::image).collect();
        self.while_off(&mut images);
        self.begin_life(images);
        self.import_oddly()
    }

    /// Perhaps the opening that follows ends in its middle.
    fn end_while_opening(&mut self, killed: bool) {
        let wanted = self.plan.midway && (!killed || self.plan.rich) && self.random.one_in(2);
        let kills = self.plan.rich && self.may_be_killed() && self.random.one_in(2);
        if wanted && !kills {
            let moments = self.random.within(1..=60);
            return self.watch.cut_after(moments);
        }
        self.kill_while_opening(killed, wanted);
    }
}
