//! Notifies the service manager of the daemon's state (`sd_notify(3)`).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a state like `READY=1` to the service manager that started this process, if any. A failure
/// does not affect service.
pub fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!("cannot notify the service manager of {state}: {error}");
    }
}

/// A leading `@` denotes the abstract namespace.
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(socket),
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(manager: &UnixDatagram) -> String {
        manager.set_nonblocking(true).unwrap();
        let mut state = [0; 64];
        let length = manager.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    }

    #[test]
    fn notification_over_a_path_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&manager), "READY=1");
    }

    #[test]
    fn notification_over_an_abstract_socket() {
        let name = format!("convect-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&manager), "STOPPING=1");
    }

    #[test]
    fn missing_manager_is_a_harmless_error() {
        assert!(send(OsStr::new("/nonexistent/notify"), "READY=1").is_err());
    }
}
