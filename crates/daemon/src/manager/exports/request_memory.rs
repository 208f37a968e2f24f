//! Memory budgets for hosts' requests and unread responses: a total, and a share for each volume.

use reactor::Budget;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A volume may use 1/PARTS of the total.
const PARTS: usize = 4;

/// The daemon's budget and the volumes' shares.
pub struct RequestMemory {
    all: Budget,
    /// By pool and volume, for exported volumes.
    volumes: Mutex<BTreeMap<(String, String), Budget>>,
}

impl RequestMemory {
    /// A total of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self {
            all: Budget::new(usize::try_from(bytes).unwrap_or(usize::MAX)),
            volumes: Mutex::default(),
        }
    }

    fn volumes(&self) -> MutexGuard<'_, BTreeMap<(String, String), Budget>> {
        self.volumes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The total budget.
    pub fn all(&self) -> &Budget {
        &self.all
    }

    /// Requests that wait for memory of either budget.
    pub fn waiting(&self) -> usize {
        let volumes = self.volumes();
        let of_volumes: usize = volumes.values().map(Budget::waiting).sum();
        of_volumes + self.all.waiting()
    }

    /// The share of a volume, common to all of its exports.
    pub fn of(&self, pool: &str, volume: &str) -> Budget {
        let mut volumes = self.volumes();
        volumes.retain(|_, budget| budget.is_shared());
        let known = volumes.entry((pool.to_owned(), volume.to_owned()));
        let part = known.or_insert_with(|| self.all.part(self.all.most() / PARTS));
        part.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_of_a_volume_share_its_budget() {
        let memory = RequestMemory::new(256 << 20);
        let (first, second) = (memory.of("p", "v"), memory.of("p", "v"));
        let other = memory.of("q", "v");
        let session = reactor::Account::new([first]);
        assert!(session.try_take(64 << 20));
        assert_eq!((second.used(), second.most()), (64 << 20, 64 << 20));
        assert_eq!((other.used(), memory.all().used()), (0, 64 << 20));
        drop((session, second, other));
        memory.of("r", "w");
        let volumes = memory.volumes.lock().unwrap();
        assert_eq!(volumes.len(), 1, "parts that no export has are forgotten");
    }
}
