//! Connections from chosen source addresses.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};

/// An address in the form of system calls.
fn raw(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*address.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}

/// A connection from a loopback address.
pub fn connect_from(source: Ipv4Addr, portal: SocketAddr) -> TcpStream {
    let SocketAddr::V4(portal) = portal else {
        panic!("{portal} is of version 6")
    };
    let len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let (source, portal) = (raw(SocketAddrV4::new(source, 0)), raw(portal));
    // SAFETY: the addresses are valid during the calls, and their lengths are passed; the new
    // descriptor is exclusively owned.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0);
        let socket = OwnedFd::from_raw_fd(fd);
        assert_eq!(libc::bind(fd, (&raw const source).cast(), len), 0);
        assert_eq!(libc::connect(fd, (&raw const portal).cast(), len), 0);
        TcpStream::from(socket)
    }
}
