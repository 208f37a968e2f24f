//! One connection, PDU by PDU, for who waits for each answer.

use super::protocol::{self as p, Head};
use format::crc32c;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer that takes longer than this never comes.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn wrong(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidData, text.into())
}

/// A connection, with digests or without (RFC 7143, section 7.8).
pub struct Wire {
    pub stream: TcpStream,
    /// Of headers and of data: CRC32C.
    pub digests: bool,
}

impl Wire {
    /// Connects. There are no digests before the login says so.
    ///
    /// # Errors
    /// If no server listens there.
    pub fn connect(portal: SocketAddr) -> Result<Self> {
        Self::over(TcpStream::connect(portal)?)
    }

    /// The same over a connection that is there.
    ///
    /// # Errors
    /// When the system refuses something.
    pub fn over(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            digests: false,
        })
    }

    /// A PDU as it goes over the wire.
    pub fn encode(&self, head: Head, data: &[u8]) -> Vec<u8> {
        let head = head.data_len(data.len()).0;
        let mut bytes = head.to_vec();
        if self.digests {
            bytes.extend(crc32c(&head).to_le_bytes());
        }
        let begin = bytes.len();
        bytes.extend(data);
        bytes.resize(begin + data.len().next_multiple_of(4), 0);
        if self.digests && !data.is_empty() {
            let digest = crc32c(&bytes[begin..]);
            bytes.extend(digest.to_le_bytes());
        }
        bytes
    }

    /// Sends a PDU.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn send(&mut self, head: Head, data: &[u8]) -> Result<()> {
        let bytes = self.encode(head, data);
        self.stream.write_all(&bytes)
    }

    fn digest(&mut self, of: &[u8]) -> Result<()> {
        let mut digest = [0; 4];
        if !self.digests || of.is_empty() {
            return Ok(());
        }
        self.stream.read_exact(&mut digest)?;
        match u32::from_le_bytes(digest) == crc32c(of) {
            true => Ok(()),
            false => Err(wrong("a digest is wrong")),
        }
    }

    /// Waits for the next PDU.
    ///
    /// # Errors
    /// When the connection broke, or a digest is wrong.
    pub fn receive(&mut self) -> Result<(Head, Vec<u8>)> {
        let mut bytes = [0; p::HEAD_LEN];
        self.stream.read_exact(&mut bytes)?;
        self.digest(&bytes)?;
        let head = Head(bytes);
        let (len, pad) = head.segment();
        if len > p::SEGMENT_MAX || bytes[4] != 0 {
            return Err(wrong(format!("a data segment of {len} bytes")));
        }
        let mut data = vec![0; len + pad];
        self.stream.read_exact(&mut data)?;
        self.digest(&data)?;
        data.truncate(len);
        Ok((head, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn what_is_sent_is_received_and_damage_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut near = Wire::connect(address).expect("it listens");
        let stream = listener.accept().expect("a connection").0;
        let mut far = Wire {
            stream,
            digests: true,
        };
        near.digests = true;
        let head = Head::new(p::COMMAND, p::FINAL, 7);
        near.send(head, b"hello").expect("sent");
        let (got, data) = far.receive().expect("received");
        assert_eq!((got, &data[..]), (head.data_len(5), &b"hello"[..]));
        for at in [3, p::HEAD_LEN + 5] {
            let mut bytes = near.encode(head, b"hello");
            bytes[at] ^= 1;
            near.stream.write_all(&bytes).expect("sent");
            let found = far.receive().expect_err("damaged").to_string();
            assert!(found.contains("digest"), "{found}");
            // What follows the header was not read.
            let mut rest = vec![
                0;
                if at < p::HEAD_LEN {
                    bytes.len() - p::HEAD_LEN - 4
                } else {
                    0
                }
            ];
            far.stream.read_exact(&mut rest).expect("the rest");
        }
    }
}
