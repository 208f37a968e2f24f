//! Rate limit of failed CHAP attempts by address and by user name.
//!
//! Each failure costs a second for its address and for the name, with some for free. A further
//! attempt waits before it is verified, whether correct or not, so that the delay reveals nothing.
//! Only the login of that connection waits, and a host that has authenticated with the name from
//! its address before is not delayed by attempts of others. The state is bounded; the oldest
//! entries are dropped. Pure: time is passed in.

use reactor::PeerAddress;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Delay per failed attempt.
const COST: Duration = Duration::from_secs(1);
/// Free allowance of an address, or of a name.
const FREE: Duration = Duration::from_secs(5);
/// An address that would wait longer is refused.
const WAIT_MAX: Duration = Duration::from_secs(8);
/// Maximum delay due to a name, as a stranger may be trying it.
const NAME_WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of tracked addresses and names each.
const KEPT_MAX: usize = 1024;

/// Time at which the accumulated delay is used up, by key.
struct Spent<K>(BTreeMap<K, Instant>);

impl<K: Ord + Clone> Spent<K> {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Remaining delay of `key`.
    fn wait(&self, key: &K, now: Instant) -> Duration {
        let paid = self.0.get(key).copied().unwrap_or(now);
        paid.saturating_duration_since(now).saturating_sub(FREE)
    }

    fn add(&mut self, key: K, now: Instant) {
        if self.0.len() >= KEPT_MAX && !self.0.contains_key(&key) {
            self.0.retain(|_, paid| *paid > now);
            let first = self.0.iter().min_by_key(|(_, paid)| **paid);
            if let Some(first) = first.map(|(key, _)| key.clone())
                && self.0.len() >= KEPT_MAX
            {
                self.0.remove(&first);
            }
        }
        let paid = self.0.entry(key).or_insert(now);
        *paid = (*paid).max(now) + COST;
    }

    fn refund(&mut self, key: &K) {
        if let Some(paid) = self.0.get_mut(key) {
            *paid -= COST;
        }
    }
}

/// Failed and successful attempts.
pub(crate) struct Guesses {
    addresses: Spent<PeerAddress>,
    names: Spent<String>,
    /// Addresses from which names were proved.
    proved: BTreeMap<(String, PeerAddress), Instant>,
}

impl Guesses {
    const fn new() -> Self {
        Self {
            addresses: Spent::new(),
            names: Spent::new(),
            proved: BTreeMap::new(),
        }
    }

    /// Begins an attempt: returns the delay before its verification; none if it is refused. The
    /// attempt counts as failed until [`Guesses::was_right`].
    pub(crate) fn come(
        &mut self,
        address: PeerAddress,
        name: &str,
        now: Instant,
    ) -> Option<Duration> {
        let own = self.addresses.wait(&address, now);
        if own > WAIT_MAX {
            return None;
        }
        let name = name.to_owned();
        let is_known = self.proved.contains_key(&(name.clone(), address));
        let of_name = match is_known {
            true => Duration::ZERO,
            false => self.names.wait(&name, now).min(NAME_WAIT_MAX),
        };
        self.addresses.add(address, now);
        self.names.add(name, now);
        Some(own.max(of_name))
    }

    /// The attempt was correct.
    pub(crate) fn was_right(&mut self, address: PeerAddress, name: &str, now: Instant) {
        self.addresses.refund(&address);
        self.names.refund(&name.to_owned());
        if self.proved.len() >= KEPT_MAX {
            let oldest = self.proved.iter().min_by_key(|(_, at)| **at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.proved.remove(&oldest);
            }
        }
        self.proved.insert((name.to_owned(), address), now);
    }
}

/// The state of this process.
pub(crate) fn guesses() -> MutexGuard<'static, Guesses> {
    static GUESSES: Mutex<Guesses> = Mutex::new(Guesses::new());
    GUESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> PeerAddress {
        PeerAddress::of([192, 0, 2, last].into())
    }

    #[test]
    fn failed_attempts_of_an_address_are_delayed_then_refused() {
        let (mut guesses, start) = (Guesses::new(), Instant::now());
        let waits: Vec<_> = (0..30u32)
            .map_while(|at| guesses.come(address(1), &format!("host{at}"), start))
            .map(|wait| wait.as_secs())
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(guesses.come(address(1), "host", start), None);
        assert_eq!(
            guesses.come(address(2), "host", start),
            Some(Duration::ZERO),
            "others"
        );
        let later = start + Duration::from_secs(20);
        assert_eq!(
            guesses.come(address(1), "host", later),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn attacked_name_is_slow_for_strangers_only() {
        let (mut guesses, start) = (Guesses::new(), Instant::now());
        assert_eq!(
            guesses.come(address(200), "host", start),
            Some(Duration::ZERO)
        );
        guesses.was_right(address(200), "host", start);
        for stranger in 0..100 {
            guesses.come(address(stranger), "host", start);
        }
        assert_eq!(
            guesses.come(address(150), "host", start),
            Some(NAME_WAIT_MAX)
        );
        assert_eq!(
            guesses.come(address(200), "host", start),
            Some(Duration::ZERO)
        );
        assert_eq!(
            guesses.come(address(151), "another", start),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn successful_attempts_are_free_and_grant_nothing() {
        let (mut guesses, start) = (Guesses::new(), Instant::now());
        for _ in 0..100 {
            assert_eq!(
                guesses.come(address(1), "host", start),
                Some(Duration::ZERO)
            );
            guesses.was_right(address(1), "host", start);
        }
        let wrong = (0..30).map_while(|_| {
            guesses.come(address(1), "host", start)?;
            let right = guesses.come(address(1), "host", start);
            guesses.was_right(address(1), "host", start);
            right
        });
        assert!(wrong.count() < 15);
    }

    #[test]
    fn tracked_state_is_bounded() {
        let (mut guesses, start) = (Guesses::new(), Instant::now());
        for number in 0..5000u32 {
            let address = PeerAddress::of(number.to_be_bytes().into());
            guesses.come(address, &number.to_string(), start);
            guesses.was_right(address, &number.to_string(), start);
            guesses.come(address, &number.to_string(), start);
        }
        assert!(guesses.addresses.0.len() <= KEPT_MAX && guesses.names.0.len() <= KEPT_MAX);
        assert!(guesses.proved.len() <= KEPT_MAX);
    }
}
