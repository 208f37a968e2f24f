//! iSCSI sessions from an attacker's address.

use super::connect;
use crate::hostile::stage::Stage;
use crate::iscsi::{Initiator, Opened, Waiting, Wire, next_isid, protocol as p};
use std::io::{Error, ErrorKind, Read, Result};
use std::time::Duration;

/// Timeout of reading a response.
const PATIENCE: Duration = Duration::from_secs(2);

/// An attacker's name.
pub fn initiator() -> Initiator {
    Initiator {
        name: "iqn.2026-11.io.convect.lab:attacker".to_owned(),
        digests: false,
    }
}

/// A connection before login.
///
/// # Errors
/// When it is refused.
pub fn wire(stage: &Stage<'_>) -> Result<Wire> {
    let wire = Wire::over(connect(stage.address(), stage.places.lun.portal)?)?;
    wire.stream.set_read_timeout(Some(PATIENCE))?;
    wire.stream.set_write_timeout(Some(PATIENCE))?;
    Ok(wire)
}

/// A session with the attackers' unit, with an ISID that is chosen.
///
/// # Errors
/// When it is refused.
pub fn open_as(stage: &Stage<'_>, isid: [u8; 6]) -> Result<Opened> {
    Waiting::over(wire(stage)?, &stage.places.lun, &initiator(), isid)?.end()
}

/// A session of its own.
///
/// # Errors
/// When it is refused.
pub fn open(stage: &Stage<'_>) -> Result<Opened> {
    open_as(stage, next_isid())
}

/// Takes what comes until nothing does, or it is over: in no more memory than a part of it takes.
///
/// # Errors
/// When the connection was closed.
pub fn drain(stage: &Stage<'_>, session: &mut Opened) -> Result<()> {
    let mut part = vec![0; p::SEGMENT_MAX];
    while !stage.is_over() {
        match session.wire.stream.read(&mut part) {
            Ok(0) => return Err(ErrorKind::ConnectionReset.into()),
            Ok(_) => {}
            Err(error) if is_late(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether something did not come in time.
pub fn is_late(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
