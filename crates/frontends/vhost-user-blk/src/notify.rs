//! Notifies the monitor of a resize.
//!
//! The protocol uses a socket that the monitor passes with SET_BACKEND_REQ_FD. The `vhost` crate
//! accepts it but has no message for configuration changes, so the descriptor is duplicated when it
//! is received (`peek.rs`).

use crate::control::Shared;
use crate::peek::HEADER_BYTES;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};
use std::thread::Thread;

const CONFIG_CHANGE_MSG: u32 = 2;
const VERSION: u32 = 1;
/// Ids of the listeners for volume changes, from a range of this protocol.
static LISTENERS: AtomicU64 = AtomicU64::new(0x7668_7562_0000_0000);

/// Sends a configuration change, without blocking: a monitor that does not read its notifications
/// misses them.
fn send_change(shared: &Shared, socket: &OwnedFd) {
    let mut message = [0; HEADER_BYTES];
    message[..4].copy_from_slice(&CONFIG_CHANGE_MSG.to_ne_bytes());
    message[4..8].copy_from_slice(&VERSION.to_ne_bytes());
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: reads the bytes of a local array.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            message.as_ptr().cast(),
            message.len(),
            flags,
        )
    };
    if sent != message.len() as isize {
        shared
            .log
            .warn("cannot notify the monitor of the disk's new size");
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Follows the volume until the export stops: notifies the monitor of changes, and disconnects it
/// when the volume is gone.
pub(crate) fn watch(shared: &Shared) {
    let listener = LISTENERS.fetch_add(1, Ordering::Relaxed);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    while !shared.is_stopping() {
        shared.volume.device.on_change(listener, waker.clone());
        if shared.volume.refresh() {
            shared.with_notifications(|socket| send_change(shared, socket));
        }
        if shared.volume.device.is_gone() {
            shared.hang_up();
        }
        std::thread::park();
    }
}
