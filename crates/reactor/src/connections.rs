//! The connections of one listener, from any thread: how many may be in their handshake, and how each is ended.
//!
//! Peers are unknown at first. A connection that has not proved to be a client, by a handshake or a login, has a place
//! among those of its address ([`Shares`]). With one more than that the oldest of the same address ends, and where there
//! are too many in all, the oldest of the address that has most: an address that opens idle connections displaces its own. What
//! was ended is counted until it has left; when too many are leaving, one more is closed immediately. How fast connections
//! arrive is limited by the listener ([`crate::Listener`]), and how many may stay by their protocol.

use crate::shares::{Full, PeerAddress, Share, ShareLimits, Shares};
use crate::{Closer, Stream};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Shutdown};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    /// The listener is open.
    listening: bool,
    waker: Option<Waker>,
    /// All of them: how they are ended.
    closers: BTreeMap<u64, Closer>,
    /// Places of those in their handshake, the oldest first.
    handshakes: BTreeMap<u64, Share>,
    /// Connections that were ended for others and have not left.
    leaving: usize,
    next: u64,
}

struct Inner {
    stopping: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
    handshakes: Shares,
    leaving_max: usize,
}

/// The connections of a listener. Clones are the same.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

/// A connection's entry; left when dropped.
pub struct Seat {
    connections: Connections,
    number: u64,
    /// Changed under the lock of all.
    admitted: AtomicBool,
}

/// Marks the listener as open; closed when dropped.
pub struct Listening(Connections);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.lock().listening = false;
        self.0.0.ended.notify_all();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.connections.lock();
        state.closers.remove(&self.number);
        let share = state.handshakes.remove(&self.number);
        if share.is_none() && !self.admitted.load(Ordering::Relaxed) {
            state.leaving -= 1;
        }
        drop(state);
        drop(share);
        self.connections.0.ended.notify_all();
    }
}

impl Seat {
    /// The connection is in its handshake no longer. False when it was ended for another one before.
    pub fn admit(&self) -> bool {
        let mut state = self.connections.lock();
        let share = state.handshakes.remove(&self.number);
        if share.is_some() {
            self.admitted.store(true, Ordering::Relaxed);
        }
        drop(state);
        self.admitted.load(Ordering::Relaxed)
    }

    /// Ends the connection, or one direction of it, from any thread.
    pub fn shutdown(&self, how: Shutdown) {
        let closer = self.connections.lock().closers.get(&self.number).cloned();
        if let Some(closer) = closer {
            closer.shutdown(how);
        }
    }
}

impl Connections {
    /// Without connections; limits the number of handshakes at a time.
    pub fn new(handshakes: ShareLimits) -> Self {
        Self(Arc::new(Inner {
            stopping: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
            handshakes: Shares::new(handshakes),
            leaving_max: handshakes.all,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the listener as open.
    pub fn listen(&self) -> Listening {
        self.lock().listening = true;
        Listening(self.clone())
    }

    /// Enters a connection that begins its handshake. `None` if it has to be closed immediately: too many are leaving, its
    /// network has as many as it may, or all end. Nothing is to be done for a connection before it has this.
    pub fn enter(&self, stream: &Stream) -> Option<Seat> {
        let mut state = self.lock();
        if self.is_stopping() || state.leaving >= self.0.leaving_max {
            return None;
        }
        let share = self.place(&mut state, stream.counted_by())?;
        state.next += 1;
        let number = state.next;
        state.handshakes.insert(number, share);
        state.closers.insert(number, stream.closer());
        drop(state);
        Some(Seat {
            connections: self.clone(),
            number,
            admitted: AtomicBool::new(false),
        })
    }

    fn place(&self, state: &mut State, host: IpAddr) -> Option<Share> {
        let shares = &self.0.handshakes;
        match shares.take(host) {
            Ok(share) => Some(share),
            Err(Full::Network) => None,
            Err(Full::Address) => {
                self.end_oldest(state, PeerAddress::of(host));
                shares.take(host).ok()
            }
            Err(Full::All) => {
                let share = shares.take_over(host).ok()?;
                self.end_oldest(state, shares.largest()?);
                Some(share)
            }
        }
    }

    /// Ends the connection of an address that is in its handshake for longest.
    fn end_oldest(&self, state: &mut State, address: PeerAddress) {
        let mut all = state.handshakes.iter();
        let oldest = all.find(|(_, share)| share.address() == address);
        let Some(oldest) = oldest.map(|(number, _)| *number) else {
            return;
        };
        if let Some(closer) = state.closers.get(&oldest) {
            closer.shutdown(Shutdown::Both);
        }
        drop(state.handshakes.remove(&oldest));
        state.leaving += 1;
    }

    /// Ends the listener, and one direction of all connections, or both. May be called again.
    pub fn stop(&self, how: Shutdown) {
        let waker = {
            let mut state = self.lock();
            self.0.stopping.store(true, Ordering::Release);
            state.closers.values().for_each(|one| one.shutdown(how));
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether [`Connections::stop`] has been called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    /// The result of `future`, or `None` once all connections end. One task at a time may wait.
    pub async fn until_stop<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.lock().waker = Some(context.waker().clone());
            if self.is_stopping() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Waits until listener and connections have ended. False when that takes longer than `limit`. Not to be called on a
    /// loop.
    pub fn wait_ended(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.listening || !state.closers.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.0.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::StreamSocket;
    use crate::{Clock, Handle};
    use std::io::{ErrorKind, Read};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    const LIMITS: ShareLimits = ShareLimits {
        all: 6,
        network: 6,
        address: 3,
        reserve: 2,
        few: 1,
    };

    struct Stopped;

    impl Clock for Stopped {
        fn now_ns(&self) -> u64 {
            0
        }
    }

    /// Connections of addresses that are said, each with the client's end.
    struct Peers {
        handle: Handle,
        listener: TcpListener,
        connections: Connections,
    }

    impl Peers {
        fn new() -> Self {
            Self {
                handle: Handle::simulated(Box::new(Stopped), 1).unwrap(),
                listener: TcpListener::bind("127.0.0.1:0").unwrap(),
                connections: Connections::new(LIMITS),
            }
        }

        fn connect(&self, from: u8) -> (TcpStream, Stream) {
            let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            let (server, _) = self.listener.accept().unwrap();
            let address = SocketAddr::from(([192, 0, 2, from], 1));
            let stream = Stream::new(&self.handle, StreamSocket::Tcp(server, address)).unwrap();
            client.set_nonblocking(true).unwrap();
            (client, stream)
        }

        fn enter(&self, from: u8) -> (TcpStream, Stream, Seat) {
            let (client, stream) = self.connect(from);
            let seat = self.connections.enter(&stream).expect("there is room");
            (client, stream, seat)
        }
    }

    fn is_open((client, _, _): &(TcpStream, Stream, Seat)) -> bool {
        let read = (&*client).read(&mut [0]);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    #[test]
    fn one_too_many_of_an_address_ends_the_oldest_of_it_and_no_other() {
        let peers = Peers::new();
        let other = peers.enter(1);
        let own: Vec<_> = (0..5).map(|_| peers.enter(2)).collect();
        let open: Vec<bool> = own.iter().map(is_open).collect();
        assert_eq!(open, [false, false, true, true, true]);
        assert!(is_open(&other));
        assert!(!own[0].2.admit() && own[2].2.admit() && other.2.admit());
    }

    #[test]
    fn a_newcomer_comes_in_when_others_have_all_places_and_the_largest_loses_one() {
        let peers = Peers::new();
        let largest: Vec<_> = (0..3).map(|_| peers.enter(1)).collect();
        let second = peers.enter(2);
        let rest: Vec<_> = (3..5).map(|from| peers.enter(from)).collect();
        let newcomer = peers.enter(9);
        assert!(!is_open(&largest[0]) && is_open(&largest[1]));
        assert!(is_open(&second) && rest.iter().all(is_open) && is_open(&newcomer));
    }

    #[test]
    fn ended_ones_count_until_they_have_left() {
        let peers = Peers::new();
        let mut all: Vec<_> = (0..9).map(|_| peers.enter(1)).collect();
        let (_client, stream) = peers.connect(1);
        assert!(peers.connections.enter(&stream).is_none());
        let (_client, other) = peers.connect(2);
        assert!(
            peers.connections.enter(&other).is_none(),
            "whoever it is: they take the system's descriptors"
        );
        all.remove(0);
        assert!(peers.connections.enter(&other).is_some());
        drop(all);
        let state = peers.connections.lock();
        assert_eq!((state.leaving, state.closers.len()), (0, 0));
        assert_eq!(peers.connections.0.handshakes.taken(), 0);
    }

    #[test]
    fn those_that_are_admitted_are_not_ended_for_others_but_all_are_by_the_end() {
        let peers = Peers::new();
        let admitted = peers.enter(1);
        assert!(admitted.2.admit() && admitted.2.admit());
        let silent: Vec<_> = (0..4).map(|_| peers.enter(1)).collect();
        assert!(is_open(&admitted) && !is_open(&silent[0]));
        peers.connections.stop(Shutdown::Both);
        assert!(!is_open(&admitted) && !silent.iter().any(is_open));
        let (_client, stream) = peers.connect(7);
        assert!(peers.connections.enter(&stream).is_none());
        assert!(!peers.connections.wait_ended(Duration::ZERO));
        drop((admitted, silent));
        assert!(peers.connections.wait_ended(Duration::ZERO));
    }

    #[test]
    fn a_closer_keeps_no_connection_open() {
        let peers = Peers::new();
        let (client, stream) = peers.connect(1);
        let closer = stream.closer();
        client.set_nonblocking(false).unwrap();
        drop(stream);
        assert_eq!((&client).read(&mut [0]).unwrap(), 0);
        closer.shutdown(Shutdown::Both);
    }
}
