//! The figures alone, by TCP: for Prometheus, which reads no Unix socket. Whoever connects is answered.

use super::gate::Door;
use super::server::{HEADER_TIME, through};
use super::shares::{Limits, Origin, Share, Shares};
use crate::ServeError;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Connections at a time.
pub const METRICS_CONNECTIONS_MAX: usize = 8;
/// How they are shared by addresses; nobody proves anything here.
const SHARES: Limits = Limits {
    all: METRICS_CONNECTIONS_MAX,
    unproven: METRICS_CONNECTIONS_MAX,
    origin: 4,
    network: 4,
};
/// A connection is for one request, and is ended after so long.
const WHOLE_TIME: Duration = Duration::from_secs(30);

/// Makes the socket. Connections wait until [`serve_metrics`] takes them.
///
/// # Errors
/// One line that says what to do.
pub fn bind_metrics(address: SocketAddr) -> Result<std::net::TcpListener, ServeError> {
    let fail = |error: std::io::Error| {
        ServeError::new(format!(
            "metrics cannot be served at {address}: {error}: choose another with --metrics"
        ))
    };
    let listener = std::net::TcpListener::bind(address).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    tracing::info!("metrics at http://{bound}/metrics");
    Ok(listener)
}

async fn answer(stream: TcpStream, share: Share, app: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .keep_alive(false)
        .serve_connection(
            TokioIo::new(stream),
            through(Door::Figures, share.clone(), app),
        );
    let answered = tokio::select! {
        answered = tokio::time::timeout(WHOLE_TIME, connection) => answered,
        () = share.ended() => return,
    };
    match answered {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a scrape ended: {error}"),
        Err(_) => tracing::debug!("a scrape took too long"),
    }
}

/// Answers until it is dropped, and its connections with it.
pub async fn serve_metrics(listener: TcpListener, app: Router) {
    let shares = Shares::new(SHARES);
    let mut scrapes = JoinSet::new();
    loop {
        while scrapes.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, from)) => {
                if let Some(share) = shares.take(Origin::of(from.ip()), false) {
                    scrapes.spawn(answer(stream, share, app.clone()));
                }
            }
            Err(error) => {
                tracing::error!("a scrape could not be taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
