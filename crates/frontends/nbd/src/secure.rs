//! Connection setup: the handshake, with TLS if the client starts it.
//!
//! A TLS handshake takes up to some milliseconds of CPU time, and peers may connect at any rate.
//! Handshakes run on a thread of their own, so that they do not stall loops that serve volumes.

use crate::channel::{Channel, DetachedTls, TlsStream};
use crate::handshake::{Agreed, Handshake, Outcome, Security};
use crate::input::Input;
use crate::session;
use crate::shared::{Seat, Shared};
use reactor::{Handle, ReactorThread, Remote, SECOND_NS, Stream, within};
use std::io::{ErrorKind, Result};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Time limit from the connection to transmission.
const HANDSHAKE_NS: u64 = 10 * SECOND_NS;

/// Event loop of TLS handshakes, shared by all exports and started on demand.
static THREAD: Mutex<Option<ReactorThread>> = Mutex::new(None);

fn thread() -> Result<Remote> {
    let mut thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(thread) = &*thread {
        return Ok(thread.remote().clone());
    }
    let made = ReactorThread::start_aside("nbd-tls", 0)?;
    let remote = made.remote().clone();
    *thread = Some(made);
    Ok(remote)
}

/// Starts the thread of TLS handshakes, for an export that offers TLS.
///
/// # Errors
/// When no thread can be created.
pub(crate) fn prepare() -> Result<()> {
    thread().map(drop)
}

/// State of a connection during its setup.
struct Peer {
    shared: Arc<Shared>,
    seat: Seat,
    /// Deadline for reaching transmission; all loops of a process share a clock.
    deadline_ns: u64,
    no_zeroes: bool,
}

impl Peer {
    /// The result of `step`, if it completes in time.
    async fn in_time<T>(
        &self,
        handle: &Handle,
        step: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let left_ns = self.deadline_ns.saturating_sub(handle.now_ns());
        let ended = within(handle, left_ns, step).await;
        ended.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()))
    }

    async fn transmit(self, handle: Handle, (stream, input): (Rc<Channel>, Input), agreed: Agreed) {
        session::serve(handle, (stream, input), agreed, (self.shared, self.seat)).await;
    }
}

/// Serves one connection until it ends. Errors of a peer affect only its connection.
pub(crate) async fn serve(handle: Handle, stream: Stream, shared: Arc<Shared>, seat: Seat) {
    let mut peer = Peer {
        deadline_ns: handle.now_ns() + HANDSHAKE_NS,
        shared,
        seat,
        no_zeroes: false,
    };
    let security = match &peer.shared.settings().tls {
        None => Security::None,
        Some(tls) if tls.required => Security::Required,
        Some(_) => Security::Optional,
    };
    let stream = Rc::new(Channel::Plain(stream));
    let mut input = Input::new(stream.clone());
    let (outcome, no_zeroes) = {
        let mut handshake = Handshake::new(
            &handle,
            (&stream, &mut input),
            (&peer.shared, &peer.seat),
            security,
        );
        let run = async {
            handshake.greet().await?;
            handshake.options().await
        };
        (peer.in_time(&handle, run).await, handshake.no_zeroes)
    };
    peer.no_zeroes = no_zeroes;
    match outcome {
        Ok(Outcome::Transmission(agreed)) => peer.transmit(handle, (stream, input), agreed).await,
        Ok(Outcome::StartTls) => {
            drop(input);
            if let Some(Channel::Plain(stream)) = Rc::into_inner(stream) {
                start_tls(&handle, stream, peer);
            }
        }
        Ok(Outcome::End) | Err(_) => {}
    }
}

/// Moves a connection to the thread of TLS handshakes, and back afterwards.
fn start_tls(handle: &Handle, stream: Stream, peer: Peer) {
    let (Ok(thread), Some(tls)) = (thread(), peer.shared.settings().tls) else {
        return;
    };
    let (back, stream) = (handle.remote(), stream.detach());
    thread.spawn(move |handle| async move {
        let accepted = async {
            let stream = stream.attach(&handle)?;
            TlsStream::accept(&handle, stream, tls.config).await
        };
        if let Ok(stream) = peer.in_time(&handle, accepted).await {
            let stream = stream.detach();
            back.spawn(move |handle| serve_secured(handle, stream, peer));
        }
    });
}

/// Serves a connection over TLS.
async fn serve_secured(handle: Handle, stream: DetachedTls, peer: Peer) {
    let Ok(stream) = stream.attach(&handle) else {
        return;
    };
    let stream = Rc::new(Channel::Tls(Box::new(stream)));
    let mut input = Input::new(stream.clone());
    let outcome = {
        let mut handshake = Handshake::new(
            &handle,
            (&stream, &mut input),
            (&peer.shared, &peer.seat),
            Security::Active,
        );
        handshake.no_zeroes = peer.no_zeroes;
        peer.in_time(&handle, handshake.options()).await
    };
    if let Ok(Outcome::Transmission(agreed)) = outcome {
        peer.transmit(handle, (stream, input), agreed).await;
    }
}
