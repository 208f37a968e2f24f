//! Memory that outlives the process: who outlives it too finds there what it was told.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Memory that keeps its content when the process that uses it is killed, in the order in which that wrote it. It is
/// lost with the host's power.
pub trait LastingMemory: Send + Sync {
    /// Its content, in words of eight bytes.
    fn words(&self) -> &[AtomicU64];
}

/// Where such memory comes from.
pub trait LastingSource: Send + Sync {
    /// The memory of a name, `words` long, as it was left; zeroes where it is new. `None` when the host has none to
    /// give: what is to outlive the process has to go to a drive then.
    fn take(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>>;

    /// Nobody needs the memory of that name any more.
    fn forget(&self, name: &str);
}

/// A source of lasting memory, or none. Two are the same when they are one source.
#[derive(Clone, Default)]
pub struct Lasting(Option<Arc<dyn LastingSource>>);

impl Lasting {
    /// There is none.
    pub const NONE: Self = Self(None);

    /// Out of a source.
    pub fn of(source: Arc<dyn LastingSource>) -> Self {
        Self(Some(source))
    }

    /// As [`LastingSource::take`].
    pub fn take(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>> {
        self.0.as_ref()?.take(name, words)
    }

    /// As [`LastingSource::forget`].
    pub fn forget(&self, name: &str) {
        if let Some(source) = &self.0 {
            source.forget(name);
        }
    }
}

impl fmt::Debug for Lasting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_some() { "Lasting" } else { "None" })
    }
}

impl PartialEq for Lasting {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for Lasting {}

/// Memory of the process itself, for what need not outlive it.
pub struct OwnMemory(Box<[AtomicU64]>);

impl OwnMemory {
    /// Zeroes.
    pub fn new(words: usize) -> Self {
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }
}

impl LastingMemory for OwnMemory {
    fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}
