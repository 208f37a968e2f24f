//! A portal: a listening address shared by exports, closed with the last of them.

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

/// Connection limits of a portal.
const CONNECTIONS: ShareLimits = ShareLimits {
    all: 4096,
    network: 2048,
    address: 2048,
    reserve: 512,
    few: 32,
};
/// Limits of connections that have not logged in.
const LOGGING_IN: ShareLimits = ShareLimits {
    all: 1024,
    network: 768,
    address: 768,
    reserve: 256,
    few: 8,
};
/// Time limit for the loop to start listening.
const START_MAX: Duration = Duration::from_secs(10);
/// Time limit for connections to end.
const END_MAX: Duration = Duration::from_secs(5);
/// Retry delay after a failed accept (out of descriptors, for example).
const ACCEPT_RETRY_NS: u64 = 100_000_000;

/// A connection of the portal, until it is dropped.
pub(crate) struct Seat {
    entry: reactor::Seat,
    _place: Share,
    /// The loop of the connection.
    remote: Remote,
    ending: AtomicBool,
}

impl Seat {
    /// Ends the connection: after requests in flight, or immediately.
    pub(crate) fn end(&self, whatever: bool) {
        self.ending.store(true, Ordering::Release);
        self.entry.shutdown(if whatever {
            Shutdown::Both
        } else {
            Shutdown::Read
        });
    }

    /// Makes the connection's reader see the end of the input.
    pub(crate) fn stop_reading(&self) {
        self.entry.shutdown(Shutdown::Read);
    }

    /// The loop that accepted the connection.
    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// The connection has logged in and no longer counts as an arrival.
    pub(crate) fn logged_in(&self) {
        // If it was closed in favour of another one, its next read fails.
        self.entry.admit();
    }
}

/// A portal. Dropping the last reference closes it and waits, for a limited time, for its
/// connections.
pub(crate) struct Portal {
    /// With the assigned port if 0 was requested.
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
    /// Starts listening. Must not be called on one of the loops, as it waits for the first of them.
    pub(crate) fn start(address: SocketAddr, remotes: &[Remote]) -> io::Result<Arc<Self>> {
        let first = remotes.first().cloned();
        let first = first.ok_or_else(|| Error::other("no event loop available for the export"))?;
        let bound = Bound::new(&ListenAddress::Tcp(address), &SocketAccess::default())?;
        let ListenAddress::Tcp(address) = bound.address()? else {
            return Err(Error::other("a portal must be a TCP address"));
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
                "the event loop of the listener has stopped or does not respond: is the daemon \
                 stopping?",
            ));
        }
        Ok(Arc::new(Self {
            address,
            connections,
        }))
    }
}

/// The accept task.
struct Accepting {
    handle: Handle,
    remotes: Vec<Remote>,
    next: usize,
    portal: SocketAddr,
    places: Shares,
    connections: Connections,
    /// Dropped after the socket.
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

    /// Admits a connection, unless a limit is reached or the portal is closing.
    fn sit(&self, stream: &Stream, remote: &Remote) -> Option<Seat> {
        Some(Seat {
            _place: self.places.take(stream.counted_by()).ok()?,
            entry: self.connections.enter(stream)?,
            remote: remote.clone(),
            ending: AtomicBool::new(false),
        })
    }

    /// Serves a connection on the next loop; a connection over the limit is closed cheaply.
    fn hand_over(&mut self, stream: Stream) {
        let remote = &self.remotes[self.next % self.remotes.len()];
        let Some(seat) = self.sit(&stream, remote) else {
            notices::refused(
                format_args!("portal {}", self.portal),
                "connection closed: its address has reached its limit of connections, or of \
                 connections that have not logged in",
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
