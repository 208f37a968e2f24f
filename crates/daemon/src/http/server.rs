//! Connections: taken, checked, bounded in number and time, and ended with the daemon.

use super::accept::Pace;
use super::bodies::{WhileSent, WhileTaken};
use super::gate::Door;
use super::metrics::serve_metrics;
use super::network::{Network, serve_network};
use super::page::with_page;
use super::peer::{self, Peer};
use super::router::{Served, hardened, metrics_router, refuse, router};
use super::shares::{Limits, Share, Shares};
use crate::{Manager, ServeError};
use api::v1::{Problem, ProblemCode};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use reactor::{Origin, ShareLimits, SocketAccess, UnixSocket};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How connections are shared by users.
const SHARES: Limits = Limits {
    arrivals: ShareLimits {
        all: 256,
        network: 256,
        address: 192,
        reserve: 0,
        few: 0,
    },
    admitted: ShareLimits {
        all: 64,
        network: 64,
        address: 48,
        reserve: 48,
        few: 0,
    },
};
/// Longest head of a request, and of its body what is read ahead, in bytes.
const BUFFER_MAX: usize = 64 << 10;
/// A connection that is silent or slow for so long before its request is whole is ended.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// So long may requests take to end after the daemon was told to.
const END_TIME: Duration = Duration::from_secs(10);

/// Makes the socket, for its user and group only. Connections wait until [`serve`] takes them.
///
/// # Errors
/// One line that says what to do.
pub fn bind(path: &Path) -> Result<UnixSocket, ServeError> {
    let fail = |error: std::io::Error| {
        let advice = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "run as a user that may write there or choose another with --socket"
            }
            std::io::ErrorKind::NotFound => "make its folder or choose another with --socket",
            _ => "choose another with --socket",
        };
        ServeError::new(format!(
            "cannot make the socket {}: {error}: {advice}",
            path.display()
        ))
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    UnixSocket::bind(path, &SocketAccess::default()).map_err(fail)
}

fn stranger(peer: &Peer) -> Router {
    let problem = Problem::new(
        ProblemCode::Forbidden,
        format!(
            "user {} may not use this socket: be root, the daemon's user or in its group",
            peer.uid
        ),
    );
    Router::new().fallback(move || {
        let problem = problem.clone();
        async move { refuse(&problem) }
    })
}

/// How connections are spoken with.
pub fn connections() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(BUFFER_MAX);
    builder
}

/// What one beyond its share is told; its connection is closed then.
fn too_many() -> axum::response::Response {
    let mut refused = refuse(&Problem::new(
        ProblemCode::TooMany,
        "you have as many requests under way as you may: wait until one has ended, or close a connection",
    ));
    let close = HeaderValue::from_static("close");
    refused.headers_mut().insert(header::CONNECTION, close);
    refused
}

/// A router as a service that knows by which listener and connection its requests came.
pub fn through(
    door: Door,
    share: Share,
    app: Router,
) -> impl Service<Request<Incoming>, Response = axum::response::Response, Error = Infallible, Future: Send>
{
    let app = TowerToHyperService::new(app);
    service_fn(move |request: Request<Incoming>| {
        let admitted = share.admit();
        let busy = share.busy();
        let mut request = request.map(|body| Body::new(WhileTaken::new(body, share.clone())));
        request.extensions_mut().insert(door);
        request.extensions_mut().insert(share.clone());
        let answered = admitted.then(|| app.call(request));
        async move {
            let Some(answered) = answered else {
                return Ok(too_many());
            };
            let answered = answered.await?;
            Ok(answered.map(|body| Body::new(WhileSent::new(body, busy))))
        }
    })
}

/// Answers a connection's requests until it or the daemon ends, or another one needs its place.
pub async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    app: Router,
    door: Door,
    share: Share,
    mut ending: watch::Receiver<bool>,
) {
    let service = through(door, share.clone(), app);
    let connection = connections().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        ended = &mut connection => {
            if let Err(error) = ended {
                tracing::debug!("a connection ended: {error}");
            }
            return;
        }
        () = share.ended() => return,
        _ = ending.wait_for(|ending| *ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    if let Err(error) = connection.await {
        tracing::debug!("a connection ended: {error}");
    }
}

/// Answers until `stop` ends, on `metrics` with the figures alone, on `network` with the page, too; then lets running requests end, for a while.
///
/// # Errors
/// When the system gives no event for the socket.
pub async fn serve(
    socket: &UnixSocket,
    metrics: Option<std::net::TcpListener>,
    network: Option<Network>,
    manager: Arc<Manager>,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let listener = UnixListener::from_std(socket.listener().try_clone()?)?;
    let (uid, gid) = peer::own();
    let shares = Shares::new(SHARES);
    let mut connections = JoinSet::new();
    let (end, ending) = watch::channel(false);
    let served = Served::new(&manager, &ending);
    let app = router(&served);
    let metrics = metrics.map(TcpListener::from_std).transpose()?;
    let scrapes = metrics.map(|listener| {
        let app = metrics_router(&served);
        tokio::spawn(serve_metrics(listener, app)).abort_handle()
    });
    let pages = network.map(|network| {
        let app = hardened(with_page(app.clone()));
        tokio::spawn(serve_network(network, app, ending.clone()))
    });
    tokio::pin!(stop);
    let mut pace = Pace::new();
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, _) = tokio::select! {
            accepted = pace.next(|context| listener.poll_accept(context)) => accepted,
            () = &mut stop => break,
        };
        let Ok(peer) = Peer::of(&stream) else {
            continue;
        };
        let may_use = peer.may_use(uid, gid);
        let Some(share) = shares.take(Origin::User(peer.uid), may_use) else {
            continue;
        };
        let app = match may_use {
            true => app.clone(),
            false => stranger(&peer),
        };
        let door = Door::Socket(peer.uid);
        let ending = ending.clone();
        connections.spawn(converse(stream, app, door, share, ending));
    }
    if let Some(scrapes) = scrapes {
        scrapes.abort();
    }
    end.send_replace(true);
    let all = async {
        while connections.join_next().await.is_some() {}
        if let Some(pages) = pages {
            // A panic in there was reported where it happened.
            let _ = pages.await;
        }
    };
    if tokio::time::timeout(END_TIME, all).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
    Ok(())
}
