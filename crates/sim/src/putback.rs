//! Drives that are put back to what they were before the last opening, or cut short, while the power is off: an import has
//! to refuse them where no other drive has what they hold.

use crate::drive::SimDrive;
use crate::image::Image;
use crate::medium::Loss;
use crate::oracle::Wrong;
use crate::plan::DrivePlan;
use crate::run::{POOL, Run, Step};
use format::{Label, LayoutConfig, label_offsets};
use std::rc::Rc;
use units::BLOCK;

impl Run {
    /// The drives before this opening. `ended`: the one before went to its end.
    fn note_past(&mut self, ended: bool) -> Option<Vec<Image>> {
        let drives = self.watch.drives.borrow().clone();
        let images = drives
            .iter()
            .map(|drive| drive.crash(Loss::None, &mut self.random).image());
        let images = images.collect();
        match ended || self.past.is_none() {
            true => self.past.replace(images),
            false => self.past.clone(),
        }
    }

    /// Before a pool is opened, a drive or all metadata is as it was before the last opening, or a drive lacks its end.
    pub fn import_put_back(&mut self, ended: bool) -> Step {
        let Some(past) = self.note_past(ended) else {
            return Ok(());
        };
        let sound = self.plan.bad.is_none() && self.plan.faulty.is_none();
        if !sound || self.absent.is_some() || self.returned.is_some() || !self.random.one_in(2) {
            return Ok(());
        }
        let drives = self.watch.drives.borrow().clone();
        let now = drives.iter().map(|drive| drive.crash(Loss::None, &mut self.random).image());
        let now: Vec<Image> = now.collect();
        let Some(label) = self.newest_label(&now) else {
            return Ok(());
        };
        let mut given: Vec<(usize, DrivePlan, Image)> = Vec::new();
        let what = match self.random.below(3) {
            0 => {
                let alone = label.config.vdrives.iter();
                let alone = alone.filter(|vdrive| vdrive.layout != LayoutConfig::Mirror);
                let alone: Vec<String> = alone
                    .flat_map(|vdrive| vdrive.parts.iter().map(|part| part.drive.clone()))
                    .collect();
                let is_alone = |number: &usize| {
                    let own = self.label_of(*number, &past[*number]);
                    own.is_some_and(|own| alone.contains(&own.drive.to_string()))
                };
                let known: Vec<usize> = (0..past.len()).filter(is_alone).collect();
                if known.is_empty() {
                    return Ok(());
                }
                let number = *self.random.pick(&known);
                given.push((number, self.plan.drives[number].clone(), past[number].clone()));
                "with a drive that was put back"
            }
            1 => {
                for (number, image) in now.iter().enumerate() {
                    let Some(own) = self.label_of(number, image) else {
                        continue;
                    };
                    let drive = own.drive.to_string();
                    let parts = label.config.meta.parts.iter();
                    for part in parts.filter(|part| part.drive == drive) {
                        let (mut image, first) = (image.clone(), part.offset / BLOCK as u64);
                        for block in first..first + part.blocks {
                            image.set(block, past[number].get(block).cloned());
                        }
                        given.push((number, self.plan.drives[number].clone(), image));
                    }
                }
                "with metadata that was put back"
            }
            _ => {
                let number = self.random.below(self.plan.members as u64) as usize;
                let own = self.label_of(number, &now[number]);
                let drive = own.map(|own| own.drive.to_string()).unwrap_or_default();
                let end = label.config.parts_end(&drive);
                if end == 0 {
                    return Ok(());
                }
                let plan = DrivePlan {
                    size: end - BLOCK as u64,
                    ..self.plan.drives[number].clone()
                };
                given.push((number, plan, now[number].clone()));
                "with a drive that was cut short"
            }
        };
        for (number, plan, image) in given {
            let drive = SimDrive::new(number, &plan, image);
            drives::give(&plan.spec, Some(Rc::new(move || drive.open())));
        }
        let opened = self.engine().pool_import(&self.plan.specs(), POOL, false);
        for (drive, plan) in drives.into_iter().zip(&self.plan.drives) {
            drives::give(&plan.spec, Some(Rc::new(move || drive.open())));
        }
        match opened {
            Ok(_) => Err(Wrong(format!("it opens {what}"))),
            Err(_) => Ok(()),
        }
    }

    /// The newest label of a drive that holds this.
    fn label_of(&self, number: usize, image: &Image) -> Option<Label> {
        let labels = label_offsets(self.plan.drives[number].size).map(|offset| {
            let mut bytes = vec![0; 64 << 10];
            image.read(offset / BLOCK as u64, &mut bytes);
            Label::decode(&bytes).ok()
        });
        let labels = labels.into_iter().flatten();
        labels.max_by_key(|label| label.generation)
    }

    fn newest_label(&self, images: &[Image]) -> Option<Label> {
        let labels = images.iter().enumerate();
        let labels = labels.filter_map(|(number, image)| self.label_of(number, image));
        labels.max_by_key(|label| label.generation)
    }
}
