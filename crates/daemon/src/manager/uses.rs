//! Volumes and snapshots used by streams in progress, which must not be deleted or exported.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Use counts by pool and volume, or `volume@snapshot`.
type Counts = BTreeMap<(String, String), usize>;

/// The use counts.
#[derive(Clone, Default)]
pub struct Uses(Arc<Mutex<Counts>>);

/// A use, until it is dropped.
pub struct Use {
    uses: Uses,
    key: (String, String),
}

impl Uses {
    /// Adds a use of a volume, or of `volume@snapshot`.
    pub fn enter(&self, pool: &str, name: &str) -> Use {
        let key = (pool.to_owned(), name.to_owned());
        *lock(&self.0).entry(key.clone()).or_default() += 1;
        Use {
            uses: self.clone(),
            key,
        }
    }

    /// Whether any object of a pool is in use, or the given one.
    pub fn has(&self, pool: &str, name: Option<&str>) -> bool {
        let counts = lock(&self.0);
        let mut keys = counts.keys();
        keys.any(|(of, known)| of == pool && name.is_none_or(|name| known == name))
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut counts = lock(&self.uses.0);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}
