//! A host's memory that outlives the engines of one process, for simulations and tests: they are killed in it, and the power
//! of the host goes.

use crate::{LastingMemory, LastingSource, Left, OwnMemory};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Memory of a host that outlives killed engines.
#[derive(Default)]
pub struct HostMemory {
    pieces: Mutex<BTreeMap<String, Piece>>,
    /// Called at each step of a write, between which a kill may happen.
    told: Option<fn()>,
}

/// One piece of it.
struct Piece {
    memory: Arc<OwnMemory>,
    /// Its owner, while that lives.
    user: Weak<Locked>,
}

/// A piece in use.
struct Locked {
    memory: Arc<OwnMemory>,
    told: Option<fn()>,
}

impl LastingMemory for Locked {
    fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }

    fn step(&self) {
        if let Some(told) = self.told {
            told();
        }
    }
}

impl Piece {
    fn of(memory: Arc<OwnMemory>) -> Self {
        Self {
            memory,
            user: Weak::new(),
        }
    }

    fn lock(&mut self, told: Option<fn()>) -> Arc<dyn LastingMemory> {
        let memory = self.memory.clone();
        let locked = Arc::new(Locked { memory, told });
        self.user = Arc::downgrade(&locked);
        locked
    }
}

impl HostMemory {
    /// Memory that reports each step of writes.
    pub fn that_tells(told: fn()) -> Self {
        Self {
            told: Some(told),
            ..Self::default()
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Piece>) -> T) -> T {
        act(&mut self.pieces.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The power is gone.
    pub fn clear(&self) {
        self.with(BTreeMap::clear);
    }

    /// The engine that had pieces of it is gone.
    pub fn free(&self) {
        self.with(|known| {
            known
                .values_mut()
                .for_each(|piece| piece.user = Weak::new());
        });
    }

    /// A copy of all of it, without an owner: the state if its engine is killed now.
    pub fn image(&self) -> Self {
        let copy = |memory: &OwnMemory| {
            let copy = OwnMemory::new(memory.words().len());
            for (word, value) in copy.words().iter().zip(memory.words()) {
                word.store(value.load(Relaxed), Relaxed);
            }
            Piece::of(Arc::new(copy))
        };
        let all = self.with(|known| {
            let copies = known
                .iter()
                .map(|(name, piece)| (name.clone(), copy(&piece.memory)));
            copies.collect()
        });
        Self {
            pieces: Mutex::new(all),
            told: self.told,
        }
    }

    /// The names of all pieces.
    pub fn all(&self) -> Vec<String> {
        self.names("")
    }
}

impl LastingSource for HostMemory {
    fn make(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>> {
        self.with(|known| {
            let new = || Piece::of(Arc::new(OwnMemory::new(words)));
            let is_new = !known.contains_key(name);
            let piece = known.entry(name.to_owned()).or_insert_with(new);
            is_new.then(|| piece.lock(self.told))
        })
    }

    fn find(&self, name: &str, words: usize) -> io::Result<Left> {
        Ok(self.with(|known| match known.get_mut(name) {
            Some(piece) if piece.user.strong_count() > 0 => Left::InUse,
            Some(piece) if piece.memory.words().len() == words => {
                Left::Memory(piece.lock(self.told))
            }
            _ => Left::Nothing,
        }))
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        self.with(|known| {
            let names = known.keys().filter(|name| name.starts_with(prefix));
            names.cloned().collect()
        })
    }

    fn forget(&self, name: &str) {
        self.with(|known| known.remove(name));
    }
}
