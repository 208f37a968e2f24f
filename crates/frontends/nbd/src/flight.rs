//! Limits of the requests in flight of a session: number, memory, and length of ranges.

use crate::pieces::{CHARGES_MAX, Found, Piece, Pieces};
use block::{Completion, IoBuf, IoError, Op};
use reactor::Account;
use std::collections::VecDeque;
use std::rc::Rc;

/// Maximum requests in flight of a session.
const REQUESTS_MAX: usize = 512;
/// Maximum bytes of their buffers: two requests of maximum size.
const BYTES_MAX: usize = 2 * crate::protocol::PAYLOAD_MAX as usize;
/// Maximum number of buffers kept for reuse, and their bytes; and the bytes kept even if others
/// wait for memory.
const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 4 << 20;
const SPARE_BYTES_OWN: usize = reactor::OWN / 2;

/// Kind of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Success or an error.
    Done,
    /// The data read.
    Data,
    /// Extents of each context; only the first one if `one`.
    Status {
        /// The client requested a single extent.
        one: bool,
    },
}

/// A request, until its reply is sent.
pub(crate) struct Request {
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
    pub answer: Answer,
    /// Operations not completed, and piece sequences not fully submitted.
    pub parts: usize,
    /// The first error of its operations.
    pub error: Option<IoError>,
    /// Buffer of the first operation; `more` has those of the others.
    pub first: IoBuf,
    pub rest: Vec<IoBuf>,
    /// Block status collected per context.
    pub found: Vec<Found>,
    /// Bytes of memory charged to it.
    pub held: usize,
}

impl Request {
    /// Its buffers in order.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &IoBuf> {
        std::iter::once(&self.first).chain(&self.rest)
    }
}

/// Identifies an operation: slot of its request, index within the request, and its charge
/// ([`Piece::charge`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    pub slot: usize,
    pub part: usize,
    pub charge: u32,
}

impl Tag {
    /// The tag of an operation that is charged by its buffer only.
    pub(crate) fn new(slot: usize, part: usize) -> Self {
        Self {
            slot,
            part,
            charge: 0,
        }
    }

    pub(crate) fn pack(self) -> u64 {
        u64::from(self.charge) << 32 | (self.part as u64) << 16 | self.slot as u64
    }

    fn unpack(tag: u64) -> Self {
        Self {
            slot: usize::from(tag as u16),
            part: usize::from((tag >> 16) as u16),
            charge: (tag >> 32) as u32,
        }
    }
}

/// The table of requests, and operations that the device did not accept.
pub(crate) struct Flight {
    /// Memory charged for requests, before they begin, and for spare buffers.
    account: Rc<Account>,
    slots: Vec<Option<Request>>,
    free: Vec<usize>,
    bytes: usize,
    /// Bytes of completed reads whose replies are not sent.
    pub unsent: usize,
    /// Outstanding completions.
    pub expected: usize,
    /// Operations to be submitted again, in order.
    pub backlog: VecDeque<Op>,
    /// Long requests whose next piece waits for its turn.
    waiting: VecDeque<Pieces>,
    /// Charges of the pieces submitted to the device.
    charged: u64,
    spare: Vec<IoBuf>,
    spare_bytes: usize,
    /// No further request will arrive.
    pub reading_ended: bool,
}

impl Flight {
    pub(crate) fn new(account: Rc<Account>) -> Self {
        Self {
            account,
            slots: Vec::new(),
            free: Vec::new(),
            bytes: 0,
            unsent: 0,
            expected: 0,
            backlog: VecDeque::new(),
            waiting: VecDeque::new(),
            charged: 0,
            spare: Vec::new(),
            spare_bytes: 0,
            reading_ended: false,
        }
    }

    /// Whether a request of `bytes` may begin.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.slots.len() - self.free.len() < REQUESTS_MAX && self.bytes + bytes <= BYTES_MAX
    }

    /// Begins a request; returns its slot.
    pub(crate) fn begin(&mut self, request: Request) -> usize {
        self.bytes += request.held;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(request);
                slot
            }
            None => {
                self.slots.push(Some(request));
                self.slots.len() - 1
            }
        }
    }

    /// Queues a sequence of pieces.
    pub(crate) fn wait(&mut self, pieces: Pieces) {
        self.waiting.push_back(pieces);
    }

    /// Whether pieces are queued.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next piece to submit; requests take turns (round robin).
    pub(crate) fn next_piece(&mut self) -> Option<Piece> {
        loop {
            let pieces = self.waiting.front()?;
            let charge = u64::from(pieces.charge());
            if self.charged + charge > CHARGES_MAX {
                return None;
            }
            let mut pieces = self.waiting.pop_front()?;
            let Some(request) = self.slots.get_mut(pieces.slot)?.as_mut() else {
                continue;
            };
            let piece = pieces.take();
            self.charged += charge;
            if pieces.asks() {
                // The next status query begins where the result ended.
                if let Some(found) = request.found.get_mut(pieces.part) {
                    found.rest = Some(pieces);
                }
            } else if !pieces.is_empty() {
                request.parts += 1;
                self.waiting.push_back(pieces);
            }
            return Some(piece);
        }
    }

    /// Drops queued pieces: no reply is possible.
    pub(crate) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Processes a completion; returns the request if it was its last operation.
    pub(crate) fn complete(&mut self, completion: Completion) -> Option<Request> {
        let Tag { slot, part, charge } = Tag::unpack(completion.tag);
        self.expected -= 1;
        self.charged -= u64::from(charge);
        let request = self.slots.get_mut(slot)?.as_mut()?;
        match part {
            0 => request.first = completion.buf,
            _ if completion.buf.is_empty() => {}
            _ => {
                if request.rest.len() < part {
                    request.rest.resize_with(part, IoBuf::empty);
                }
                request.rest[part - 1] = completion.buf;
            }
        }
        let failed = completion.result.is_err();
        if let Err(error) = completion.result {
            request.error.get_or_insert(error);
        }
        if let Some(found) = request.found.get_mut(part)
            && let Some(rest) = found.add(&completion.extents)
            && !failed
        {
            self.waiting.push_back(rest);
            return None;
        }
        request.parts -= 1;
        if failed {
            // Drop the remaining pieces, which cannot change the reply.
            let before = self.waiting.len();
            self.waiting.retain(|pieces| pieces.slot != slot);
            request.parts -= before - self.waiting.len();
        }
        if request.parts > 0 {
            return None;
        }
        self.free.push(slot);
        let ended = self.slots[slot].take()?;
        if ended.answer == Answer::Data {
            self.unsent += ended.held;
        }
        Some(ended)
    }

    /// Ends a request whose reply was sent, and releases its memory.
    pub(crate) fn release(&mut self, request: Request) {
        self.bytes -= request.held;
        if request.answer == Answer::Data {
            self.unsent -= request.held;
        }
        let before = self.spare_bytes;
        // Checked only for more than a little memory, since other threads modify it.
        let may_keep = before + request.held <= SPARE_BYTES_OWN || !self.account.others_wait();
        if may_keep {
            self.keep(request.first);
            for buf in request.rest {
                self.keep(buf);
            }
        } else {
            self.drop_spare();
        }
        let kept = self.spare_bytes.saturating_sub(before);
        self.account.give(request.held.saturating_sub(kept));
    }

    fn keep(&mut self, buf: IoBuf) {
        if !buf.is_empty()
            && self.spare.len() < SPARE_MAX
            && self.spare_bytes + buf.len() <= SPARE_BYTES_MAX
        {
            self.spare_bytes += buf.len();
            self.spare.push(buf);
        }
    }

    /// Whether an idle session keeps memory that others may need.
    pub(crate) fn keeps_idle(&self) -> bool {
        self.spare_bytes > SPARE_BYTES_OWN && self.bytes == 0
    }

    /// Drops the spare buffers.
    pub(crate) fn drop_spare(&mut self) {
        self.spare.clear();
        self.account.give(std::mem::take(&mut self.spare_bytes));
    }

    /// A buffer of `len` bytes, which contains data of this session or zeroes.
    pub(crate) fn buffer(&mut self, len: usize) -> IoBuf {
        match self.spare.iter().rposition(|buf| buf.len() == len) {
            Some(index) => {
                // The request has been charged for it.
                self.spare_bytes -= len;
                self.account.give(len);
                self.spare.swap_remove(index)
            }
            None => {
                // Request sizes change: unused spare buffers make room for others.
                if self.spare.len() == SPARE_MAX || self.spare_bytes + len > SPARE_BYTES_MAX {
                    self.drop_spare();
                }
                IoBuf::zeroed(len)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::ErrorKind;

    fn flight() -> Flight {
        Flight::new(Rc::new(Account::new([])))
    }

    /// Begins a request that is charged for its memory.
    fn begin(flight: &mut Flight, request: Request) -> usize {
        assert!(flight.account.try_take(request.held));
        flight.begin(request)
    }

    fn request(parts: usize, held: usize) -> Request {
        Request {
            cookie: 1,
            offset: 0,
            len: held as u32,
            answer: Answer::Data,
            parts,
            error: None,
            first: IoBuf::empty(),
            rest: Vec::new(),
            found: Vec::new(),
            held,
        }
    }

    fn completion(tag: u64, fill: u8, result: Result<(), IoError>) -> Completion {
        Completion {
            tag,
            result,
            buf: IoBuf::from_bytes(vec![fill; 4].into_boxed_slice()),
            extents: Vec::new(),
        }
    }

    #[test]
    fn parts_completed_in_any_order_are_reassembled() {
        let mut flight = flight();
        let slot = begin(&mut flight, request(3, 12));
        flight.expected = 3;
        assert!(
            flight
                .complete(completion(Tag::new(slot, 2).pack(), 2, Ok(())))
                .is_none()
        );
        assert!(
            flight
                .complete(completion(Tag::new(slot, 0).pack(), 0, Ok(())))
                .is_none()
        );
        let done = flight
            .complete(completion(Tag::new(slot, 1).pack(), 1, Ok(())))
            .unwrap();
        let bytes: Vec<u8> = done
            .buffers()
            .map(|buf| buf.as_bytes().unwrap()[0])
            .collect();
        assert_eq!(bytes, [0, 1, 2]);
        assert_eq!(flight.expected, 0);
    }

    #[test]
    fn one_failed_part_fails_the_request() {
        let mut flight = flight();
        let slot = begin(&mut flight, request(2, 8));
        flight.expected = 2;
        let error = IoError::new(ErrorKind::NoSpace, "");
        flight.complete(completion(Tag::new(slot, 0).pack(), 0, Err(error.clone())));
        let done = flight
            .complete(completion(Tag::new(slot, 1).pack(), 0, Ok(())))
            .unwrap();
        assert_eq!(done.error, Some(error));
    }

    #[test]
    fn requests_in_flight_are_bounded_in_number_and_bytes() {
        let mut flight = flight();
        let slot = begin(&mut flight, request(1, BYTES_MAX));
        assert!(flight.has_room(0));
        assert!(!flight.has_room(1));
        flight.expected = 1;
        let done = flight
            .complete(completion(Tag::new(slot, 0).pack(), 0, Ok(())))
            .unwrap();
        flight.release(done);
        for _ in 0..REQUESTS_MAX {
            assert!(flight.has_room(1));
            begin(&mut flight, request(1, 1));
        }
        assert!(!flight.has_room(0));
    }

    #[test]
    fn read_data_is_unsent_until_released() {
        let mut flight = flight();
        let slot = begin(&mut flight, request(2, 8));
        flight.expected = 2;
        assert!(
            flight
                .complete(completion(Tag::new(slot, 0).pack(), 0, Ok(())))
                .is_none()
        );
        assert_eq!(flight.unsent, 0);
        let done = flight
            .complete(completion(Tag::new(slot, 1).pack(), 0, Ok(())))
            .unwrap();
        assert_eq!(flight.unsent, 8);
        flight.release(done);
        assert_eq!(flight.unsent, 0);
    }

    #[test]
    fn buffer_is_reused_for_the_same_length() {
        let mut flight = flight();
        let mut done = request(0, 512);
        assert!(flight.account.try_take(512));
        flight.bytes = 512;
        flight.unsent = 512;
        done.first = IoBuf::from_bytes(vec![9; 512].into_boxed_slice());
        flight.release(done);
        assert_eq!(flight.account.used(), 512);
        assert!(flight.account.try_take(512));
        assert_eq!(flight.buffer(512).as_bytes().unwrap()[0], 9);
        assert_eq!(flight.account.used(), 512);
        assert_eq!(flight.buffer(512).as_bytes().unwrap()[0], 0);
    }

    #[test]
    fn idle_session_drops_memory_when_others_wait() {
        let budget = reactor::Budget::new(4 << 20);
        let mut flight = Flight::new(Rc::new(Account::new([budget.clone()])));
        let other = Account::new([budget.clone()]);
        let begin = |flight: &mut Flight| {
            assert!(flight.account.try_take(1 << 20));
            (flight.bytes, flight.unsent) = (1 << 20, 1 << 20);
        };
        let end = |flight: &mut Flight| {
            let mut done = request(0, 1 << 20);
            done.first = IoBuf::zeroed(1 << 20);
            flight.release(done);
        };
        begin(&mut flight);
        end(&mut flight);
        assert!(flight.keeps_idle());
        assert_eq!(flight.account.used(), 1 << 20);
        flight.drop_spare();
        assert_eq!((flight.account.used(), budget.used()), (0, 0));
        begin(&mut flight);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut take = std::pin::pin!(other.take(4 << 20));
        assert!(take.as_mut().poll(&mut context).is_pending());
        end(&mut flight);
        assert!(!flight.keeps_idle());
        assert!(take.as_mut().poll(&mut context).is_ready());
    }
}
