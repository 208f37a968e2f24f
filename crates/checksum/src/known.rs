//! Checksums that are cached beside the bytes: for the simulation, which opens the same blocks some thousand times
//! a second, in memory that has not changed. Only builds with debug
//! assertions or the feature `known-checksums` have it, so no release does.

use std::cell::Cell;

/// The checksum of bytes that have not changed since it was made; none where nothing is known of them.
pub type Lookup = fn(&[u8]) -> Option<u32>;

thread_local! {
    static LOOKUP: Cell<Option<Lookup>> = const { Cell::new(None) };
}

/// From now on the calling thread's checksums are asked of `lookup` first.
pub fn know_checksums(lookup: Lookup) {
    LOOKUP.set(Some(lookup));
}

/// Whether the calling thread's checksums are cached: then they are not computed while bytes are copied.
#[inline]
pub(crate) fn is_asked() -> bool {
    LOOKUP.get().is_some()
}

#[inline]
pub(crate) fn crc_of(bytes: &[u8]) -> Option<u32> {
    LOOKUP.get().and_then(|lookup| lookup(bytes))
}
