//! Which tier each vdrive is of, as one shard sees it.
//!
//! The table that shards share ([`GroupTable`]) is behind a lock. A vdrive's tier never changes, so each shard asks for it
//! once and keeps the answer, for the tier of every place of a request is looked up. Invariant: an answer is kept only for a
//! vdrive that the pool has; [`Tiers::forget`] comes before its number may be another vdrive's.

use super::{Class, GroupTable};
use std::cell::Cell;
use std::sync::Arc;
use units::VdriveId;

/// Numbers that vdrives may have.
const VDRIVES: usize = 256;

/// Tiers by vdrive.
pub(crate) struct Tiers {
    groups: Arc<GroupTable>,
    /// Tiers looked up so far.
    known: [Cell<Option<Class>>; VDRIVES],
}

impl Tiers {
    /// Those of a pool.
    pub fn new(groups: Arc<GroupTable>) -> Self {
        Self {
            groups,
            known: [const { Cell::new(None) }; VDRIVES],
        }
    }

    /// The tier of a vdrive; of one that the pool does not have, the slow one.
    #[inline]
    pub fn of(&self, vdrive: VdriveId) -> Class {
        let known = &self.known[usize::from(vdrive.0)];
        if let Some(class) = known.get() {
            return class;
        }
        let space = self.groups.space(vdrive);
        let class = space.map(|space| space.class);
        known.set(class);
        class.unwrap_or(Class::Slow)
    }

    /// A vdrive has left the pool.
    pub fn forget(&self, vdrive: VdriveId) {
        self.known[usize::from(vdrive.0)].set(None);
    }

    /// The tier that takes writes.
    #[inline]
    pub fn for_writes(&self) -> Class {
        if self.groups.has_class(Class::Fast) {
            Class::Fast
        } else {
            Class::Slow
        }
    }

    /// Whether there are two tiers to move data between.
    #[inline]
    pub fn are_two(&self) -> bool {
        self.groups.has_class(Class::Fast) && self.groups.has_class(Class::Slow)
    }
}
