//! A pool is opened from drives that were changed while it was closed ([`crate::tamper`]), and the result is held
//! against docs/fault-model.md:
//!
//! - it is refused with a reason, or it opens and reports what is old;
//! - nothing old is read unless that was said: a block is right, or its read fails where no other drive has it;
//! - what other drives have opens, by an explicit word at the latest, and is all there;
//! - what is old opens by the word that accepts it: where all drives were restored to an earlier state to one moment, it is what hosts knew then;
//! - a refused opening spoils no drive: with the right ones back all is there.
//!
//! Labels do not detect everything: metadata that all went back by less than two labels, on a host that has seen no newer
//! one, is accepted.

use crate::client::{Answers, USUAL};
use crate::content::SECTOR;
use crate::image::{Crashed, Image};
use crate::medium::Loss;
use crate::oracle::{Oracle, Wrong};
use crate::run::{POOL, Run, Step};
use crate::tamper::{Case, Deed, Label, Moment, Roles};
use crate::transfer::submit;
use block::{IoBuf, OpKind};
use engine::{ImportOptions, MissingDrives};
use std::collections::BTreeSet;
use std::sync::Arc;
use units::BLOCK;

/// What an opening gave.
struct Found {
    /// It was said that something is old.
    told: bool,
    /// What differs from what hosts know, and what cannot be read; the first of each.
    old: Option<Wrong>,
    lost: Option<Wrong>,
    /// What was never there, or is not of the moment that all drives were restored to.
    wrong: Option<Wrong>,
}

/// What labels tell about drives that were changed.
struct Told {
    labels: Vec<Label>,
    /// Generation of the newest label.
    newest: u64,
    /// Metadata went back, and by so little that no label shows it.
    unnoticed: bool,
    /// Drives that something was done to bear labels of theirs.
    labelled: bool,
}

impl Run {
    /// A life ends, drives are tampered with, and the consequences are examined; then the right drives are there, or those
    /// that an opening has taken.
    pub fn tamper(&mut self) -> Step {
        if self.tampering.random.one_in(3) {
            self.note_moment();
            self.load_for(50..=300, USUAL)?;
        }
        let oracle = match self.tampering.random.one_in(2) {
            true => self.close()?,
            false => {
                self.client
                    .oracle
                    .borrow_mut()
                    .power_went(None, BTreeSet::new());
                self.client.oracle.borrow().clone()
            }
        };
        let images = self.images(Loss::None);
        self.pull_the_plug();
        let now = Moment {
            life: self.outcome.cuts,
            images,
            oracle,
            volumes: self.volumes.clone(),
        };
        let sizes: Vec<u64> = self.plan.drives.iter().map(|drive| drive.size).collect();
        let (labels, newest) = self.labels(&now.images);
        let config = newest.ok_or_else(|| Wrong("a closed pool has no label".into()))?;
        let roles = Roles::new(config, &labels);
        let mut images = now.images.clone();
        if let Some(case) = Case::draw(&mut self.tampering, &now.images, &sizes, &roles) {
            let text = format!("{:?} {:?}", case.deed, case.touched);
            self.watch.see_crashes(false);
            let left = self.try_out(&case, &now, &roles, &labels);
            self.watch.see_crashes(true);
            images =
                left.map_err(|Wrong(what)| Wrong(format!("drives changed ({text}): {what}")))?;
        }
        self.tampering.add(now);
        self.outcome.cuts += 1;
        self.begin_life(images);
        self.import()?;
        self.read_everything()?;
        self.found()
    }

    /// What drives hold and hosts know now, as after a power cut.
    fn note_moment(&mut self) {
        let mut oracle = self.client.oracle.borrow().clone();
        oracle.power_went(None, BTreeSet::new());
        let moment = Moment {
            life: self.outcome.cuts,
            images: self.images(Loss::None),
            oracle,
            volumes: self.volumes.clone(),
        };
        self.tampering.add(moment);
    }

    fn images(&mut self, loss: Loss) -> Vec<Image> {
        let drives = self.watch.drives.borrow().clone();
        let random = &mut self.tampering.random;
        let crash = |drive: &Arc<crate::drive::SimDrive>| drive.crash(loss, random).image();
        drives.iter().map(crash).collect()
    }

    /// The pool is closed in order; what hosts know then.
    fn close(&mut self) -> Result<Oracle, Wrong> {
        self.work();
        self.drain()?;
        for (_, volume) in self.volumes.clone() {
            self.client.remove(volume);
        }
        let closed = self.engine().pool_export(POOL);
        closed.map_err(|failed| Wrong(format!("it does not close: {failed}")))?;
        Ok(self.client.oracle.borrow().clone())
    }

    /// Labels of drives that hold this, and what the newest one says.
    fn labels(&self, images: &[Image]) -> (Vec<Label>, Option<format::PoolConfig>) {
        let of = |(drive, image): (usize, &Image)| {
            let crashed = Crashed::unchanged(image.clone());
            self.watch.checker.label(drive, &crashed)
        };
        let labels: Vec<_> = images.iter().enumerate().map(of).collect();
        let newest = crate::openings::newest(labels.iter().flatten());
        let brief = labels.iter().map(|label| {
            let label = label.as_ref()?;
            Some((label.drive.to_string(), label.generation))
        });
        (brief.collect(), newest.map(|label| label.config.clone()))
    }

    fn told(
        &self,
        case: &Case,
        (now, roles): (&Moment, &Roles),
        (right, seen): (&[Label], u64),
    ) -> Told {
        let (labels, _) = self.labels(&case.images);
        let generation = |label: &Label| label.as_ref().map_or(0, |label| label.1);
        let newest = labels.iter().map(generation).max().unwrap_or(0);
        let back = case
            .moment
            .as_ref()
            .filter(|_| roles.hold_the_metadata(&case.touched));
        let kept = case
            .touched
            .iter()
            .map(|drive| generation(&labels[*drive]))
            .max();
        let by_little = |moment: &Moment| match case.deed {
            // Labels name what each opening began with.
            Deed::UnderLabels => moment.life == now.life,
            _ => newest >= seen && kept.is_some_and(|kept| newest < kept + 2),
        };
        let id = |label: &Label| label.as_ref().map(|label| label.0.clone());
        let same = |drive: &usize| id(&labels[*drive]) == id(&right[*drive]);
        Told {
            unnoticed: back.is_some_and(by_little),
            labelled: case.touched.iter().all(same),
            newest,
            labels,
        }
    }

    /// Opens the pool from the drives of a case, by one word after the other; what drives hold afterwards, with the right ones in
    /// the place of those that are not the pool's any longer.
    fn try_out(
        &mut self,
        case: &Case,
        now: &Moment,
        roles: &Roles,
        right: &[Label],
    ) -> Result<Vec<Image>, Wrong> {
        let seen = right.iter().flatten().map(|label| label.1).max();
        let seen = seen.unwrap_or(0);
        let told = self.told(case, (now, roles), (right, seen));
        let sizes: Vec<u64> = self.plan.drives.iter().map(|drive| drive.size).collect();
        self.resize_drives(&case.sizes);
        self.begin_life(case.images.clone());
        self.fault(false);
        let words = [
            (MissingDrives::Refuse, false),
            (MissingDrives::Allow, false),
            (MissingDrives::Allow, true),
        ];
        let mut left = now.images.clone();
        let mut outcome = Ok(());
        let (mut opened_by, mut refusal) = (None, String::new());
        for (number, (missing, accept_old)) in words.into_iter().enumerate() {
            let options = ImportOptions {
                missing,
                accept_old,
                seen,
            };
            match self.engine().pool_import(&self.plan.specs(), POOL, options) {
                Err(failed) => {
                    let message = failed.to_string();
                    if number == 0 {
                        outcome = self.is_named(case, &told, seen, &message);
                    }
                    refusal = message;
                    if outcome.is_err() {
                        break;
                    }
                }
                Ok(status) => {
                    opened_by = Some(number);
                    let found = self.look(case, now, !status.old.is_empty())?;
                    outcome = judge(case, roles, &told, (seen, number), &found);
                    self.work();
                    let closed = self.engine().pool_export(POOL);
                    let closed =
                        closed.map_err(|failed| Wrong(format!("it does not close: {failed}")));
                    outcome = outcome.and(closed);
                    if accept_old && found.told && outcome.is_ok() {
                        outcome = self.is_told_again();
                    }
                    break;
                }
            }
        }
        outcome.and_then(|()| may_be_refused(case, roles, &told, (seen, opened_by), &refusal))?;
        // What was accepted though it is old is another pool's history.
        let is_ours = opened_by != Some(2) && !told.unnoticed && told.newest >= seen;
        let whole =
            matches!(case.deed, Deed::Swapped | Deed::Long | Deed::Short) && opened_by == Some(0);
        let spare = roles.can_do_without(&case.touched);
        if is_ours && (whole || spare || opened_by.is_none()) {
            let kept = opened_by == Some(0) && self.tampering.random.one_in(2);
            let after = self.images(Loss::None);
            for (drive, after) in after.into_iter().enumerate() {
                if !case.touched.contains(&drive) || whole || kept {
                    let end = case.sizes[drive].min(sizes[drive]);
                    left[drive] = with_end_of(&after, &left[drive], (end, sizes[drive]));
                }
            }
        }
        self.pull_the_plug();
        self.resize_drives(&sizes);
        Ok(left)
    }

    /// Accepted outdated state is also reported at the next opening.
    fn is_told_again(&mut self) -> Step {
        let opened = self.engine().pool_import(&self.plan.specs(), POOL, true);
        let opened = opened
            .map_err(|failed| Wrong(format!("what was accepted does not open again: {failed}")))?;
        let closed = self.engine().pool_export(POOL);
        closed.map_err(|failed| Wrong(format!("it does not close: {failed}")))?;
        match opened.old.is_empty() {
            true => Err(Wrong(
                "what was accepted though it is old is forgotten at the next opening".into(),
            )),
            false => Ok(()),
        }
    }

    fn resize_drives(&mut self, sizes: &[u64]) {
        for (drive, size) in self.plan.drives.iter_mut().zip(sizes) {
            drive.size = *size;
        }
    }

    /// A pool that is refused says because of which drive, unless none of them knows.
    fn is_named(&self, case: &Case, told: &Told, seen: u64, message: &str) -> Step {
        let specs = self.plan.specs();
        let named = case
            .touched
            .iter()
            .any(|drive| message.contains(&specs[*drive]));
        // What old metadata has that the newest description lacks is a shard's.
        let of_metadata = message.contains("metadata") || message.contains("shard");
        match named || told.newest < seen || case.moment.is_some() && of_metadata {
            true => Ok(()),
            false => Err(Wrong(format!(
                "it is refused and no drive named: {message}"
            ))),
        }
    }

    /// Reads all that hosts wrote.
    fn look(&mut self, case: &Case, now: &Moment, told: bool) -> Result<Found, Wrong> {
        let mut found = Found {
            told,
            old: None,
            lost: None,
            wrong: None,
        };
        let all_back = matches!(case.deed, Deed::AllOld | Deed::UnderLabels);
        let all_back = case.moment.as_ref().filter(|_| all_back);
        let known = all_back.unwrap_or(now);
        let mut any = now.oracle.clone();
        any.wild = true;
        for (name, number) in &known.volumes {
            let device = match self.engine().volume_open(POOL, name, None) {
                Ok(device) => device,
                Err(failed) => {
                    let what = Wrong(format!("{name} does not open: {failed}"));
                    found.old.get_or_insert(what);
                    continue;
                }
            };
            for (block, _) in known.oracle.ranges(*number, 1) {
                let answers = Arc::<Answers>::default();
                let first = block * (BLOCK / SECTOR) as u64;
                let range = first..first + (BLOCK / SECTOR) as u64;
                submit(
                    &*device,
                    (OpKind::Read, 0),
                    &range,
                    IoBuf::zeroed(BLOCK),
                    &answers,
                )?;
                for answer in self.wait_for(&answers, 1)? {
                    if let Err(failed) = &answer.result {
                        let what = Wrong(format!("volume {number}, block {block}: {failed}"));
                        found.lost.get_or_insert(what);
                        continue;
                    }
                    let bytes = answer.buf.as_bytes().unwrap_or(&[]);
                    let offset = block * BLOCK as u64;
                    if now.volumes.iter().any(|known| known.1 == *number)
                        && let Err(what) = now.oracle.check_crashed(*number, offset, bytes)
                    {
                        found.old.get_or_insert(what);
                    }
                    let then = all_back.map_or(&any, |moment| &moment.oracle);
                    if let Err(what) = then.check_crashed(*number, offset, bytes) {
                        found.wrong.get_or_insert(what);
                    }
                }
            }
        }
        Ok(found)
    }
}

/// A drive after a trial, with its size and what lies behind the end that it had in it.
fn with_end_of(after: &Image, before: &Image, (end, size): (u64, u64)) -> Image {
    let mut image = after.resized(size);
    for block in end / BLOCK as u64..size / BLOCK as u64 {
        image.set(block, before.get(block).cloned());
    }
    image
}

/// What an opening gave is what it may give.
fn judge(case: &Case, roles: &Roles, told: &Told, (seen, by): (u64, usize), found: &Found) -> Step {
    let accept_old = by == 2;
    let err = |what: &str, Wrong(why): &Wrong| Err(Wrong(format!("{what}: {why}")));
    if let Some(wrong) = &found.wrong
        && case.moment.is_some()
    {
        return err("what is served was never so", wrong);
    }
    if case.deed == Deed::Copied {
        return Err(Wrong("it opens with a drive and its copy".into()));
    }
    let lacks = match case.deed {
        Deed::Short => case
            .touched
            .iter()
            .any(|drive| case.sizes[*drive] < roles.end(*drive)),
        deed => deed == Deed::Blank,
    };
    if lacks && by == 0 {
        return Err(Wrong("it opens as if nothing were missing".into()));
    }
    if told.newest < seen && !accept_old {
        return Err(Wrong(format!(
            "it opens from label {}, and the host has seen {seen}",
            told.newest
        )));
    }
    let behind = || roles.are_behind(&case.touched, &told.labels, told.newest);
    if case.deed == Deed::Old && told.labelled && told.newest == seen && !accept_old && behind() {
        return Err(Wrong(
            "it opens with a drive that was put back, and no other has what that had".into(),
        ));
    }
    if let Some(old) = &found.old
        && !found.told
        && !told.unnoticed
    {
        return err("what is served is old, and nobody is told", old);
    }
    if found.told && !accept_old {
        return Err(Wrong(
            "it opens though it is old, and nobody accepted that".into(),
        ));
    }
    match &found.lost {
        Some(lost) if roles.can_do_without(&case.touched) => {
            err("other drives have what cannot be read", lost)
        }
        Some(lost) if case.moment.is_none() => {
            err("nothing went back, and it cannot be read", lost)
        }
        _ => Ok(()),
    }
}

/// Whether an opening may need that word, or fail whatever the word.
fn may_be_refused(
    case: &Case,
    roles: &Roles,
    told: &Told,
    (seen, opened_by): (u64, Option<usize>),
    refusal: &str,
) -> Step {
    let here = told.newest >= seen;
    let spare = roles.can_do_without(&case.touched) && here;
    let needs = match case.deed {
        Deed::Swapped | Deed::Long => Some(0),
        Deed::Short
            if here
                && case
                    .touched
                    .iter()
                    .all(|drive| case.sizes[*drive] >= roles.end(*drive)) =>
        {
            Some(0)
        }
        // One that was exchanged since, or joined since, is another drive, or none of the pool's.
        Deed::Old if spare && told.labelled => Some(0),
        Deed::Short | Deed::Blank if spare => Some(1),
        Deed::AllOld if told.labels.iter().any(Option::is_some) => Some(2),
        _ => None,
    };
    match (needs, opened_by) {
        (Some(needs), Some(word)) if word > needs => Err(Wrong(format!(
            "it opens by word {word} only, and not by {needs}: {refusal}"
        ))),
        (Some(needs), None) => Err(Wrong(format!(
            "it does not open, though word {needs} has to do: {refusal}"
        ))),
        _ => Ok(()),
    }
}
