//! The byte stream of a connection, unencrypted or over TLS.
//!
//! TLS uses rustls' buffered API, fed and drained by asynchronous I/O of the event loop: records
//! are produced in 64 KiB steps, between which other tasks run.

use reactor::{DetachedStream, Handle, Limit, Source, Stream};
use rustls::{ServerConfig, ServerConnection};
use std::cell::RefCell;
use std::io::{Error, ErrorKind, IoSlice, Read, Result, Write};
use std::sync::Arc;

/// Bytes of TLS records per read.
const INCOMING: usize = 32 << 10;
/// Bytes encrypted before the records are sent.
const OUTGOING: usize = 64 << 10;

/// Empty records decrypted before other tasks run.
const EMPTY_MAX: u32 = 8;

/// A connection of a session.
pub(crate) enum Channel {
    Plain(Stream),
    Tls(Box<TlsStream>),
}

/// Records received but not decrypted yet.
#[derive(Default)]
struct Incoming {
    buf: Box<[u8]>,
    start: usize,
    end: usize,
}

/// A TLS connection, with at most one reading and one writing task.
pub(crate) struct TlsStream {
    handle: Handle,
    stream: Stream,
    /// Never borrowed across an await.
    state: RefCell<ServerConnection>,
    incoming: RefCell<Incoming>,
    outgoing: RefCell<Vec<u8>>,
    /// Held while records are sent, so that they are not interleaved.
    sending: Limit,
}

/// A TLS connection being moved between loops.
pub(crate) struct DetachedTls {
    stream: DetachedStream,
    state: ServerConnection,
    incoming: Incoming,
}

impl DetachedTls {
    /// Attaches the connection to the loop of `handle`.
    ///
    /// # Errors
    /// When the socket cannot be used any more.
    pub(crate) fn attach(self, handle: &Handle) -> Result<TlsStream> {
        let stream = self.stream.attach(handle)?;
        Ok(TlsStream::new(handle, stream, self.state, self.incoming))
    }
}

fn broken(error: rustls::Error) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

impl TlsStream {
    fn new(handle: &Handle, stream: Stream, state: ServerConnection, incoming: Incoming) -> Self {
        Self {
            handle: handle.clone(),
            stream,
            state: RefCell::new(state),
            incoming: RefCell::new(incoming),
            outgoing: RefCell::default(),
            sending: Limit::new(1),
        }
    }

    /// Performs the server's TLS handshake. The caller limits its time.
    ///
    /// # Errors
    /// When the peer violates the protocol or fails authentication; an alert is sent.
    pub(crate) async fn accept(
        handle: &Handle,
        stream: Stream,
        config: Arc<ServerConfig>,
    ) -> Result<Self> {
        let mut state = ServerConnection::new(config).map_err(broken)?;
        state.set_buffer_limit(Some(OUTGOING));
        let tls = Self::new(handle, stream, state, Incoming::default());
        while tls.state.borrow().is_handshaking() {
            if tls.state.borrow().wants_write() {
                tls.flush().await?;
            } else if let Err(error) = tls.decrypt_more(false).await {
                let _ = tls.flush().await;
                return Err(error);
            }
        }
        tls.flush().await?;
        Ok(tls)
    }

    /// Detaches the connection from its loop. No task may be using it.
    pub(crate) fn detach(self) -> DetachedTls {
        DetachedTls {
            stream: self.stream.detach(),
            state: self.state.into_inner(),
            incoming: self.incoming.into_inner(),
        }
    }

    /// Receives and decrypts more records. If this is cancelled, the connection must be closed.
    async fn decrypt_more(&self, soon: bool) -> Result<()> {
        let mut incoming = self.incoming.take();
        let result = self.fill_and_decrypt(&mut incoming, soon).await;
        self.incoming.replace(incoming);
        result
    }

    async fn fill_and_decrypt(&self, incoming: &mut Incoming, soon: bool) -> Result<()> {
        if incoming.start == incoming.end {
            if incoming.buf.is_empty() {
                incoming.buf = vec![0; INCOMING].into_boxed_slice();
            }
            let count = match soon {
                true => self.stream.read_soon(&mut incoming.buf).await?,
                false => self.stream.read(&mut incoming.buf).await?,
            };
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            (incoming.start, incoming.end) = (0, count);
        }
        let mut state = self.state.borrow_mut();
        let mut records = &incoming.buf[incoming.start..incoming.end];
        match state.read_tls(&mut records)? {
            // The peer has sent close_notify or EOF.
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            took => incoming.start += took,
        }
        state.process_new_packets().map_err(broken)?;
        Ok(())
    }

    async fn read_some(&self, buf: &mut [u8], soon: bool) -> Result<usize> {
        let mut empty = 0;
        loop {
            // Yield, since a peer may send empty records as fast as they are decrypted.
            if empty >= EMPTY_MAX {
                empty = 0;
                self.handle.yield_now().await;
            }
            let read = self.state.borrow_mut().reader().read(buf);
            match read {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                ended => return ended,
            }
            self.decrypt_more(soon).await?;
            empty += 1;
        }
    }

    /// Sends pending records.
    async fn flush(&self) -> Result<()> {
        let _alone = self.sending.get().await;
        let mut outgoing = self.outgoing.take();
        let made = {
            let mut state = self.state.borrow_mut();
            let mut made = Ok(0);
            while state.wants_write() && made.is_ok() {
                made = state.write_tls(&mut outgoing);
            }
            made
        };
        let sent = match made {
            Ok(_) => self.stream.write_all(&mut [IoSlice::new(&outgoing)]).await,
            Err(error) => Err(error),
        };
        outgoing.clear();
        self.outgoing.replace(outgoing);
        sent
    }

    async fn write_all(&self, mut parts: &mut [IoSlice<'_>]) -> Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let taken = self.state.borrow_mut().writer().write_vectored(parts)?;
            if taken == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut parts, taken);
            self.flush().await?;
            if !parts.is_empty() {
                self.handle.yield_now().await;
            }
        }
        Ok(())
    }
}

impl Channel {
    fn stream(&self) -> &Stream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(tls) => &tls.stream,
        }
    }

    /// As [`Stream::write_all`].
    pub(crate) async fn write_all(&self, parts: &mut [IoSlice<'_>]) -> Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(parts).await,
            Self::Tls(tls) => tls.write_all(parts).await,
        }
    }

    /// Sends close_notify over TLS.
    pub(crate) async fn say_end(&self) -> Result<()> {
        if let Self::Tls(tls) = self {
            tls.state.borrow_mut().send_close_notify();
            tls.flush().await?;
        }
        Ok(())
    }

    /// As [`Stream::shutdown`].
    pub(crate) fn shutdown(&self) {
        self.stream().shutdown();
    }

    /// As [`Stream::has_ended`].
    pub(crate) fn has_ended(&self) -> bool {
        self.stream().has_ended()
    }

    /// As [`Stream::ended`].
    pub(crate) async fn ended(&self) {
        self.stream().ended().await;
    }
}

impl Source for Channel {
    async fn read(&self, buf: &mut [u8]) -> Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buf).await,
            Self::Tls(tls) => tls.read_some(buf, false).await,
        }
    }

    async fn read_soon(&self, buf: &mut [u8]) -> Result<usize> {
        match self {
            Self::Plain(stream) => stream.read_soon(buf).await,
            Self::Tls(tls) => tls.read_some(buf, true).await,
        }
    }
}
