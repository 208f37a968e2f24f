//! Schedules that each show one kind of race: the preparation is deliberate, and only the timing is random.

use crate::client::{HALVES, HOT, UNFLUSHED, USUAL};
use crate::oracle::Wrong;
use crate::run::{POOL, Run, Step};
use engine::Engine;
use reactor::control;
use std::cell::RefCell;
use std::rc::Rc;

/// The race that a run provokes repeatedly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// A volume whose homes are being written is deleted.
    Deletion,
    /// A vdrive is removed while hosts' writes to it are in flight.
    Departure,
    /// A member goes out with unflushed writes, and returns under load.
    Absence,
    /// Layers are merged while hosts wait for what their pages have at home.
    ColdMerge,
    /// Extents evicted from RAM are promoted while hosts write them, and are demoted.
    Promotion,
    /// One sector of a block is zeroed while another is written, and all others are zeroes.
    Halves,
}

impl Run {
    /// One such schedule.
    pub fn aim_at(&mut self, aim: Aim) -> Step {
        match aim {
            Aim::Deletion => self.delete_what_sinks(),
            Aim::Departure => self.remove_what_is_written(),
            Aim::Absence => self.return_beneath_writes(),
            Aim::ColdMerge => self.merge_what_is_cold(),
            Aim::Promotion => self.promote_what_sinks(),
            Aim::Halves => self.load_for(1000..=4000, HALVES),
        }?;
        self.found()
    }

    /// Writes all that is used of every volume, and waits for it.
    fn fill_all(&mut self) -> Step {
        for (_, volume) in self.volumes.clone() {
            self.client.fill(volume);
            self.drain()?;
        }
        Ok(())
    }

    fn delete_what_sinks(&mut self) -> Step {
        if self.volumes.len() >= 3 {
            self.delete_volume()?;
            self.work();
        }
        self.create_volume()?;
        self.drain()?;
        // What is written the second time is stale at a home.
        self.fill_all()?;
        self.cool_under(1, 0)?;
        self.fill_all()?;
        let Some((name, number)) = self.volumes.pop() else {
            return Ok(());
        };
        self.client.remove(number);
        self.client.oracle.borrow_mut().volumes.remove(&number);
        let failed = Rc::new(RefCell::new(None));
        let told = failed.clone();
        let delete = move |engine: &Engine| {
            if let Err(failed) = engine.volume_delete(POOL, &name) {
                told.replace(Some(Wrong(format!("{name} cannot be deleted: {failed}"))));
            }
            if let Some(work) = control::take_work() {
                work();
            }
        };
        self.together.once(delete);
        self.client.mix.set(USUAL);
        self.client.depth.set(4);
        self.together.wanted(true);
        let cooled = self.cool_under(1, 400);
        self.together.wanted(false);
        if let Some(delete) = self.together.take_once() {
            delete(self.engine());
        }
        self.work();
        cooled?;
        if let Some(failed) = failed.take() {
            return Err(failed);
        }
        self.audit()
    }

    fn remove_what_is_written(&mut self) -> Step {
        self.add_vdrive()?;
        self.load_for(200..=1500, UNFLUSHED)?;
        self.client.depth.set(64);
        self.client.pace.set(1);
        self.remove_vdrive()?;
        self.work();
        self.load_for(20..=200, HOT)
    }

    fn return_beneath_writes(&mut self) -> Step {
        self.load_for(50..=400, UNFLUSHED)?;
        let quiet = self.random.one_in(2);
        if quiet {
            self.drain()?;
        }
        self.take_offline()?;
        if quiet {
            // What is not flushed yet is flushed without the member.
            self.rest(1_000_000_000)?;
        }
        if self.away.is_some() && self.random.one_in(3) {
            self.cut_power()?;
        }
        if self.lost {
            return Ok(());
        }
        self.load_for(5..=200, UNFLUSHED)?;
        self.call_back()?;
        self.work();
        match self.client.lenient.get() {
            true => Ok(()),
            false => self.scrub_all(),
        }
    }

    fn merge_what_is_cold(&mut self) -> Step {
        if self.snapshots.len() > 2 {
            self.delete_snapshot()?;
            self.work();
        }
        self.take_snapshot()?;
        self.fill_all()?;
        self.cool_under(1, 0)?;
        // Nothing is left in memory.
        self.reimport()?;
        if self.lost {
            return Ok(());
        }
        self.delete_snapshot()?;
        self.client.mix.set(HOT);
        self.client.depth.set(64);
        self.client.pace.set(1);
        self.client.favour();
        self.steps(self.plan.pause_ns % 100)?;
        self.work();
        self.load_for(20..=200, HOT)
    }

    fn promote_what_sinks(&mut self) -> Step {
        self.client.mix.set(HOT);
        self.client.favour();
        self.client.depth.set(16);
        (0..2).try_for_each(|_| self.cool_under(1, 3000))
    }
}
