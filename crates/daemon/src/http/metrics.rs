//! The public metrics listener over TCP, for Prometheus, which cannot scrape a Unix socket. No
//! authentication.

use super::accept::Pace;
use super::connection::{connections, through};
use super::gate::Door;
use super::shares::{Limits, Share, Shares};
use crate::ServeError;
use axum::Router;
use hyper_util::rt::TokioIo;
use reactor::{Origin, ShareLimits};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Connection limits by address; there are no authenticated callers.
const SHARES: Limits = Limits {
    arrivals: ShareLimits {
        all: 128,
        network: 96,
        address: 96,
        reserve: 0,
        few: 0,
    },
    admitted: ShareLimits {
        all: 8,
        network: 4,
        address: 4,
        reserve: 0,
        few: 0,
    },
};
/// Time limit of a connection, which serves one request.
const WHOLE_TIME: Duration = Duration::from_secs(30);

/// Binds the socket. Connections queue until [`serve_metrics`] accepts them.
///
/// # Errors
/// One line that says what to do.
pub fn bind_metrics(address: SocketAddr) -> Result<std::net::TcpListener, ServeError> {
    let fail = |error: std::io::Error| {
        ServeError::new(format!(
            "cannot serve metrics at {address}: {error}: choose another address with --metrics"
        ))
    };
    let listener = std::net::TcpListener::bind(address).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    tracing::info!("metrics at http://{bound}/metrics");
    Ok(listener)
}

async fn answer(stream: TcpStream, share: Share, app: Router) {
    let connection = connections().keep_alive(false).serve_connection(
        TokioIo::new(stream),
        through(Door::Figures, share.clone(), app),
    );
    let answered = tokio::select! {
        answered = tokio::time::timeout(WHOLE_TIME, connection) => answered,
        () = share.ended() => return,
    };
    match answered {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("scrape failed: {error}"),
        Err(_) => tracing::debug!("scrape timed out"),
    }
}

/// Serves until it is dropped, and its connections with it.
pub async fn serve_metrics(listener: TcpListener, app: Router) {
    let shares = Shares::new(SHARES);
    let mut pace = Pace::new();
    let mut scrapes = JoinSet::new();
    loop {
        while scrapes.try_join_next().is_some() {}
        let (stream, from) = pace.next(|context| listener.poll_accept(context)).await;
        if let Some(share) = shares.take(Origin::of(from.ip()), false) {
            scrapes.spawn(answer(stream, share, app.clone()));
        }
    }
}
