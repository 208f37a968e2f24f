//! Rate limit of failed authentication attempts by address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Failures of one address within [`WINDOW_S`] after which only valid tokens are accepted from it;
/// and the same for an IPv6 /48 network.
const FAILURES_MAX: u32 = 10;
const NETWORK_FAILURES_MAX: u32 = 100;
const WINDOW_S: u64 = 60;
/// Maximum number of tracked addresses; the one with the oldest failure is dropped. This does not
/// help guessing: tokens have 256 random bits.
const ADDRESSES_MAX: usize = 4096;
/// Maximum number of addresses reported individually.
const FRESH_MAX: usize = 8;

/// Failures by address: time of the first, and count. IPv6 addresses are counted by their /64,
/// which one host controls, and their /48.
#[derive(Default)]
pub struct Attempts {
    known: BTreeMap<IpAddr, (u64, u32)>,
    networks: BTreeMap<IpAddr, (u64, u32)>,
    fresh: Failures,
}

/// Failures that were not logged yet.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub struct Failures {
    /// By address.
    pub by: BTreeMap<IpAddr, u32>,
    /// Failures of addresses beyond the limit.
    pub others: u32,
}

fn first_bits(address: IpAddr, bits: u32) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - bits);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
        v4 => v4,
    }
}

fn whole(address: IpAddr) -> IpAddr {
    first_bits(address, 64)
}

type Counted = BTreeMap<IpAddr, (u64, u32)>;

/// Counts a failure; evicts the oldest entry if full.
fn count(known: &mut Counted, from: IpAddr, now_s: u64) {
    if known.len() >= ADDRESSES_MAX && !known.contains_key(&from) {
        let oldest = known.iter().min_by_key(|(_, (first_s, _))| *first_s);
        if let Some(oldest) = oldest.map(|(address, _)| *address) {
            known.remove(&oldest);
        }
    }
    let count = &mut known.entry(from).or_insert((now_s, 0)).1;
    *count = count.saturating_add(1);
}

impl Attempts {
    /// Whether attempts from an address are permitted now.
    pub fn may_try(&mut self, from: IpAddr, now_s: u64) -> bool {
        let failures = |known: &mut Counted, from: IpAddr| {
            known.retain(|_, (first_s, _)| now_s.saturating_sub(*first_s) < WINDOW_S);
            known.get(&from).map_or(0, |(_, failures)| *failures)
        };
        failures(&mut self.known, whole(from)) < FAILURES_MAX
            && failures(&mut self.networks, first_bits(from, 48)) < NETWORK_FAILURES_MAX
    }

    /// Records a failed attempt.
    pub fn failed(&mut self, from: IpAddr, now_s: u64) {
        if from.to_canonical().is_ipv6() {
            count(&mut self.networks, first_bits(from, 48), now_s);
        }
        let from = whole(from);
        count(&mut self.known, from, now_s);
        let fresh = &mut self.fresh;
        let room = fresh.by.len() < FRESH_MAX || fresh.by.contains_key(&from);
        let count = match room {
            true => fresh.by.entry(from).or_default(),
            false => &mut fresh.others,
        };
        *count = count.saturating_add(1);
    }

    /// Failures since the last call.
    pub fn take_fresh(&mut self) -> Failures {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn frequent_failures_block_only_their_address() {
        let mut attempts = Attempts::default();
        let (bad, good) = (address("10.0.0.1"), address("10.0.0.2"));
        for second in 0..10 {
            assert!(attempts.may_try(bad, second));
            attempts.failed(bad, second);
        }
        assert!(!attempts.may_try(bad, 59) && attempts.may_try(good, 59));
        assert!(attempts.may_try(bad, 60));
    }

    #[test]
    fn ipv6_host_cannot_evade_the_limit_by_its_addresses() {
        let mut attempts = Attempts::default();
        for host in 0..10 {
            attempts.failed(address(&format!("2001:db8::{host}")), 0);
        }
        assert!(!attempts.may_try(address("2001:db8::ffff"), 1));
        assert!(attempts.may_try(address("2001:db8:0:1::"), 1));
        assert!(attempts.may_try(address("::ffff:10.0.0.1"), 1));
    }

    #[test]
    fn failures_are_reported_once_for_few_addresses() {
        let mut attempts = Attempts::default();
        for host in 0..20 {
            attempts.failed(IpAddr::V4(host.into()), 0);
            attempts.failed(IpAddr::V4(3.into()), 0);
        }
        let failures = attempts.take_fresh();
        assert_eq!((failures.by.len(), failures.others), (FRESH_MAX, 12));
        assert_eq!(failures.by[&address("0.0.0.3")], 21);
        assert_eq!(attempts.take_fresh(), Failures::default());
    }

    #[test]
    fn failures_of_many_addresses_block_no_other() {
        let mut attempts = Attempts::default();
        for host in 0..2 * ADDRESSES_MAX as u32 {
            attempts.failed(IpAddr::V4(host.into()), 0);
        }
        assert!(attempts.may_try(address("10.0.0.1"), 1));
        assert_eq!(attempts.known.len(), ADDRESSES_MAX);
    }

    #[test]
    fn ipv6_network_is_blocked_after_failures_of_many_hosts() {
        let mut attempts = Attempts::default();
        for host in 0..NETWORK_FAILURES_MAX {
            attempts.failed(address(&format!("2001:db8:0:{host:x}::1")), 0);
        }
        assert!(!attempts.may_try(address("2001:db8:0:ffff::1"), 1));
        assert!(attempts.may_try(address("2001:db8:1::1"), 1));
    }
}
