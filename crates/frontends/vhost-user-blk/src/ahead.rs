//! Prefetches what the next requests will be parsed from: the guest has written it on another CPU
//! core, in whose caches it is.

use crate::chain;
use crate::guest::Guest;
use crate::ring::Ring;
use units::prefetch;

/// Number of requests ahead whose descriptors are prefetched, and of those whose headers are: the
/// address of a header is known once its descriptor has arrived.
const DESCRIPTORS: u16 = 8;
const HEADERS: u16 = 4;

/// Progress of prefetching, as indices of the available ring.
#[derive(Default)]
pub(crate) struct Ahead {
    descriptors: u16,
    headers: u16,
}

impl Ahead {
    /// Prefetches for the next available requests. Guest data is only used as addresses to
    /// prefetch, after bounds checks.
    pub(crate) fn fetch(&mut self, ring: &Ring, memory: &Guest) {
        for number in ahead(&mut self.descriptors, ring, DESCRIPTORS) {
            if let Some(at) = chain::place_of(memory, ring, ring.head(number)) {
                // The next two usually belong to its chain, and are on the next cache line half of
                // the time.
                prefetch(at.as_ptr());
                prefetch(at.as_ptr().wrapping_add(2 * chain::DESCRIPTOR_BYTES));
            }
        }
        for number in ahead(&mut self.headers, ring, HEADERS) {
            let first = chain::first(memory, ring, ring.head(number));
            if let Some(at) = first.and_then(|first| memory.at(first.addr(), 1)) {
                prefetch(at.as_ptr());
            }
        }
    }
}

/// The entries up to `most` ahead that `done` has not passed yet; advances `done`.
fn ahead(done: &mut u16, ring: &Ring, most: u16) -> impl Iterator<Item = u16> + use<> {
    let (next, available) = (ring.next_avail(), ring.available());
    let passed = done.wrapping_sub(next);
    let from = if passed > available { 0 } else { passed };
    let to = available.min(most).max(from);
    *done = next.wrapping_add(to);
    (from..to).map(move |step| next.wrapping_add(step))
}
