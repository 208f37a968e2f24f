//! One connection, from its first byte until it begins or joins a session.

use crate::channel::Channel;
use crate::input::Input;
use crate::login::{LoggedIn, Login, Refused};
use crate::members::Known;
use crate::memory;
use crate::notices;
use crate::open;
use crate::output::Output;
use crate::portal::Seat;
use crate::serving::Connection;
use crate::session::{DEPTH, Normal, Session};
use crate::target::{Joined, Joining, Target};
use crate::window::Window;
use reactor::{DetachedStream, Handle, SECOND_NS, Stream, in_time};
use scsi::{Luns, Nexus, Ports};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// Time limit for a login.
const LOGIN_NS: u64 = 15 * SECOND_NS;
/// Time limit for a previous session or connection to end, in polls.
const REINSTATE_TRIES: usize = 1000;
const REINSTATE_NS: u64 = SECOND_NS / 200;

/// Local and remote address.
fn addresses(stream: &Stream) -> Result<(SocketAddr, SocketAddr)> {
    let (local, peer) = stream.addresses()?;
    // A dual-stack socket reports IPv4 addresses as IPv4-mapped ones, which IPv4 hosts cannot use.
    let plain = |address: SocketAddr| match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(ip.into(), address.port()),
        IpAddr::V6(_) => address,
    };
    Ok((plain(local), plain(peer)))
}

/// A logged-in connection being moved to the loop of its session.
struct Further {
    stream: DetachedStream,
    logged_in: LoggedIn,
    local: IpAddr,
    seat: Arc<Seat>,
    known: Known,
}

/// Result of a login.
enum Entered {
    Session(Rc<Session>, Rc<Channel>),
    /// A further connection of an existing session.
    Connection(Box<(LoggedIn, IpAddr, Known)>),
}

/// Serves one connection until it ends. Errors of a peer affect only its connection.
pub(crate) async fn serve(handle: Handle, stream: Stream, portal: SocketAddr, seat: Arc<Seat>) {
    let stream = Rc::new(stream);
    let mut input = Input::new(stream.clone());
    match log_in(&handle, &stream, &mut input, portal, &seat).await {
        Ok(Entered::Session(session, channel)) => {
            drop(seat);
            Connection::run(session, channel, input).await;
        }
        Ok(Entered::Connection(entered)) => {
            let (logged_in, local, known) = *entered;
            drop(input);
            // There is no other owner by now.
            let Ok(stream) = Rc::try_unwrap(stream) else {
                return;
            };
            let further = Further {
                stream: stream.detach(),
                logged_in,
                local,
                seat,
                known,
            };
            let remote = further.known.remote.clone();
            remote.spawn(move |handle| further.enter(handle));
        }
        // Refusals were already reported and logged; disconnects are not logged.
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            notices::refused(format_args!("portal {portal}"), "malformed login");
        }
        Err(_) => {}
    }
}

async fn log_in(
    handle: &Handle,
    stream: &Rc<Stream>,
    input: &mut Input,
    portal: SocketAddr,
    seat: &Arc<Seat>,
) -> Result<Entered> {
    let (local, address) = addresses(stream)?;
    let mut login = Login::new(handle, (stream, input), (address, portal));
    let mut logged_in = in_time(handle, LOGIN_NS, login.run()).await?;
    if logged_in.session_handle != 0 {
        let found = match login.has_more() {
            // No data may precede the final response.
            true => Err(Refused::INITIATOR_ERROR),
            false => known(&logged_in),
        };
        return match found {
            Ok(known) => Ok(Entered::Connection(Box::new((
                logged_in,
                local.ip(),
                known,
            )))),
            Err(why) => Err(login.refuse_last(&logged_in, why).await),
        };
    }
    let normal = match logged_in.is_discovery {
        true => None,
        false => match join(handle, &logged_in, seat).await {
            Ok(normal) => Some(normal),
            Err(why) => return Err(login.refuse_last(&logged_in, why).await),
        },
    };
    let session_handle = normal.as_ref().map_or(1, |normal| normal.place.handle);
    let first = logged_in.reach.first();
    let first = first.filter(|_| normal.is_some());
    let volume = first.and_then(|(_, granted)| granted.0.values().next());
    let account = memory::account(address.ip(), volume.map(|offer| &offer.memory));
    let window = Rc::new(Window::new(logged_in.command_number, DEPTH, account));
    let admit = login.admit(&mut logged_in, session_handle, &window);
    in_time(handle, LOGIN_NS, admit).await?;
    seat.logged_in();
    let reach = std::mem::take(&mut logged_in.reach);
    let session = Session::new(handle, normal, (reach, logged_in.agreed), window.clone());
    let channel = channel(stream, logged_in, (local.ip(), seat), window);
    session.channels.borrow_mut().push(channel.clone());
    if let Some(normal) = &session.normal {
        open::enter(normal.place.number, &session);
    }
    Ok(Entered::Session(session, channel))
}

fn channel(
    stream: &Rc<Stream>,
    logged_in: LoggedIn,
    (local, seat): (IpAddr, &Arc<Seat>),
    window: Rc<Window>,
) -> Rc<Channel> {
    Channel::new(
        logged_in.connection,
        stream.clone(),
        (logged_in.peer, local),
        (
            logged_in.agreed,
            Output::new(logged_in.status_number, window),
        ),
        seat.clone(),
    )
}

/// The initiator port's name, and the target portal group.
fn port_of(logged_in: &LoggedIn, target: &Target) -> (String, u16) {
    let isid = crate::text::to_hex(&logged_in.isid);
    let name = format!("{},i,{isid}", logged_in.peer.initiator);
    (name, target.group(logged_in.peer.portal))
}

/// The existing session that a connection claims to join: same initiator name and ISID at the same
/// portal, authenticated with the same secret, and with access to everything that the session has.
fn known(logged_in: &LoggedIn) -> std::result::Result<Known, Refused> {
    if logged_in.is_discovery {
        return Err(Refused::NO_SESSION);
    }
    let (target, granted) = logged_in.reach.first().ok_or(Refused::NOT_FOUND)?;
    let port = port_of(logged_in, target);
    let known = target.known(&port, logged_in.session_handle);
    let known = known.ok_or(Refused::NO_SESSION)?;
    if known.proved != logged_in.proved {
        return Err(Refused::AUTHENTICATION);
    }
    match known.luns.iter().all(|lun| granted.0.contains_key(lun)) {
        true => Ok(known),
        false => Err(Refused::NOT_FOUND),
    }
}

/// Ends a session of the same ports (session reinstatement, RFC 7143, section 6.3.5) and takes its
/// place.
async fn join(
    handle: &Handle,
    logged_in: &LoggedIn,
    seat: &Arc<Seat>,
) -> std::result::Result<Normal, Refused> {
    let (target, granted) = logged_in.reach.first().ok_or(Refused::NOT_FOUND)?;
    let port = port_of(logged_in, target);
    let joining = Joining {
        port: &port,
        connection: logged_in.connection,
        peer: &logged_in.peer,
        proved: logged_in.proved.as_ref(),
        granted,
        seat,
    };
    let mut tries = 0;
    let (place, version) = loop {
        let version = target.version();
        match target.join(&joining) {
            Joined::Place(place) => break (place, version),
            Joined::Gone => return Err(Refused::NOT_FOUND),
            Joined::OfAnother => return Err(Refused::PORT_OF_ANOTHER),
            Joined::Waits(_) if tries == REINSTATE_TRIES => return Err(Refused::TARGET_ERROR),
            Joined::Waits(log) => {
                if let Some(log) = log {
                    notices::refused(format_args!("target {}", target.name), log);
                }
                handle.sleep(REINSTATE_NS).await;
            }
        }
        tries += 1;
    };
    let group = port.1;
    let ports = Ports {
        initiator: port.0,
        target: target.name.clone(),
        target_port: group,
    };
    let mut nexuses = BTreeMap::new();
    for (lun, offer) in &granted.0 {
        let device = offer.open(&logged_in.peer.initiator).await;
        let nexus = Target::nexus(handle, offer, &ports, device);
        nexuses.insert(*lun, Rc::new(nexus));
    }
    let luns = Luns::new(nexuses);
    Ok(Normal {
        target: target.clone(),
        luns: Rc::new(luns),
        ports,
        granted: granted.clone(),
        version: Cell::new(version),
        place,
    })
}

impl Further {
    /// Continues on the loop of the session.
    async fn enter(self, handle: Handle) {
        let Ok(stream) = self.stream.attach(&handle) else {
            return;
        };
        let stream = Rc::new(stream);
        let mut input = Input::new(stream.clone());
        let mut logged_in = self.logged_in;
        let session = open::find(self.known.number).ok_or(Refused::NO_SESSION);
        let entered = match session {
            Ok(session) => session
                .make_room(&handle, &mut logged_in, &self.seat)
                .await
                .map(|()| session),
            Err(why) => Err(why),
        };
        let mut login = Login::again(&handle, (&stream, &mut input), &logged_in);
        let session = match entered {
            Ok(session) => session,
            Err(why) => {
                login.refuse_last(&logged_in, why).await;
                return;
            }
        };
        let number = logged_in.connection;
        let admit = login.admit(&mut logged_in, self.known.handle, &session.window);
        if in_time(&handle, LOGIN_NS, admit).await.is_err() || session.closing.get() {
            session.unmake_room(number);
            return;
        }
        self.seat.logged_in();
        let window = session.window.clone();
        let channel = channel(&stream, logged_in, (self.local, &self.seat), window);
        session.channels.borrow_mut().push(channel.clone());
        drop(self.seat);
        Connection::run(session, channel, input).await;
    }
}

impl Session {
    /// Makes room for a further connection with the session's negotiated parameters; one with the
    /// same CID is ended first (connection reinstatement, RFC 7143, section 6.3.4).
    async fn make_room(
        self: &Rc<Self>,
        handle: &Handle,
        logged_in: &mut LoggedIn,
        seat: &Arc<Seat>,
    ) -> std::result::Result<(), Refused> {
        let normal = self.normal.as_ref().ok_or(Refused::NO_SESSION)?;
        let mut tries = 0;
        while let Some(before) = self.channel(logged_in.connection) {
            before.cut();
            tries += 1;
            if tries > REINSTATE_TRIES {
                return Err(Refused::TARGET_ERROR);
            }
            handle.sleep(REINSTATE_NS).await;
        }
        if self.closing.get() {
            return Err(Refused::NO_SESSION);
        }
        let agreed = self.agreed;
        logged_in.agreed = logged_in.agreed.of_session(&agreed);
        let most = usize::from(agreed.connections_max);
        let connection = (logged_in.connection, &logged_in.peer, seat);
        match normal.target.enter(&normal.place, connection, most) {
            true => Ok(()),
            false => Err(Refused::TOO_MANY_CONNECTIONS),
        }
    }

    fn unmake_room(&self, number: u16) {
        if let Some(normal) = &self.normal {
            normal.target.leave(&normal.place, number);
        }
    }

    /// Applies a changed set of units: those that all connections may access.
    pub(super) fn refresh_units(self: &Rc<Self>, normal: &Normal) {
        let version = normal.target.version();
        if normal.version.replace(version) == version {
            return;
        }
        let now = normal.target.granted_to(&normal.place);
        let now = normal.granted.of(&now);
        let numbers: Vec<u16> = now.0.keys().copied().collect();
        let gone = normal.luns.change(&numbers, |lun| {
            let offer = now.0.get(&lun)?;
            let device = offer.device.clone();
            Some(Target::nexus(&self.handle, offer, &normal.ports, device))
        });
        for (lun, offer) in &now.0 {
            if let Some(nexus) = normal.luns.get(*lun) {
                nexus.set_read_only(offer.grant.read_only);
            }
        }
        match gone.is_empty() {
            true => normal.target.note_luns(&normal.place, &numbers),
            false => self.let_go(gone),
        }
    }

    /// Releases units once their commands in flight have completed; the target waits for that.
    fn let_go(self: &Rc<Self>, gone: Vec<Rc<Nexus>>) {
        let (session, left) = (
            self.clone(),
            gone.iter().map(Rc::downgrade).collect::<Vec<_>>(),
        );
        drop(gone);
        self.handle.spawn(async move {
            loop {
                let ended = session.ended.wait();
                if left.iter().all(|nexus| nexus.strong_count() == 0) {
                    break;
                }
                ended.await;
            }
            if let Some(normal) = &session.normal {
                let numbers = normal.luns.numbers();
                normal.target.note_luns(&normal.place, &numbers);
            }
        });
    }

    /// Applies changes even if no command arrives.
    pub(crate) fn refresh(self: &Rc<Self>) {
        if let Some(normal) = &self.normal {
            self.refresh_units(normal);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.dropped.notify();
        if let Some(normal) = &self.normal {
            open::forget(normal.place.number);
        }
    }
}
