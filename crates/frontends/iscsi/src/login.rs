//! The login phase (RFC 7143, sections 6.3, 11.12 and 11.13): who it is, what for, and by which rules.
//!
//! Responsible for: stages and their keys, authentication, and what of a target the initiator may
//! reach then. Leaves out: what follows.

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

/// What a login PDU may carry (13.12: the default of MaxRecvDataSegmentLength), and one text of
/// several PDUs.
const SEGMENT_LEN_MAX: usize = 8192;
const TEXT_MAX: usize = 32 << 10;
/// PDUs of one login.
const PDUS_MAX: usize = 32;

/// A peer has this long to send its first request.
const FIRST_NS: u64 = 5 * SECOND_NS;

/// Stages (11.12.3).
const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL_FEATURE: u8 = 3;

const TRANSIT: u8 = 0x80;
const CONTINUE: u8 = 0x40;

/// Why a login fails: status class and detail (11.13.5), and which of the reasons that have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused(pub u8, pub u8, u8);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match *self {
            Self::AUTHENTICATION => "it has not proved a secret that is wanted",
            Self::PORT_OF_ANOTHER => {
                "a session with its name and ISID is of a host that has proved another secret: give each host its own \
                 InitiatorName"
            }
            Self::NOT_FOUND => "there is no such target, or not for it",
            Self::NAME => {
                "that is no name of an initiator: set its InitiatorName to one like iqn.2026-11.com.example:host, of \
                 letters, digits, dots, dashes and colons, 223 at most"
            }
            Self::VERSION => "another version of the protocol",
            Self::TOO_MANY_CONNECTIONS => "too many connections of its session",
            Self::MISSING => "it does not say what it has to",
            Self::SESSION_TYPE => "a kind of session that there is not",
            Self::NO_SESSION => "no session of this handle",
            Self::TOO_MANY_GUESSES => {
                "too many proofs from its address were wrong: again in some seconds"
            }
            Self::TARGET_ERROR => "the target cannot take it now",
            _ => "it does not keep to the protocol",
        };
        write!(f, "{why} ({:02x}{:02x})", self.0, self.1)
    }
}

impl Refused {
    /// It is not refused.
    const NONE: Self = Self(0, 0, 0);
    pub(crate) const INITIATOR_ERROR: Self = Self(2, 0, 0);
    pub(crate) const NAME: Self = Self(2, 0, 1);
    pub(crate) const AUTHENTICATION: Self = Self(2, 1, 0);
    /// Authorization failure: it has proved a secret, and not the one for this.
    pub(crate) const PORT_OF_ANOTHER: Self = Self(2, 2, 0);
    /// Also what it may not reach: nobody learns that it is there.
    pub(crate) const NOT_FOUND: Self = Self(2, 3, 0);
    pub(crate) const VERSION: Self = Self(2, 5, 0);
    pub(crate) const TOO_MANY_CONNECTIONS: Self = Self(2, 6, 0);
    pub(crate) const MISSING: Self = Self(2, 7, 0);
    pub(crate) const SESSION_TYPE: Self = Self(2, 9, 0);
    pub(crate) const NO_SESSION: Self = Self(2, 0x0a, 0);
    pub(crate) const INVALID: Self = Self(2, 0x0b, 0);
    pub(crate) const TARGET_ERROR: Self = Self(3, 0, 0);
    /// Service unavailable: again later.
    const TOO_MANY_GUESSES: Self = Self(3, 1, 0);
}

/// What an initiator reaches, target by target; one for a normal session.
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
    /// The next number of a command, and of a status.
    pub command_number: u32,
    pub status_number: u32,
    /// The request that is answered when everything else is ready.
    last: Head,
    /// What that answer says.
    replies: Pairs,
}

/// What is known so far.
struct Progress {
    stage: Option<u8>,
    peer: Peer,
    proved: Option<Credentials>,
    is_discovery: bool,
    /// It is one more connection of a session.
    is_further: bool,
    reach: Reach,
    /// There is no such target, or not for it, at a portal where others ask for secrets, and its group there: it is
    /// answered as if it had proved nothing, so that nobody learns which targets there are.
    hidden: Option<u16>,
    /// CHAP was chosen: nothing goes on without its proof.
    proving: bool,
    asked: Option<Asked>,
    /// The initiator needs no (more) proof.
    is_known: bool,
    agreed: Agreed,
    /// Keys of the operational stage that have been named.
    named: Vec<String>,
    has_declared: bool,
}

/// How one request is answered.
enum Next {
    /// With these keys, in the same stage or the next one.
    Reply(Pairs, u8),
    Done(Pairs),
}

/// The login of one connection.
pub(crate) struct Login<'a> {
    handle: &'a Handle,
    stream: &'a Stream,
    input: &'a mut Input,
    /// The host, and where it came to.
    pub address: SocketAddr,
    pub portal: SocketAddr,
    status_number: u32,
    /// The next number of a command and the last that is taken, where a session has some already.
    window: Option<(u32, u32)>,
    /// What the initiator calls itself, for the log.
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

    /// Goes on with the login of an initiator that waits for the last answer.
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

    /// Whether the initiator has sent more than was read.
    pub(crate) fn has_more(&self) -> bool {
        self.input.has_more()
    }

    /// Sends a response. The numbers are filled in here: nothing else is sent meanwhile.
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

    /// Tells the initiator why not.
    async fn refuse(&mut self, head: &Head, why: Refused) -> Error {
        let handle = head.session_handle();
        let _ = self.send(head, 0, handle, why, &[]).await;
        let peer = format_args!("{} at {}", self.address, self.portal);
        let name = Shown(&self.name);
        notices::refused(peer, format_args!("login of '{name}' refused: {why}"));
        Error::new(ErrorKind::PermissionDenied, format!("login refused: {why}"))
    }

    /// One request, with the text that it and those that it continues carry.
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

    /// Runs until the initiator is to be let in, which [`Login::admit`] tells it.
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

    /// Waits as long as wrong proofs before this one have it wait.
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

    /// Lets the initiator in, into the session with this handle and these numbers.
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

    /// Refuses it at the last moment.
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

    /// Who it is and what it wants, which the first request has to say (RFC 7143, section 6.3).
    fn begin(&mut self, head: &Head, pairs: &Pairs) -> std::result::Result<(), Refused> {
        if head.0[3] != 0 {
            return Err(Refused::VERSION);
        }
        let name = find(pairs, "InitiatorName").ok_or(Refused::MISSING)?;
        name.clone_into(&mut self.peer.initiator);
        // Initiators have names in capitals, too: they are the same (RFC 3722).
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

    /// Without a proof only what asks for none is left.
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

    /// The name that a request is to prove, if it is to prove one.
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
            // As much work as where there is a secret.
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
