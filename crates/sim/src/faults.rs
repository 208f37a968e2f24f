//! Faults around a power cut: drives that rot, are missing, return in an earlier state, or are
//! others than they should be.

use crate::content::owner_of;
use crate::drive::SimDrive;
use crate::image::Image;
use crate::medium::Loss;
use crate::oracle::Wrong;
use crate::random::Random;
use crate::run::{POOL, Run, Step};
use std::rc::Rc;
use std::sync::Arc;
use units::BLOCK;

/// How a copy of a drive is opened.
const TWIN: &str = "given:twin";

impl Run {
    /// Drives that are there, as they are opened.
    pub fn present(&self) -> Vec<String> {
        let absent = self.absent.as_ref().map(|absent| absent.0);
        let specs = self.plan.specs().into_iter().enumerate();
        specs
            .filter(|(number, _)| Some(*number) != absent)
            .map(|(_, spec)| spec)
            .collect()
    }

    /// The member that is away is there again, with what it has; a pool that could not do without it
    /// opens now.
    pub fn bring_back(&mut self) {
        let Some((leg, _)) = self.absent.take() else {
            return;
        };
        let drive = self.watch.drives.borrow()[leg].clone();
        let spec = &self.plan.drives[leg].spec;
        drives::give(spec, Some(Rc::new(move || drive.open())));
        self.watch.checker.set_absent(None);
    }

    /// In some runs there is a drive of another pool.
    pub fn meet_foreigner(&mut self) -> Step {
        if !self.random.one_in(4) {
            return Ok(());
        }
        let spec = self.plan.pool("other");
        let made = self.engine().pool_create(&spec);
        made.map_err(|failed| Wrong(format!("no other pool: {failed}")))?;
        self.foreign = Some(
            self.watch.drives.borrow()[0]
                .crash(Loss::None, &mut self.random)
                .image(),
        );
        self.pull_the_plug();
        let empty = self.plan.drives.iter().map(|drive| Image::new(drive.size));
        let empty = empty.collect();
        self.begin_life(empty);
        Ok(())
    }

    /// While the power is off, the bad drive rots, and a member of a mirror goes away or comes back
    /// as it was when it went.
    pub fn while_off(&mut self, images: &mut [Image]) {
        if let Some((drive, faults)) = self.plan.bad
            && faults.rot != 0
        {
            let hits = rot(&mut images[drive], &mut self.random);
            self.client.oracle.borrow_mut().hits.extend(hits);
        }
        if let Some((leg, image)) = self.absent.take() {
            images[leg] = image;
            self.returned = Some(leg);
            return self.watch.checker.set_absent(None);
        }
        let legs = self.plan.legs as u64;
        let often = if self.returned.is_some() { 2 } else { 3 };
        let all = self.plan.drives_where(true);
        if self.plan.rich && !all.is_empty() && self.plan.faulty.is_none() {
            // Of any mirror, and in most lives.
            let leg = *self.random.pick(&all);
            if !self.random.one_in(3) && self.watch.checker.spare_of(images).contains(&leg) {
                self.absent = Some((leg, images[leg].clone()));
            }
        } else if legs >= 2 && self.plan.faulty.is_none() && self.random.one_in(often) {
            let mut leg = self.random.below(legs) as usize;
            // The one that came back is alone, if it can be.
            if legs == 2 && self.returned == Some(leg) {
                leg = 1 - leg;
            }
            // A member that is not up to date yet does not know that it is not, if it is alone.
            if self.watch.checker.spare_of(images).contains(&leg) {
                self.absent = Some((leg, images[leg].clone()));
            }
        }
        self.watch
            .checker
            .set_absent(self.absent.as_ref().map(|absent| absent.0));
    }

    /// Before a pool is opened, a copy of a drive is there, or a drive is not, or something else in
    /// its place: all of that has to be refused.
    pub fn import_oddly(&mut self) -> Step {
        // A member that was taken offline by hand is not needed.
        if self.absent.is_some() || self.away.is_some() || !self.random.one_in(3) {
            return Ok(());
        }
        let number = self.random.below(self.plan.members as u64) as usize;
        let drive = self.plan.drives[number].clone();
        let here = self.watch.drives.borrow()[number].clone();
        let image = here.crash(Loss::None, &mut self.random);
        let mut specs = self.plan.specs();
        let what = match self.random.below(3) {
            0 => {
                let twin = SimDrive::new(number, &drive, image.image());
                drives::give(TWIN, Some(Rc::new(move || twin.open())));
                specs.push(TWIN.to_owned());
                "with a drive and its copy"
            }
            1 => {
                specs.remove(number);
                "without a drive"
            }
            _ => {
                let other = self.foreign.clone();
                let other = other.unwrap_or_else(|| Image::new(drive.size));
                let other = SimDrive::new(number, &drive, other);
                drives::give(&drive.spec, Some(Rc::new(move || other.open())));
                "with another drive in a place"
            }
        };
        let opened = self.engine().pool_import(&specs, POOL, false);
        drives::give(TWIN, None);
        let true_one: Arc<SimDrive> = here;
        drives::give(&drive.spec, Some(Rc::new(move || true_one.open())));
        match opened {
            Ok(_) => Err(Wrong(format!("it opens {what} ({})", drive.spec))),
            Err(_) => Ok(()),
        }
    }
}

/// Turns a bit over in a few blocks that hold what hosts wrote; returns whose.
fn rot(image: &mut Image, random: &mut Random) -> Vec<(u32, u64)> {
    let mut hits = Vec::new();
    for _ in 0..random.below(4) {
        let start = random.below(image.blocks());
        let found = (start..image.blocks())
            .filter_map(|block| Some((block, image.get(block)?.clone())))
            .find_map(|(block, content)| Some((block, owner_of(&content[..])?, content)));
        if let Some((block, owner, content)) = found {
            let bit = random.below(BLOCK as u64 * 8) as usize;
            image.set(block, Some(Arc::new(content.with_bit_turned(bit))));
            hits.push(owner);
        }
    }
    hits
}
