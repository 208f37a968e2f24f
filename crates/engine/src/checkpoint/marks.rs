//! Progress of the shards' metadata, recorded in labels: a later opening detects by it that metadata was restored to an earlier state.

use crate::shard::state::Shard;
use format::CheckpointMark;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The newest durable checkpoint of each shard of a pool. Written with each checkpoint, so never on the way of a request.
#[derive(Default)]
pub struct Marks(Mutex<BTreeMap<u16, CheckpointMark>>);

impl Marks {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, CheckpointMark>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present progress, by shard number.
    pub fn all(&self) -> BTreeMap<u16, CheckpointMark> {
        self.lock().clone()
    }
}

impl Shard {
    /// Its newest checkpoint is durable on every drive that counts.
    pub(super) fn note_mark(&self) {
        let mark = {
            let state = self.state.borrow();
            let journal = state.journal.bounds();
            CheckpointMark {
                generation: state.root.generation(),
                epoch: journal.epoch,
                page: journal.from,
            }
        };
        self.shared.marks.lock().insert(self.config.shard.0, mark);
    }

    /// Progress found by an opening after the replay of the journal, by shard number: the checkpoint, and the journal's end as
    /// its page.
    pub fn found(&self) -> (u16, CheckpointMark) {
        let state = self.state.borrow();
        let journal = state.journal.bounds();
        let found = CheckpointMark {
            generation: state.root.generation(),
            epoch: journal.epoch,
            page: journal.next,
        };
        (self.config.shard.0, found)
    }
}
