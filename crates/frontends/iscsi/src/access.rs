//! Access control of a unit: initiator names, addresses, CHAP secrets.

use crate::parameters::Secrets;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The remote side of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// The initiator's name, which is not authenticated.
    pub initiator: String,
    /// The host's address.
    pub address: SocketAddr,
    pub portal: SocketAddr,
}

/// An address range in CIDR notation (RFC 4632, RFC 4291 section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Network {
    address: IpAddr,
    prefix: u32,
}

/// The bits of an address, left-aligned, and their number.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

fn mask(prefix: u32) -> u128 {
    u128::MAX.checked_shl(128 - prefix).unwrap_or(0)
}

impl Network {
    /// Parses `ADDRESS` or `ADDRESS/PREFIX`; none if it is malformed or has bits beyond the prefix.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let (value, len) = bits(address);
        let prefix = match prefix {
            None => len,
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            Some(_) => return None,
        };
        let fits = prefix <= len && value & !mask(prefix) == 0;
        fits.then_some(Self { address, prefix })
    }

    /// Whether the range contains an address. IPv4-mapped IPv6 addresses count as IPv4.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let (own, other) = (bits(self.address), bits(address));
        own.1 == other.1 && (own.0 ^ other.0) & mask(self.prefix) == 0
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Who may access a unit, and how.
#[derive(Clone)]
pub(crate) struct Grant {
    /// Permitted initiators; empty: all.
    pub initiators: Vec<String>,
    /// Permitted address ranges; empty: all.
    pub networks: Vec<Network>,
    /// Required CHAP secrets.
    pub chap: Option<Secrets>,
    pub read_only: bool,
    /// Maximum number of connections per session.
    pub connections: u16,
}

impl Grant {
    /// Whether a host may see the unit, according to its name and address.
    pub(crate) fn is_for(&self, peer: &Peer) -> bool {
        let named = self.initiators.is_empty() || self.initiators.contains(&peer.initiator);
        let address = peer.address.ip();
        let networks = &self.networks;
        named && (networks.is_empty() || networks.iter().any(|known| known.contains(address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_parsed_and_matched() {
        for (network, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("192.0.2.7", "::ffff:192.0.2.7", "::192.0.2.7"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "::1", "127.0.0.1"),
            ("::1", "::1", "::2"),
        ] {
            let read = Network::parse(network).expect(network);
            assert!(read.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(
                !read.contains(outside.parse().unwrap()),
                "{network} {outside}"
            );
        }
        for bad in [
            "",
            "192.0.2.0/33",
            "192.0.2.1/24",
            "192.0.2.0/",
            "192.0.2.0/+8",
            "2001:db8::1/32",
            "host",
            "::/129",
        ] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
