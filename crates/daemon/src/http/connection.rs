//! One HTTP connection: its limits and its end.

use super::bodies::{WhileSent, WhileTaken};
use super::gate::Door;
use super::router::refuse;
use super::shares::Share;
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
use std::convert::Infallible;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Maximum size of a request's head, and of the part of its body that is read ahead, in bytes.
const BUFFER_MAX: usize = 64 << 10;
/// Idle time limit before a request is complete.
const HEADER_TIME: Duration = Duration::from_secs(30);

/// HTTP/1.1 settings of all connections.
pub fn connections() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(BUFFER_MAX);
    builder
}

/// The response to a connection beyond its share, which is closed afterwards.
fn too_many() -> axum::response::Response {
    let mut refused = refuse(&Problem::new(
        ProblemCode::TooMany,
        "too many concurrent requests: wait until one has finished, or close a connection",
    ));
    let close = HeaderValue::from_static("close");
    refused.headers_mut().insert(header::CONNECTION, close);
    refused
}

/// Wraps a router in a service that adds the listener and connection to requests.
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

/// Serves a connection until it or the daemon ends, or it is evicted in favour of another.
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
                tracing::debug!("connection closed: {error}");
            }
            return;
        }
        () = share.ended() => return,
        _ = ending.wait_for(|ending| *ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    if let Err(error) = connection.await {
        tracing::debug!("connection closed: {error}");
    }
}
