//! A portal: an address where connections are taken. Exports share it; it ends with the last.

use crate::connection::serve;
use crate::notices;
use reactor::{
    Bound, Connections, Handle, ListenAddress, Listener, Listening, Remote, Share, ShareLimits,
    Shares, SocketAccess, Stream,
};
use std::io::{self, Error};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Connections of one portal.
const CONNECTIONS: ShareLimits = ShareLimits {
    all: 4096,
    network: 2048,
    address: 2048,
    reserve: 512,
    few: 32,
};
/// Those of them that have not logged in yet.
const LOGGING_IN: ShareLimits = ShareLimits {
    all: 1024,
    network: 768,
    address: 768,
    reserve: 256,
    few: 8,
};
/// How long the loop may take to begin to listen.
const START_MAX: Duration = Duration::from_secs(10);
/// How long connections may take to end.
const END_MAX: Duration = Duration::from_secs(5);
/// How long to wait when the system gives no connection (out of descriptors, say).
const ACCEPT_RETRY_NS: u64 = 100_000_000;

/// A connection's place at its portal; left when dropped.
pub(crate) struct Seat {
    entry: reactor::Seat,
    _place: Share,
    /// The loop of the connection.
    remote: Remote,
    ending: AtomicBool,
}

impl Seat {
    /// Has the connection end: after what is in flight, or whatever it does.
    pub(crate) fn end(&self, whatever: bool) {
        self.ending.store(true, Ordering::Release);
        self.entry.shutdown(if whatever {
            Shutdown::Both
        } else {
            Shutdown::Read
        });
    }

    /// Has the connection's reader see the end of what comes.
    pub(crate) fn stop_reading(&self) {
        self.entry.shutdown(Shutdown::Read);
    }

    /// The loop that the connection arrived at.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// It counts no longer among those that have not logged in.
    pub(crate) fn logged_in(&self) {
        // One that was ended for another meanwhile sees that when it reads.
        self.entry.admit();
    }
}

/// A portal. Dropping the last handle ends it and waits, for a bounded time, for its connections.
pub(crate) struct Portal {
    /// With the port that the system chose where 0 was asked for.
    pub address: SocketAddr,
    connections: Connections,
}

impl Drop for Portal {
    fn drop(&mut self) {
        self.connections.stop(Shutdown::Both);
        self.connections.wait_ended(END_MAX);
    }
}

impl Portal {
    /// Begins to listen. Not to be called on one of the loops: it waits for the first of them.
    pub(crate) fn start(address: SocketAddr, remotes: &[Remote]) -> io::Result<Arc<Self>> {
        let first = remotes.first().cloned();
        let first = first.ok_or_else(|| Error::other("an export needs a loop to run on"))?;
        let bound = Bound::new(&ListenAddress::Tcp(address), &SocketAccess::default())?;
        let ListenAddress::Tcp(address) = bound.address()? else {
            return Err(Error::other("a portal is an address of TCP"));
        };
        let (give, take) = mpsc::channel();
        let connections = Connections::new(LOGGING_IN);
        let (of_task, remotes) = (connections.clone(), remotes.to_vec());
        first.run(move |handle| {
            let listener = Listener::new(handle, bound);
            let accepting = Accepting {
                handle: handle.clone(),
                remotes,
                next: 0,
                portal: address,
                places: Shares::new(CONNECTIONS),
                _listening: of_task.listen(),
                connections: of_task,
            };
            handle.spawn(accepting.run(listener));
            let _ = give.send(());
        });
        if take.recv_timeout(START_MAX).is_err() {
            connections.stop(Shutdown::Both);
            return Err(Error::other(
                "the loop that should listen has ended or does not answer: is the daemon stopping?",
            ));
        }
        Ok(Arc::new(Self {
            address,
            connections,
        }))
    }
}

/// The task that takes connections.
struct Accepting {
    handle: Handle,
    remotes: Vec<Remote>,
    next: usize,
    portal: SocketAddr,
    places: Shares,
    connections: Connections,
    /// Dropped after the socket is.
    _listening: Listening,
}

impl Accepting {
    async fn run(mut self, listener: Listener) {
        let connections = self.connections.clone();
        while let Some(taken) = connections.until_stop(listener.accept()).await {
            match taken {
                Ok(stream) => self.hand_over(stream),
                Err(_) => {
                    let pause = self.handle.sleep(ACCEPT_RETRY_NS);
                    let _ = connections.until_stop(pause).await;
                }
            }
        }
        drop(listener);
    }

    /// A place for a connection, unless there are too many or the portal ends.
    fn sit(&self, stream: &Stream, remote: &Remote) -> Option<Seat> {
        Some(Seat {
            _place: self.places.take(stream.counted_by()).ok()?,
            entry: self.connections.enter(stream)?,
            remote: remote.clone(),
            ending: AtomicBool::new(false),
        })
    }

    /// Serves a connection on the next loop; one too many is closed, and has cost nothing there.
    fn hand_over(&mut self, stream: Stream) {
        let remote = &self.remotes[self.next % self.remotes.len()];
        let Some(seat) = self.sit(&stream, remote) else {
            notices::refused(
                format_args!("portal {}", self.portal),
                "a connection was closed at once: its address has as many as it may have, or as many that do not log in",
            );
            return;
        };
        stream.keep_alive();
        let (detached, portal) = (stream.detach(), self.portal);
        self.next += 1;
        remote.spawn(move |handle| async move {
            if let Ok(stream) = detached.attach(&handle) {
                serve(handle, stream, portal, Arc::new(seat)).await;
            }
        });
    }
}
