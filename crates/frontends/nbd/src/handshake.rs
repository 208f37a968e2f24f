//! The handshake ("Fixed newstyle negotiation"): options are processed until the peer selects the
//! export or disconnects. The caller limits its time.

use crate::channel::Channel;
use crate::contexts::{CONTEXTS_MAX, Context, asked_for};
use crate::input::Input;
use crate::options::{ContextRequest, InfoRequest};
use crate::protocol::{
    INIT_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, PAYLOAD_MAX, handshake_flag, info, option, reply,
    transmission_flag as flag,
};
use crate::shared::{Refused, Seat, Shared};
use block::Geometry;
use reactor::{Handle, Pace, SECOND_NS};
use std::io::{Error, ErrorKind, IoSlice, Result};

/// Maximum number of options: the first few without delay, then one per 20 ms. Clients need about
/// ten.
const OPTIONS_MAX: usize = 64;
const OPTIONS_FREE: u64 = 16;
const OPTION_NS: u64 = SECOND_NS / 50;
/// Maximum size of replies sent together when the peer has pipelined options, in bytes.
const ANSWERS_MAX: usize = 8 << 10;
/// Maximum size of an option's data that is processed, in bytes.
const DATA_MAX: u32 = 64 << 10;
/// Maximum size of an option's data that is skipped; beyond it the connection is closed.
const SKIP_MAX: u32 = 1 << 20;

/// Result of the negotiation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Agreed {
    /// Structured replies are used.
    pub structured: bool,
    /// Selected contexts of block status; their ids are their indices from 1 on.
    pub contexts: Vec<Context>,
}

/// Next step of the handshake.
enum Next {
    /// The next option.
    Option,
    Transmission,
    StartTls,
    End,
}

/// Orderly end of a handshake.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Transmission(Agreed),
    /// The peer starts TLS, and repeats its options afterwards.
    StartTls,
    /// The peer disconnected.
    End,
}

/// State of TLS in a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Security {
    /// Not offered.
    None,
    Optional,
    Required,
    /// Active on the connection.
    Active,
}

pub(crate) struct Handshake<'a> {
    pub stream: &'a Channel,
    pub input: &'a mut Input,
    pub shared: &'a Shared,
    pub seat: &'a Seat,
    pub security: Security,
    /// Handshake flags of the peer, which precede TLS.
    pub no_zeroes: bool,
    agreed: Agreed,
    handle: &'a Handle,
    pace: Pace,
    /// Replies not sent yet.
    answers: Vec<u8>,
}

/// Transmission flags of a volume.
pub(crate) fn transmission_flags(geometry: &Geometry) -> u16 {
    let always = flag::HAS_FLAGS
        | flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_DF
        | flag::CAN_MULTI_CONN
        | flag::SEND_CACHE;
    if geometry.read_only {
        always | flag::READ_ONLY
    } else {
        always | flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO
    }
}

fn broken(text: &str) -> Error {
    Error::new(ErrorKind::InvalidData, text)
}

impl<'a> Handshake<'a> {
    pub(crate) fn new(
        handle: &'a Handle,
        (stream, input): (&'a Channel, &'a mut Input),
        (shared, seat): (&'a Shared, &'a Seat),
        security: Security,
    ) -> Self {
        Self {
            stream,
            input,
            shared,
            seat,
            security,
            no_zeroes: false,
            agreed: Agreed::default(),
            handle,
            pace: Pace::new(OPTIONS_FREE, OPTION_NS),
            answers: Vec::new(),
        }
    }

    /// Sends the greeting and receives the client's flags.
    ///
    /// # Errors
    /// When the connection failed or the peer violated the protocol.
    pub(crate) async fn greet(&mut self) -> Result<()> {
        let ours = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
        let mut greeting = [0; 18];
        greeting[..8].copy_from_slice(&INIT_MAGIC.to_be_bytes());
        greeting[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        greeting[16..].copy_from_slice(&ours.to_be_bytes());
        self.send(&greeting).await?;

        let theirs = u32::from_be_bytes(self.input.array().await?);
        if theirs & !u32::from(ours) != 0 {
            return Err(broken(
                "the client set handshake flags that were not offered",
            ));
        }
        self.no_zeroes = theirs & u32::from(handshake_flag::NO_ZEROES) != 0;
        Ok(())
    }

    /// Processes options until the peer has decided.
    ///
    /// # Errors
    /// When the connection failed or the peer violated the protocol.
    pub(crate) async fn options(&mut self) -> Result<Outcome> {
        let outcome = self.decide().await;
        self.flush().await?;
        outcome
    }

    async fn decide(&mut self) -> Result<Outcome> {
        for _ in 0..OPTIONS_MAX {
            if !self.input.has_option() {
                self.flush().await?;
            }
            match self.option().await? {
                Next::Option => {}
                Next::Transmission => {
                    return Ok(Outcome::Transmission(std::mem::take(&mut self.agreed)));
                }
                Next::StartTls => return Ok(Outcome::StartTls),
                Next::End => return Ok(Outcome::End),
            }
            self.take_turns().await?;
        }
        Err(broken("the client sent too many options"))
    }

    /// Yields to other tasks before the next option.
    async fn take_turns(&mut self) -> Result<()> {
        while let Err(free_ns) = self.pace.take(self.handle.now_ns(), 1) {
            self.flush().await?;
            self.handle.sleep_until(free_ns).await;
        }
        self.handle.yield_now().await;
        Ok(())
    }

    async fn option(&mut self) -> Result<Next> {
        if u64::from_be_bytes(self.input.array().await?) != OPTION_MAGIC {
            return Err(broken("an option does not begin with its magic number"));
        }
        let kind = u32::from_be_bytes(self.input.array().await?);
        let len = u32::from_be_bytes(self.input.array().await?);
        if len > SKIP_MAX {
            return Err(broken("an option is too long"));
        }
        if len > DATA_MAX {
            self.input.skip(u64::from(len)).await?;
            return self
                .refuse(kind, reply::ERR_TOO_BIG, "the option is too long")
                .await;
        }
        let data = self.input.bytes(len as usize).await?;
        if self.security == Security::Required && !matches!(kind, option::ABORT | option::STARTTLS)
        {
            if kind == option::EXPORT_NAME {
                return Err(broken("the client did not start TLS"));
            }
            let text = "this export requires TLS: start TLS first";
            return self.refuse(kind, reply::ERR_TLS_REQD, text).await;
        }
        match kind {
            option::EXPORT_NAME => self.export_name(&data).await,
            option::ABORT => {
                self.answer(kind, reply::ACK, &[]).await?;
                Ok(Next::End)
            }
            option::LIST => self.list(&data).await,
            option::STARTTLS => self.start_tls(&data).await,
            option::INFO | option::GO => self.info(kind, &data).await,
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.agreed.structured = true;
                self.answer(kind, reply::ACK, &[]).await?;
                Ok(Next::Option)
            }
            option::STRUCTURED_REPLY => {
                self.refuse(kind, reply::ERR_INVALID, "this option has no data")
                    .await
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.contexts(kind, &data).await
            }
            _ => self.refuse(kind, reply::ERR_UNSUP, "unknown option").await,
        }
    }

    async fn start_tls(&mut self, data: &[u8]) -> Result<Next> {
        let (error, text) = match self.security {
            Security::None => (reply::ERR_POLICY, "this server does not offer TLS"),
            Security::Active => (reply::ERR_INVALID, "TLS is already active"),
            _ if !data.is_empty() => (reply::ERR_INVALID, "this option has no data"),
            // Data sent before the reply is unauthenticated.
            _ if self.input.has_more() => {
                return Err(broken("the client sent data before TLS was started"));
            }
            Security::Optional | Security::Required => {
                self.answer(option::STARTTLS, reply::ACK, &[]).await?;
                return Ok(Next::StartTls);
            }
        };
        self.refuse(option::STARTTLS, error, text).await
    }

    fn is_ours(&self, name: &str) -> bool {
        name.is_empty() || name == self.shared.name
    }

    /// The only option that cannot be refused except by closing the connection.
    async fn export_name(&mut self, data: &[u8]) -> Result<Next> {
        if !std::str::from_utf8(data).is_ok_and(|name| self.is_ours(name)) {
            return Err(broken("the client requested an unknown export"));
        }
        if self.seat.admit(self.shared).is_err() {
            return Err(broken("the export has reached its connection limit"));
        }
        let geometry = self.shared.device.geometry();
        let mut bytes = [0; 134];
        bytes[..8].copy_from_slice(&geometry.size.to_be_bytes());
        bytes[8..10].copy_from_slice(&transmission_flags(&geometry).to_be_bytes());
        let len = if self.no_zeroes { 10 } else { bytes.len() };
        self.answers.extend_from_slice(&bytes[..len]);
        Ok(Next::Transmission)
    }

    async fn list(&mut self, data: &[u8]) -> Result<Next> {
        if !data.is_empty() {
            let text = "this option has no data";
            return self.refuse(option::LIST, reply::ERR_INVALID, text).await;
        }
        let name = self.shared.name.as_bytes();
        let mut entry = (name.len() as u32).to_be_bytes().to_vec();
        entry.extend_from_slice(name);
        self.answer(option::LIST, reply::SERVER, &entry).await?;
        self.answer(option::LIST, reply::ACK, &[]).await?;
        Ok(Next::Option)
    }

    async fn info(&mut self, kind: u32, data: &[u8]) -> Result<Next> {
        let Some(request) = InfoRequest::parse(data) else {
            let text = "the option's data is malformed";
            return self.refuse(kind, reply::ERR_INVALID, text).await;
        };
        if !self.is_ours(request.name) {
            let text = "unknown export";
            return self.refuse(kind, reply::ERR_UNKNOWN, text).await;
        }
        if kind == option::GO
            && let Err(why) = self.seat.admit(self.shared)
        {
            let text = match why {
                Refused::All(most) => format!(
                    "this export has reached its limit of {most} connections: close one, or raise \
                     max-connections"
                ),
                Refused::Address(most) => format!(
                    "your address has reached its limit of {most} connections to this export: \
                     close one, or raise max-connections-per-address"
                ),
                Refused::Ended => return Err(ErrorKind::ConnectionAborted.into()),
            };
            return self.refuse(kind, reply::ERR_POLICY, &text).await;
        }
        let geometry = self.shared.device.geometry();
        let mut block = info::BLOCK_SIZE.to_be_bytes().to_vec();
        for size in [geometry.lba_size, geometry.block_size, PAYLOAD_MAX] {
            block.extend_from_slice(&size.to_be_bytes());
        }
        self.answer(kind, reply::INFO, &block).await?;
        for (wanted, text) in [
            (info::NAME, &self.shared.name),
            (info::DESCRIPTION, &self.shared.volume),
        ] {
            if request.wanted.contains(&wanted) {
                let payload = [&wanted.to_be_bytes()[..], text.as_bytes()].concat();
                self.answer(kind, reply::INFO, &payload).await?;
            }
        }
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend_from_slice(&geometry.size.to_be_bytes());
        export.extend_from_slice(&transmission_flags(&geometry).to_be_bytes());
        self.answer(kind, reply::INFO, &export).await?;
        self.answer(kind, reply::ACK, &[]).await?;
        Ok(if kind == option::GO {
            Next::Transmission
        } else {
            Next::Option
        })
    }

    async fn contexts(&mut self, kind: u32, data: &[u8]) -> Result<Next> {
        let set = kind == option::SET_META_CONTEXT;
        if set {
            self.agreed.contexts.clear();
        }
        if !self.agreed.structured {
            let text = "negotiate structured replies first";
            return self.refuse(kind, reply::ERR_INVALID, text).await;
        }
        let Some(request) = ContextRequest::parse(data) else {
            let text = "the option's data is malformed, or has more than 64 queries";
            return self.refuse(kind, reply::ERR_INVALID, text).await;
        };
        if !self.is_ours(request.name) {
            let text = "unknown export";
            return self.refuse(kind, reply::ERR_UNKNOWN, text).await;
        }
        let found = asked_for(&*self.shared.device, &request, set);
        if set && found.len() > CONTEXTS_MAX {
            let text = "at most 8 contexts can be selected";
            return self.refuse(kind, reply::ERR_TOO_BIG, text).await;
        }
        for (number, (name, context)) in (1u32..).zip(found) {
            let number = if set { number } else { 0 };
            let payload = [&number.to_be_bytes()[..], name.as_bytes()].concat();
            self.answer(kind, reply::META_CONTEXT, &payload).await?;
            self.agreed.contexts.extend(set.then_some(context));
        }
        self.answer(kind, reply::ACK, &[]).await?;
        Ok(Next::Option)
    }

    async fn refuse(&mut self, option: u32, error: u32, text: &str) -> Result<Next> {
        self.answer(option, error, text.as_bytes()).await?;
        Ok(Next::Option)
    }

    async fn answer(&mut self, option: u32, kind: u32, payload: &[u8]) -> Result<()> {
        let mut head = [0; 20];
        head[..8].copy_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
        head[8..12].copy_from_slice(&option.to_be_bytes());
        head[12..16].copy_from_slice(&kind.to_be_bytes());
        head[16..].copy_from_slice(&(payload.len() as u32).to_be_bytes());
        self.answers.extend_from_slice(&head);
        self.answers.extend_from_slice(payload);
        match self.answers.len() >= ANSWERS_MAX {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    /// Sends the pending replies.
    async fn flush(&mut self) -> Result<()> {
        let answers = IoSlice::new(&self.answers);
        self.stream.write_all(&mut [answers]).await?;
        self.answers.clear();
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(&mut [IoSlice::new(bytes)]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_volume_offers_no_changing_commands() {
        let mut geometry = Geometry {
            size: 1 << 20,
            lba_size: 512,
            block_size: 4096,
            read_only: false,
            serial: String::new(),
        };
        let changes = flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO;
        assert_eq!(
            transmission_flags(&geometry) & (changes | flag::READ_ONLY),
            changes
        );
        geometry.read_only = true;
        assert_eq!(
            transmission_flags(&geometry) & (changes | flag::READ_ONLY),
            flag::READ_ONLY
        );
    }
}
