//! Attempts to log in that failed: how many of them one address may make.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Failures of one address within [`WINDOW_S`] after which it is not heard.
const FAILURES_MAX: u32 = 10;
const WINDOW_S: u64 = 60;
/// Addresses that are known at a time; while all of them failed of late, no other is heard.
const ADDRESSES_MAX: usize = 4096;
/// Addresses whose failures are told of one by one.
const FRESH_MAX: usize = 8;

/// Failures by address: when the first was, and how many. IPv6 addresses count by their first 64 bits, as a host has
/// all of those that follow.
#[derive(Default)]
pub struct Attempts {
    known: BTreeMap<IpAddr, (u64, u32)>,
    fresh: Failures,
}

/// Failures that nobody was told of yet.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub struct Failures {
    /// By address.
    pub by: BTreeMap<IpAddr, u32>,
    /// Of addresses for which there was no room.
    pub others: u32,
}

fn whole(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

impl Attempts {
    /// Whether an address may try now.
    pub fn may_try(&mut self, from: IpAddr, now_s: u64) -> bool {
        self.known
            .retain(|_, (first_s, _)| now_s.saturating_sub(*first_s) < WINDOW_S);
        match self.known.get(&whole(from)) {
            Some((_, failures)) => *failures < FAILURES_MAX,
            None => self.known.len() < ADDRESSES_MAX,
        }
    }

    /// A try that was let through failed.
    pub fn failed(&mut self, from: IpAddr, now_s: u64) {
        let from = whole(from);
        self.known.entry(from).or_insert((now_s, 0)).1 += 1;
        let fresh = &mut self.fresh;
        let room = fresh.by.len() < FRESH_MAX || fresh.by.contains_key(&from);
        let count = match room {
            true => fresh.by.entry(from).or_default(),
            false => &mut fresh.others,
        };
        *count = count.saturating_add(1);
    }

    /// What failed since the last time.
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
    fn who_fails_often_is_not_heard_for_a_while_and_others_are() {
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
    fn an_ipv6_host_gains_nothing_by_its_many_addresses() {
        let mut attempts = Attempts::default();
        for host in 0..10 {
            attempts.failed(address(&format!("2001:db8::{host}")), 0);
        }
        assert!(!attempts.may_try(address("2001:db8::ffff"), 1));
        assert!(attempts.may_try(address("2001:db8:0:1::"), 1));
        assert!(attempts.may_try(address("::ffff:10.0.0.1"), 1));
    }

    #[test]
    fn what_failed_is_told_of_once_and_of_few_addresses() {
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
    fn no_more_addresses_are_kept_than_there_is_room_for() {
        let mut attempts = Attempts::default();
        for host in 0..ADDRESSES_MAX as u32 {
            attempts.failed(IpAddr::V4(host.into()), 0);
        }
        assert!(!attempts.may_try(address("10.0.0.1"), 1));
        assert!(attempts.may_try(address("10.0.0.1"), 60));
    }
}
