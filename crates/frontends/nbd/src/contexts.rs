//! Metadata contexts of block status.

use crate::options::ContextRequest;
use crate::protocol::STATE_CHANGED;
use block::{BlockDevice, OpKind};

/// Maximum number of contexts of a session: each has its own reply to every request.
pub(crate) const CONTEXTS_MAX: usize = 8;
/// Allocation status.
const ALLOCATION: &str = "base:allocation";
/// Namespace of Convect's contexts.
const OURS: &str = "convect:";
/// Changes since a snapshot, whose name follows.
const CHANGED: &str = "convect:changed:";

/// A context of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Context {
    /// `base:allocation`.
    Allocation,
    /// Changes since the snapshot with this number.
    Changed(u32),
}

impl Context {
    /// The operation that queries it.
    pub(crate) fn kind(self) -> OpKind {
        match self {
            Self::Allocation => OpKind::Status,
            Self::Changed(number) => OpKind::Changed(number),
        }
    }

    /// Status of a range if the device reports none: data, or changed, which is always safe.
    pub(crate) fn unknown(self) -> u32 {
        match self {
            Self::Allocation => 0,
            Self::Changed(_) => STATE_CHANGED,
        }
    }
}

/// Contexts of a device that a request selects or lists, by name.
pub(crate) fn asked_for(
    device: &dyn BlockDevice,
    request: &ContextRequest,
    select: bool,
) -> Vec<(String, Context)> {
    let mut known = vec![(ALLOCATION.to_owned(), Context::Allocation)];
    if request.is_about(OURS) {
        let changed = |(name, number)| (format!("{CHANGED}{name}"), Context::Changed(number));
        known.extend(device.bases().into_iter().map(changed));
    }
    known.retain(|(name, _)| match select {
        true => request.selects(name),
        false => request.lists(name),
    });
    known
}
