//! The API and the web page over TLS, for callers with a token.

use super::accept::Pace;
use super::connection::converse;
use super::gate::Door;
use super::shares::{Limits, Share, Shares};
use super::tls;
use crate::state::StateFiles;
use crate::{Config, ServeError};
use axum::Router;
use reactor::{Origin, ShareLimits};
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Connection limits by address.
const SHARES: Limits = Limits {
    arrivals: ShareLimits {
        all: 256,
        network: 192,
        address: 192,
        reserve: 0,
        few: 0,
    },
    admitted: ShareLimits {
        all: 192,
        network: 96,
        address: 72,
        reserve: 96,
        few: 0,
    },
};
/// Time limit of a handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A bound port with its TLS configuration.
pub struct Network {
    listener: std::net::TcpListener,
    tls: Arc<ServerConfig>,
}

/// Binds the port. Connections queue until [`serve_network`] accepts them.
///
/// # Errors
/// One line that says what to do.
pub fn bind_network(
    config: &Config,
    files: &StateFiles,
    at: SocketAddr,
) -> Result<Network, ServeError> {
    let fail = |error: std::io::Error| {
        ServeError::new(format!(
            "cannot serve the page at {at}: {error}: choose another address with --listen"
        ))
    };
    let tls = tls::server_config(config, files, at)?;
    let listener = std::net::TcpListener::bind(at).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    tracing::info!("the page is at https://{bound}/");
    Ok(Network { listener, tls })
}

async fn take(
    stream: TcpStream,
    from: SocketAddr,
    acceptor: TlsAcceptor,
    app: Router,
    share: Share,
    ending: watch::Receiver<bool>,
) {
    let door = Door::Network(from.ip().to_canonical());
    let handshake = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream));
    let shaken = tokio::select! {
        shaken = handshake => shaken,
        () = share.ended() => return,
    };
    match shaken {
        Ok(Ok(stream)) => converse(stream, app, door, share, ending).await,
        Ok(Err(error)) => tracing::debug!("TLS handshake with {from} failed: {error}"),
        Err(_) => tracing::debug!("TLS handshake with {from} timed out after {HANDSHAKE_TIME:?}"),
    }
}

/// Serves until `ending` signals the end and its connections have finished.
///
/// # Errors
/// When the port cannot be registered with the event loop.
pub async fn serve_network(
    network: Network,
    app: Router,
    mut ending: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let listener = TcpListener::from_std(network.listener)?;
    let acceptor = TlsAcceptor::from(network.tls);
    let shares = Shares::new(SHARES);
    let mut pace = Pace::new();
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, from) = tokio::select! {
            accepted = pace.next(|context| listener.poll_accept(context)) => accepted,
            _ = ending.wait_for(|ending| *ending) => break,
        };
        let Some(share) = shares.take(Origin::of(from.ip()), false) else {
            continue;
        };
        let (acceptor, app) = (acceptor.clone(), app.clone());
        connections.spawn(take(stream, from, acceptor, app, share, ending.clone()));
    }
    while connections.join_next().await.is_some() {}
    Ok(())
}
