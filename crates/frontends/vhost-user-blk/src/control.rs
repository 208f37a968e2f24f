//! The control thread of an export: accepts connections and handles control messages.

use crate::event::Bell;
use crate::log::Log;
use crate::peek::{Closing, Peeked, peek, speaks};
use crate::polling::{Choice, Polling};
use crate::session::Session;
use crate::volume::Volume;
use reactor::Remote;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vhost::vhost_user::{BackendReqHandler, Error};

/// Delay after a failed accept (out of descriptors, for example).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Time limit for the first message while another monitor waits, and for completing a message.
/// Afterwards a connection may be idle indefinitely: no messages are needed while a guest runs.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// Delay after each connection, to limit the CPU time used by a monitor that reconnects in a loop.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

#[derive(Default)]
struct Connection {
    /// The control socket, to shut it down from other threads.
    control: Option<UnixStream>,
    /// The socket of notifications.
    notifications: Option<OwnedFd>,
}

/// State shared by the threads of an export.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) log: Arc<Log>,
    pub(crate) volume: Arc<Volume>,
    pub(crate) remotes: Vec<Remote>,
    pub(crate) queues: u16,
    bells: Vec<Arc<Bell>>,
    closing: Closing,
    pub(crate) polling: Arc<Choice>,
    stopping: AtomicBool,
    sessions: AtomicUsize,
    connection: Mutex<Connection>,
}

impl Shared {
    pub(crate) fn new(
        name: String,
        volume: Arc<Volume>,
        remotes: Vec<Remote>,
        queues: u16,
        polling: Polling,
    ) -> Arc<Self> {
        Arc::new(Self {
            log: Arc::new(Log::new(name.clone())),
            name,
            volume,
            remotes,
            queues,
            bells: (0..queues).map(|_| Arc::default()).collect(),
            closing: Closing::default(),
            polling: Arc::new(Choice::new(polling)),
            stopping: AtomicBool::new(false),
            sessions: AtomicUsize::new(0),
            connection: Mutex::default(),
        })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Ends the present connection and accepts no more.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.hang_up();
    }

    /// Ends the present connection; its thread cleans up.
    pub(crate) fn hang_up(&self) {
        if let Some(control) = &self.connection().control {
            let _ = control.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Acquire)
    }

    /// The connected virtual machine monitor.
    pub(crate) fn monitor(&self) -> Option<String> {
        let connection = self.connection();
        let control = connection.control.as_ref()?;
        Some(match peer_process(control) {
            Some(process) => format!("virtual machine monitor (process {process})"),
            None => "virtual machine monitor".to_owned(),
        })
    }

    pub(crate) fn with_notifications(&self, act: impl FnOnce(&OwnedFd)) {
        if let Some(socket) = &self.connection().notifications {
            act(socket);
        }
    }
}

/// Process id of the peer when it connected; none where the system does not tell, or not to this namespace.
fn peer_process(socket: &UnixStream) -> Option<i32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: the descriptor is open, `peer` has `length` bytes, and both outlive the call.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    (failed == 0 && peer.pid > 0).then_some(peer.pid)
}

/// Accepts and serves one connection after the other until the export stops.
pub(crate) fn run(shared: &Arc<Shared>, listener: &UnixListener) {
    while !shared.is_stopping() {
        match listener.accept() {
            Ok((stream, _)) => {
                connected(shared, stream, listener);
                if !shared.is_stopping() {
                    std::thread::sleep(CONNECT_PAUSE);
                }
            }
            Err(_) if shared.is_stopping() => return,
            Err(error) => {
                let what = format_args!("cannot accept a connection: {error}");
                shared.log.warn(what);
                std::thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn connected(shared: &Arc<Shared>, stream: UnixStream, listener: &UnixListener) {
    if shared.volume.device.is_gone() {
        return;
    }
    if shared.closing.is_full() {
        return shared.log.warn(
            "connection refused: descriptors of unsupported types from earlier connections are \
             still being closed",
        );
    }
    let clones = stream
        .set_read_timeout(Some(SILENT_MAX))
        .and_then(|()| Ok((stream.try_clone()?, stream.try_clone()?)));
    let (control, peeked) = match clones {
        Ok(clones) => clones,
        Err(error) => {
            let what = format_args!("cannot serve a connection: {error}");
            return shared.log.warn(what);
        }
    };
    shared.connection().control = Some(control);
    shared.sessions.fetch_add(1, Ordering::AcqRel);
    // A stop, or the end of the volume, before the connection was registered has not ended it.
    if shared.is_stopping() || shared.volume.device.is_gone() {
        shared.hang_up();
    }
    shared.log.info("monitor connected");
    if speaks(&peeked, listener, SILENT_MAX) {
        serve(shared, stream, &peeked);
    } else {
        shared
            .log
            .warn("disconnecting an idle monitor, since another one is waiting");
    }
    *shared.connection() = Connection::default();
    shared.sessions.fetch_sub(1, Ordering::AcqRel);
}

fn serve(shared: &Arc<Shared>, stream: UnixStream, peeked: &UnixStream) {
    let hang_up = {
        let shared = Arc::downgrade(shared);
        Arc::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.hang_up();
            }
        })
    };
    let session = Arc::new(Mutex::new(Session::new(
        shared.volume.clone(),
        shared.remotes.clone(),
        &shared.bells,
        shared.polling.clone(),
        shared.log.clone(),
        hang_up,
    )));
    let mut handler = BackendReqHandler::from_stream(stream, session.clone());
    let end = loop {
        match peek(peeked) {
            Ok(Peeked::Plain) => {}
            Ok(Peeked::Notifications(socket)) => shared.connection().notifications = Some(socket),
            Ok(Peeked::Foreign(descriptors)) => break refuse(shared, descriptors),
            Err(error) => break Some(error.to_string()),
        }
        match handler.handle_request() {
            Ok(()) => {}
            // The vhost crate cannot resume within a message.
            Err(Error::SocketRetry(_)) => break Some("incomplete message".into()),
            Err(Error::Disconnected) => break None,
            Err(error) => break Some(error.to_string()),
        }
        if session
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_cut()
        {
            break Some("its shared memory file was truncated".into());
        }
    };
    match end {
        None => shared.log.info("monitor disconnected"),
        Some(why) => shared
            .log
            .warn(format_args!("disconnecting the monitor: {why}")),
    }
    drop(handler);
    let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = session.end() {
        let what = format_args!("rings were abandoned with requests in flight: {error}");
        shared.log.error(what);
    }
}

/// Closes the descriptors of a message that must not be read; returns the reason.
fn refuse(shared: &Shared, descriptors: Vec<OwnedFd>) -> Option<String> {
    if let Err(error) = shared.closing.close(descriptors) {
        let what = format_args!("cannot close descriptors of the monitor: {error}");
        shared.log.warn(what);
    }
    Some(
        "it sent an incomplete message, or a descriptor that is not an eventfd, a Unix socket, a \
         memfd or a file of tmpfs or hugetlbfs"
            .into(),
    )
}
