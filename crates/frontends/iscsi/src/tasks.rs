//! Commands of one session, from their arrival until they are answered.

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

/// What a command still waits for.
pub(crate) enum State {
    /// Data from the initiator.
    Receiving(Receiving),
    /// Its turn; the data is there.
    Waiting(Box<[u8]>),
    /// The unit; a task of its own sees to it, and ends it soon when it is told to stop.
    Running(Stop),
    /// The unit, whose completion ends it.
    Direct(Direct),
}

impl State {
    /// Whether the unit is at work.
    fn runs(&self) -> bool {
        matches!(self, Self::Running(_) | Self::Direct(_))
    }

    /// Has what runs end soon, as nobody waits for it.
    pub(crate) fn stop(&self) {
        if let Self::Running(stop) = self {
            stop.set();
        }
    }
}

/// Memory for data-out, with whatever content it had. Much of it the system gives without touching it: what
/// never comes takes no memory.
pub(crate) fn spare(len: usize) -> Box<[u8]> {
    if len == 0 {
        return Box::default();
    }
    IoBuf::spare(len).into_bytes().unwrap_or_default()
}

/// Data-out that is being collected, in order.
pub(crate) struct Receiving {
    /// Memory for what may come: at first for what comes unasked, and for all of it once it is granted.
    pub data: Box<[u8]>,
    /// Length of all of it.
    pub whole: usize,
    pub received: usize,
    /// Where the data ends that may come now: the first burst's, or what an R2T asked for.
    pub burst_end: usize,
    /// What comes unasked is not all there yet.
    pub open: bool,
    /// The tag that it has to come with; [`NO_TAG`] for what nobody asked for.
    pub tag: u32,
    /// DataSN of the next Data-Out, R2TSN of the next R2T.
    pub data_number: u32,
    pub r2t_number: u32,
    /// A digest was wrong: it is answered with an error when all of it has come.
    pub damaged: bool,
}

impl Receiving {
    /// Makes room for all of it.
    pub(crate) fn grow(&mut self) {
        if self.data.len() < self.whole {
            let mut data = spare(self.whole);
            data[..self.received].copy_from_slice(&self.data[..self.received]);
            let before = std::mem::replace(&mut self.data, data);
            IoBuf::from_bytes(before).give_back();
        }
    }
}

/// Something to be answered, and on which connection.
pub(crate) type Answer<C = Channel> = (Rc<C>, Made);

/// A command. `C` is what stands for a connection.
pub(crate) struct Task<C = Channel> {
    /// No other one has it, whatever its tag.
    pub id: u64,
    /// Whose turn is before whose; [`NO_TURN`] until the commands before it have come.
    pub order: u64,
    /// The connection that it came by, and that all of it belongs to (RFC 7143, section 4.2.5.1).
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
    /// It was aborted, and these are answered when it has ended.
    pub aborted: Option<Vec<Answer<C>>>,
    /// It came after a function that has aborted the unit's commands: if it was aborted with them, its
    /// initiator is asked to send it again.
    pub spared: bool,
    /// Memory that its data takes, counted among what is read, in bytes.
    pub held: u64,
    /// Memory of what came with it, or may come unasked.
    pub _brought: Option<Taken>,
    /// Memory that it was granted for data that it asks for, in bytes.
    pub granted: u64,
}

/// The order of a command that has no turn yet.
pub(crate) const NO_TURN: u64 = u64::MAX;

/// What a command that begins to run needs.
pub(crate) struct Begun {
    pub id: u64,
    pub lun: Option<u16>,
    pub cdb: [u8; 16],
    pub data: Box<[u8]>,
    pub generation: u64,
    pub stop: Stop,
}

/// Spreads tags by one multiplication. Who chooses tags that collide makes a session's own hundred commands slower.
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
        // The table takes the lowest bits and the highest: both come from all of the tag.
        let mixed = (self.0 ^ u64::from(tag)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// The table.
pub(crate) struct Tasks<C = Channel> {
    table: HashMap<u32, Task<C>, BuildHasherDefault<TagHasher>>,
    ids: u64,
    orders: u64,
    /// Ordered commands in the table.
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

    /// Enters a command, whose turn it may be already.
    pub(crate) fn add(&mut self, tag: u32, mut task: Task<C>, has_turn: bool) {
        self.ids += 1;
        self.orders += u64::from(has_turn);
        task.id = self.ids;
        task.order = if has_turn { self.orders } else { NO_TURN };
        self.ordered += usize::from(task.attribute == ORDERED);
        self.immediate += usize::from(task.immediate);
        self.table.insert(tag, task);
    }

    /// All commands before it have come: it gets its turn.
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

    /// Takes out a command that has ended, unless another one has its tag by now.
    pub(crate) fn remove_ended(&mut self, tag: u32, id: u64) -> Option<Task<C>> {
        let same = self.table.get(&tag).is_some_and(|task| task.id == id);
        same.then(|| self.remove(tag)).flatten()
    }

    /// Takes out a command that the unit has without a task.
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

    /// Has a command run whose data is there, when it may begin.
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

    /// Tags of those that waited for their turn and may begin now.
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

    /// Whether somebody may wait for a turn.
    pub(crate) fn has_ordered(&self) -> bool {
        self.ordered > 0
    }

    /// Aborts a command that does not run; of one that runs, nothing is answered but `then`. False
    /// when there is none.
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

    /// Takes out a command that does not run, or whose work nobody waits for.
    pub(crate) fn drop_unless_running(&mut self, tag: u32) -> Option<Task<C>> {
        let task = self.table.get(&tag)?;
        let runs = task.state.runs() && !scsi::outlives_abort(&task.cdb);
        if runs { None } else { self.remove(tag) }
    }

    /// Tags of the commands to a unit, or to all, that a function with this number aborts: those that came
    /// before it. Those of them that came after it are marked, should they be aborted all the same.
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

    /// Tags of the commands that came by a connection.
    pub(crate) fn of(&self, channel: &Rc<C>) -> Vec<u32> {
        let table = self.table.iter();
        let own = table.filter(|(_, task)| Rc::ptr_eq(&task.channel, channel));
        own.map(|(tag, _)| *tag).collect()
    }

    /// Whether the initiator is to send data of some now: what it was not asked for yet is not awaited of it.
    pub(crate) fn is_receiving(&self) -> bool {
        let awaited = |data: &Receiving| data.open || data.tag != NO_TAG;
        let mut tasks = self.table.values();
        tasks.any(|task| matches!(&task.state, State::Receiving(data) if awaited(data)))
    }

    /// Tags of those that wait for memory, in order.
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

/// What became of a command that was to be aborted.
pub(crate) enum Aborted<C = Channel> {
    NotThere,
    /// It is gone.
    Now(Box<Task<C>>),
    /// It is answered with what was given, when it has ended.
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
    fn an_ordered_command_waits_for_all_before_it_and_all_after_it_wait() {
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
    fn what_runs_is_aborted_when_it_has_ended() {
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
    fn turns_are_given_in_the_order_of_numbers_and_not_of_arrival() {
        let mut tasks = Tasks::default();
        tasks.add(2, task(1), false);
        tasks.add(1, task(ORDERED), false);
        tasks.give_turn(1);
        assert_eq!(tasks.ready(), [1], "the one before it has come");
        tasks.give_turn(2);
        assert_eq!(tasks.ready(), [1]);
        tasks.remove(1);
        assert_eq!(tasks.ready(), [2]);
    }

    #[test]
    fn a_function_aborts_what_came_before_it() {
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
