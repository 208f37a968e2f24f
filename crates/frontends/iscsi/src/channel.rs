//! Per-connection state of a session: socket, status numbers, and negotiated parameters.

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

/// A connection of a session.
pub(crate) struct Channel {
    /// Connection ID (CID).
    pub number: u16,
    pub stream: Rc<Stream>,
    pub agreed: Agreed,
    pub peer: Peer,
    /// The local address that the initiator has connected to.
    pub local: IpAddr,
    pub output: Output,
    pub seat: Arc<Seat>,
    /// No further responses are sent on it.
    pub over: Cell<bool>,
    /// Its initiator has logged out.
    pub logged_out: Cell<bool>,
    /// Next expected status number (ExpStatSN): earlier ones were received.
    acknowledged: Cell<u32>,
    /// Rest of a text response, with its target transfer tag.
    pub text_left: RefCell<Option<(u32, Vec<u8>)>>,
    /// Responses to send once everything begun on the connection has ended, and their connections.
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

    /// Processes an acknowledgement. False if it is not new.
    pub(crate) fn acknowledge(&self, number: u32) -> bool {
        let is_new = is_before(self.acknowledged.get(), number);
        if is_new {
            self.acknowledged.set(number);
        }
        is_new
    }

    /// Whether all statuses before this number were received, or never will be.
    pub(crate) fn has_acknowledged(&self, number: u32) -> bool {
        let hears = !self.over.get() && !self.logged_out.get();
        !hears || !is_before(self.acknowledged.get(), number)
    }

    /// Shuts the connection down: no further responses are sent.
    pub(crate) fn cut(&self) {
        self.over.set(true);
        self.stream.shutdown();
    }

    pub(crate) fn reject(&self, why: u8, head: &Head) {
        let opcode = head.opcode();
        self.note(format_args!("rejected PDU {opcode:02x}, reason {why:02x}"));
        let (made, data) = reject(why, head);
        self.output.push(made, Data::Own(data));
    }

    /// Logs a protocol violation of the initiator.
    pub(crate) fn note(&self, why: impl std::fmt::Display) {
        let Peer {
            initiator,
            address,
            portal,
        } = &self.peer;
        notices::refused(format_args!("{initiator} from {address} at {portal}"), why);
    }
}
