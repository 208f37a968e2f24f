//! Table of a session's commands, from their arrival to their response.

use crate::channel::Channel;
use crate::memory::Taken;
use crate::pdu::{Made, NO_TAG, is_before};
use block::IoBuf;
use scsi::{Direct, Stop};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// Task attributes (RFC 7143, section 11.3.1).
pub(crate) const ORDERED: u8 = 2;
pub(crate) const HEAD_OF_QUEUE: u8 = 3;

/// State of a command.
pub(crate) enum State {
    /// Waiting for data from the initiator.
    Receiving(Receiving),
    /// Waiting for its turn with all data.
    Waiting(Box<[u8]>),
    /// Executed by a task of its own, which aborts soon when stopped.
    Running(Stop),
    /// Executed by the unit, whose completion ends it.
    Direct(Direct),
}

impl State {
    /// Whether the unit is executing it.
    fn runs(&self) -> bool {
        matches!(self, Self::Running(_) | Self::Direct(_))
    }

    /// Aborts its execution, as no response is needed.
    pub(crate) fn stop(&self) {
        if let Self::Running(stop) = self {
            stop.set();
        }
    }
}

/// An uninitialised data-out buffer. Large allocations are lazily backed by the kernel: data that
/// never arrives uses no memory.
pub(crate) fn spare(len: usize) -> Box<[u8]> {
    if len == 0 {
        return Box::default();
    }
    IoBuf::spare(len).into_bytes().unwrap_or_default()
}

/// Data-out being received, in order.
pub(crate) struct Receiving {
    /// The buffer: initially for unsolicited data, and for everything once it was granted.
    pub data: Box<[u8]>,
    /// Total length.
    pub whole: usize,
    pub received: usize,
    /// End of the data expected now: of the first burst, or of the R2T.
    pub burst_end: usize,
    /// Unsolicited data is outstanding.
    pub open: bool,
    /// Expected target transfer tag; [`NO_TAG`] for unsolicited data.
    pub tag: u32,
    /// DataSN of the next Data-Out, and R2TSN of the next R2T.
    pub data_number: u32,
    pub r2t_number: u32,
    /// A digest was wrong: the command fails when all data has arrived.
    pub damaged: bool,
}

impl Receiving {
    /// Enlarges the buffer to the total length.
    pub(crate) fn grow(&mut self) {
        if self.data.len() < self.whole {
            let mut data = spare(self.whole);
            data[..self.received].copy_from_slice(&self.data[..self.received]);
            let before = std::mem::replace(&mut self.data, data);
            IoBuf::from_bytes(before).give_back();
        }
    }
}

/// A response and its connection.
pub(crate) type Answer<C = Channel> = (Rc<C>, Made);

/// A command. `C` represents a connection.
pub(crate) struct Task<C = Channel> {
    /// Unique, unlike its tag.
    pub id: u64,
    /// Order of execution; [`NO_TURN`] until all earlier commands have arrived.
    pub order: u64,
    /// Its connection (connection allegiance, RFC 7143, section 4.2.5.1).
    pub channel: Rc<C>,
    /// CmdSN.
    pub number: u32,
    pub attribute: u8,
    pub immediate: bool,
    pub lun: Option<u16>,
    pub lun_bytes: [u8; 8],
    pub cdb: [u8; 16],
    /// Expected data transfer length.
    pub expected: u32,
    pub reads: bool,
    pub generation: u64,
    pub state: State,
    /// It was aborted: responses to send when it has ended.
    pub aborted: Option<Vec<Answer<C>>>,
    /// It arrived after a function that has aborted the unit's commands: if it was aborted with
    /// them, the initiator is asked to retry it.
    pub spared: bool,
    /// Memory of its data, charged as read data, in bytes.
    pub held: u64,
    /// Memory of its immediate and unsolicited data.
    pub _brought: Option<Taken>,
    /// Memory granted for solicited data, in bytes.
    pub granted: u64,
}

/// Order of a command without a turn.
pub(crate) const NO_TURN: u64 = u64::MAX;

/// A command that begins execution.
pub(crate) struct Begun {
    pub id: u64,
    pub lun: Option<u16>,
    pub cdb: [u8; 16],
    pub data: Box<[u8]>,
    pub generation: u64,
    pub stop: Stop,
}

/// Multiplicative hash of tags. An initiator that chooses colliding tags slows down its own hundred
/// commands only.
#[derive(Default)]
struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, tag: u32) {
        // The table uses the lowest and highest bits: both depend on the whole tag.
        let mixed = (self.0 ^ u64::from(tag)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// The table.
pub(crate) struct Tasks<C = Channel> {
    table: HashMap<u32, Task<C>, BuildHasherDefault<TagHasher>>,
    ids: u64,
    orders: u64,
    /// Number of ordered commands.
    ordered: usize,
    pub immediate: usize,
    tag: u32,
}

impl<C> Default for Tasks<C> {
    fn default() -> Self {
        Self {
            table: HashMap::default(),
            ids: 0,
            orders: 0,
            ordered: 0,
            immediate: 0,
            tag: 0,
        }
    }
}

impl<C> Tasks<C> {
    pub(crate) fn contains(&self, tag: u32) -> bool {
        self.table.contains_key(&tag)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get_mut(&mut self, tag: u32) -> Option<&mut Task<C>> {
        self.table.get_mut(&tag)
    }

    /// Adds a command, with or without its turn.
    pub(crate) fn add(&mut self, tag: u32, mut task: Task<C>, has_turn: bool) {
        self.ids += 1;
        self.orders += u64::from(has_turn);
        task.id = self.ids;
        task.order = if has_turn { self.orders } else { NO_TURN };
        self.ordered += usize::from(task.attribute == ORDERED);
        self.immediate += usize::from(task.immediate);
        self.table.insert(tag, task);
    }

    /// All earlier commands have arrived: it gets its turn.
    pub(crate) fn give_turn(&mut self, tag: u32) -> Option<&mut Task<C>> {
        self.orders += 1;
        let task = self.table.get_mut(&tag)?;
        task.order = self.orders;
        Some(task)
    }

    pub(crate) fn remove(&mut self, tag: u32) -> Option<Task<C>> {
        let task = self.table.remove(&tag)?;
        self.count_out(&task);
        Some(task)
    }

    fn count_out(&mut self, task: &Task<C>) {
        self.ordered -= usize::from(task.attribute == ORDERED);
        self.immediate -= usize::from(task.immediate);
    }

    /// Removes a command that has ended, unless its tag was reused.
    pub(crate) fn remove_ended(&mut self, tag: u32, id: u64) -> Option<Task<C>> {
        let same = self.table.get(&tag).is_some_and(|task| task.id == id);
        same.then(|| self.remove(tag)).flatten()
    }

    /// Removes a command that the unit executes without a task.
    pub(crate) fn remove_direct(&mut self, tag: u32) -> Option<(Task<C>, Direct)> {
        let Entry::Occupied(entry) = self.table.entry(tag) else {
            return None;
        };
        if !matches!(entry.get().state, State::Direct(_)) {
            return None;
        }
        let mut task = entry.remove();
        self.count_out(&task);
        match std::mem::replace(&mut task.state, State::Waiting(Box::default())) {
            State::Direct(direct) => Some((task, direct)),
            _ => None,
        }
    }

    /// A tag for an R2T.
    pub(crate) fn next_tag(&mut self) -> u32 {
        self.tag = self.tag.wrapping_add(1);
        if self.tag == NO_TAG {
            self.tag = 0;
        }
        self.tag
    }

    /// Whether a command may begin: an ordered one after all before it, others after the ordered
    /// ones before them (SAM-5 8.6).
    fn may_begin(&self, task: &Task<C>) -> bool {
        if self.ordered == 0 || task.attribute == HEAD_OF_QUEUE {
            return true;
        }
        let mut before = self.table.values().filter(|other| other.order < task.order);
        !before.any(|other| task.attribute == ORDERED || other.attribute == ORDERED)
    }

    /// Begins a command with all of its data, if it may begin.
    pub(crate) fn begin(&mut self, tag: u32) -> Option<Begun> {
        let task = self.table.get(&tag)?;
        if !matches!(task.state, State::Waiting(_)) || !self.may_begin(task) {
            return None;
        }
        let task = self.table.get_mut(&tag)?;
        let stop = Stop::default();
        match std::mem::replace(&mut task.state, State::Running(stop.clone())) {
            State::Waiting(data) => Some(Begun {
                stop,
                id: task.id,
                lun: task.lun,
                cdb: task.cdb,
                data,
                generation: task.generation,
            }),
            _ => None,
        }
    }

    /// Tags of waiting commands that may begin now.
    pub(crate) fn ready(&self) -> Vec<u32> {
        if self.table.is_empty() {
            return Vec::new();
        }
        let mut ready: Vec<(u64, u32)> = self
            .table
            .iter()
            .filter(|(_, task)| matches!(task.state, State::Waiting(_)) && self.may_begin(task))
            .map(|(tag, task)| (task.order, *tag))
            .collect();
        ready.sort_unstable();
        ready.into_iter().map(|(_, tag)| tag).collect()
    }

    /// Whether commands may wait for ordered ones.
    pub(crate) fn has_ordered(&self) -> bool {
        self.ordered > 0
    }

    /// Aborts a command that is not running; a running one will only be answered with `then`. `NotThere`
    /// if no command has the tag.
    pub(crate) fn abort(&mut self, tag: u32, then: Option<Answer<C>>) -> Aborted<C> {
        let Some(task) = self.table.get_mut(&tag) else {
            return Aborted::NotThere;
        };
        if task.state.runs() && !scsi::outlives_abort(&task.cdb) {
            task.state.stop();
            task.aborted.get_or_insert_default().extend(then);
            return Aborted::Later;
        }
        match self.remove(tag) {
            Some(task) => Aborted::Now(Box::new(task)),
            None => Aborted::NotThere,
        }
    }

    /// Removes a command that is not running, or whose result is not needed.
    pub(crate) fn drop_unless_running(&mut self, tag: u32) -> Option<Task<C>> {
        let task = self.table.get(&tag)?;
        let runs = task.state.runs() && !scsi::outlives_abort(&task.cdb);
        if runs { None } else { self.remove(tag) }
    }

    /// Tags of the commands to a unit, or to all, that a function with this number aborts: those
    /// before it. Commands after it are marked in case they are aborted as well.
    pub(crate) fn before(&mut self, lun: Option<u16>, number: u32) -> Vec<u32> {
        let mut tags = Vec::new();
        for (tag, task) in &mut self.table {
            if task.order == NO_TURN || lun.is_some() && task.lun != lun {
                continue;
            }
            match task.immediate || is_before(task.number, number) {
                true => tags.push(*tag),
                false => task.spared = true,
            }
        }
        tags
    }

    /// Tags of the commands of a connection.
    pub(crate) fn of(&self, channel: &Rc<C>) -> Vec<u32> {
        let table = self.table.iter();
        let own = table.filter(|(_, task)| Rc::ptr_eq(&task.channel, channel));
        own.map(|(tag, _)| *tag).collect()
    }

    /// Whether solicited or unsolicited data of some command is outstanding.
    pub(crate) fn is_receiving(&self) -> bool {
        let awaited = |data: &Receiving| data.open || data.tag != NO_TAG;
        let mut tasks = self.table.values();
        tasks.any(|task| matches!(&task.state, State::Receiving(data) if awaited(data)))
    }

    /// Tags of commands waiting for memory, in order.
    pub(crate) fn ungranted(&self) -> Vec<u32> {
        let waits = |task: &Task<C>| {
            matches!(&task.state, State::Receiving(data) if data.tag == NO_TAG && !data.open)
                && task.granted == 0
                && task.order != NO_TURN
        };
        let mut tags: Vec<(u64, u32)> = self
            .table
            .iter()
            .filter(|(_, task)| waits(task))
            .map(|(tag, task)| (task.order, *tag))
            .collect();
        tags.sort_unstable();
        tags.into_iter().map(|(_, tag)| tag).collect()
    }
}

/// Result of an abort.
pub(crate) enum Aborted<C = Channel> {
    NotThere,
    /// It was removed.
    Now(Box<Task<C>>),
    /// The given response is sent when it has ended.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(attribute: u8) -> Task<()> {
        Task {
            id: 0,
            order: 0,
            channel: Rc::default(),
            number: 0,
            attribute,
            immediate: false,
            lun: Some(0),
            lun_bytes: [0; 8],
            cdb: [0; 16],
            expected: 0,
            reads: false,
            generation: 0,
            state: State::Waiting(Box::default()),
            aborted: None,
            spared: false,
            held: 0,
            _brought: None,
            granted: 0,
        }
    }

    #[test]
    fn ordered_command_is_a_barrier() {
        let mut tasks = Tasks::default();
        for (tag, attribute) in [(1, 1), (2, ORDERED), (3, 1), (4, HEAD_OF_QUEUE)] {
            tasks.add(tag, task(attribute), true);
        }
        assert_eq!(tasks.ready(), [1, 4]);
        tasks.remove(1);
        assert_eq!(tasks.ready(), [2, 4]);
        tasks.remove(2);
        assert_eq!(tasks.ready(), [3, 4]);
    }

    #[test]
    fn running_command_is_aborted_at_its_end() {
        let mut tasks = Tasks::default();
        tasks.add(1, task(1), true);
        tasks.add(2, task(1), true);
        let stop = Stop::default();
        tasks.get_mut(2).unwrap().state = State::Running(stop.clone());
        assert!(matches!(tasks.abort(1, None), Aborted::Now(_)));
        assert!(matches!(tasks.abort(2, None), Aborted::Later));
        assert!(matches!(tasks.abort(3, None), Aborted::NotThere));
        assert!(tasks.remove(2).unwrap().aborted.is_some());
    }

    #[test]
    fn turns_follow_command_numbers_not_arrival() {
        let mut tasks = Tasks::default();
        tasks.add(2, task(1), false);
        tasks.add(1, task(ORDERED), false);
        tasks.give_turn(1);
        assert_eq!(tasks.ready(), [1], "the earlier command has arrived");
        tasks.give_turn(2);
        assert_eq!(tasks.ready(), [1]);
        tasks.remove(1);
        assert_eq!(tasks.ready(), [2]);
    }

    #[test]
    fn function_aborts_earlier_commands() {
        let mut tasks = Tasks::default();
        for (tag, number) in [(1, u32::MAX), (2, 0), (3, 1), (4, 0)] {
            tasks.add(tag, Task { number, ..task(1) }, tag != 4);
        }
        let mut before = tasks.before(Some(0), 1);
        before.sort_unstable();
        assert_eq!(before, [1, 2], "the fourth has no turn yet");
        assert!(tasks.get_mut(3).unwrap().spared && !tasks.get_mut(1).unwrap().spared);
    }
}
