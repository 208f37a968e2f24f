//! NBD without waiting for any answer.

use super::connect;
use crate::hostile::stage::Stage;
use crate::nbd::protocol as p;
use std::io::{Result, Write};
use std::net::TcpStream;

/// The longest read and write that a server takes, in bytes.
pub const LONGEST: u32 = 32 << 20;

/// A connection to the attackers' export before it is chosen.
///
/// # Errors
/// When it is refused.
pub fn greet(stage: &Stage<'_>) -> Result<TcpStream> {
    let mut stream = connect(stage.address(), stage.places.nbd)?;
    stream.write_all(&u32::from(p::HANDSHAKE_FLAGS).to_be_bytes())?;
    Ok(stream)
}

/// A connection in transmission; with `status` also for requests of block status. What the server says of it is not read.
///
/// # Errors
/// When it is refused.
pub fn open(stage: &Stage<'_>, status: bool) -> Result<TcpStream> {
    let mut stream = greet(stage)?;
    let export = &stage.places.nbd_export;
    let mut bytes = Vec::new();
    if status {
        let context = "base:allocation";
        let mut data = (export.len() as u32).to_be_bytes().to_vec();
        data.extend(export.as_bytes());
        data.extend(1u32.to_be_bytes());
        data.extend((context.len() as u32).to_be_bytes());
        data.extend(context.as_bytes());
        bytes.extend(p::option(p::OPT_STRUCTURED_REPLY, &[]));
        bytes.extend(p::option(p::OPT_SET_META_CONTEXT, &data));
    }
    bytes.extend(p::option(p::OPT_GO, &p::export_data(export)));
    stream.write_all(&bytes)?;
    Ok(stream)
}
