//! The full feature phase of one connection: a reader and a writer task on the loop of its session,
//! where running commands may also be tasks.

use crate::channel::Channel;
use crate::input::Input;
use crate::memory::{Brought, Taken};
use crate::negotiate::SEGMENT_MAX;
use crate::output::Data;
use crate::pdu::{FINAL, Head, Made, NO_TAG, StatusNumber, reason, request, response};
use crate::session::Session;
use reactor::{Row, SECOND_NS, within};
use std::io::{Error, ErrorKind, Result};
use std::rc::Rc;

/// PDUs processed in a row before other sessions run, as more than a thousand may have been read
/// ahead.
const ROW_MAX: u32 = 64;
/// Queued PDUs at which reading pauses.
const WAITING_MAX: usize = 1024;
/// Silence after which a peer is pinged, and after which it is disconnected.
const SILENCE_NS: u64 = 30 * SECOND_NS;
/// Queued bytes without unit data at which reading pauses.
const ANSWERS_MAX: usize = 512 << 10;
/// Interval of checks whether others wait for memory held by a silent peer, and consecutive checks
/// before it is disconnected.
const PRESSED_NS: u64 = SECOND_NS;
const PRESSED_MAX: u32 = 5;

/// Reasons (11.14.1) and responses (11.15.1) of a logout.
const CLOSE_SESSION: u8 = 0;
const CLOSE_CONNECTION: u8 = 1;
const CLOSED: u8 = 0;
const NO_CONNECTION: u8 = 1;
const NO_RECOVERY: u8 = 2;

/// A connection in the full feature phase.
pub(crate) struct Connection {
    pub(super) session: Rc<Session>,
    pub(super) channel: Rc<Channel>,
}

pub(super) fn violation(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl Connection {
    /// Serves a connection until it and everything begun on it have ended. The session already
    /// contains it.
    pub(crate) async fn run(session: Rc<Session>, channel: Rc<Channel>, mut input: Input) {
        let (writer, written) = (session.clone(), channel.clone());
        session.handle.spawn(async move {
            let freed = || writer.deliver();
            let write =
                written
                    .output
                    .write(&writer.handle, &written.stream, &written.agreed, freed);
            write.await;
        });
        let connection = Self { session, channel };
        let ended = connection.read(&mut input).await;
        let Self { session, channel } = connection;
        match ended {
            Ok(()) => {}
            // A logout, including a requested one, is answered.
            _ if channel.logged_out.get() => {}
            Err(_) if channel.seat.is_ending() => {
                session.closing.set(true);
                Session::tell_all_dropped(&channel);
            }
            Err(error) => {
                if error.kind() == ErrorKind::InvalidData {
                    channel.note(&error);
                }
                if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::TimedOut) {
                    session.tell_dropped(&channel);
                }
                // The peer is gone, or has violated the protocol.
                channel.over.set(true);
            }
        }
        session.finish(&channel).await;
    }

    /// Reads until the initiator logs out, which is not an error, or the connection fails.
    async fn read(&self, input: &mut Input) -> Result<()> {
        let channel = &self.channel;
        let mut row = Row::new(ROW_MAX);
        loop {
            if row.ends() {
                self.session.handle.yield_now().await;
            }
            let with_digest = channel.agreed.header_digest;
            let head = match input.head_at_hand(with_digest) {
                Some(head) => head,
                None => self.next_head(input).await?,
            };
            let head = head?;
            if head.data_len() > SEGMENT_MAX as usize {
                return Err(violation("a data segment exceeds the negotiated length"));
            }
            if channel.acknowledge(head.status_expected()) {
                self.session.check_fence();
            }
            self.wait_for_room().await;
            self.dispatch(&head, input).await?;
            if channel.logged_out.get() {
                return Ok(());
            }
        }
    }

    /// Waits for the next header. A silent peer is pinged; one that holds memory others wait for
    /// without sending the expected data is disconnected earlier.
    async fn next_head(&self, input: &mut Input) -> Result<Result<Head>> {
        let session = &self.session;
        let (mut silent_ns, mut asked, mut pressed) = (0, false, 0);
        loop {
            let waits = session.waits_for_initiator();
            let slice_ns = if waits { PRESSED_NS } else { SILENCE_NS };
            let slice_ns = slice_ns.min(SILENCE_NS - silent_ns);
            let head = input.head(self.channel.agreed.header_digest);
            if let Some(head) = within(&session.handle, slice_ns, head).await {
                return Ok(head);
            }
            silent_ns += slice_ns;
            pressed = match waits && session.window.account.others_wait() {
                true => pressed + 1,
                false => 0,
            };
            if pressed >= PRESSED_MAX || asked && silent_ns >= SILENCE_NS {
                return Err(ErrorKind::TimedOut.into());
            }
            if silent_ns >= SILENCE_NS {
                (silent_ns, asked) = (0, true);
                session.ping(&self.channel);
            }
        }
    }

    async fn wait_for_room(&self) {
        let output = &self.channel.output;
        while output.len() >= WAITING_MAX || output.answers() >= ANSWERS_MAX {
            output.room.wait().await;
        }
    }

    async fn dispatch(&self, head: &Head, input: &mut Input) -> Result<()> {
        match head.opcode() {
            request::COMMAND => self.command(head, input).await,
            request::DATA_OUT => self.data_out(head, input).await,
            request::NOP_OUT | request::FUNCTION | request::TEXT | request::LOGOUT => {
                let data = self.segment(head, input).await?;
                // The response to a ping has no number and is not answered (11.18).
                let is_answer = head.opcode() == request::NOP_OUT && head.task_tag() == NO_TAG;
                let data = data.filter(|_| !is_answer);
                if let Some(data) = data.filter(|_| self.session.takes_number(head)) {
                    self.session.take_other(&self.channel, head, data);
                }
                if head.opcode() == request::TEXT {
                    // A list of many targets is expensive: yield between two of them.
                    self.session.handle.yield_now().await;
                }
                Ok(())
            }
            _ => {
                // A login here, a SNACK without recovery, or an unknown PDU.
                self.segment(head, input).await?;
                self.channel.reject(reason::NOT_SUPPORTED, head);
                Ok(())
            }
        }
    }

    /// The data segment of a PDU other than command data. None if it is corrupt: the PDU is ignored
    /// (RFC 7143, section 7.8).
    pub(super) async fn segment(&self, head: &Head, input: &mut Input) -> Result<Option<Brought>> {
        let session = &self.session;
        let account = &session.window.account;
        let taken = Taken::take(&session.handle, account, head.data_len()).await?;
        let read = input.data(head.data_len(), self.channel.agreed.data_digest);
        let (data, whole) = self.patiently(read).await?;
        if !whole {
            self.channel.reject(reason::DATA_DIGEST, head);
            return Ok(None);
        }
        Ok(Some(Brought::new(data, taken)))
    }

    /// The result of a step that waits for the rest of a PDU.
    pub(super) async fn patiently<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        let account = &self.session.window.account;
        let ended = account.patiently(&self.session.handle, step).await;
        ended.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()))
    }
}

impl Session {
    /// Executes a request other than a command, in its turn.
    pub(super) fn other(self: &Rc<Self>, channel: &Rc<Channel>, head: &Head, data: Brought) {
        match head.opcode() {
            request::NOP_OUT => Self::nop_out(channel, head, data),
            request::FUNCTION => self.function(channel, head),
            request::TEXT => self.text(channel, head, &data),
            _ => self.logout(channel, head),
        }
    }

    /// Pings the initiator and requests an acknowledgement.
    pub(super) fn ping(&self, channel: &Channel) {
        let tag = self.tasks.borrow_mut().next_tag();
        let made = Made::new(response::NOP_IN, FINAL, NO_TAG, StatusNumber::Shows);
        channel.output.push(made.word(20, tag), Data::None);
    }

    /// A NOP-Out (11.18) that requests a response.
    fn nop_out(channel: &Channel, head: &Head, mut data: Brought) {
        data.bytes.truncate(channel.agreed.segment_max as usize);
        let made = Made::new(
            response::NOP_IN,
            FINAL,
            head.task_tag(),
            StatusNumber::Takes,
        );
        let made = made.word(20, NO_TAG).lun(head.lun_bytes());
        channel.output.push(made, Data::Echo(data));
    }

    /// Logout (11.14) of the session, of this connection, or of another one. The response is sent
    /// once everything begun on the connections has ended.
    fn logout(self: &Rc<Self>, channel: &Rc<Channel>, head: &Head) {
        // Time2Wait 2 s, Time2Retain 0.
        let made = Made::new(
            response::LOGOUT,
            FINAL,
            head.task_tag(),
            StatusNumber::Takes,
        )
        .word(40, 2 << 16);
        let leaving = match head.flags() & 0x7f {
            CLOSE_SESSION => {
                self.closing.set(true);
                for other in self.others(channel) {
                    other.cut();
                }
                Ok(channel.clone())
            }
            CLOSE_CONNECTION => self.channel(head.connection()).ok_or(NO_CONNECTION),
            _ => Err(NO_RECOVERY),
        };
        match leaving {
            Ok(leaving) => {
                let farewell = (channel.clone(), made.byte(2, CLOSED));
                leaving.farewells.borrow_mut().push(farewell);
                match Rc::ptr_eq(&leaving, channel) {
                    // Its reader may be busy: it will see the end of the input.
                    true => {
                        leaving.logged_out.set(true);
                        leaving.seat.stop_reading();
                    }
                    false => leaving.cut(),
                }
            }
            Err(why) => channel.output.push(made.byte(2, why), Data::None),
        }
    }

    /// Ends a connection after its last read: waits for its commands, sends pending responses, and
    /// leaves the session.
    async fn finish(self: &Rc<Self>, channel: &Rc<Channel>) {
        self.terminate(channel);
        loop {
            let ended = self.ended.wait();
            // The connection that closes the session leaves last.
            let waits =
                channel.logged_out.get() && self.closing.get() && !self.others(channel).is_empty();
            if self.tasks.borrow().of(channel).is_empty() && !waits {
                break;
            }
            ended.await;
        }
        let farewells = std::mem::take(&mut *channel.farewells.borrow_mut());
        for (to, made) in farewells {
            to.output.push(made, Data::None);
        }
        channel.output.close();
        self.leave(channel);
    }
}
