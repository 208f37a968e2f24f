//! Bytes written to a drive, counted by purpose.

use super::Sums;
use format::WearConfig;
use std::sync::atomic::{AtomicU64, Ordering};

/// Purposes of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A host writes them.
    Hosts,
    /// They are brought to the fast tier.
    Promotion,
    /// They are demoted, are moved together or off a vdrive, are repaired, or copied to a mirror's member.
    Upkeep,
    /// The metadata region.
    Metadata,
}

/// Bytes written to one drive beside what its [`super::Tally`] counts: what labels tell of before, and labels.
#[derive(Default, Debug)]
pub struct Wear {
    before: WearConfig,
    /// Labels. They count by themselves, as they are none of what a flush of data waits for, and telling of
    /// their own bytes is no reason to write them.
    labels: AtomicU64,
    /// The part of the tally for this purpose that the last label records.
    kept: AtomicU64,
}

impl Wear {
    /// With what was written before.
    pub fn since(before: WearConfig) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// A label was written.
    pub fn note_label(&self, bytes: u64) {
        self.labels.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All that was written, with what was before, as it counts since `since_s`.
    pub fn total(&self, new: &Sums, since_s: u64) -> WearConfig {
        let new = |purpose: Purpose| new.written_for(purpose);
        let labels = self.labels.load(Ordering::Relaxed);
        // What labels say may be anything.
        let sum = |before: u64, bytes: u64| before.saturating_add(bytes);
        WearConfig {
            since_s,
            hosts: sum(self.before.hosts, new(Purpose::Hosts)),
            promotion: sum(self.before.promotion, new(Purpose::Promotion)),
            upkeep: sum(self.before.upkeep, new(Purpose::Upkeep)),
            metadata: sum(self.before.metadata, new(Purpose::Metadata) + labels),
        }
    }

    /// Whether something but labels was written since [`Wear::keep`].
    pub fn has_more(&self, new: &Sums) -> bool {
        new.written() != self.kept.load(Ordering::Relaxed)
    }

    /// A label records this number of bytes, as counted by [`Sums::written`].
    pub fn keep(&self, written: u64) {
        self.kept.store(written, Ordering::Relaxed);
    }
}
