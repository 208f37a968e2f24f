//! Mirrors: valid members, what a member lacks, and resync.
//!
//! A member is in, out or syncing. While one is out, written regions are noted in a **dirty-region log** (a write-intent
//! bitmap), so that a resync copies only those.

pub(crate) mod copy;
pub(crate) mod dirty_region_log;
pub(crate) mod members;
