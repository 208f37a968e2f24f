//! The login phase (RFC 7143, sections 6.3, 11.12 and 11.13): identification, authentication and
//! negotiation.
//!
//! Responsible for: stages and their keys, authentication, and the units that the initiator may
//! access. Leaves out: the full feature phase.

use crate::access::Peer;
use crate::bytes::put;
use crate::chap::{Answered, Asked, Credentials};
use crate::guesses::guesses;
use crate::input::Input;
use crate::negotiate::{Agreed, CONNECTIONS_MAX, Purpose, SEGMENT_MAX};
use crate::notices::{self, Shown};
use crate::parameters::initiator_name;
use crate::pdu::{Head, Made, StatusNumber, request, response};
use crate::registry;
use crate::target::{Granted, Target};
use crate::text::{self, Pairs, find};
use crate::window::Window;
use reactor::{Handle, PeerAddress, SECOND_NS, Stream, in_time};
use std::fmt;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Maximum data of a login PDU (13.12: the default of MaxRecvDataSegmentLength), and of a text of
/// several PDUs.
const SEGMENT_LEN_MAX: usize = 8192;
const TEXT_MAX: usize = 32 << 10;
/// Maximum PDUs of a login.
const PDUS_MAX: usize = 32;

/// Time limit for the first request.
const FIRST_NS: u64 = 5 * SECOND_NS;

/// Stages (11.12.3).
const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL_FEATURE: u8 = 3;

const TRANSIT: u8 = 0x80;
const CONTINUE: u8 = 0x40;

/// Why a login fails: status class and detail (11.13.5), and an index to distinguish reasons with
/// the same status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused(pub u8, pub u8, u8);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match *self {
            Self::AUTHENTICATION => "CHAP authentication failed",
            Self::PORT_OF_ANOTHER => {
                "a session with this name and ISID belongs to a host that has authenticated with \
                 another secret: give each host a unique InitiatorName"
            }
            Self::NOT_FOUND => "unknown target, or no access to it",
            Self::NAME => {
                "invalid initiator name: set InitiatorName to one like \
                 iqn.2026-11.com.example:host, with letters, digits, dots, dashes and colons, at \
                 most 223"
            }
            Self::VERSION => "unsupported protocol version",
            Self::TOO_MANY_CONNECTIONS => "too many connections in the session",
            Self::MISSING => "a required key is missing",
            Self::SESSION_TYPE => "unknown session type",
            Self::NO_SESSION => "unknown session handle",
            Self::TOO_MANY_GUESSES => {
                "too many failed authentication attempts from its address: retry in some seconds"
            }
            Self::TARGET_ERROR => "the target has no resources for it now",
            _ => "protocol violation",
        };
        write!(f, "{why} ({:02x}{:02x})", self.0, self.1)
    }
}

impl Refused {
    /// Not refused.
    const NONE: Self = Self(0, 0, 0);
    pub(crate) const INITIATOR_ERROR: Self = Self(2, 0, 0);
    pub(crate) const NAME: Self = Self(2, 0, 1);
    pub(crate) const AUTHENTICATION: Self = Self(2, 1, 0);
    /// Authorization failure: authenticated with a secret that is not valid for this session.
    pub(crate) const PORT_OF_ANOTHER: Self = Self(2, 2, 0);
    /// Also for targets without access, so that their existence is not revealed.
    pub(crate) const NOT_FOUND: Self = Self(2, 3, 0);
    pub(crate) const VERSION: Self = Self(2, 5, 0);
    pub(crate) const TOO_MANY_CONNECTIONS: Self = Self(2, 6, 0);
    pub(crate) const MISSING: Self = Self(2, 7, 0);
    pub(crate) const SESSION_TYPE: Self = Self(2, 9, 0);
    pub(crate) const NO_SESSION: Self = Self(2, 0x0a, 0);
    pub(crate) const INVALID: Self = Self(2, 0x0b, 0);
    pub(crate) const TARGET_ERROR: Self = Self(3, 0, 0);
    /// Service unavailable: retry later.
    const TOO_MANY_GUESSES: Self = Self(3, 1, 0);
}

/// Accessible units by target; a single target in a normal session.
pub(crate) type Reach = Vec<(Arc<Target>, Granted)>;

/// An initiator that has logged in.
pub(crate) struct LoggedIn {
    pub agreed: Agreed,
    pub peer: Peer,
    /// The name and secret that it has proved.
    pub proved: Option<Credentials>,
    pub isid: [u8; 6],
    pub session_handle: u16,
    pub connection: u16,
    pub is_discovery: bool,
    pub reach: Reach,
    /// Next command number and status number.
    pub command_number: u32,
    pub status_number: u32,
    /// The request that is answered once everything else is ready.
    last: Head,
    /// Keys of that response.
    replies: Pairs,
}

/// State of a login.
struct Progress {
    stage: Option<u8>,
    peer: Peer,
    proved: Option<Credentials>,
    is_discovery: bool,
    /// It joins an existing session.
    is_further: bool,
    reach: Reach,
    /// The target is unknown or not accessible, at a portal where targets require secrets; the
    /// portal's group tag there. The login fails like a failed authentication, so that target names
    /// cannot be probed.
    hidden: Option<u16>,
    /// CHAP was selected: its proof is required to proceed.
    proving: bool,
    asked: Option<Asked>,
    /// No (further) authentication is required.
    is_known: bool,
    agreed: Agreed,
    /// Keys negotiated in the operational stage.
    named: Vec<String>,
    has_declared: bool,
}

/// Response to one request.
enum Next {
    /// With these keys, and the next stage.
    Reply(Pairs, u8),
    Done(Pairs),
}

/// The login of one connection.
pub(crate) struct Login<'a> {
    handle: &'a Handle,
    stream: &'a Stream,
    input: &'a mut Input,
    /// The host's address, and the portal.
    pub address: SocketAddr,
    pub portal: SocketAddr,
    status_number: u32,
    /// Next and last acceptable command number of an existing session.
    window: Option<(u32, u32)>,
    /// The initiator's name, for the log.
    name: String,
}

impl<'a> Login<'a> {
    pub(crate) fn new(
        handle: &'a Handle,
        (stream, input): (&'a Stream, &'a mut Input),
        (address, portal): (SocketAddr, SocketAddr),
    ) -> Self {
        Self {
            handle,
            stream,
            input,
            address,
            portal,
            status_number: 1,
            window: None,
            name: String::new(),
        }
    }

    /// Resumes the login of an initiator that waits for the final response.
    pub(crate) fn again(
        handle: &'a Handle,
        (stream, input): (&'a Stream, &'a mut Input),
        logged_in: &LoggedIn,
    ) -> Self {
        Self {
            handle,
            stream,
            input,
            address: logged_in.peer.address,
            portal: logged_in.peer.portal,
            status_number: logged_in.status_number,
            window: None,
            name: logged_in.peer.initiator.clone(),
        }
    }

    /// Whether unprocessed data was received.
    pub(crate) fn has_more(&self) -> bool {
        self.input.has_more()
    }

    /// Sends a response with its numbers; nothing else is sent meanwhile.
    async fn send(
        &mut self,
        head: &Head,
        flags: u8,
        handle: u16,
        status: Refused,
        text: &[u8],
    ) -> Result<()> {
        let number = head.command_number();
        let own = (number, number.wrapping_add(crate::session::DEPTH - 1));
        let (next, last) = self.window.unwrap_or(own);
        let mut made = Made::new(response::LOGIN, flags, head.task_tag(), StatusNumber::Takes)
            .word(24, self.status_number)
            .word(28, next)
            .word(32, last)
            .byte(36, status.0)
            .byte(37, status.1);
        put(&mut made.head, 8, &head.isid());
        put(&mut made.head, 14, &handle.to_be_bytes());
        made.data_len(text.len());
        self.status_number = self.status_number.wrapping_add(1);
        let pad = &[0; 3][..crate::digest::padding(text.len())];
        let parts = &mut [
            IoSlice::new(&made.head),
            IoSlice::new(text),
            IoSlice::new(pad),
        ];
        self.stream.write_all(parts).await
    }

    /// Sends a failure status.
    async fn refuse(&mut self, head: &Head, why: Refused) -> Error {
        let handle = head.session_handle();
        let _ = self.send(head, 0, handle, why, &[]).await;
        let peer = format_args!("{} at {}", self.address, self.portal);
        let name = Shown(&self.name);
        notices::refused(peer, format_args!("login of '{name}' refused: {why}"));
        Error::new(ErrorKind::PermissionDenied, format!("login refused: {why}"))
    }

    /// Receives one request, with the text of its continuation PDUs.
    async fn request(&mut self) -> Result<(Head, Vec<u8>)> {
        let mut text = Vec::new();
        for _ in 0..PDUS_MAX {
            let head = self.input.head(false).await?;
            let len = head.data_len();
            if head.opcode() != request::LOGIN
                || len > SEGMENT_LEN_MAX
                || text.len() + len > TEXT_MAX
            {
                return Err(ErrorKind::InvalidData.into());
            }
            text.extend(self.input.data(len, false).await?.0);
            if head.flags() & CONTINUE == 0 {
                return Ok((head, text));
            }
            if head.flags() & TRANSIT != 0 {
                return Err(ErrorKind::InvalidData.into());
            }
            let stage = head.flags() & 0x0c;
            let handle = head.session_handle();
            self.send(&head, stage, handle, Refused::NONE, &[]).await?;
        }
        Err(ErrorKind::InvalidData.into())
    }

    /// Runs until the initiator can be admitted by [`Login::admit`].
    pub(crate) async fn run(&mut self) -> Result<LoggedIn> {
        let mut progress = Progress::new(self.address, self.portal);
        let mut first: Option<Head> = None;
        for _ in 0..PDUS_MAX {
            let (head, text) = match first {
                None => in_time(self.handle, FIRST_NS, self.request()).await?,
                Some(_) => self.request().await?,
            };
            let begun = first.get_or_insert(head);
            let same = begun.isid() == head.isid() && begun.connection() == head.connection();
            if !same || begun.session_handle() != head.session_handle() {
                return Err(self.refuse(&head, Refused::INVALID).await);
            }
            let proves = progress.name_to_prove(&text);
            if let Some(name) = &proves {
                self.wait_for_turn(&head, name).await?;
            }
            let next = progress.step(&head, &text);
            if let Some(name) = proves.filter(|_| progress.proved.is_some()) {
                guesses().was_right(PeerAddress::of(self.address.ip()), &name, Instant::now());
            }
            self.name.clone_from(&progress.peer.initiator);
            match next {
                Err(why) => return Err(self.refuse(&head, why).await),
                Ok(Next::Reply(pairs, flags)) => {
                    let text = text::encode(&pairs);
                    let handle = head.session_handle();
                    self.send(&head, flags, handle, Refused::NONE, &text)
                        .await?;
                }
                Ok(Next::Done(replies)) => {
                    return Ok(LoggedIn {
                        agreed: progress.agreed,
                        peer: progress.peer,
                        proved: progress.proved,
                        isid: head.isid(),
                        session_handle: head.session_handle(),
                        connection: head.connection(),
                        is_discovery: progress.is_discovery,
                        reach: progress.reach,
                        command_number: head.command_number(),
                        status_number: self.status_number,
                        last: head,
                        replies,
                    });
                }
            }
        }
        Err(ErrorKind::InvalidData.into())
    }

    /// Waits for the delay due to earlier failed attempts.
    async fn wait_for_turn(&mut self, head: &Head, name: &str) -> Result<()> {
        let address = PeerAddress::of(self.address.ip());
        let wait = guesses().come(address, name, Instant::now());
        let Some(wait) = wait else {
            return Err(self.refuse(head, Refused::TOO_MANY_GUESSES).await);
        };
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        if wait_ns > 0 {
            self.handle.sleep(wait_ns).await;
        }
        Ok(())
    }

    /// Admits the initiator to the session with this handle and these numbers.
    pub(crate) async fn admit(
        &mut self,
        logged_in: &mut LoggedIn,
        handle: u16,
        window: &Window,
    ) -> Result<()> {
        self.window = Some((window.next(), window.last()));
        let head = logged_in.last;
        let stage = head.flags() & 0x0c;
        let flags = TRANSIT | stage | FULL_FEATURE;
        let text = text::encode(&logged_in.replies);
        self.send(&head, flags, handle, Refused::NONE, &text)
            .await?;
        logged_in.status_number = self.status_number;
        Ok(())
    }

    /// Refuses it instead of the final response.
    pub(crate) async fn refuse_last(&mut self, logged_in: &LoggedIn, why: Refused) -> Error {
        self.refuse(&logged_in.last, why).await
    }
}

fn pair(key: &str, value: impl Into<String>) -> (String, String) {
    (key.to_owned(), value.into())
}

impl Progress {
    fn new(address: SocketAddr, portal: SocketAddr) -> Self {
        Self {
            stage: None,
            peer: Peer {
                initiator: String::new(),
                address,
                portal,
            },
            proved: None,
            is_discovery: false,
            is_further: false,
            reach: Vec::new(),
            hidden: None,
            proving: false,
            asked: None,
            is_known: false,
            agreed: Agreed::default(),
            named: Vec::new(),
            has_declared: false,
        }
    }

    /// Processes the keys required in the first request (RFC 7143, section 6.3).
    fn begin(&mut self, head: &Head, pairs: &Pairs) -> std::result::Result<(), Refused> {
        if head.0[3] != 0 {
            return Err(Refused::VERSION);
        }
        let name = find(pairs, "InitiatorName").ok_or(Refused::MISSING)?;
        name.clone_into(&mut self.peer.initiator);
        // Names are case-insensitive and folded to lower case (RFC 3722).
        self.peer.initiator = initiator_name(name).ok_or(Refused::NAME)?;
        self.is_discovery = match find(pairs, "SessionType") {
            None | Some("Normal") => false,
            Some("Discovery") => true,
            Some(_) => return Err(Refused::SESSION_TYPE),
        };
        self.is_further = head.session_handle() != 0;
        self.reach = match (self.is_discovery, find(pairs, "TargetName")) {
            (true, _) => registry::granted(&self.peer),
            (false, None) => return Err(Refused::MISSING),
            (false, Some(target)) => {
                let target = registry::find(&target.to_ascii_lowercase());
                let granted = target.map(|target| (target.granted(&self.peer), target));
                match granted.filter(|(granted, _)| !granted.0.is_empty()) {
                    Some((granted, target)) => vec![(target, granted)],
                    None => {
                        let group = registry::secret_at(self.peer.portal);
                        self.hidden = Some(group.ok_or(Refused::NOT_FOUND)?);
                        Vec::new()
                    }
                }
            }
        };
        Ok(())
    }

    fn step(&mut self, head: &Head, text: &[u8]) -> std::result::Result<Next, Refused> {
        let (current, next) = (head.flags() >> 2 & 0x03, head.flags() & 0x03);
        let transits = head.flags() & TRANSIT != 0;
        let pairs = text::parse(text).map_err(|_| Refused::INITIATOR_ERROR)?;
        let is_first = self.stage.is_none();
        if is_first {
            self.begin(head, &pairs)?;
        }
        let may_be = match self.stage {
            None => matches!(current, SECURITY | OPERATIONAL),
            Some(stage) => current == stage,
        };
        if !may_be || transits && (next <= current || next == 2) {
            return Err(Refused::INVALID);
        }
        self.stage = Some(current);
        let mut replies = Pairs::new();
        if is_first && !self.is_discovery {
            let own = self.reach.first();
            let own = own.map(|(target, _)| target.group(self.peer.portal));
            let group = own.or(self.hidden).unwrap_or_default();
            replies.push(pair("TargetPortalGroupTag", group.to_string()));
        }
        if current == SECURITY {
            replies.extend(self.security(&pairs)?);
        } else {
            self.go_unproved()?;
            replies.extend(self.operational(&pairs)?);
        }
        let stage_flags = current << 2;
        if !transits || self.proving && !self.is_known {
            return Ok(Next::Reply(replies, stage_flags));
        }
        self.go_unproved()?;
        if next == FULL_FEATURE {
            return Ok(Next::Done(replies));
        }
        self.stage = Some(next);
        Ok(Next::Reply(replies, TRANSIT | stage_flags | next))
    }

    /// Restricts access to units that require no authentication.
    fn go_unproved(&mut self) -> std::result::Result<(), Refused> {
        if self.is_known {
            return Ok(());
        }
        if self.proving {
            return Err(Refused::AUTHENTICATION);
        }
        self.keep(|_| false);
        if self.reach.is_empty() && !self.is_discovery {
            return Err(Refused::AUTHENTICATION);
        }
        self.is_known = true;
        Ok(())
    }

    fn keep(&mut self, proves: impl Fn(&Credentials) -> bool) {
        for (_, granted) in &mut self.reach {
            *granted = granted.proved(&proves);
        }
        self.reach.retain(|(_, granted)| !granted.0.is_empty());
    }

    /// The user name that a request would prove, if any.
    fn name_to_prove(&self, text: &[u8]) -> Option<String> {
        let pairs = text::parse(text).ok()?;
        let is_asked = self.asked.is_some() && !self.is_known;
        let name = find(&pairs, "CHAP_N").filter(|_| is_asked)?;
        Some(name.to_owned())
    }

    fn security(&mut self, pairs: &Pairs) -> std::result::Result<Pairs, Refused> {
        if let Some(offered) = find(pairs, "AuthMethod") {
            if self.is_known || self.proving {
                return Err(Refused::INITIATOR_ERROR);
            }
            return self.choose_method(offered);
        }
        if let Some(list) = find(pairs, "CHAP_A") {
            if !self.proving || self.is_known || self.asked.is_some() {
                return Err(Refused::INITIATOR_ERROR);
            }
            let made = Asked::new(list).map_err(|_| Refused::TARGET_ERROR)?;
            let (asked, text) = made.ok_or(Refused::AUTHENTICATION)?;
            self.asked = Some(asked);
            return Ok(text);
        }
        match &self.asked {
            Some(asked) if !self.is_known => {
                let answered = asked.read(pairs).ok_or(Refused::AUTHENTICATION)?;
                self.prove(&answered)
            }
            _ => Ok(Pairs::new()),
        }
    }

    fn is_open(&self) -> bool {
        self.hidden.is_none() && self.reach.iter().all(|(_, granted)| granted.is_open())
    }

    fn choose_method(&mut self, offered: &str) -> std::result::Result<Pairs, Refused> {
        let offers = |method: &str| offered.split(',').any(|known| known == method);
        let method = if !self.is_open() && offers("CHAP") {
            self.proving = true;
            "CHAP"
        } else if offers("None") {
            self.go_unproved()?;
            "None"
        } else {
            return Err(Refused::AUTHENTICATION);
        };
        Ok(vec![pair("AuthMethod", method)])
    }

    fn prove(&mut self, answered: &Answered) -> std::result::Result<Pairs, Refused> {
        let asked = self.asked.take().ok_or(Refused::AUTHENTICATION)?;
        if self.hidden.is_some() {
            // Equal work whether the name exists or not.
            let _ = asked.proves(answered, &Credentials::decoy());
        }
        let text = {
            let closed = self.reach.iter().flat_map(|(_, granted)| granted.closed());
            let proved: Vec<_> = closed
                .filter(|secrets| asked.proves(answered, &secrets.initiator))
                .collect();
            let secrets = proved.first().ok_or(Refused::AUTHENTICATION)?;
            self.proved = Some(secrets.initiator.clone());
            asked.answer(answered, secrets.target.as_ref())
        };
        let text = text.ok_or(Refused::AUTHENTICATION)?;
        self.keep(|known| asked.proves(answered, known));
        self.is_known = true;
        Ok(text)
    }

    fn operational(&mut self, pairs: &Pairs) -> std::result::Result<Pairs, Refused> {
        for (key, _) in pairs {
            if self.named.contains(key) || self.named.len() > 256 {
                return Err(Refused::INITIATOR_ERROR);
            }
            self.named.push(key.clone());
        }
        let offers = self
            .reach
            .iter()
            .flat_map(|(_, granted)| granted.0.values());
        let most = offers.map(|offer| offer.grant.connections).min();
        let purpose = match (self.is_discovery, self.is_further) {
            (true, _) => Purpose::Discovery,
            (false, true) => Purpose::Connection,
            (false, false) => Purpose::Session(most.unwrap_or(CONNECTIONS_MAX)),
        };
        let replies = self.agreed.negotiate(pairs, purpose);
        let mut replies = replies.map_err(|_| Refused::INITIATOR_ERROR)?;
        if !self.has_declared {
            self.has_declared = true;
            replies.push(pair("MaxRecvDataSegmentLength", SEGMENT_MAX.to_string()));
        }
        Ok(replies)
    }
}
