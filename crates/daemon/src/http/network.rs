//! The interface and the page by TLS, for whoever has a token.

use super::gate::Door;
use super::server::converse;
use super::tls;
use crate::{Config, ServeError};
use axum::Router;
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Connections at a time; more wait to be taken.
pub const NETWORK_CONNECTIONS_MAX: usize = 192;
/// Of them, those of one address; more are closed at once.
pub const ADDRESS_CONNECTIONS_MAX: usize = 96;
/// A handshake that takes longer is given up.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A port that is open, and what its connections are taken with.
pub struct Network {
    listener: std::net::TcpListener,
    tls: Arc<ServerConfig>,
}

/// Opens the port. Connections wait until [`serve_network`] takes them.
///
/// # Errors
/// One line that says what to do.
pub fn bind_network(config: &Config, at: SocketAddr) -> Result<Network, ServeError> {
    let fail = |error: std::io::Error| {
        ServeError::new(format!(
            "the page cannot be served at {at}: {error}: choose another address with --listen"
        ))
    };
    let tls = tls::server_config(config, at)?;
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
    ending: watch::Receiver<bool>,
) {
    let door = Door::Network(from.ip().to_canonical());
    match tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, app, door, ending).await,
        Ok(Err(error)) => tracing::debug!("no TLS with {from}: {error}"),
        Err(_) => tracing::debug!("no TLS with {from} in {HANDSHAKE_TIME:?}"),
    }
}

/// Connections by address.
#[derive(Clone, Default)]
struct Counted(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// One of them, until it is dropped.
struct One(Counted, IpAddr);

impl Counted {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more, unless its address has as many as it may.
    fn take(&self, from: IpAddr) -> Option<One> {
        let mut counts = self.lock();
        let count = counts.entry(from).or_default();
        if *count >= ADDRESS_CONNECTIONS_MAX {
            return None;
        }
        *count += 1;
        Some(One(self.clone(), from))
    }
}

impl Drop for One {
    fn drop(&mut self) {
        let mut counts = self.0.lock();
        if let Some(count) = counts.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

/// Answers until `ending` says so, and until its connections have ended.
///
/// # Errors
/// When the system gives no event for the port.
pub async fn serve_network(
    network: Network,
    app: Router,
    mut ending: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let listener = TcpListener::from_std(network.listener)?;
    let acceptor = TlsAcceptor::from(network.tls);
    let permits = Arc::new(Semaphore::new(NETWORK_CONNECTIONS_MAX));
    let counted = Counted::default();
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            _ = ending.wait_for(|ending| *ending) => break,
        };
        match accepted {
            Ok((stream, from)) => {
                let Some(one) = counted.take(from.ip().to_canonical()) else {
                    continue;
                };
                let taken = take(stream, from, acceptor.clone(), app.clone(), ending.clone());
                connections.spawn(async move {
                    taken.await;
                    drop((permit, one));
                });
            }
            Err(error) => {
                tracing::error!("a connection could not be taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_have_all_connections() {
        let counted = Counted::default();
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let mut held: Vec<One> = (0..ADDRESS_CONNECTIONS_MAX)
            .map(|_| counted.take(one).unwrap())
            .collect();
        assert!(counted.take(one).is_none() && counted.take(other).is_some());
        held.pop();
        assert!(counted.take(one).is_some());
        drop(held);
        assert!(counted.lock().is_empty());
    }
}
