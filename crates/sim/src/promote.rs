//! Clones that are promoted in a run, under load.

use crate::oracle::{Oracle, Wrong};
use crate::plan::Bent;
use crate::run::{POOL, Run, Step};
use engine::{ErrorCode, VolumeChange};
use units::BLOCK;

impl Oracle {
    /// Snapshots of `parent` may become `clone`'s from now on, or not.
    fn promotion_begins(&mut self, parent: u32, clone: u32) {
        for known in self.volumes.values_mut() {
            if known.snapshot.as_ref().is_some_and(|of| of.0 == parent) {
                known.moving = Some(clone);
            }
        }
    }

    /// Those of these names have become so, and no other.
    fn promotion_ends(&mut self, parent: u32, clone: u32, names: &[String]) {
        for known in self.volumes.values_mut() {
            known.moving = None;
            if let Some((of, name)) = &mut known.snapshot
                && *of == parent
                && names.contains(name)
            {
                *of = clone;
            }
        }
    }

    /// A snapshot's number.
    pub(crate) fn snapshot_of(&self, volume: u32, name: &str) -> Option<u32> {
        let mut all = self.volumes.iter();
        let is = |of: &(u32, String)| of.0 == volume && of.1 == name;
        let found = all.find(|(_, known)| known.snapshot.as_ref().is_some_and(is));
        found.map(|(number, _)| *number)
    }
}

impl Run {
    pub fn promote(&mut self) -> Step {
        // Names stay as they are while something is sent.
        if self.transfer.is_some() {
            return Ok(());
        }
        let clones: Vec<(u32, u32)> = self.clones.iter().map(|(of, from)| (*of, *from)).collect();
        if clones.is_empty() {
            return Ok(());
        }
        let (clone, from) = *self.random.pick(&clones);
        let oracle = &self.client.oracle;
        let origin = oracle.borrow().volumes[&from].snapshot.clone();
        let volume = self.volumes.iter().find(|known| known.1 == clone);
        let (Some((parent, origin)), Some((volume, _))) = (origin, volume.cloned()) else {
            return Ok(());
        };
        if self.plan.bent == Bent::Control {
            self.limit_clone(parent, &volume)?;
        }
        let oracle = &self.client.oracle;
        oracle.borrow_mut().promotion_begins(parent, clone);
        let asked = self.engine().volume_promote(POOL, &volume);
        // It may have one of the same name, taken at the same moment as its parent's. And quotas and
        // reservations may be in its way.
        let refusals = [ErrorCode::Exists, ErrorCode::Refused];
        let may_be = &refusals[..if self.plan.limits { 2 } else { 1 }];
        if asked
            .as_ref()
            .is_err_and(|failed| may_be.contains(&failed.code))
        {
            oracle.borrow_mut().promotion_ends(parent, clone, &[]);
            return Ok(());
        }
        let Some(done) = self.granted("it cannot be promoted", asked)? else {
            return Ok(());
        };
        if done.snapshots.last() != Some(&origin) {
            return Err(Wrong(format!(
                "{volume} was made from {origin} and got {:?}",
                done.snapshots
            )));
        }
        let oracle = &self.client.oracle;
        oracle
            .borrow_mut()
            .promotion_ends(parent, clone, &done.snapshots);
        self.learn_clones()
    }

    /// A clone's quota is hardly enough for what it holds, or for what it would hold with all that its parent has.
    fn limit_clone(&mut self, parent: u32, clone: &str) -> Step {
        let parent = self.volumes.iter().find(|known| known.1 == parent);
        let Some(parent) = parent.map(|known| known.0.clone()) else {
            return Ok(());
        };
        let more = match self.races.one_in(2) {
            true => self.held(&parent)?,
            false => 0,
        };
        let room = self.races.within(1..=16) * BLOCK as u64;
        let change = VolumeChange {
            quota: Some(self.held(clone)? + more + room),
            reservation: Some(0),
            ..VolumeChange::default()
        };
        match self.engine().volume_change(POOL, clone, &change) {
            Err(failed) if failed.code == ErrorCode::Refused => Ok(()),
            changed => self
                .granted("a clone's quota cannot change", changed)
                .map(drop),
        }
    }

    /// Which volume is a clone of what changes when one is promoted or rolled back: the pool tells.
    pub fn learn_clones(&mut self) -> Step {
        let listed = self.engine().snapshot_list(POOL, None);
        let Some(listed) = self.granted("snapshots are not listed", listed)? else {
            return Ok(());
        };
        let number = |name: &str| {
            let found = self.volumes.iter().find(|known| known.0 == name);
            found.map(|known| known.1)
        };
        let oracle = self.client.oracle.borrow();
        let mut clones = std::collections::BTreeMap::new();
        for known in listed {
            let of = number(&known.volume).and_then(|of| oracle.snapshot_of(of, &known.name));
            let Some(snapshot) = of else {
                return Err(Wrong(format!(
                    "{}@{} belongs to no volume",
                    known.volume, known.name
                )));
            };
            let of = known.clones.iter().filter_map(|name| number(name));
            clones.extend(of.map(|clone| (clone, snapshot)));
        }
        drop(oracle);
        self.clones = clones;
        Ok(())
    }
}
