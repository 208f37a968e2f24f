//! Freed space that somebody may still need: the record that frees it is not durable yet, or a
//! read that found it in use has not ended.

use std::collections::VecDeque;
use units::mutation::{Mutation, is_on};
use units::{Place, VdriveId};

/// Space freed by records below `sequence`, found in use by reads of eras up to `era`.
#[derive(Default, Debug)]
pub struct Batch {
    /// Journal pages below this number have to be durable.
    pub sequence: u64,
    /// Reads of this and earlier eras have to end.
    pub era: u64,
    /// Slots: first and number of blocks.
    pub slots: Vec<(Place, u32)>,
    /// Homes.
    pub homes: Vec<Place>,
}

/// Freed space, oldest first, and the reads in flight by era.
#[derive(Default)]
pub struct Quarantine {
    current: Batch,
    sealed: VecDeque<Batch>,
    /// Slots of all of them, by vdrive.
    slots: Vec<(VdriveId, u64)>,
    /// Reads in flight of each era from `first_era` on.
    readers: VecDeque<u32>,
    first_era: u64,
}

impl Quarantine {
    /// The era of a read that begins now. [`Quarantine::end_read`] has to follow.
    pub fn begin_read(&mut self) -> u64 {
        if self.readers.is_empty() {
            self.readers.push_back(0);
        }
        *self.readers.back_mut().expect("just made") += 1;
        self.era()
    }

    /// A read has ended.
    pub fn end_read(&mut self, era: u64) {
        let at = (era - self.first_era) as usize;
        assert!(self.readers[at] > 0, "a read ends once");
        self.readers[at] -= 1;
        while self.readers.len() > 1 && self.readers[0] == 0 {
            self.readers.pop_front();
            self.first_era += 1;
        }
    }

    /// The present era.
    pub fn era(&self) -> u64 {
        self.first_era + (self.readers.len() as u64).saturating_sub(1)
    }

    /// Whether every read that began in `era` or before has ended.
    pub fn reads_ended(&self, era: u64) -> bool {
        self.first_era > era
            || (self.first_era..=era)
                .zip(&self.readers)
                .all(|(_, count)| *count == 0)
    }

    /// Frees slots once it is safe.
    pub fn slots(&mut self, place: Place, count: u32) {
        self.count(place.vdrive(), u64::from(count));
        if let Some((last, length)) = self.current.slots.last_mut()
            && last.vdrive() == place.vdrive()
            && last.block() + u64::from(*length) == place.block()
        {
            *length += count;
            return;
        }
        self.current.slots.push((place, count));
    }

    /// A pool has few vdrives: a look through them takes less than one into a map.
    fn count(&mut self, vdrive: VdriveId, slots: u64) {
        match self.slots.iter_mut().find(|(of, _)| *of == vdrive) {
            Some((_, kept)) => *kept += slots,
            None => self.slots.push((vdrive, slots)),
        }
    }

    /// Frees a home once it is safe.
    pub fn home(&mut self, place: Place) {
        self.current.homes.push(place);
    }

    /// What was freed so far is freed by records below `sequence`; a new era begins.
    pub fn seal(&mut self, sequence: u64) {
        let batch = Batch {
            sequence,
            era: self.era(),
            ..std::mem::take(&mut self.current)
        };
        if !batch.slots.is_empty() || !batch.homes.is_empty() {
            self.sealed.push_back(batch);
        }
        if self.readers.is_empty() {
            self.readers.push_back(0);
        }
        self.readers.push_back(0);
        while self.readers.len() > 1 && self.readers[0] == 0 {
            self.readers.pop_front();
            self.first_era += 1;
        }
    }

    /// The oldest batch, if pages below `durable` are durable and its reads have ended.
    pub fn release(&mut self, durable: u64) -> Option<Batch> {
        let front = self.sealed.front()?;
        let durable = front.sequence <= durable || is_on(Mutation::ReuseUndurable);
        let free = durable && (self.reads_ended(front.era) || is_on(Mutation::ReuseRead));
        if !free {
            return None;
        }
        let batch = self.sealed.pop_front()?;
        for (place, count) in &batch.slots {
            let kept = self.slots.iter_mut();
            if let Some((_, kept)) = kept.into_iter().find(|(of, _)| *of == place.vdrive()) {
                *kept -= u64::from(*count);
            }
        }
        Some(batch)
    }

    /// Slots that are kept back, by vdrive.
    pub fn slots_kept(&self) -> impl Iterator<Item = (VdriveId, u64)> {
        self.slots.iter().copied()
    }

    /// Whether something comes free once reads and a barrier that are under way have ended.
    pub fn has_sealed(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// Everything that is kept back.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.sealed.iter().chain(std::iter::once(&self.current))
    }

    /// Whether nothing is kept back.
    pub fn is_empty(&self) -> bool {
        self.batches()
            .all(|batch| batch.slots.is_empty() && batch.homes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_waits_for_its_record_and_for_the_reads_before_it() {
        let at = |block| Place::new(VdriveId(1), block);
        let mut quarantine = Quarantine::default();
        let read = quarantine.begin_read();
        quarantine.slots(at(1), 1);
        quarantine.slots(at(2), 3);
        assert_eq!(
            quarantine.slots_kept().collect::<Vec<_>>(),
            [(VdriveId(1), 4)]
        );
        quarantine.seal(10);
        let later = quarantine.begin_read();
        assert!(quarantine.release(9).is_none(), "its record is not durable");
        assert!(quarantine.release(10).is_none(), "a read is in flight");
        quarantine.end_read(read);
        let batch = quarantine.release(10).expect("free");
        assert_eq!(batch.slots, [(at(1), 4)]);
        assert!(quarantine.slots_kept().all(|(_, count)| count == 0));
        quarantine.home(at(256));
        quarantine.seal(11);
        assert!(
            quarantine.release(11).is_none(),
            "the later read found the home in use"
        );
        quarantine.end_read(later);
        assert_eq!(quarantine.release(11).expect("free").homes, [at(256)]);
        assert!(quarantine.is_empty());
    }

    #[test]
    fn eras_pass_without_reads() {
        let mut quarantine = Quarantine::default();
        for sequence in 0..100 {
            quarantine.slots(Place::new(VdriveId(1), 10), 1);
            quarantine.seal(sequence);
        }
        let mut count = 0;
        while quarantine.release(99).is_some() {
            count += 1;
        }
        assert_eq!(count, 100);
        let read = quarantine.begin_read();
        quarantine.seal(100);
        assert!(!quarantine.reads_ended(read));
        quarantine.end_read(read);
        assert!(quarantine.reads_ended(read));
    }
}
