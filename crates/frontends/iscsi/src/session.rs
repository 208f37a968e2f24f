//! A session: state shared by its connections. It lives on the loop of its first connection, to
//! which all others are moved after their login: nothing is shared between threads, and a session
//! of one connection has no overhead.

use crate::channel::Channel;
use crate::early::Early;
use crate::fence::Fence;
use crate::login::Reach;
use crate::negotiate::Agreed;
use crate::output::Data;
use crate::pdu::{FINAL, Made, NO_TAG, StatusNumber, response};
use crate::target::{Granted, Place, Target};
use crate::tasks::Tasks;
use crate::window::Window;
use block::{CompletionQueue, CompletionSink};
use reactor::{Event, Handle, SECOND_NS};
use scsi::{Attention, Luns, Ports};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum commands of a session; and as many immediate ones.
pub(crate) const DEPTH: u32 = 128;
pub(super) const IMMEDIATE_MAX: usize = 16;

/// Time limit for an initiator asked to log out, in seconds; and the delay before it reconnects
/// after its connection or session was dropped (Time2Wait).
const LOGOUT_S: u16 = 3;
const TIME_TO_WAIT_S: u16 = 2;
/// Asynchronous events (11.9.1).
const LOG_OUT: u8 = 1;
const DROPS_ONE: u8 = 2;
const DROPS_ALL: u8 = 3;

/// An asynchronous message with its parameters (11.9).
fn asynchronous(event: u8, (first, second, third): (u16, u16, u16)) -> Made {
    Made::new(response::ASYNCHRONOUS, FINAL, NO_TAG, StatusNumber::Takes)
        .word(36, u32::from(event) << 24 | u32::from(first))
        .word(40, u32::from(second) << 16 | u32::from(third))
}

/// State of a normal session, absent in a discovery session.
pub(crate) struct Normal {
    pub target: Arc<Target>,
    pub luns: Rc<Luns>,
    pub ports: Ports,
    /// Granted units, according to its authentication.
    pub granted: Granted,
    pub version: Cell<u64>,
    pub place: Place,
}

/// A session.
pub(crate) struct Session {
    pub(super) handle: Handle,
    /// None in a discovery session.
    pub(super) normal: Option<Normal>,
    /// Targets listed by a discovery session.
    pub(super) reach: Reach,
    /// Parameters negotiated by its first connection.
    pub(super) agreed: Agreed,
    pub(super) window: Rc<Window>,
    pub(super) tasks: RefCell<Tasks>,
    /// Bytes of solicited data-out granted to commands.
    pub(super) granted: Cell<u64>,
    /// Signalled when a command or connection has ended.
    pub(super) ended: Event,
    pub(super) channels: RefCell<Vec<Rc<Channel>>>,
    /// Completions of commands that run without a task: the queue, shared with the devices that
    /// fill it.
    pub(super) completions: Arc<CompletionQueue>,
    pub(super) sink: Arc<dyn CompletionSink>,
    /// Signalled when the session has ended.
    pub(super) dropped: Event,
    pub(super) early: RefCell<Early>,
    pub(super) fence: RefCell<Option<Fence>>,
    /// No more connections are accepted.
    pub(super) closing: Cell<bool>,
    /// A task waits for memory.
    awaiting: Cell<bool>,
}

impl Session {
    pub(crate) fn new(
        handle: &Handle,
        normal: Option<Normal>,
        (reach, agreed): (Reach, Agreed),
        window: Rc<Window>,
    ) -> Rc<Self> {
        let completions = CompletionQueue::new();
        let session = Rc::new(Self {
            handle: handle.clone(),
            normal,
            reach,
            agreed,
            window,
            tasks: RefCell::default(),
            granted: Cell::new(0),
            ended: Event::default(),
            channels: RefCell::default(),
            sink: completions.clone(),
            completions,
            dropped: Event::default(),
            early: RefCell::default(),
            fence: RefCell::default(),
            closing: Cell::new(false),
            awaiting: Cell::new(false),
        });
        session.answer_completions();
        session
    }

    /// The connection with a CID.
    pub(super) fn channel(&self, number: u16) -> Option<Rc<Channel>> {
        let channels = self.channels.borrow();
        channels
            .iter()
            .find(|channel| channel.number == number)
            .cloned()
    }

    /// All other connections.
    pub(super) fn others(&self, than: &Rc<Channel>) -> Vec<Rc<Channel>> {
        let channels = self.channels.borrow();
        let others = channels.iter().filter(|other| !Rc::ptr_eq(other, than));
        others.cloned().collect()
    }

    /// Waits for memory held by others, and resumes the waiting commands when `bytes` are
    /// available.
    pub(super) fn await_memory(self: &Rc<Self>, bytes: u64) {
        if self.awaiting.replace(true) {
            return;
        }
        // A weak reference must be used here.
        let (session, window) = (Rc::downgrade(self), self.window.clone());
        self.handle.spawn(async move {
            let go_on = || {
                if let Some(session) = session.upgrade() {
                    session.awaiting.set(false);
                    session.deliver();
                    session.grant();
                }
            };
            window.reserve(bytes, go_on).await;
        });
    }

    /// Whether memory is held by data that the initiator has not sent or acknowledged.
    pub(super) fn waits_for_initiator(&self) -> bool {
        self.fence.borrow().is_some() || self.tasks.borrow().is_receiving()
    }

    /// Updates the number of outstanding commands.
    pub(super) fn count_commands(&self, tasks: &Tasks) {
        if let Some(normal) = &self.normal {
            normal.place.account.set_commands(tasks.len());
        }
    }

    /// Asks the initiator to log out, and ends the session if it does not in time.
    pub(crate) fn ask_to_log_out(self: &Rc<Self>) {
        for channel in self.channels.borrow().iter() {
            let made = asynchronous(LOG_OUT, (0, 0, LOGOUT_S));
            channel.output.push(made, Data::None);
        }
        let (handle, session) = (self.handle.clone(), Rc::downgrade(self));
        self.handle.spawn(async move {
            handle.sleep(u64::from(LOGOUT_S) * SECOND_NS).await;
            if let Some(session) = session.upgrade() {
                session.closing.set(true);
                for channel in session.channels.borrow().iter() {
                    channel.seat.end(true);
                }
            }
        });
    }

    /// Terminates the commands of a connection (RFC 7143, section 11.14): waiting ones are dropped;
    /// running ones are answered unless the connection is over. Affected units report a unit
    /// attention if the session continues.
    pub(super) fn terminate(self: &Rc<Self>, channel: &Rc<Channel>) {
        self.drop_early(channel);
        let goes_on = !self.others(channel).is_empty();
        let tags = self.tasks.borrow().of(channel);
        for tag in tags {
            let lun = self.lun_of(tag);
            let dropped = {
                let mut tasks = self.tasks.borrow_mut();
                if let Some(task) = tasks.get_mut(tag).filter(|_| channel.over.get()) {
                    task.state.stop();
                }
                tasks.drop_unless_running(tag)
            };
            if goes_on && (dropped.is_some() || channel.over.get()) {
                self.tell_cleared(lun);
            }
            if let Some(task) = dropped {
                self.forget(&task);
                self.give_back(&task);
            }
        }
        self.begin_ready();
        self.deliver();
        self.check_fence();
    }

    fn lun_of(&self, tag: u32) -> Option<u16> {
        let mut tasks = self.tasks.borrow_mut();
        tasks.get_mut(tag).and_then(|task| task.lun)
    }

    /// Makes a unit report with the next command that commands were cleared (47h/7Fh).
    fn tell_cleared(&self, lun: Option<u16>) {
        let normal = self.normal.as_ref();
        if let Some(nexus) = normal.zip(lun).and_then(|(all, lun)| all.luns.get(lun)) {
            nexus.tell(Attention::ClearedByProtocol);
        }
    }

    /// A connection and all of its commands have ended.
    pub(super) fn leave(self: &Rc<Self>, channel: &Rc<Channel>) {
        channel.over.set(true);
        let mut channels = self.channels.borrow_mut();
        channels.retain(|other| !Rc::ptr_eq(other, channel));
        if channels.is_empty() {
            self.closing.set(true);
            self.completions.give_up();
        }
        drop(channels);
        if let Some(normal) = &self.normal {
            normal.target.leave(&normal.place, channel.number);
        }
        self.check_fence();
        self.ended.notify();
    }

    /// Reports to the initiator on another connection that one was dropped.
    pub(super) fn tell_dropped(&self, channel: &Rc<Channel>) {
        if let Some(other) = self.others(channel).first() {
            let made = asynchronous(DROPS_ONE, (channel.number, TIME_TO_WAIT_S, 0));
            other.output.push(made, Data::None);
        }
    }

    /// Reports to the initiator that the whole session is dropped.
    pub(super) fn tell_all_dropped(channel: &Channel) {
        let made = asynchronous(DROPS_ALL, (0, TIME_TO_WAIT_S, 0));
        channel.output.push(made, Data::None);
    }
}
