//! The full feature phase of one connection: a task that reads PDUs, one that writes, and one for
//! each command that runs, all on one loop.

use crate::access::Peer;
use crate::input::Input;
use crate::login::Reach;
use crate::negotiate::{Agreed, SEGMENT_MAX};
use crate::notices;
use crate::open;
use crate::output::{Data, Output};
use crate::pdu::{
    FINAL, Head, Made, NO_TAG, StatusNumber, is_before, reason, reject, request, response,
};
use crate::portal::Seat;
use crate::target::{Granted, Place, Target};
use crate::tasks::Tasks;
use reactor::{Event, Handle, SECOND_NS, Stream, in_time, within};
use scsi::{Luns, Ports};
use std::cell::{Cell, RefCell};
use std::io::{Error, ErrorKind, Result};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Commands of one session at a time; so many more that are immediate.
pub(crate) const DEPTH: u32 = 128;
pub(super) const IMMEDIATE_MAX: usize = 16;
/// PDUs that may wait to be written before no more is read.
const WAITING_MAX: usize = 1024;
/// A silent peer is asked whether it is there after this time, and given up after another.
const SILENCE_NS: u64 = 30 * SECOND_NS;
/// A peer has this long to send a data segment.
pub(super) const READ_NS: u64 = 60 * SECOND_NS;

/// An initiator that is asked to log out has this long, in seconds; one whose session was ended waits
/// this long before it comes again (Time2Wait).
const LOGOUT_S: u16 = 3;
const TIME_TO_WAIT_S: u16 = 2;
/// Events of asynchronous messages (11.9.1).
const LOG_OUT: u8 = 1;
const DROPS_ALL: u8 = 3;

/// An asynchronous message with its second and third parameter (11.9).
fn asynchronous(event: u8, (second, third): (u16, u16)) -> Made {
    Made::new(response::ASYNCHRONOUS, FINAL, NO_TAG, StatusNumber::Takes)
        .byte(36, event)
        .word(40, u32::from(second) << 16 | u32::from(third))
}

/// What a session is made of.
pub(crate) struct Parts {
    pub handle: Handle,
    pub stream: Rc<Stream>,
    pub agreed: Agreed,
    pub peer: Peer,
    /// The address that the initiator has connected to.
    pub local: IpAddr,
    /// What a discovery session lists.
    pub reach: Reach,
    pub output: Output,
    pub seat: Arc<Seat>,
    /// None in a discovery session.
    pub normal: Option<Normal>,
}

/// What a normal session has beyond a discovery session.
pub(crate) struct Normal {
    pub target: Arc<Target>,
    pub luns: Rc<Luns>,
    pub ports: Ports,
    /// What the initiator has proved to be for it.
    pub granted: Granted,
    pub version: Cell<u64>,
    pub place: Place,
}

/// A session, which is one connection.
pub(crate) struct Session {
    pub(super) parts: Parts,
    pub(super) tasks: RefCell<Tasks>,
    /// Bytes of data-out that commands were granted.
    pub(super) granted: Cell<u64>,
    /// A command has ended.
    pub(super) ended: Event,
    /// Nothing more is answered: the session is over.
    pub(super) over: Cell<bool>,
    /// The rest of a text, with the tag by which it is asked for.
    pub(super) text_left: RefCell<Option<(u32, Vec<u8>)>>,
    connection: u16,
}

/// Whether to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    On,
    End,
}

pub(super) fn violation(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl Session {
    pub(crate) fn new(parts: Parts, connection: u16) -> Rc<Self> {
        Rc::new(Self {
            parts,
            tasks: RefCell::default(),
            granted: Cell::new(0),
            ended: Event::default(),
            over: Cell::new(false),
            text_left: RefCell::default(),
            connection,
        })
    }

    /// Serves until the session ends, and all that it began has ended.
    pub(crate) async fn run(self: Rc<Self>, mut input: Input) {
        let writer = self.clone();
        self.parts.handle.spawn(async move {
            let parts = &writer.parts;
            parts
                .output
                .write(&parts.handle, &parts.stream, &parts.agreed)
                .await;
        });
        let normal = self.parts.normal.as_ref();
        let _open = normal.map(|normal| open::enter(normal.place.number, &self));
        let ended = self.read(&mut input).await;
        // What was not given all of its data never will be.
        let tags = self.tasks.borrow().of(None);
        for tag in tags {
            self.tasks.borrow_mut().drop_unless_running(tag);
        }
        if ended.is_err() && !self.parts.seat.is_ending() {
            // Nobody is there to be answered, or nobody who keeps to the rules.
            self.over.set(true);
        }
        match ended {
            Err(error) if error.kind() == ErrorKind::InvalidData => self.note(&error),
            Err(_) if self.parts.seat.is_ending() => {
                let made = asynchronous(DROPS_ALL, (TIME_TO_WAIT_S, 0));
                self.parts.output.push(made, Data::None);
            }
            _ => {}
        }
        loop {
            let ended = self.ended.wait();
            if self.tasks.borrow().len() == 0 {
                break;
            }
            ended.await;
        }
        self.parts.output.close();
    }

    async fn read(self: &Rc<Self>, input: &mut Input) -> Result<()> {
        let mut asked = false;
        loop {
            let head = input.head(self.parts.agreed.header_digest);
            let Some(head) = within(&self.parts.handle, SILENCE_NS, head).await else {
                if asked {
                    return Err(ErrorKind::TimedOut.into());
                }
                asked = true;
                self.ping();
                continue;
            };
            asked = false;
            let head = head?;
            if head.data_len() > SEGMENT_MAX as usize {
                return Err(violation("a data segment longer than was agreed on"));
            }
            self.wait_for_room().await;
            if self.dispatch(&head, input).await? == Flow::End {
                return Ok(());
            }
        }
    }

    async fn wait_for_room(&self) {
        loop {
            let room = self.parts.output.room.wait();
            if self.parts.output.len() < WAITING_MAX {
                return;
            }
            room.await;
        }
    }

    async fn dispatch(self: &Rc<Self>, head: &Head, input: &mut Input) -> Result<Flow> {
        match head.opcode() {
            request::COMMAND => self.command(head, input).await?,
            request::DATA_OUT => self.data_out(head, input).await?,
            request::NOP_OUT => self.nop_out(head, input).await?,
            request::FUNCTION => self.function(head, input).await?,
            request::TEXT => self.text(head, input).await?,
            request::LOGOUT => return self.logout(head, input).await,
            _ => {
                // A login here, a SNACK without recovery, or nothing that is known.
                self.segment(head, input).await?;
                self.reject(reason::NOT_SUPPORTED, head);
            }
        }
        Ok(Flow::On)
    }

    /// The data segment of a PDU that is not data of a command. None when it was damaged: it is as
    /// if it had never come (RFC 7143, section 7.8).
    pub(super) async fn segment(&self, head: &Head, input: &mut Input) -> Result<Option<Vec<u8>>> {
        let read = input.data(head.data_len(), self.parts.agreed.data_digest);
        let (data, whole) = in_time(&self.parts.handle, READ_NS, read).await?;
        if !whole {
            self.reject(reason::DATA_DIGEST, head);
            return Ok(None);
        }
        Ok(Some(data))
    }

    /// Notes how many commands are not answered yet.
    pub(super) fn count_commands(&self, tasks: &Tasks) {
        if let Some(normal) = &self.parts.normal {
            normal.place.account.set_commands(tasks.len());
        }
    }

    pub(super) fn reject(&self, why: u8, head: &Head) {
        let opcode = head.opcode();
        self.note(format_args!(
            "PDU {opcode:02x} rejected for reason {why:02x}"
        ));
        let (made, data) = reject(why, head);
        self.parts.output.push(made, Data::Own(data));
    }

    /// Whether the number of a request is the next one (RFC 7143, section 4.2.2.1). Others are left
    /// out: on one connection, with no recovery, none comes twice or too early.
    pub(super) fn takes_number(&self, head: &Head) -> bool {
        let output = &self.parts.output;
        let (number, next) = (head.command_number(), output.command_number.get());
        if head.is_immediate() {
            return true;
        }
        if number != next || is_before(output.last_command(), number) {
            return false;
        }
        output.command_number.set(next.wrapping_add(1));
        true
    }

    /// Logs what the initiator did that it may not.
    pub(super) fn note(&self, why: impl std::fmt::Display) {
        let Peer {
            initiator,
            address,
            portal,
        } = &self.parts.peer;
        notices::refused(format_args!("{initiator} from {address} at {portal}"), why);
    }

    /// Asks the initiator to log out, and ends the session when it has not done so in time.
    pub(crate) fn ask_to_log_out(self: &Rc<Self>) {
        let made = asynchronous(LOG_OUT, (0, LOGOUT_S));
        self.parts.output.push(made, Data::None);
        let (handle, seat) = (self.parts.handle.clone(), Arc::downgrade(&self.parts.seat));
        self.parts.handle.spawn(async move {
            handle.sleep(u64::from(LOGOUT_S) * SECOND_NS).await;
            if let Some(seat) = seat.upgrade() {
                seat.end(true);
            }
        });
    }

    fn ping(&self) {
        let tag = self.tasks.borrow_mut().next_tag();
        let made = Made::new(response::NOP_IN, FINAL, NO_TAG, StatusNumber::Shows);
        self.parts.output.push(made.word(20, tag), Data::None);
    }

    /// NOP-Out (11.18): an answer to a ping, or a ping.
    async fn nop_out(&self, head: &Head, input: &mut Input) -> Result<()> {
        let Some(mut data) = self.segment(head, input).await? else {
            return Ok(());
        };
        if head.task_tag() == NO_TAG || !self.takes_number(head) {
            return Ok(());
        }
        data.truncate(self.parts.agreed.segment_max as usize);
        let made = Made::new(
            response::NOP_IN,
            FINAL,
            head.task_tag(),
            StatusNumber::Takes,
        );
        let made = made.word(20, NO_TAG).lun(head.lun_bytes());
        self.parts.output.push(made, Data::Own(data));
        Ok(())
    }

    /// Logout (11.14). After the answer the connection ends.
    async fn logout(&self, head: &Head, input: &mut Input) -> Result<Flow> {
        if self.segment(head, input).await?.is_none() || !self.takes_number(head) {
            return Ok(Flow::On);
        }
        let why = head.flags() & 0x7f;
        let answer = match why {
            0 => 0,
            1 if head.connection() == self.connection => 0,
            // No such connection; connections are not recovered.
            1 => 1,
            _ => 2,
        };
        let made = Made::new(
            response::LOGOUT,
            FINAL,
            head.task_tag(),
            StatusNumber::Takes,
        );
        // Time2Wait 2 s, Time2Retain 0.
        let made = made.byte(2, answer).word(40, 2 << 16);
        self.parts.output.push(made, Data::None);
        Ok(if answer == 0 { Flow::End } else { Flow::On })
    }
}
