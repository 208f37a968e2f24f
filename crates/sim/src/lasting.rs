//! The host's memory that outlives the engine, until the power goes.

use block::{LastingMemory, LastingSource, OwnMemory};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a host keeps for engines that are killed on it.
#[derive(Default)]
pub struct HostMemory(Mutex<BTreeMap<String, Arc<OwnMemory>>>);

impl HostMemory {
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Arc<OwnMemory>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The power is gone.
    pub fn clear(&self) {
        self.with(BTreeMap::clear);
    }
}

impl LastingSource for HostMemory {
    fn take(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>> {
        let new = || Arc::new(OwnMemory::new(words));
        Some(self.with(|known| known.entry(name.to_owned()).or_insert_with(new).clone()))
    }

    fn forget(&self, name: &str) {
        self.with(|known| known.remove(name));
    }
}
