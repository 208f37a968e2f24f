//! Deferred frees: freed space that may still be needed, since the record that frees it is not durable yet, or a
//! read that found it in use has not ended.

use std::collections::VecDeque;
use units::mutation::{Mutation, is_on};
use units::{Place, VdriveId};

/// Space freed by records below `sequence`, found in use by reads of epochs up to `read_epoch`.
#[derive(Default, Debug)]
pub struct Batch {
    /// Journal pages below this number have to be durable.
    pub sequence: u64,
    /// Reads of this and earlier read epochs have to end.
    pub read_epoch: u64,
    /// Slots: first and number of blocks.
    pub slots: Vec<(Place, u32)>,
    /// Homes.
    pub homes: Vec<Place>,
}

/// Freed space, oldest first, and the reads in flight by read epoch.
#[derive(Default)]
pub struct DeferredFrees {
    current: Batch,
    sealed: VecDeque<Batch>,
    /// Slots of all of them, by vdrive.
    slots: Vec<(VdriveId, u64)>,
    /// Reads in flight of each read epoch from `first_epoch` on.
    readers: VecDeque<u32>,
    first_epoch: u64,
}

impl DeferredFrees {
    /// The read epoch of a read that begins now. [`DeferredFrees::end_read`] has to follow.
    pub fn begin_read(&mut self) -> u64 {
        if self.readers.is_empty() {
            self.readers.push_back(0);
        }
        *self.readers.back_mut().expect("just made") += 1;
        self.read_epoch()
    }

    /// A read has ended.
    pub fn end_read(&mut self, read_epoch: u64) {
        let at = (read_epoch - self.first_epoch) as usize;
        assert!(self.readers[at] > 0, "a read ends once");
        self.readers[at] -= 1;
        while self.readers.len() > 1 && self.readers[0] == 0 {
            self.readers.pop_front();
            self.first_epoch += 1;
        }
    }

    /// The present read epoch.
    pub fn read_epoch(&self) -> u64 {
        self.first_epoch + (self.readers.len() as u64).saturating_sub(1)
    }

    /// Whether every read that began in `read_epoch` or before has ended.
    pub fn reads_ended(&self, read_epoch: u64) -> bool {
        self.first_epoch > read_epoch
            || (self.first_epoch..=read_epoch)
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

    /// Earlier frees are by records below `sequence`; a new read epoch begins.
    pub fn seal(&mut self, sequence: u64) {
        let batch = Batch {
            sequence,
            read_epoch: self.read_epoch(),
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
            self.first_epoch += 1;
        }
    }

    /// The oldest batch, if pages below `durable` are durable and its reads have ended.
    pub fn release(&mut self, durable: u64) -> Option<Batch> {
        let front = self.sealed.front()?;
        let durable = front.sequence <= durable || is_on(Mutation::ReuseUndurable);
        let free = durable && (self.reads_ended(front.read_epoch) || is_on(Mutation::ReuseRead));
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

    /// Whether something becomes free once reads and a barrier that are in progress have ended.
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
        let mut deferred_frees = DeferredFrees::default();
        let read = deferred_frees.begin_read();
        deferred_frees.slots(at(1), 1);
        deferred_frees.slots(at(2), 3);
        assert_eq!(
            deferred_frees.slots_kept().collect::<Vec<_>>(),
            [(VdriveId(1), 4)]
        );
        deferred_frees.seal(10);
        let later = deferred_frees.begin_read();
        assert!(
            deferred_frees.release(9).is_none(),
            "its record is not durable"
        );
        assert!(deferred_frees.release(10).is_none(), "a read is in flight");
        deferred_frees.end_read(read);
        let batch = deferred_frees.release(10).expect("free");
        assert_eq!(batch.slots, [(at(1), 4)]);
        assert!(deferred_frees.slots_kept().all(|(_, count)| count == 0));
        deferred_frees.home(at(256));
        deferred_frees.seal(11);
        assert!(
            deferred_frees.release(11).is_none(),
            "the later read found the home in use"
        );
        deferred_frees.end_read(later);
        assert_eq!(deferred_frees.release(11).expect("free").homes, [at(256)]);
        assert!(deferred_frees.is_empty());
    }

    #[test]
    fn read_epochs_pass_without_reads() {
        let mut deferred_frees = DeferredFrees::default();
        for sequence in 0..100 {
            deferred_frees.slots(Place::new(VdriveId(1), 10), 1);
            deferred_frees.seal(sequence);
        }
        let mut count = 0;
        while deferred_frees.release(99).is_some() {
            count += 1;
        }
        assert_eq!(count, 100);
        let read = deferred_frees.begin_read();
        deferred_frees.seal(100);
        assert!(!deferred_frees.reads_ended(read));
        deferred_frees.end_read(read);
        assert!(deferred_frees.reads_ended(read));
    }
}
