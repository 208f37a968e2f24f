//! The HTTP server: accepts, authorises and limits connections, and stops them with the daemon.

use super::accept::Pace;
use super::connection::converse;
use super::gate::Door;
use super::metrics::serve_metrics;
use super::network::{Network, serve_network};
use super::page::with_page;
use super::peer::{self, Peer};
use super::router::{Served, hardened, metrics_router, refuse, router};
use super::shares::{Limits, Shares};
use crate::{Manager, ServeError};
use api::v1::{Problem, ProblemCode};
use axum::Router;
use reactor::{Origin, ShareLimits, SocketAccess, UnixSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Connection limits by user.
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
/// Time limit for requests in progress when the daemon stops.
const END_TIME: Duration = Duration::from_secs(10);

/// Binds the socket with access for its user and group only. Connections queue until [`serve`]
/// accepts them.
///
/// # Errors
/// One line that says what to do.
pub fn bind(path: &Path) -> Result<UnixSocket, ServeError> {
    let fail = |error: std::io::Error| {
        let advice = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "run as a user with write permission there, or choose another path with --socket"
            }
            std::io::ErrorKind::NotFound => {
                "create its directory, or choose another path with --socket"
            }
            _ => "choose another path with --socket",
        };
        ServeError::new(format!(
            "cannot create the socket {}: {error}: {advice}",
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
            "user {} has no access to this socket: connect as root, as the daemon's user or in \
             its group",
            peer.uid
        ),
    );
    Router::new().fallback(move || {
        let problem = problem.clone();
        async move { refuse(&problem) }
    })
}

/// Serves the API until `stop` completes: public metrics on `metrics`, the page as well on
/// `network`. Then waits a limited time for running requests.
///
/// # Errors
/// When the socket cannot be registered with the event loop.
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
            // A panic there was reported already.
            let _ = pages.await;
        }
    };
    if tokio::time::timeout(END_TIME, all).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
    Ok(())
}
