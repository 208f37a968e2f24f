//! An export: its listener and its shutdown.

use crate::address::invalid;
use crate::parameters::parse;
use crate::secure::{self, serve};
use crate::shared::{Settings, Shared};
use reactor::{
    Bound, Export, Handle, ListenAddress, Listener, Listening, Remote, SECOND_NS, SocketAccess,
    StartExport, Stream, control,
};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io::{Error, Result};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

/// Time limit for the loop to start listening.
const START_MAX: Duration = Duration::from_secs(10);
/// Time limit for sessions to answer requests in flight when the export stops, and then to end
/// after their sockets were shut down.
const ANSWER_MAX: Duration = Duration::from_secs(2);
const END_MAX: Duration = Duration::from_secs(5);
/// Retry delay after a failed accept (out of descriptors, for example).
const ACCEPT_RETRY_NS: u64 = SECOND_NS / 10;
/// Ids of this protocol's listeners for volume changes: "nbd" followed by a counter.
static NEXT_LISTENER: AtomicU64 = AtomicU64::new(0x6e62_6400_0000_0000);

struct NbdExport {
    shared: Arc<Shared>,
    address: ListenAddress,
    /// Parameters at the start.
    parameters: BTreeMap<String, String>,
}

/// Parameters that cannot change while clients are connected; the others apply to new connections.
const FIXED: [&str; 4] = ["listen", "mode", "owner", "group"];

/// Listen address and changeable settings.
fn settings(parameters: &BTreeMap<String, String>) -> Result<(ListenAddress, Settings)> {
    let parameters = parse(parameters)?;
    if parameters.tls.is_some() {
        secure::prepare()?;
    }
    let settings = Settings {
        connections: parameters.connections,
        tls: parameters.tls,
    };
    Ok((parameters.listen, settings))
}

/// Starts an export. Must not be called on one of its loops, as it waits for the first of them.
pub(crate) fn start(export: StartExport) -> Result<Box<dyn Export>> {
    let (listen, settings) = settings(&export.parameters)?;
    // Not on the loop, since file systems may block.
    let access = SocketAccess::parse(&export.parameters)?;
    let bound = Bound::new(&listen, &access)?;
    let address = bound.address()?;
    let shared = Shared::new(
        (export.name, export.volume),
        export.device,
        export.memory,
        settings,
    );
    let remotes = export.remotes;
    let first = remotes
        .first()
        .cloned()
        .ok_or_else(|| Error::other("no event loop available for the export"))?;
    let (give, take) = mpsc::channel();
    let task_shared = shared.clone();
    first.run(move |handle| {
        let listener = Listener::new(handle, bound);
        // Owned by the task, so that it is marked as closed after the socket.
        let accepting = Accepting {
            handle: handle.clone(),
            remotes,
            next: 0,
            listening: task_shared.connections.listen(),
            shared: task_shared,
        };
        handle.spawn(accepting.run(listener));
        let _ = give.send(());
    });
    if take.recv_timeout(START_MAX).is_err() {
        shared.stop();
        return Err(Error::other(
            "the event loop of the listener has stopped or does not respond: is the daemon \
             stopping?",
        ));
    }
    Ok(Box::new(NbdExport {
        shared,
        address,
        parameters: export.parameters,
    }))
}

impl Export for NbdExport {
    fn address(&self) -> String {
        self.address.to_string()
    }

    fn hints(&self) -> Vec<String> {
        // Where libnbd looks for client certificates.
        let (scheme, certificates) = match &self.shared.settings().tls {
            None => ("nbd", ""),
            Some(_) => ("nbds", "tls-certificates=/etc/pki/libnbd"),
        };
        let is_plain = certificates.is_empty();
        let (uri, device) = match &self.address {
            ListenAddress::Unix(path) => {
                let path = path.display();
                let and = if is_plain { "" } else { "&" };
                (
                    format!("{scheme}+unix:///?socket={path}{and}{certificates}"),
                    format!("driver=nbd,server.type=unix,server.path={path}"),
                )
            }
            ListenAddress::Tcp(at) => {
                let (ip, port) = (at.ip(), at.port());
                let with = if is_plain { "" } else { "/?" };
                (
                    format!("{scheme}://{at}{with}{certificates}"),
                    format!("driver=nbd,server.type=inet,server.host={ip},server.port={port}"),
                )
            }
        };
        let tls = if is_plain { "" } else { ",tls-creds=ID" };
        vec![
            format!("nbdinfo '{uri}'"),
            format!("nbdcopy '{uri}' copy.img"),
            format!("qemu-system-x86_64 ... -drive {device}{tls},format=raw,if=virtio"),
        ]
    }

    fn sessions(&self) -> usize {
        self.shared.sessions()
    }

    fn hosts(&self) -> Vec<String> {
        self.shared.hosts()
    }

    /// Applies all parameters except for the listen address to new connections. Certificate files
    /// are read again.
    fn change(&self, parameters: &BTreeMap<String, String>) -> Result<()> {
        let is_fixed = |name: &&&str| self.parameters.get(**name) != parameters.get(**name);
        if let Some(name) = FIXED.iter().find(is_fixed) {
            return Err(invalid(format!(
                "{name} cannot be changed while clients are connected: delete the export and create it again"
            )));
        }
        let (_, settings) = settings(parameters)?;
        self.shared.change(settings);
        Ok(())
    }
}

impl Drop for NbdExport {
    /// Waits, for a limited time, until the address is released and the sessions have ended.
    fn drop(&mut self) {
        self.shared.stop();
        let connections = &self.shared.connections;
        if !connections.wait_ended(ANSWER_MAX) {
            self.shared.cut();
            connections.wait_ended(END_MAX);
        }
    }
}

/// The accept task.
struct Accepting {
    handle: Handle,
    remotes: Vec<Remote>,
    next: usize,
    shared: Arc<Shared>,
    listening: Listening,
}

impl Accepting {
    async fn run(mut self, listener: Listener) {
        let number = NEXT_LISTENER.fetch_add(1, Ordering::Relaxed);
        while let Some(taken) = until_end(&self.shared, number, listener.accept()).await {
            match taken {
                Ok(stream) => self.hand_over(stream),
                Err(_) => {
                    let pause = self.handle.sleep(ACCEPT_RETRY_NS);
                    let _ = until_end(&self.shared, number, pause).await;
                }
            }
        }
        let (bound, listening, shared) = (listener.end(), self.listening, self.shared);
        let end = move || {
            drop(bound);
            drop(listening);
            shared.stop();
        };
        // Removing the socket's file may block. Without a thread the address is released anyway.
        let _ = control::start("unlisten".to_owned(), Box::new(end));
    }

    /// Starts a session on the next loop; a connection over the limit is closed cheaply.
    fn hand_over(&mut self, stream: Stream) {
        let Some(seat) = self.shared.sit(&stream) else {
            return;
        };
        stream.keep_alive();
        let (detached, shared) = (stream.detach(), self.shared.clone());
        let remote = &self.remotes[self.next % self.remotes.len()];
        self.next += 1;
        remote.spawn(move |handle| async move {
            if let Ok(stream) = detached.attach(&handle) {
                serve(handle, stream, shared, seat).await;
            }
        });
    }
}

/// The result of `future`, or `None` once the export or its volume has ended. Meanwhile the size
/// for bounds checks follows the volume.
async fn until_end<T>(shared: &Shared, number: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let watched = poll_fn(|context: &mut Context<'_>| {
        shared.device.on_change(number, context.waker().clone());
        shared.refresh_size();
        if shared.device.is_gone() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    });
    shared.connections.until_stop(watched).await.flatten()
}
