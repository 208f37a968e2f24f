//! Metadata contexts: what a block status can tell of.

use crate::options::ContextRequest;
use crate::protocol::STATE_CHANGED;
use block::{BlockDevice, OpKind};

/// Most contexts of one session: each has its own answer to every question.
pub(crate) const CONTEXTS_MAX: usize = 8;
/// Which parts hold data.
const ALLOCATION: &str = "base:allocation";
/// The namespace of our own ones.
const OURS: &str = "convect:";
/// Which parts have changed since a snapshot, whose name follows.
const CHANGED: &str = "convect:changed:";

/// What a session may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Context {
    /// `base:allocation`.
    Allocation,
    /// Changes since the snapshot of a number.
    Changed(u32),
}

impl Context {
    /// The operation that tells it.
    pub(crate) fn kind(self) -> OpKind {
        match self {
            Self::Allocation => OpKind::Status,
            Self::Changed(number) => OpKind::Changed(number),
        }
    }

    /// What is said of a range of which the device tells nothing: data, or changed, is never wrong.
    pub(crate) fn unknown(self) -> u32 {
        match self {
            Self::Allocation => 0,
            Self::Changed(_) => STATE_CHANGED,
        }
    }
}

/// The contexts of a device that a request selects, or only wants to have listed, by their names.
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
