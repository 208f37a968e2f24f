//! Resolves the addresses of a notification target within a time limit, and filters forbidden ones.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Link-local addresses (RFC 3927, section 2.1; RFC 4291, section 2.5.6): clouds serve instance
/// credentials there.
fn is_link_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Addresses of a host; link-local ones only if `link_local` permits them.
///
/// # Errors
/// When the name has no address, or the resolver does not respond in time.
pub fn addresses(host: &str, port: u16, link_local: bool) -> io::Result<Vec<SocketAddr>> {
    let name = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    };
    let mut found = reactor::resolve(&name)?;
    found.retain(|at| link_local || !is_link_local(at.ip()));
    match found.is_empty() {
        false => Ok(found),
        true => Err(io::Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "{host} is a link-local address: set alerts_link_local = true in the \
                 configuration to permit it"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_require_permission() {
        for (host, local) in [
            ("169.254.169.254", true),
            ("::ffff:169.254.169.254", true),
            ("fe80::1", true),
            ("127.0.0.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(addresses(host, 80, false).is_err(), local, "{host}");
            assert_eq!(addresses(host, 80, true).unwrap()[0].port(), 80);
        }
    }
}
