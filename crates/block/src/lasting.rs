//! Memory that outlives the process: the next process finds its content.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Memory that keeps its content when the process that uses it is killed, in the order in which that wrote it. It is
/// lost with the host's power.
pub trait LastingMemory: Send + Sync {
    /// Its content, in words of eight bytes.
    fn words(&self) -> &[AtomicU64];

    /// A writer is between two steps, where a kill would leave this state: a hook for the simulation.
    fn step(&self) {}
}

/// State of the memory of a name.
pub enum Left {
    /// Nothing.
    Nothing,
    /// Memory in use: by another process, or by another pool of this one.
    InUse,
    /// Unused memory with its old content. It is exclusive to the caller until it is dropped.
    Memory(Arc<dyn LastingMemory>),
}

/// Where such memory comes from. Each piece is locked while in use, and released when the process ends.
pub trait LastingSource: Send + Sync {
    /// New memory under a name that nothing has yet: `words` zeroes, the caller's alone until it is dropped. `None` when
    /// the host has none to give: what is to outlive the process has to go to a drive then.
    fn make(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>>;

    /// The memory that is left under a name; what is of another length than `words` is nothing.
    ///
    /// # Errors
    /// If it exists and cannot be opened: its content is unknown.
    fn find(&self, name: &str, words: usize) -> io::Result<Left>;

    /// Every name that begins so.
    fn names(&self, prefix: &str) -> Vec<String>;

    /// Removes the memory of a name.
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

    /// As [`LastingSource::make`].
    pub fn make(&self, name: &str, words: usize) -> Option<Arc<dyn LastingMemory>> {
        self.0.as_ref()?.make(name, words)
    }

    /// As [`LastingSource::find`].
    ///
    /// # Errors
    /// As there.
    pub fn find(&self, name: &str, words: usize) -> io::Result<Left> {
        let source = self.0.as_ref();
        source.map_or(Ok(Left::Nothing), |source| source.find(name, words))
    }

    /// As [`LastingSource::names`].
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let source = self.0.as_ref();
        source.map_or_else(Vec::new, |source| source.names(prefix))
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
