//! One initiator port's way to a unit through one target port (an I_T_L nexus, SAM-5 4.7).
//!
//! Responsible for: attentions that wait for the nexus, and which of its commands are aborted.

use crate::attention::Attention;
use crate::copy::{CopyEnded, Ended};
use crate::port_groups::PortGroups;
use crate::unit::{Unit, lock};
use block::BlockDevice;
use reactor::{Handle, Limit};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

/// Commands of one nexus at a time that do much by one request.
const LONG_MAX: usize = 4;

/// The two ports of a nexus. A registration belongs to them, whether or not a session is there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Ports {
    /// The initiator port's name, as it is in its transport identifier.
    pub initiator: String,
    /// The target's name.
    pub target: String,
    /// The target port's relative identifier, which is its group's number as well.
    pub target_port: u16,
}

/// Operations of others on a nexus, from any thread.
pub(crate) struct Member {
    pub number: u64,
    pub ports: Ports,
    attentions: Mutex<BTreeSet<Attention>>,
    has_attention: AtomicBool,
    /// Counts the times that all of its commands were aborted.
    generation: AtomicU64,
    /// Commands that run, of the present generation and the one before, in turn.
    running: [AtomicUsize; 2],
    /// A task waits for commands to end.
    watched: AtomicUsize,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Member {
    fn new(ports: Ports) -> Arc<Self> {
        let member = Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            ports,
            attentions: Mutex::default(),
            has_attention: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            running: Default::default(),
            watched: AtomicUsize::new(0),
        };
        Arc::new(member)
    }

    /// Leaves an attention; a reset takes the place of all others.
    pub(crate) fn tell(&self, attention: Attention) {
        let mut attentions = lock(&self.attentions);
        if matches!(attention, Attention::PowerOn | Attention::UnitReset) {
            attentions.clear();
        }
        attentions.insert(attention);
        self.has_attention.store(true, Ordering::Release);
    }

    fn has_attention(&self) -> bool {
        self.has_attention.load(Ordering::Acquire)
    }

    fn take_attention(&self) -> Option<Attention> {
        if !self.has_attention() {
            return None;
        }
        let mut attentions = lock(&self.attentions);
        let first = attentions.pop_first();
        self.has_attention
            .store(!attentions.is_empty(), Ordering::Release);
        first
    }

    /// Aborts what was begun so far, and waits until none of it runs any longer.
    pub(crate) async fn abort_all(&self, unit: &Unit) {
        self.watched.fetch_add(1, Ordering::SeqCst);
        let ended = self.generation.fetch_add(1, Ordering::SeqCst);
        poll_fn(|context| {
            unit.wait_for_commands(context.waker());
            // The other count may still have commands of an abort before this one.
            match self.running[(ended & 1) as usize].load(Ordering::SeqCst) {
                0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
        self.watched.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A nexus, on the loop of its session.
pub struct Nexus {
    pub(crate) handle: Handle,
    pub(crate) unit: Arc<Unit>,
    pub(crate) device: Arc<dyn BlockDevice>,
    pub(crate) member: Arc<Member>,
    /// Whether only reading was granted.
    pub(crate) read_only: Cell<bool>,
    /// The target's ports that offer the unit.
    pub(crate) groups: Arc<PortGroups>,
    /// PREVENT ALLOW MEDIUM REMOVAL.
    pub(crate) prevents_removal: Cell<bool>,
    /// Commands that do much ([`crate::table::Run::is_long`]) take turns.
    pub(crate) long: Limit,
    /// Copies that have ended, for RECEIVE COPY RESULTS.
    pub(crate) copies: RefCell<Vec<CopyEnded>>,
    /// The same of those with long list identifiers, and of tokens.
    pub(crate) offloads: RefCell<Vec<Ended>>,
}

/// A command that runs; it counts until it is dropped.
pub(crate) struct Running {
    nexus: Rc<Nexus>,
    generation: u64,
}

impl Running {
    /// Whether an abort came meanwhile: then nothing is answered.
    pub(crate) fn is_aborted(&self) -> bool {
        self.nexus.generation() != self.generation
    }

    /// Its loop.
    pub(crate) fn nexus(&self) -> &Nexus {
        &self.nexus
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let member = &self.nexus.member;
        member.running[(self.generation & 1) as usize].fetch_sub(1, Ordering::SeqCst);
        if member.watched.load(Ordering::SeqCst) > 0 {
            self.nexus.unit.command_ended();
        }
    }
}

impl Nexus {
    /// A new nexus. `device` is the unit's volume, opened for this initiator; `groups` are the ports that
    /// offer it.
    pub fn new(
        handle: &Handle,
        unit: Arc<Unit>,
        device: Arc<dyn BlockDevice>,
        (ports, groups): (Ports, Arc<PortGroups>),
        read_only: bool,
    ) -> Self {
        let member = Member::new(ports);
        member.tell(Attention::PowerOn);
        unit.join(&member);
        Self {
            handle: handle.clone(),
            unit,
            device,
            member,
            read_only: Cell::new(read_only),
            groups,
            prevents_removal: Cell::new(false),
            long: Limit::new(LONG_MAX),
            copies: RefCell::default(),
            offloads: RefCell::default(),
        }
    }

    /// The unit.
    pub fn unit(&self) -> &Arc<Unit> {
        &self.unit
    }

    /// Only reading is granted from now on, or writing as well.
    pub fn set_read_only(&self, read_only: bool) {
        if self.read_only.replace(read_only) != read_only {
            self.tell(Attention::ModeChanged);
        }
    }

    /// The number of aborts so far, for a command that is still to be given all of its data.
    pub fn generation(&self) -> u64 {
        self.member.generation.load(Ordering::SeqCst)
    }

    /// Leaves an attention for this nexus.
    pub fn tell(&self, attention: Attention) {
        self.member.tell(attention);
    }

    pub(crate) fn has_attention(&self) -> bool {
        self.member.has_attention()
    }

    pub(crate) fn take_attention(&self) -> Option<Attention> {
        self.member.take_attention()
    }

    pub(crate) fn begin(self: &Rc<Self>, generation: u64) -> Option<Running> {
        let count = &self.member.running[(generation & 1) as usize];
        count.fetch_add(1, Ordering::SeqCst);
        let running = Running {
            nexus: self.clone(),
            generation,
        };
        (!running.is_aborted()).then_some(running)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.get() || self.unit.is_read_only()
    }

    /// ABORT TASK SET: what this nexus has begun.
    pub async fn abort_own(&self) {
        self.member.abort_all(&self.unit).await;
    }

    /// CLEAR TASK SET: the commands of all; the others are notified (SAM-5 7.4). A read-only host clears what
    /// is its own.
    pub async fn clear_task_set(&self) {
        if self.read_only.get() {
            return self.abort_own().await;
        }
        self.abort_members(Attention::CommandsCleared, |_| true)
            .await;
    }

    /// LOGICAL UNIT RESET (SAM-5 6.3.3): commands aborted, reservations of the old kind released,
    /// mode pages as they were; every nexus is notified, this one if it is `for_all`. For a read-only host
    /// it is a reset of its own nexus, so that it recovers from errors without ending what others do.
    pub async fn reset_unit(&self, for_all: bool) {
        if self.read_only.get() {
            self.abort_own().await;
            if for_all {
                self.tell(Attention::UnitReset);
            }
            return;
        }
        self.unit.reservations.release_legacy(None);
        self.unit.reset_modes();
        for member in self.unit.members() {
            member.abort_all(&self.unit).await;
            if for_all || member.number != self.member.number {
                member.tell(Attention::UnitReset);
            }
        }
    }

    async fn abort_members(&self, attention: Attention, which: impl Fn(&Member) -> bool) {
        for member in self.unit.members() {
            if which(&member) {
                member.abort_all(&self.unit).await;
                if member.number != self.member.number {
                    member.tell(attention);
                }
            }
        }
    }
}

impl Drop for Nexus {
    /// The nexus is lost (SAM-5 6.3.4).
    fn drop(&mut self) {
        self.unit
            .reservations
            .release_legacy(Some(self.member.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Arc<Member> {
        Member::new(Ports {
            initiator: "a".to_owned(),
            target: "t".to_owned(),
            target_port: 1,
        })
    }

    #[test]
    fn each_attention_is_told_once_and_a_reset_replaces_the_others() {
        let member = member();
        member.tell(Attention::ModeChanged);
        member.tell(Attention::CapacityChanged);
        member.tell(Attention::CapacityChanged);
        assert_eq!(member.take_attention(), Some(Attention::CapacityChanged));
        assert_eq!(member.take_attention(), Some(Attention::ModeChanged));
        assert_eq!(member.take_attention(), None);
        member.tell(Attention::ModeChanged);
        member.tell(Attention::UnitReset);
        assert_eq!(member.take_attention(), Some(Attention::UnitReset));
        assert_eq!(member.take_attention(), None);
    }
}
