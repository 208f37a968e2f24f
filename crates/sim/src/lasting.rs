//! The host's memory that outlives the engine, until the power goes.

use block::{LastingMemory, LastingSource, OwnMemory};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What such memory held at a moment, by name.
pub type Kept = BTreeMap<String, Vec<u64>>;

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

    /// What it holds now.
    pub fn kept(&self) -> Kept {
        let words = |memory: &Arc<OwnMemory>| -> Vec<u64> {
            let words = memory.words().iter();
            words.map(|word| word.load(Ordering::Relaxed)).collect()
        };
        self.with(|known| {
            let known = known.iter();
            known
                .map(|(name, memory)| (name.clone(), words(memory)))
                .collect()
        })
    }

    /// It holds this, and nothing else.
    pub fn restore(&self, kept: Kept) {
        let made = kept.into_iter().map(|(name, words)| {
            let memory = OwnMemory::new(words.len());
            for (word, value) in memory.words().iter().zip(&words) {
                word.store(*value, Ordering::Relaxed);
            }
            (name, Arc::new(memory))
        });
        let made = made.collect();
        self.with(|known| *known = made);
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
