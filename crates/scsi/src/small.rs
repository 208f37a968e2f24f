//! Commands of a few lines: capacity, states, reservations.

use crate::execute::{Answer, Call, Failure};
use crate::fields::{put, u8_at, u16_at, u32_at};
use crate::once::Once;
use crate::reservations::{Out, change, report};
use crate::sense::Sense;
use crate::unit::Switches;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Call<'_> {
    /// REQUEST SENSE (SPC-4 6.39): what waits for this nexus.
    pub(crate) fn request_sense(&self) -> Answer {
        let switches = &self.nexus.unit.switches;
        let sense = match self.nexus.take_attention() {
            Some(attention) => attention.sense(),
            None if Switches::get(&switches.sanitizing) => Sense::SANITIZING,
            None if Switches::get(&switches.stopped) => Sense::STOPPED,
            None => Sense::NONE,
        };
        let data = sense.encode(self.cdb[1] & 0x01 != 0);
        Ok(self.give_cut(data, usize::from(self.cdb[4])))
    }

    fn last_block(&self) -> u64 {
        (self.nexus.unit.size() / self.nexus.block_size()).saturating_sub(1)
    }

    /// READ CAPACITY(10) (SBC-3 5.12).
    pub(crate) fn read_capacity(&self) -> Answer {
        let partial = u8_at(self.cdb, 8) & 0x01 != 0;
        if !partial && u32_at(self.cdb, 2) != 0 {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        let last = u32::try_from(self.last_block()).unwrap_or(u32::MAX);
        let mut data = last.to_be_bytes().to_vec();
        data.extend((self.nexus.block_size() as u32).to_be_bytes());
        Ok(self.give_cut(data, 8))
    }

    /// READ CAPACITY(16) (SBC-3 5.13).
    pub(crate) fn read_capacity_16(&self) -> Answer {
        let mut data = vec![0; 32];
        put(&mut data, 0, &self.last_block().to_be_bytes());
        put(
            &mut data,
            8,
            &(self.nexus.block_size() as u32).to_be_bytes(),
        );
        data[13] = self.nexus.unit.blocks_exponent();
        // Provisioned thinly (LBPME), and what is not there reads as zeroes (LBPRZ).
        data[14] = 0xc0;
        Ok(self.give_cut(data, u32_at(self.cdb, 10) as usize))
    }

    /// READ DEFECT DATA (SBC-3 5.10, 5.11): no list has an entry.
    pub(crate) fn read_defects(&self) -> Answer {
        let is_long = self.cdb[0] == 0xb7;
        let (format, allocation) = match is_long {
            true => (self.cdb[1] & 0x1f, u32_at(self.cdb, 6) as usize),
            false => (self.cdb[2] & 0x1f, usize::from(u16_at(self.cdb, 7))),
        };
        let mut data = vec![0; if is_long { 8 } else { 4 }];
        data[1] = format;
        Ok(self.give_cut(data, allocation))
    }

    /// START STOP UNIT (SBC-3 5.20). There is nothing to load or to eject.
    pub(crate) fn start_stop(&self) -> Answer {
        let flags = self.cdb[4];
        let (condition, load, start) = (flags >> 4, flags & 0x02 != 0, flags & 0x01 != 0);
        if condition != 0 {
            // Conditions of power mean nothing here: they are taken and change nothing.
            return match condition {
                1..=3 | 7 | 0xa | 0xb => Ok(self.empty()),
                _ => Err(Sense::INVALID_FIELD_IN_CDB.into()),
            };
        }
        if load {
            return Err(match self.is_removal_prevented() && !start {
                true => Sense::REMOVAL_PREVENTED.into(),
                false => Sense::INVALID_FIELD_IN_CDB.into(),
            });
        }
        let stopped = &self.nexus.unit.switches.stopped;
        stopped.store(!start, Ordering::Release);
        Ok(self.empty())
    }

    fn is_removal_prevented(&self) -> bool {
        self.nexus.prevents_removal.get()
    }

    /// PREVENT ALLOW MEDIUM REMOVAL (SBC-3 5.9).
    pub(crate) fn prevent_allow(&self) -> Answer {
        match self.cdb[4] & 0x03 {
            value @ (0 | 1) => self.nexus.prevents_removal.set(value == 1),
            _ => return Err(Sense::INVALID_FIELD_IN_CDB.into()),
        }
        Ok(self.empty())
    }

    /// SEND DIAGNOSTIC (SPC-4 6.42): the default self-test, which finds nothing.
    pub(crate) fn send_diagnostic(&self) -> Answer {
        let is_default = self.cdb[1] & 0xf7 == 0x04 && u16_at(self.cdb, 3) == 0;
        match is_default {
            true => Ok(self.empty()),
            false => Err(Sense::INVALID_FIELD_IN_CDB.into()),
        }
    }

    /// RESERVE(6) (SPC-2 7.21).
    pub(crate) fn reserve(&self) -> Answer {
        let number = self.nexus.member.number;
        match self.nexus.unit.reservations.reserve_legacy(number) {
            true => Ok(self.empty()),
            false => Err(Failure::Conflict),
        }
    }

    /// RELEASE(6) (SPC-2 7.16).
    pub(crate) fn release(&self) -> Answer {
        let reservations = &self.nexus.unit.reservations;
        if reservations.refuses_release() {
            return Err(Failure::Conflict);
        }
        reservations.release_legacy(Some(self.nexus.member.number));
        Ok(self.empty())
    }

    pub(crate) fn persistent_in(&self) -> Answer {
        let data = report(&self.nexus.unit.reservations, self.cdb)?;
        Ok(self.give_cut(data, usize::from(u16_at(self.cdb, 7))))
    }

    pub(crate) async fn persistent_out(mut self) -> Answer {
        let nexus = self.nexus;
        let unit = &nexus.unit;
        let reservations = &unit.reservations;
        let list = self.data.as_bytes().unwrap_or(&[]);
        let turn = reservations.turn().await;
        let mut state = reservations.state();
        let groups = nexus.groups.numbers();
        let own = (&nexus.member.ports, groups.as_slice());
        let may_persist = reservations.keeper().is_there();
        let outcome = change(&mut state, own, self.cdb, list, may_persist);
        let outcome = outcome.map_err(|out| match out {
            Out::Conflict => Failure::Conflict,
            Out::Check(sense) => Failure::Check(sense),
        })?;
        if let Some(kept) = outcome.keep {
            self.keep(kept).await?;
        }
        reservations.install(state);
        drop(turn);
        // Two that abort each other would wait for each other: this one runs no more.
        self.running = None;
        for member in unit.members() {
            let is_self = member.number == nexus.member.number;
            if !is_self && outcome.aborted.contains(&member.ports) {
                member.abort_all(unit).await;
            }
        }
        for (ports, attention) in outcome.told {
            unit.tell(attention, |member| member.ports == ports);
        }
        Ok(self.took(self.data.len() as u64))
    }

    /// Waits until the reservations are kept. When that fails, all is as it was before.
    async fn keep(&self, text: Option<String>) -> Result<(), Sense> {
        let ended = Arc::new(Once::default());
        let done = ended.clone();
        let keeper = self.nexus.unit.reservations.keeper();
        keeper.keep(text, Box::new(move |kept| done.give(kept)));
        match ended.take().await {
            true => Ok(()),
            false => Err(Sense::TARGET_FAILURE),
        }
    }
}
