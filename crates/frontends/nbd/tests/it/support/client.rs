//! A client under byte-level control of the test.

use super::server::Server;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub const OPTION_MAGIC: &[u8] = b"IHAVEOPT";

pub struct Client {
    pub stream: UnixStream,
}

/// A chunk of a structured reply.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk {
    pub flags: u16,
    pub kind: u16,
    pub cookie: u64,
    pub payload: Vec<u8>,
}

pub fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

impl Client {
    /// Connects and reads the greeting.
    pub fn connect(server: &Server) -> Self {
        Self::over(UnixStream::connect(server.socket()).unwrap())
    }

    /// Reads the greeting from a connected stream socket.
    pub fn over(socket: impl Into<OwnedFd>) -> Self {
        let stream = UnixStream::from(socket.into());
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        stream
            .set_write_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        let mut client = Self { stream };
        let greeting = client.take(18);
        assert_eq!(greeting, b"NBDMAGICIHAVEOPT\0\x03");
        client
    }

    /// Connects and enters transmission, optionally with structured replies and block status.
    pub fn transmission(server: &Server, structured: bool) -> Self {
        Self::connect(server).go(structured)
    }

    /// The same for a connected client.
    pub fn go(self, structured: bool) -> Self {
        let mut client = self;
        client.send(&3u32.to_be_bytes());
        if structured {
            client.option(8, &[]);
            assert_eq!(client.option_reply(), (8, 1, vec![]));
            let query = [
                string(""),
                1u32.to_be_bytes().to_vec(),
                string("base:allocation"),
            ];
            client.option(10, &query.concat());
            assert_eq!(client.option_reply().1, 4);
            assert_eq!(client.option_reply().1, 1);
        }
        client.option(7, &[string(""), vec![0, 0]].concat());
        while client.option_reply().1 != 1 {}
        client
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    pub fn option(&mut self, kind: u32, data: &[u8]) {
        self.send(OPTION_MAGIC);
        self.send(&kind.to_be_bytes());
        self.send(&(data.len() as u32).to_be_bytes());
        self.send(data);
    }

    /// The option, the reply's type and its payload.
    pub fn option_reply(&mut self) -> (u32, u32, Vec<u8>) {
        assert_eq!(self.u64(), 0x0003_e889_0455_65a9);
        let (option, kind, len) = (self.u32(), self.u32(), self.u32());
        (option, kind, self.take(len as usize))
    }

    pub fn request(&mut self, flags: u16, command: u16, cookie: u64, offset: u64, len: u32) {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend_from_slice(&flags.to_be_bytes());
        bytes.extend_from_slice(&command.to_be_bytes());
        bytes.extend_from_slice(&cookie.to_be_bytes());
        bytes.extend_from_slice(&offset.to_be_bytes());
        bytes.extend_from_slice(&len.to_be_bytes());
        self.send(&bytes);
    }

    /// The error and the cookie of a simple reply.
    pub fn simple_reply(&mut self) -> (u32, u64) {
        assert_eq!(self.u32(), 0x6744_6698);
        (self.u32(), self.u64())
    }

    pub fn chunk(&mut self) -> Chunk {
        assert_eq!(self.u32(), 0x668e_33ef);
        let (flags, kind, cookie) = (self.u16(), self.u16(), self.u64());
        let len = self.u32();
        Chunk {
            flags,
            kind,
            cookie,
            payload: self.take(len as usize),
        }
    }

    /// Waits until the server closes the connection; discards remaining data.
    pub fn expect_end(mut self) {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    }
}
