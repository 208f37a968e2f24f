//! Files of a mount.

use crate::file::File;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

/// Inode number of the directory.
pub(crate) const ROOT: u64 = 1;

struct State {
    files: BTreeMap<u64, Arc<File>>,
    next: u64,
}

/// Table of files. Numbers are never reused.
pub(crate) struct Folder {
    state: RwLock<State>,
    /// Time of the mount.
    pub since: SystemTime,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self {
            state: RwLock::new(State {
                files: BTreeMap::new(),
                next: ROOT + 1,
            }),
            since: SystemTime::now(),
        }
    }

    /// Adds the file created by `make` from its number, unless `name` is taken.
    pub(crate) fn add(&self, name: &str, make: impl FnOnce(u64) -> File) -> Option<Arc<File>> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.files.values().any(|file| file.name == name) {
            return None;
        }
        let number = state.next;
        state.next += 1;
        let file = Arc::new(make(number));
        state.files.insert(number, file.clone());
        Some(file)
    }

    /// Removes a file; returns whether the directory is empty now.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.files.remove(&number);
        state.files.is_empty()
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<File>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.files.get(&number).cloned()
    }

    pub(crate) fn named(&self, name: &str) -> Option<Arc<File>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.files.values().find(|file| file.name == name).cloned()
    }

    /// All files with a number greater than `after`, in order.
    pub(crate) fn after(&self, after: u64) -> Vec<Arc<File>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state
            .files
            .range(after + 1..)
            .map(|entry| entry.1.clone())
            .collect()
    }
}
