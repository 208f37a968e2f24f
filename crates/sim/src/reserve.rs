//! Reservations that are stored with a volume: acknowledged ones survive all faults.

use crate::openings::Opened;
use crate::oracle::{Oracle, Wrong};
use crate::run::{POOL, Run, Step};
use std::collections::BTreeMap;

/// Valid reservations of a volume: the last acknowledged ones, or those requested since.
pub type Reservations = BTreeMap<u32, Vec<Option<String>>>;

impl Oracle {
    /// Whether what an opening finds is what was kept.
    pub(crate) fn check_reservations(&self, opened: &Opened) -> Step {
        let known = &opened.label.config.reservations;
        let there = |of: &(&u32, _)| self.volumes.contains_key(of.0);
        for (volume, may_be) in self.reservations.iter().filter(there) {
            let found = known.iter().find(|known| known.volume == *volume);
            self.check_reservation(*volume, may_be, found.map(|known| &known.state))?;
        }
        Ok(())
    }

    fn check_reservation(
        &self,
        volume: u32,
        may_be: &[Option<String>],
        found: Option<&String>,
    ) -> Step {
        match may_be.iter().any(|may_be| may_be.as_ref() == found) {
            true => Ok(()),
            false => Err(Wrong(format!(
                "volume {volume} has reservations {found:?} of {may_be:?}"
            ))),
        }
    }
}

impl Run {
    /// A host reserves a volume, or gives that up.
    pub fn reserve(&mut self) -> Step {
        let (name, number) = self.knobs.pick(&self.volumes).clone();
        let state = (!self.knobs.one_in(4)).then(|| format!("held {}", self.knobs.next()));
        {
            let mut oracle = self.client.oracle.borrow_mut();
            let may_be = oracle.reservations.entry(number);
            may_be.or_insert_with(|| vec![None]).push(state.clone());
        }
        let asked = self
            .engine()
            .volume_set_reservations(POOL, &name, state.clone());
        if self.granted("a reservation is not kept", asked)?.is_some() {
            let mut oracle = self.client.oracle.borrow_mut();
            oracle.reservations.insert(number, vec![state]);
        }
        self.found()
    }

    /// The stored reservations of each volume are valid: from then on they are known.
    pub fn look_at_reservations(&mut self) -> Step {
        let all = self.client.oracle.borrow().reservations.clone();
        for (number, may_be) in all {
            let Some((name, _)) = self.volumes.iter().find(|known| known.1 == number) else {
                self.client.oracle.borrow_mut().reservations.remove(&number);
                continue;
            };
            let kept = self.engine().volume_reservations(POOL, name);
            let Some(kept) = self.granted("no reservations", kept)? else {
                return Ok(());
            };
            let mut oracle = self.client.oracle.borrow_mut();
            oracle.check_reservation(number, &may_be, kept.as_ref())?;
            oracle.reservations.insert(number, vec![kept]);
        }
        Ok(())
    }
}
