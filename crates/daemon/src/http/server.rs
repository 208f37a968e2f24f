//! Connections: taken, checked, bounded in number and time, and ended with the daemon.

use super::gate::Door;
use super::metrics::serve_metrics;
use super::network::{Network, serve_network};
use super::page::with_page;
use super::peer::{self, Peer};
use super::router::{hardened, metrics_router, refuse, router};
use crate::{Manager, ServeError};
use api::v1::{Problem, ProblemCode};
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};

/// Connections at a time; more wait to be taken.
pub const CONNECTIONS_MAX: usize = 64;
/// A connection that is silent or slow for so long before its request is whole is ended.
pub const HEADER_TIME: Duration = Duration::from_secs(30);
/// So long may requests take to end after the daemon was told to.
const END_TIME: Duration = Duration::from_secs(10);

/// A listening socket whose file goes with it.
pub struct Socket {
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody else may have removed it: nothing is left to do then.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes the socket, for its user and group only. Connections wait until [`serve`] takes them.
///
/// # Errors
/// One line that says what to do.
pub fn bind(path: &Path) -> Result<Socket, ServeError> {
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
    reactor::prepare_socket_path(&path.to_owned()).map_err(fail)?;
    let listener = std::os::unix::net::UnixListener::bind(path).map_err(fail)?;
    let socket = Socket {
        listener,
        path: path.to_owned(),
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(fail)?;
    socket.listener.set_nonblocking(true).map_err(fail)?;
    Ok(socket)
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

/// A router as a service whose requests came by a door.
pub fn through(
    door: Door,
    app: Router,
) -> impl Service<Request<Incoming>, Response = axum::response::Response, Error = Infallible, Future: Send>
{
    let app = TowerToHyperService::new(app);
    service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(door);
        app.call(request)
    })
}

/// Answers a connection's requests until it or the daemon ends.
pub async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    app: Router,
    door: Door,
    mut ending: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(TokioIo::new(stream), through(door, app));
    tokio::pin!(connection);
    tokio::select! {
        ended = &mut connection => {
            if let Err(error) = ended {
                tracing::debug!("a connection ended: {error}");
            }
            return;
        }
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
    socket: &Socket,
    metrics: Option<std::net::TcpListener>,
    network: Option<Network>,
    manager: Arc<Manager>,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let listener = UnixListener::from_std(socket.listener.try_clone()?)?;
    let (uid, gid) = peer::own();
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (end, ending) = watch::channel(false);
    let app = router(&manager, &ending);
    let metrics = metrics.map(TcpListener::from_std).transpose()?;
    let scrapes = metrics.map(|listener| {
        let app = metrics_router(&manager, &ending);
        tokio::spawn(serve_metrics(listener, app)).abort_handle()
    });
    let pages = network.map(|network| {
        let app = hardened(with_page(app.clone()));
        tokio::spawn(serve_network(network, app, ending.clone()))
    });
    tokio::pin!(stop);
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit,
            () = &mut stop => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::error!("a connection could not be taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(peer) = Peer::of(&stream) else {
            continue;
        };
        let app = match peer.may_use(uid, gid) {
            true => app.clone(),
            false => stranger(&peer),
        };
        let door = Door::Socket(peer.uid);
        let ending = ending.clone();
        tokio::spawn(async move {
            converse(stream, app, door, ending).await;
            drop(permit);
        });
    }
    if let Some(scrapes) = scrapes {
        scrapes.abort();
    }
    end.send_replace(true);
    let all = async {
        let _ = permits.acquire_many(CONNECTIONS_MAX as u32).await;
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
