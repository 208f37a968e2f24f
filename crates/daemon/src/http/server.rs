//! Connections: taken, checked, bounded in number and time, and ended with the daemon.

use super::metrics::serve_metrics;
use super::peer::{self, Peer};
use super::router::{metrics_router, refuse, router};
use crate::{Manager, ServeError};
use api::v1::{Problem, ProblemCode};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener, UnixStream};
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

async fn converse(stream: UnixStream, app: Router, mut ending: watch::Receiver<bool>) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
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

/// Answers until `stop` ends, on `metrics` with the figures alone; then lets running requests end, for a while.
///
/// # Errors
/// When the system gives no event for the socket.
pub async fn serve(
    socket: &Socket,
    metrics: Option<std::net::TcpListener>,
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
        let app = match Peer::of(&stream) {
            Ok(peer) if peer.may_use(uid, gid) => app.clone(),
            Ok(peer) => stranger(&peer),
            Err(_) => continue,
        };
        let ending = ending.clone();
        tokio::spawn(async move {
            converse(stream, app, ending).await;
            drop(permit);
        });
    }
    if let Some(scrapes) = scrapes {
        scrapes.abort();
    }
    end.send_replace(true);
    let all = permits.acquire_many(CONNECTIONS_MAX as u32);
    if tokio::time::timeout(END_TIME, all).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
    Ok(())
}
