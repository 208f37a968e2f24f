//! The thread of an export that takes connections and handles their control messages.

use crate::notify;
use crate::polling::{Choice, Polling};
use crate::session::Session;
use crate::volume::Volume;
use reactor::Remote;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vhost::vhost_user::{BackendReqHandler, Error};

/// How long to wait when the system gives no connection, out of descriptors say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

#[derive(Default)]
struct Connection {
    /// The control socket, to end it from elsewhere.
    control: Option<UnixStream>,
    /// The socket for notifications.
    notifications: Option<OwnedFd>,
}

/// What the threads of an export share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) volume: Arc<Volume>,
    pub(crate) remotes: Vec<Remote>,
    pub(crate) queues: u16,
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
            name,
            volume,
            remotes,
            queues,
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

    /// Ends the present connection and takes no more.
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

    pub(crate) fn with_notifications(&self, act: impl FnOnce(&OwnedFd)) {
        if let Some(socket) = &self.connection().notifications {
            act(socket);
        }
    }
}

/// Takes one connection after the other until the export is stopped.
pub(crate) fn run(shared: &Arc<Shared>, listener: &UnixListener) {
    while !shared.is_stopping() {
        match listener.accept() {
            Ok((stream, _)) => connected(shared, stream),
            Err(_) if shared.is_stopping() => return,
            Err(error) => {
                tracing::warn!(export = shared.name, %error, "cannot take a connection");
                std::thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn connected(shared: &Arc<Shared>, stream: UnixStream) {
    if shared.volume.device.is_gone() {
        return;
    }
    let clones = stream
        .try_clone()
        .and_then(|a| Ok((a, stream.try_clone()?)));
    let (control, peeked) = match clones {
        Ok(clones) => clones,
        Err(error) => {
            tracing::warn!(export = shared.name, %error, "cannot serve a connection");
            return;
        }
    };
    shared.connection().control = Some(control);
    shared.sessions.fetch_add(1, Ordering::AcqRel);
    // A stop, or the end of the volume, that came before the connection was known has not ended it.
    if shared.is_stopping() || shared.volume.device.is_gone() {
        shared.hang_up();
    }
    tracing::info!(export = shared.name, "a front end has connected");
    serve(shared, stream, &peeked);
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
        shared.queues,
        shared.polling.clone(),
        hang_up,
    )));
    let mut handler = BackendReqHandler::from_stream(stream, session.clone());
    loop {
        match notify::peek(peeked) {
            Ok(Some(socket)) => shared.connection().notifications = Some(socket),
            Ok(None) => {}
            // Whatever is wrong, reading the message will tell.
            Err(error) => tracing::debug!(%error, "cannot look at a message"),
        }
        match handler.handle_request() {
            Ok(()) | Err(Error::SocketRetry(_)) => {}
            Err(Error::Disconnected) => {
                tracing::info!(export = shared.name, "the front end has disconnected");
                break;
            }
            Err(error) => {
                tracing::warn!(export = shared.name, %error, "the front end is disconnected");
                break;
            }
        }
    }
    drop(handler);
    let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = session.stop_all() {
        tracing::error!(export = shared.name, %error, "rings were left with requests in flight");
    }
}
