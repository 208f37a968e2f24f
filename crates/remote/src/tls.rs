//! A TLS connection whose response can be read even if the server stops reading the request.

use crate::{Patience, Timed};
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// A connection after its handshake.
pub struct Tls {
    connection: ClientConnection,
    stream: Timed<TcpStream>,
}

impl Tls {
    /// Performs the handshake.
    ///
    /// # Errors
    /// Contains a `rustls::Error` if TLS failed.
    pub fn begin(
        mut connection: ClientConnection,
        mut stream: Timed<TcpStream>,
    ) -> io::Result<Self> {
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Self { connection, stream })
    }

    /// The fingerprint of the server's certificate.
    pub fn certificate(&self) -> Option<crate::Pin> {
        self.connection
            .peer_certificates()?
            .first()
            .map(crate::Pin::of)
    }

    /// Changes the time limits.
    ///
    /// # Errors
    /// When the system rejects the values.
    pub fn set_patience(&mut self, patience: Patience) -> io::Result<()> {
        self.stream.set_patience(patience)
    }

    fn send(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.stream)?;
        }
        Ok(())
    }
}

impl Read for Tls {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            self.connection.read_tls(&mut self.stream)?;
            let done = self.connection.process_new_packets();
            done.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            // A failure to send must not prevent reading the response.
            let _ = self.send();
        }
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send()?;
        let taken = self.connection.writer().write(bytes)?;
        self.send()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}
