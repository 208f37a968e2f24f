//! What one connection of a session has of its own: its socket, its numbers of status, what was agreed on for it.

use crate::access::Peer;
use crate::negotiate::Agreed;
use crate::notices;
use crate::output::{Data, Output};
use crate::pdu::{Head, Made, is_before, reject};
use crate::portal::Seat;
use reactor::Stream;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// A connection, as its session sees it.
pub(crate) struct Channel {
    /// The connection's number (CID).
    pub number: u16,
    pub stream: Rc<Stream>,
    pub agreed: Agreed,
    pub peer: Peer,
    /// The address that the initiator has connected to.
    pub local: IpAddr,
    pub output: Output,
    pub seat: Arc<Seat>,
    /// Nothing more is answered on it.
    pub over: Cell<bool>,
    /// Its initiator has asked for its end.
    pub logged_out: Cell<bool>,
    /// The next status that the initiator expects (ExpStatSN): those before it have arrived.
    acknowledged: Cell<u32>,
    /// The rest of a text, with the tag by which it is asked for.
    pub text_left: RefCell<Option<(u32, Vec<u8>)>>,
    /// What is answered when all that the connection has begun has ended, and on which connection.
    pub farewells: RefCell<Vec<(Rc<Channel>, Made)>>,
}

impl Channel {
    pub(crate) fn new(
        number: u16,
        stream: Rc<Stream>,
        (peer, local): (Peer, IpAddr),
        (agreed, output): (Agreed, Output),
        seat: Arc<Seat>,
    ) -> Rc<Self> {
        let acknowledged = Cell::new(output.promised());
        Rc::new(Self {
            number,
            stream,
            agreed,
            peer,
            local,
            output,
            seat,
            over: Cell::new(false),
            logged_out: Cell::new(false),
            acknowledged,
            text_left: RefCell::default(),
            farewells: RefCell::default(),
        })
    }

    /// Takes note of what the initiator says to have received. False when that is nothing new.
    pub(crate) fn acknowledge(&self, number: u32) -> bool {
        let is_new = is_before(self.acknowledged.get(), number);
        if is_new {
            self.acknowledged.set(number);
        }
        is_new
    }

    /// Whether every status before this number has arrived, or never will.
    pub(crate) fn has_acknowledged(&self, number: u32) -> bool {
        let hears = !self.over.get() && !self.logged_out.get();
        !hears || !is_before(self.acknowledged.get(), number)
    }

    /// Cuts it off: nothing more is answered on it.
    pub(crate) fn cut(&self) {
        self.over.set(true);
        self.stream.shutdown();
    }

    pub(crate) fn reject(&self, why: u8, head: &Head) {
        let opcode = head.opcode();
        self.note(format_args!(
            "PDU {opcode:02x} rejected for reason {why:02x}"
        ));
        let (made, data) = reject(why, head);
        self.output.push(made, Data::Own(data));
    }

    /// Logs what the initiator did that it may not.
    pub(crate) fn note(&self, why: impl std::fmt::Display) {
        let Peer {
            initiator,
            address,
            portal,
        } = &self.peer;
        notices::refused(format_args!("{initiator} from {address} at {portal}"), why);
    }
}
