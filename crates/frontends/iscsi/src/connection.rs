//! One connection, from its first byte to its last.

use crate::input::Input;
use crate::login::{LoggedIn, Login, Refused};
use crate::notices;
use crate::output::Output;
use crate::portal::Seat;
use crate::session::{DEPTH, Normal, Parts, Session};
use crate::target::{Joining, Place, Target};
use reactor::{Handle, SECOND_NS, Stream, in_time};
use scsi::{Luns, Ports};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;

/// A peer has this long to log in.
const LOGIN_NS: u64 = 15 * SECOND_NS;
/// The session before this one has this long to end, looked at so often.
const REINSTATE_TRIES: usize = 1000;
const REINSTATE_NS: u64 = SECOND_NS / 200;

/// The address that the initiator has connected to, and its own.
fn addresses(stream: &Stream) -> Result<(SocketAddr, SocketAddr)> {
    // SAFETY: the descriptor is open as long as `stream` is, which outlives this use.
    let fd = unsafe { BorrowedFd::borrow_raw(stream.fd()) };
    let second = TcpStream::from(fd.try_clone_to_owned()?);
    Ok((second.local_addr()?, second.peer_addr()?))
}

/// Serves one connection until it ends. The errors of a peer concern nobody else.
pub(crate) async fn serve(handle: Handle, stream: Stream, portal: SocketAddr, seat: Arc<Seat>) {
    let stream = Rc::new(stream);
    let mut input = Input::new(stream.clone());
    let login = log_in(&handle, &stream, &mut input, portal, &seat);
    let (parts, connection) = match login.await {
        Ok(logged_in) => logged_in,
        // Who was refused has been told and noted; who left concerns nobody.
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            notices::refused(format_args!("portal {portal}"), "what came is no login");
            return;
        }
        Err(_) => return,
    };
    drop(seat);
    Session::new(parts, connection).run(input).await;
}

async fn log_in(
    handle: &Handle,
    stream: &Rc<Stream>,
    input: &mut Input,
    portal: SocketAddr,
    seat: &Arc<Seat>,
) -> Result<(Parts, u16)> {
    let (local, address) = addresses(stream)?;
    let mut login = Login::new(stream, input, (address, portal));
    let mut logged_in = in_time(handle, LOGIN_NS, login.run()).await?;
    let normal = match logged_in.is_discovery {
        true => None,
        false => match join(handle, &logged_in, seat).await {
            Ok(normal) => Some(normal),
            Err(why) => return Err(login.refuse_last(&logged_in, why).await),
        },
    };
    let session_handle = normal.as_ref().map_or(1, |normal| normal.place.handle);
    in_time(
        handle,
        LOGIN_NS,
        login.admit(&mut logged_in, session_handle),
    )
    .await?;
    seat.logged_in();
    let parts = Parts {
        handle: handle.clone(),
        stream: stream.clone(),
        agreed: logged_in.agreed,
        peer: logged_in.peer,
        local: local.ip(),
        reach: logged_in.reach,
        output: Output::new(logged_in.status_number, logged_in.command_number, DEPTH),
        seat: seat.clone(),
        normal,
    };
    Ok((parts, logged_in.connection))
}

/// Ends a session of the same ports (RFC 7143, section 6.3.5) and takes its place.
async fn join(
    handle: &Handle,
    logged_in: &LoggedIn,
    seat: &Arc<Seat>,
) -> std::result::Result<Normal, Refused> {
    let (target, granted) = logged_in.reach.first().ok_or(Refused::NOT_FOUND)?;
    let group = target.group(logged_in.peer.portal);
    let isid = crate::text::to_hex(&logged_in.isid);
    let port = (format!("{},i,{isid}", logged_in.peer.initiator), group);
    if logged_in.session_handle != 0 {
        // One connection a session.
        return Err(match target.has_session(&port, logged_in.session_handle) {
            true => Refused::TOO_MANY_CONNECTIONS,
            false => Refused::NO_SESSION,
        });
    }
    let mut tries = 0;
    while target.reinstate(&port) {
        tries += 1;
        if tries > REINSTATE_TRIES {
            return Err(Refused::TARGET_ERROR);
        }
        handle.sleep(REINSTATE_NS).await;
    }
    let version = target.version();
    let place = target.join(Joining {
        port: port.clone(),
        peer: &logged_in.peer,
        user: logged_in.user.clone(),
        granted,
        seat,
    });
    let place: Place = place.ok_or(Refused::NOT_FOUND)?;
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

impl Session {
    /// Takes over what the target offers now, when that has changed.
    pub(super) fn refresh_units(&self, normal: &Normal) {
        let version = normal.target.version();
        if normal.version.replace(version) == version {
            return;
        }
        let parts = &self.parts;
        let now = normal.granted.of(&normal.target.granted(&parts.peer));
        let numbers: Vec<u16> = now.0.keys().copied().collect();
        normal.target.note_luns(&normal.place, &numbers);
        normal.luns.change(&numbers, |lun| {
            let offer = now.0.get(&lun)?;
            let device = offer.device.clone();
            Some(Target::nexus(&parts.handle, offer, &normal.ports, device))
        });
        for (lun, offer) in &now.0 {
            if let Some(nexus) = normal.luns.get(*lun) {
                nexus.set_read_only(offer.grant.read_only);
            }
        }
    }
}
