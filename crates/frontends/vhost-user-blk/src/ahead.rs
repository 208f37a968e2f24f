//! What requests will be parsed from, fetched by the processor while those before them are parsed: the guest wrote it
//! on another processor, which has it in its caches.

use crate::chain;
use crate::guest::Guest;
use crate::ring::Ring;
use units::prefetch;

/// Requests ahead of the present one whose descriptors are fetched, and of these those whose headers are: where a
/// header lies is known when its descriptor has come.
const DESCRIPTORS: u16 = 8;
const HEADERS: u16 = 4;

/// How far was fetched, as numbers of entries of the available ring.
#[derive(Default)]
pub(crate) struct Ahead {
    descriptors: u16,
    headers: u16,
}

impl Ahead {
    /// Has fetched what the next requests need, as far as they are available. What a guest wrote is taken for nothing
    /// but a place to look at.
    pub(crate) fn fetch(&mut self, ring: &Ring, memory: &Guest) {
        for number in ahead(&mut self.descriptors, ring, DESCRIPTORS) {
            if let Some(at) = chain::place_of(memory, ring, ring.head(number)) {
                // The two that follow are most often its chain's, and half of the time on the next line.
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

/// The entries up to so many ahead that `done` has not passed yet, which it passes now.
fn ahead(done: &mut u16, ring: &Ring, most: u16) -> impl Iterator<Item = u16> + use<> {
    let (next, available) = (ring.next_avail(), ring.available());
    let passed = done.wrapping_sub(next);
    let from = if passed > available { 0 } else { passed };
    let to = available.min(most).max(from);
    *done = next.wrapping_add(to);
    (from..to).map(move |step| next.wrapping_add(step))
}
