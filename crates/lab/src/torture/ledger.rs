//! The valid contents of each block: the last one that is certain to outlive the daemon, and everything that
//! was sent after it.

use crate::content::Content;
use std::ops::Range;

struct Block {
    /// Valid contents, oldest first; the first is the durable one, the last the newest sent.
    may_hold: Vec<(u32, Content)>,
    /// A request for it is outstanding.
    busy: bool,
}

/// The ledger of a volume.
pub struct Ledger {
    blocks: Vec<Block>,
    /// Answered writes that no flush was sent for since.
    answered: Vec<(u64, u32)>,
    next_version: u32,
}

/// Writes that a flush covers once it is acknowledged.
pub struct Covered(Vec<(u64, u32)>);

impl Ledger {
    /// Of a volume that was never written.
    pub fn new(blocks: u64) -> Self {
        let fresh = || Block {
            may_hold: vec![(0, Content::Zero)],
            busy: false,
        };
        Self {
            blocks: (0..blocks).map(|_| fresh()).collect(),
            answered: Vec::new(),
            next_version: 1,
        }
    }

    /// Blocks of the volume.
    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Takes blocks for one request; false when one of them is taken already.
    pub fn take(&mut self, range: Range<u64>) -> bool {
        let range = range.start as usize..range.end as usize;
        if self.blocks[range.clone()].iter().any(|block| block.busy) {
            return false;
        }
        for block in &mut self.blocks[range] {
            block.busy = true;
        }
        true
    }

    /// Notes that taken blocks are sent new content, all under the version that is given.
    pub fn sent(&mut self, range: Range<u64>, content: impl Fn(u32) -> Content) -> u32 {
        let version = self.next_version;
        self.next_version += 1;
        for block in &mut self.blocks[range.start as usize..range.end as usize] {
            block.may_hold.push((version, content(version)));
        }
        version
    }

    /// Notes that a write was answered; `durable` when it may not be lost any longer.
    pub fn wrote(&mut self, range: Range<u64>, version: u32, durable: bool) {
        self.give_back(range.clone());
        for block in range {
            match durable {
                true => self.settle(block, version),
                false => self.answered.push((block, version)),
            }
        }
    }

    /// Gives blocks back that were only read.
    pub fn give_back(&mut self, range: Range<u64>) {
        for block in &mut self.blocks[range.start as usize..range.end as usize] {
            block.busy = false;
        }
    }

    /// Writes that a flush sent now will make durable.
    pub fn flush_sent(&mut self) -> Covered {
        Covered(std::mem::take(&mut self.answered))
    }

    /// A flush was answered.
    pub fn flushed(&mut self, covered: Covered) {
        for (block, version) in covered.0 {
            self.settle(block, version);
        }
    }

    fn settle(&mut self, block: u64, version: u32) {
        self.blocks[block as usize]
            .may_hold
            .retain(|(held, _)| *held >= version);
    }

    /// Checks what a taken block was read as while the daemon ran: the newest content only.
    ///
    /// # Errors
    /// A sentence that says what it should have held.
    pub fn check_newest(&self, block: u64, found: Content) -> Result<(), String> {
        let newest = self.blocks[block as usize]
            .may_hold
            .last()
            .expect("never empty")
            .1;
        match found == newest {
            true => Ok(()),
            false => Err(format!("holds {found:?}, but {newest:?} was acknowledged")),
        }
    }

    /// Checks what a block was read as after a crash. From now on it has to stay that.
    ///
    /// # Errors
    /// A sentence that says what it may have held.
    pub fn check_survivor(&mut self, block: u64, found: Content) -> Result<(), String> {
        let block = &mut self.blocks[block as usize];
        let known = block
            .may_hold
            .iter()
            .rev()
            .find(|(_, content)| *content == found)
            .copied();
        match known {
            Some(known) => {
                block.may_hold = vec![known];
                Ok(())
            }
            None => Err(format!(
                "holds {found:?}, but version {:?} was not to be lost and these came later: {:?}",
                block.may_hold[0],
                &block.may_hold[1..]
            )),
        }
    }

    /// Forgets what was outstanding when the daemon died.
    pub fn crashed(&mut self) {
        self.answered.clear();
        for block in &mut self.blocks {
            block.busy = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(ledger: &mut Ledger, block: u64) -> u32 {
        assert!(ledger.take(block..block + 1));
        let version = ledger.sent(block..block + 1, Content::Data);
        ledger.wrote(block..block + 1, version, false);
        version
    }

    #[test]
    fn what_was_not_flushed_may_be_lost_or_kept() {
        for survivor in [Content::Zero, Content::Data(1)] {
            let mut ledger = Ledger::new(1);
            write(&mut ledger, 0);
            assert_eq!(ledger.check_survivor(0, survivor), Ok(()));
        }
    }

    #[test]
    fn what_was_flushed_may_not_be_lost() {
        let mut ledger = Ledger::new(1);
        let version = write(&mut ledger, 0);
        let covered = ledger.flush_sent();
        ledger.flushed(covered);
        assert!(ledger.check_survivor(0, Content::Zero).is_err());
        assert_eq!(ledger.check_survivor(0, Content::Data(version)), Ok(()));
    }

    #[test]
    fn a_flush_covers_only_what_was_answered_before_it_was_sent() {
        let mut ledger = Ledger::new(2);
        let covered = ledger.flush_sent();
        write(&mut ledger, 0);
        ledger.flushed(covered);
        assert_eq!(ledger.check_survivor(0, Content::Zero), Ok(()));
    }

    #[test]
    fn a_write_with_its_own_flush_is_durable_at_once() {
        let mut ledger = Ledger::new(1);
        assert!(ledger.take(0..1));
        let version = ledger.sent(0..1, Content::Data);
        ledger.wrote(0..1, version, true);
        assert!(ledger.check_survivor(0, Content::Zero).is_err());
    }

    #[test]
    fn an_old_version_may_not_come_back() {
        let mut ledger = Ledger::new(1);
        let old = write(&mut ledger, 0);
        let new = write(&mut ledger, 0);
        let covered = ledger.flush_sent();
        ledger.flushed(covered);
        assert!(ledger.check_survivor(0, Content::Data(old)).is_err());
        assert_eq!(ledger.check_survivor(0, Content::Data(new)), Ok(()));
    }

    #[test]
    fn while_it_runs_only_the_newest_may_be_read() {
        let mut ledger = Ledger::new(1);
        let old = write(&mut ledger, 0);
        let new = write(&mut ledger, 0);
        assert!(ledger.check_newest(0, Content::Data(old)).is_err());
        assert_eq!(ledger.check_newest(0, Content::Data(new)), Ok(()));
    }

    #[test]
    fn a_block_is_taken_once() {
        let mut ledger = Ledger::new(4);
        assert!(ledger.take(0..2));
        assert!(!ledger.take(1..3));
        assert!(ledger.take(2..3));
        ledger.give_back(0..2);
        assert!(ledger.take(1..2));
    }
}
