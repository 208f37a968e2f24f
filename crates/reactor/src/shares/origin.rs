//! Who a peer is, as far as shares are concerned: everything that one owner can have many of is one origin.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a peer comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// A user of this host.
    User(u32),
    /// An IPv4 address.
    V4(u32),
    /// The first 64 bits of an IPv6 address: a host has all addresses that begin so.
    V6(u64),
}

/// The origin of a peer that has an IP address.
pub type PeerAddress = Origin;

impl Origin {
    /// That of an address; an IPv4-mapped IPv6 address is an IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }

    /// The first 48 bits of an IPv6 address: a site often has all addresses that begin so.
    pub fn network(self) -> Option<u64> {
        match self {
            Self::V6(prefix) => Some(prefix >> 16),
            Self::User(_) | Self::V4(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, text: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::User(id) => write!(text, "user {id}"),
            Self::V4(bits) => Ipv4Addr::from_bits(*bits).fmt(text),
            Self::V6(prefix) => {
                let first = Ipv6Addr::from_bits(u128::from(*prefix) << 64);
                write!(text, "{first}/64")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Origin {
        Origin::of(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_owner_are_one_origin() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::2:0:0:1"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        assert_ne!(origin("192.0.2.1"), origin("192.0.2.2"));
        assert_eq!(origin("192.0.2.1").to_string(), "192.0.2.1");
        assert_eq!(origin("2001:db8::1").to_string(), "2001:db8::/64");
        let network = |text| origin(text).network();
        assert_eq!(network("2001:db8:1:1::1"), network("2001:db8:1:2::1"));
        assert_ne!(network("2001:db8:1:1::1"), network("2001:db8:2:1::1"));
        assert_eq!(
            (network("192.0.2.1"), Origin::User(0).network()),
            (None, None)
        );
    }
}
