//! A session: what its connections share. It lives on the loop of the connection that began it, and all of its
//! other connections are moved there when they have logged in: nothing here is shared between threads, and a
//! session of one connection pays nothing for what it might have been.

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

/// Commands of one session at a time; so many more that are immediate.
pub(crate) const DEPTH: u32 = 128;
pub(super) const IMMEDIATE_MAX: usize = 16;

/// An initiator that is asked to log out has this long, in seconds; one whose connection or session was ended
/// waits this long before it comes again (Time2Wait).
const LOGOUT_S: u16 = 3;
const TIME_TO_WAIT_S: u16 = 2;
/// Events of asynchronous messages (11.9.1).
const LOG_OUT: u8 = 1;
const DROPS_ONE: u8 = 2;
const DROPS_ALL: u8 = 3;

/// An asynchronous message with its parameters (11.9).
fn asynchronous(event: u8, (first, second, third): (u16, u16, u16)) -> Made {
    Made::new(response::ASYNCHRONOUS, FINAL, NO_TAG, StatusNumber::Takes)
        .word(36, u32::from(event) << 24 | u32::from(first))
        .word(40, u32::from(second) << 16 | u32::from(third))
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

/// A session.
pub(crate) struct Session {
    pub(super) handle: Handle,
    /// None in a discovery session.
    pub(super) normal: Option<Normal>,
    /// What a discovery session lists.
    pub(super) reach: Reach,
    /// What its first connection has agreed on.
    pub(super) agreed: Agreed,
    pub(super) window: Rc<Window>,
    pub(super) tasks: RefCell<Tasks>,
    /// Bytes of data-out that commands were granted.
    pub(super) granted: Cell<u64>,
    /// A command or a connection has ended.
    pub(super) ended: Event,
    pub(super) channels: RefCell<Vec<Rc<Channel>>>,
    /// Of commands that run without a task: the queue, and the same for those who fill it.
    pub(super) completions: Arc<CompletionQueue>,
    pub(super) sink: Arc<dyn CompletionSink>,
    /// The session is no more.
    pub(super) dropped: Event,
    pub(super) early: RefCell<Early>,
    pub(super) fence: RefCell<Option<Fence>>,
    /// It takes no more connections.
    pub(super) closing: Cell<bool>,
    /// Memory is waited for.
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

    /// The connection of a number.
    pub(super) fn channel(&self, number: u16) -> Option<Rc<Channel>> {
        let channels = self.channels.borrow();
        channels
            .iter()
            .find(|channel| channel.number == number)
            .cloned()
    }

    /// The connections but one.
    pub(super) fn others(&self, than: &Rc<Channel>) -> Vec<Rc<Channel>> {
        let channels = self.channels.borrow();
        let others = channels.iter().filter(|other| !Rc::ptr_eq(other, than));
        others.cloned().collect()
    }

    /// Has those commands go on that wait for memory which others have, when so much of it is there.
    pub(super) fn await_memory(self: &Rc<Self>, bytes: u64) {
        if self.awaiting.replace(true) {
            return;
        }
        // It must not keep the session.
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

    /// Whether the initiator keeps memory by what it has not sent or acknowledged yet.
    pub(super) fn waits_for_initiator(&self) -> bool {
        self.fence.borrow().is_some() || self.tasks.borrow().is_receiving()
    }

    /// Notes how many commands are not answered yet.
    pub(super) fn count_commands(&self, tasks: &Tasks) {
        if let Some(normal) = &self.normal {
            normal.place.account.set_commands(tasks.len());
        }
    }

    /// Asks the initiator to log out, and ends the session when it has not done so in time.
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

    /// Ends what a connection has begun (RFC 7143, section 11.14): what waits is dropped; what runs is answered
    /// unless the connection is over. The units that lose commands tell so where the session goes on.
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

    /// Has a unit tell with the next command that some were cleared (47h/7Fh).
    fn tell_cleared(&self, lun: Option<u16>) {
        let normal = self.normal.as_ref();
        if let Some(nexus) = normal.zip(lun).and_then(|(all, lun)| all.luns.get(lun)) {
            nexus.tell(Attention::ClearedByProtocol);
        }
    }

    /// A connection has ended, and all that it began.
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

    /// Tells the initiator, by another connection, that one was dropped.
    pub(super) fn tell_dropped(&self, channel: &Rc<Channel>) {
        if let Some(other) = self.others(channel).first() {
            let made = asynchronous(DROPS_ONE, (channel.number, TIME_TO_WAIT_S, 0));
            other.output.push(made, Data::None);
        }
    }

    /// Tells the initiator that the whole session is dropped.
    pub(super) fn tell_all_dropped(channel: &Channel) {
        let made = asynchronous(DROPS_ALL, (0, TIME_TO_WAIT_S, 0));
        channel.output.push(made, Data::None);
    }
}
