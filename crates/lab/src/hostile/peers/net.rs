//! Connections that the standard library cannot make: from a chosen address, and within a time.

use std::io::{Error, ErrorKind, Result};
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a connection may take, and each read and write after it.
const PATIENCE: Duration = Duration::from_secs(2);

fn check(result: i32) -> Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn socket(family: i32, flags: i32) -> Result<OwnedFd> {
    // SAFETY: takes numbers and gives one.
    let fd = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags, 0) };
    match fd {
        // SAFETY: a fresh descriptor.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Error::last_os_error()),
    }
}

fn internet(address: IpAddr, port: u16) -> Result<libc::sockaddr_in> {
    let IpAddr::V4(address) = address else {
        return Err(ErrorKind::Unsupported.into());
    };
    Ok(libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address.octets()),
        },
        sin_zero: [0; 8],
    })
}

const INTERNET_LEN: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;

/// Connects from one IPv4 address to another.
///
/// # Errors
/// If the connection is not accepted in time.
pub fn connect(from: IpAddr, to: SocketAddr) -> Result<TcpStream> {
    let socket = socket(libc::AF_INET, libc::SOCK_NONBLOCK)?;
    let fd = socket.as_raw_fd();
    let (near, far) = (internet(from, 0)?, internet(to.ip(), to.port())?);
    // SAFETY: the address lives through the call and is as long as is said.
    check(unsafe { libc::bind(fd, (&raw const near).cast(), INTERNET_LEN) })?;
    // SAFETY: as above.
    let begun = check(unsafe { libc::connect(fd, (&raw const far).cast(), INTERNET_LEN) });
    let stream = TcpStream::from(socket);
    if let Err(error) = begun {
        if error.raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(error);
        }
        let mut wait = libc::pollfd {
            fd,
            events: libc::POLLOUT,
            revents: 0,
        };
        // SAFETY: one entry, which lives through the call.
        match unsafe { libc::poll(&raw mut wait, 1, PATIENCE.as_millis() as i32) } {
            1.. => {}
            _ => return Err(ErrorKind::TimedOut.into()),
        }
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
    }
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Connects to a Unix socket. One whose queue is full is waited for no longer than for anything else.
///
/// # Errors
/// If the connection is not accepted in time.
pub fn connect_unix(path: &Path) -> Result<UnixStream> {
    let stream = UnixStream::from(socket(libc::AF_UNIX, 0)?);
    // The time of a write is also that of a connect (unix(7)).
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut address = libc::sockaddr_un {
        sun_family: libc::AF_UNIX as libc::sa_family_t,
        sun_path: [0; 108],
    };
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(ErrorKind::InvalidInput.into());
    }
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address lives through the call and is as long as is said.
    check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), len) })?;
    Ok(stream)
}
