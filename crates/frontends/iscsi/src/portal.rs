//! A portal: an address where connections are taken. Exports share it; it ends with the last.

use crate::connection::serve;
use crate::notices;
use reactor::{Full, Handle, ListenAddress, Listener, Remote, Share, ShareLimits, Shares, Stream};
use std::collections::{BTreeMap, HashMap};
use std::future::{Future, poll_fn};
use std::io::{self, Error};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

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

#[derive(Default)]
struct State {
    listening: bool,
    waker: Option<Waker>,
    /// A second descriptor of each connection's socket, to end it from any thread.
    connections: HashMap<u64, TcpStream>,
    /// Those that have not logged in yet, the oldest first.
    logging_in: BTreeMap<u64, Share>,
    next: u64,
}

struct Shared {
    stopping: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
    places: Shares,
    logins: Shares,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            stopping: AtomicBool::new(false),
            state: Mutex::default(),
            ended: Condvar::new(),
            places: Shares::new(CONNECTIONS),
            logins: Shares::new(LOGGING_IN),
        }
    }
}

/// A connection's place at its portal; left when dropped.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    number: u64,
    _place: Share,
    /// The loop of the connection.
    remote: Remote,
    ending: AtomicBool,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.connections.remove(&self.number);
        let login = state.logging_in.remove(&self.number);
        drop(state);
        drop(login);
        self.shared.ended.notify_all();
    }
}

impl Seat {
    /// Has the connection end: after what is in flight, or whatever it does.
    pub(crate) fn end(&self, whatever: bool) {
        self.ending.store(true, Ordering::Release);
        self.shut(if whatever {
            Shutdown::Both
        } else {
            Shutdown::Read
        });
    }

    /// Has the connection's reader see the end of what comes.
    pub(crate) fn stop_reading(&self) {
        self.shut(Shutdown::Read);
    }

    fn shut(&self, how: Shutdown) {
        if let Some(socket) = self.shared.lock().connections.get(&self.number) {
            let _ = socket.shutdown(how);
        }
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
        let login = self.shared.lock().logging_in.remove(&self.number);
        drop(login);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, unless there are too many or the portal ends.
    fn sit(self: &Arc<Self>, fd: BorrowedFd<'_>, remote: &Remote) -> Option<Seat> {
        let second = TcpStream::from(fd.try_clone_to_owned().ok()?);
        let host = second.peer_addr().ok()?.ip();
        let place = self.places.take(host).ok()?;
        let mut state = self.lock();
        if self.stopping.load(Ordering::Acquire) {
            return None;
        }
        let login = self.logins.take(host);
        let login = login.or_else(|full| match full {
            Full::All => self.replace_login(&mut state, host),
            full => Err(full),
        });
        let login = login.ok()?;
        state.next += 1;
        let number = state.next;
        state.logging_in.insert(number, login);
        state.connections.insert(number, second);
        Some(Seat {
            shared: self.clone(),
            number,
            _place: place,
            remote: remote.clone(),
            ending: AtomicBool::new(false),
        })
    }

    /// A place for who has none, when all are taken by connections that do not log in: that of the address with most
    /// of them is ended which is there for longest.
    fn replace_login(&self, state: &mut State, host: IpAddr) -> Result<Share, Full> {
        let login = self.logins.take_over(host)?;
        let largest = self.logins.largest();
        let mut waiting = state.logging_in.iter();
        let oldest = waiting.find(|(_, share)| Some(share.address()) == largest);
        let oldest = oldest.map(|(number, _)| *number).ok_or(Full::All)?;
        if let Some(socket) = state.connections.get(&oldest) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(state.logging_in.remove(&oldest));
        Ok(login)
    }

    fn stop(&self) {
        let waker = {
            let mut state = self.lock();
            self.stopping.store(true, Ordering::Release);
            for socket in state.connections.values() {
                let _ = socket.shutdown(Shutdown::Both);
            }
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wait_ended(&self) {
        let deadline = Instant::now() + END_MAX;
        let mut state = self.lock();
        while state.listening || !state.connections.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What `future` gives, or none once the portal has ended.
    async fn until_end<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| {
            self.lock().waker = Some(context.waker().clone());
            if self.stopping.load(Ordering::Acquire) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }
}

/// A portal. Dropping the last handle ends it and waits, for a bounded time, for its connections.
pub(crate) struct Portal {
    /// With the port that the system chose where 0 was asked for.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Drop for Portal {
    fn drop(&mut self) {
        self.shared.stop();
        self.shared.wait_ended();
    }
}

impl Portal {
    /// Begins to listen. Not to be called on one of the loops: it waits for the first of them.
    pub(crate) fn start(address: SocketAddr, remotes: &[Remote]) -> io::Result<Arc<Self>> {
        let first = remotes.first().cloned();
        let first = first.ok_or_else(|| Error::other("an export needs a loop to run on"))?;
        let (give, take) = mpsc::channel();
        let shared: Arc<Shared> = Arc::default();
        let (task_shared, remotes) = (shared.clone(), remotes.to_vec());
        first.run(move |handle| {
            let bound = Listener::bind(handle, &ListenAddress::Tcp(address))
                .and_then(|listener| Ok((listener.address()?, listener)));
            let answer = bound.and_then(|(bound, listener)| {
                let ListenAddress::Tcp(bound) = bound else {
                    return Err(Error::other("a portal is an address of TCP"));
                };
                task_shared.lock().listening = true;
                let accepting = Accepting {
                    handle: handle.clone(),
                    remotes,
                    next: 0,
                    portal: bound,
                    shared: task_shared,
                };
                handle.spawn(accepting.run(listener));
                Ok(bound)
            });
            let _ = give.send(answer);
        });
        match take.recv_timeout(START_MAX) {
            Ok(address) => Ok(Arc::new(Self {
                address: address?,
                shared,
            })),
            Err(_) => {
                shared.stop();
                Err(Error::other(
                    "the loop that should listen has ended or does not answer: is the daemon stopping?",
                ))
            }
        }
    }
}

/// The task that takes connections.
struct Accepting {
    handle: Handle,
    remotes: Vec<Remote>,
    next: usize,
    portal: SocketAddr,
    shared: Arc<Shared>,
}

impl Accepting {
    async fn run(mut self, listener: Listener) {
        while let Some(taken) = self.shared.clone().until_end(listener.accept()).await {
            match taken {
                Ok(stream) => self.hand_over(stream),
                Err(_) => {
                    let pause = self.handle.sleep(ACCEPT_RETRY_NS);
                    let _ = self.shared.until_end(pause).await;
                }
            }
        }
        drop(listener);
    }

    /// Serves a connection on the next loop; one too many is closed.
    fn hand_over(&mut self, stream: Stream) {
        // SAFETY: the descriptor is open as long as `stream` is, which outlives this use.
        let fd = unsafe { BorrowedFd::borrow_raw(stream.fd()) };
        let remote = &self.remotes[self.next % self.remotes.len()];
        let Some(seat) = self.shared.sit(fd, remote) else {
            notices::refused(
                format_args!("portal {}", self.portal),
                "a connection was closed at once: its address has as many as it may have, or as many that do not log in",
            );
            return;
        };
        keep_alive(&stream);
        let (detached, portal) = (stream.detach(), self.portal);
        self.next += 1;
        remote.spawn(move |handle| async move {
            if let Ok(stream) = detached.attach(&handle) {
                serve(handle, stream, portal, Arc::new(seat)).await;
            }
        });
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.shared.lock().listening = false;
        self.shared.ended.notify_all();
    }
}

/// Finds a peer whose host is gone, so that it does not keep its place for ever.
fn keep_alive(stream: &Stream) {
    for (level, name, value) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6),
    ] {
        let value: libc::c_int = value;
        let len = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the value is read during the call, its length is given with it.
        unsafe { libc::setsockopt(stream.fd(), level, name, (&raw const value).cast(), len) };
    }
}
