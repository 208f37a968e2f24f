//! One connection.

use super::protocol as p;
use std::collections::BTreeMap;
use std::io::{BufReader, Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// An answer that takes longer than this never comes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest option reply that is read, in bytes.
const OPTION_REPLY_MAX: u32 = 64 << 10;

/// A request; lengths and offsets in bytes.
#[derive(Clone, Debug)]
pub enum Request {
    /// Reads.
    Read { offset: u64, length: u32 },
    /// Writes; `fua` also makes it durable.
    Write {
        offset: u64,
        data: Vec<u8>,
        fua: bool,
    },
    /// Makes it zeroes.
    Zero { offset: u64, length: u32 },
    /// Gives it back.
    Trim { offset: u64, length: u32 },
    /// Makes durable what was answered before.
    Flush,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// The number that the request was sent with.
    pub cookie: u64,
    /// The error of the protocol; 0 is none.
    pub error: u32,
    /// Data read.
    pub data: Vec<u8>,
}

/// A connection in transmission.
pub struct Client {
    stream: BufReader<UnixStream>,
    reads: BTreeMap<u64, u32>,
    /// Size of the export in bytes.
    pub size: u64,
}

fn wrong(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, text.into())
}

fn read_array<const N: usize>(stream: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn expect(what: &str, found: u64, wanted: u64) -> Result<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(wrong(format!("{what} is {found:#x}, not {wanted:#x}"))),
    }
}

/// Asks for the export with `NBD_OPT_GO`; returns its size.
fn choose(stream: &mut BufReader<UnixStream>, export: &str) -> Result<u64> {
    expect(
        "the greeting",
        u64::from_be_bytes(read_array(stream)?),
        p::GREETING,
    )?;
    expect(
        "the greeting's second word",
        u64::from_be_bytes(read_array(stream)?),
        p::OPTION,
    )?;
    let flags = u16::from_be_bytes(read_array(stream)?);
    let mut hello = u32::from(flags & p::HANDSHAKE_FLAGS).to_be_bytes().to_vec();
    hello.extend(p::option(p::OPT_GO, &p::export_data(export)));
    stream.get_mut().write_all(&hello)?;
    let mut size = None;
    loop {
        expect(
            "a reply's first word",
            u64::from_be_bytes(read_array(stream)?),
            p::OPTION_REPLY,
        )?;
        expect(
            "a reply's option",
            u32::from_be_bytes(read_array(stream)?).into(),
            p::OPT_GO.into(),
        )?;
        let kind = u32::from_be_bytes(read_array(stream)?);
        let length = u32::from_be_bytes(read_array(stream)?);
        if length > OPTION_REPLY_MAX {
            return Err(wrong(format!("an option reply of {length} bytes")));
        }
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body)?;
        match kind {
            p::REP_ACK => return size.ok_or_else(|| wrong("no size was reported")),
            p::REP_INFO if body.len() >= 10 && body[..2] == p::INFO_EXPORT.to_be_bytes() => {
                size = Some(u64::from_be_bytes(
                    body[2..10].try_into().expect("eight bytes"),
                ));
            }
            p::REP_INFO => {}
            kind => {
                let text = String::from_utf8_lossy(&body);
                return Err(wrong(format!("the export was refused ({kind:#x}): {text}")));
            }
        }
    }
}

/// Connects to an export; returns the connection in transmission, and the export's size in bytes.
pub fn connect(socket: &Path, export: &str) -> Result<(BufReader<UnixStream>, u64)> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut stream = BufReader::with_capacity(1 << 20, stream);
    let size = choose(&mut stream, export)?;
    Ok((stream, size))
}

impl Client {
    /// Connects to an export.
    pub fn connect(socket: &Path, export: &str) -> Result<Self> {
        let (stream, size) = connect(socket, export)?;
        Ok(Self {
            stream,
            reads: BTreeMap::new(),
            size,
        })
    }

    /// Sends a request with a number that no outstanding request has.
    pub fn send(&mut self, cookie: u64, request: &Request) -> Result<()> {
        let (command, flags, offset, length, data): (u16, u16, u64, u32, &[u8]) = match request {
            Request::Read { offset, length } => {
                self.reads.insert(cookie, *length);
                (p::READ, 0, *offset, *length, &[])
            }
            Request::Write { offset, data, fua } => {
                let flags = if *fua { p::FUA } else { 0 };
                (p::WRITE, flags, *offset, data.len() as u32, data)
            }
            Request::Zero { offset, length } => (p::WRITE_ZEROES, 0, *offset, *length, &[]),
            Request::Trim { offset, length } => (p::TRIM, 0, *offset, *length, &[]),
            Request::Flush => (p::FLUSH, 0, 0, 0, &[]),
        };
        let mut bytes = Vec::with_capacity(p::REQUEST_LEN + data.len());
        bytes.extend(p::request(command, flags, cookie, offset, length));
        bytes.extend(data);
        self.stream.get_mut().write_all(&bytes)
    }

    /// Waits for the next answer, in whatever order the server gives them.
    pub fn receive(&mut self) -> Result<Reply> {
        let (cookie, error) = p::reply(&read_array(&mut self.stream)?).map_err(wrong)?;
        let mut data = Vec::new();
        if let Some(length) = self.reads.remove(&cookie)
            && error == 0
        {
            data.resize(length as usize, 0);
            self.stream.read_exact(&mut data)?;
        }
        Ok(Reply {
            cookie,
            error,
            data,
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let bytes = p::request(p::DISCONNECT, 0, 0, 0, 0);
        // A server that is gone needs no goodbye.
        let _ = self.stream.get_mut().write_all(&bytes);
    }
}
