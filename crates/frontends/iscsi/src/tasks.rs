//! Commands of one session, from their arrival until they are answered.

use crate::pdu::{Made, NO_TAG};
use block::IoBuf;
use std::collections::HashMap;

/// Task attributes (RFC 7143, section 11.3.1).
pub(crate) const ORDERED: u8 = 2;
pub(crate) const HEAD_OF_QUEUE: u8 = 3;

/// What a command still waits for.
pub(crate) enum State {
    /// Data from the initiator.
    Receiving(Receiving),
    /// Its turn; the data is there.
    Waiting(Box<[u8]>),
    /// The unit.
    Running,
}

/// Memory for data-out, with whatever content it had. Much of it the system gives without touching it: what
/// never comes takes no memory.
pub(crate) fn spare(len: usize) -> Box<[u8]> {
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

/// A command.
pub(crate) struct Task {
    /// Counts up: who came before whom.
    pub order: u64,
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
    pub aborted: Option<Vec<Made>>,
    /// Memory that its data takes, counted among what is read, in bytes.
    pub held: u64,
    /// Memory that it was granted for data that it asks for, in bytes.
    pub granted: u64,
}

/// What a command that begins to run needs.
pub(crate) struct Begun {
    pub order: u64,
    pub lun: Option<u16>,
    pub cdb: [u8; 16],
    pub data: Box<[u8]>,
    pub generation: u64,
}

/// The table.
#[derive(Default)]
pub(crate) struct Tasks {
    table: HashMap<u32, Task>,
    orders: u64,
    /// Ordered commands in the table.
    ordered: usize,
    pub immediate: usize,
    tag: u32,
}

impl Tasks {
    pub(crate) fn contains(&self, tag: u32) -> bool {
        self.table.contains_key(&tag)
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn get_mut(&mut self, tag: u32) -> Option<&mut Task> {
        self.table.get_mut(&tag)
    }

    pub(crate) fn add(&mut self, tag: u32, mut task: Task) {
        self.orders += 1;
        task.order = self.orders;
        self.ordered += usize::from(task.attribute == ORDERED);
        self.immediate += usize::from(task.immediate);
        self.table.insert(tag, task);
    }

    pub(crate) fn remove(&mut self, tag: u32) -> Option<Task> {
        let task = self.table.remove(&tag)?;
        self.ordered -= usize::from(task.attribute == ORDERED);
        self.immediate -= usize::from(task.immediate);
        Some(task)
    }

    /// Takes out a command that has ended, unless another one has its tag by now.
    pub(crate) fn remove_ended(&mut self, tag: u32, order: u64) -> Option<Task> {
        let same = self.table.get(&tag).is_some_and(|task| task.order == order);
        same.then(|| self.remove(tag)).flatten()
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
    fn may_begin(&self, task: &Task) -> bool {
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
        match std::mem::replace(&mut task.state, State::Running) {
            State::Waiting(data) => Some(Begun {
                order: task.order,
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
    pub(crate) fn abort(&mut self, tag: u32, then: Option<Made>) -> Aborted {
        let Some(task) = self.table.get_mut(&tag) else {
            return Aborted::NotThere;
        };
        if matches!(task.state, State::Running) && !scsi::outlives_abort(&task.cdb) {
            task.aborted.get_or_insert_default().extend(then);
            return Aborted::Later;
        }
        match self.remove(tag) {
            Some(task) => Aborted::Now(Box::new(task)),
            None => Aborted::NotThere,
        }
    }

    /// Drops a command that does not run, or whose work nobody waits for.
    pub(crate) fn drop_unless_running(&mut self, tag: u32) {
        let runs =
            |task: &Task| matches!(task.state, State::Running) && !scsi::outlives_abort(&task.cdb);
        if !self.table.get(&tag).is_none_or(runs) {
            self.remove(tag);
        }
    }

    /// Tags of the commands to a unit, or to all.
    pub(crate) fn of(&self, lun: Option<u16>) -> Vec<u32> {
        let of = self
            .table
            .iter()
            .filter(|(_, task)| lun.is_none() || task.lun == lun);
        of.map(|(tag, _)| *tag).collect()
    }

    /// Tags of those that wait for memory, in order.
    pub(crate) fn ungranted(&self) -> Vec<u32> {
        let waits = |task: &Task| {
            matches!(&task.state, State::Receiving(data) if data.tag == NO_TAG
                && data.received == data.burst_end)
                && task.granted == 0
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
pub(crate) enum Aborted {
    NotThere,
    /// It is gone.
    Now(Box<Task>),
    /// It is answered with what was given, when it has ended.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(attribute: u8) -> Task {
        Task {
            order: 0,
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
            held: 0,
            granted: 0,
        }
    }

    #[test]
    fn an_ordered_command_waits_for_all_before_it_and_all_after_it_wait() {
        let mut tasks = Tasks::default();
        for (tag, attribute) in [(1, 1), (2, ORDERED), (3, 1), (4, HEAD_OF_QUEUE)] {
            tasks.add(tag, task(attribute));
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
        tasks.add(1, task(1));
        tasks.add(2, task(1));
        tasks.get_mut(2).unwrap().state = State::Running;
        assert!(matches!(tasks.abort(1, None), Aborted::Now(_)));
        assert!(matches!(tasks.abort(2, None), Aborted::Later));
        assert!(matches!(tasks.abort(3, None), Aborted::NotThere));
        assert!(tasks.remove(2).unwrap().aborted.is_some());
    }
}
