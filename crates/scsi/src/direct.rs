//! Reads and writes that need no task: begun as they arrive, ended by their completion.
//!
//! Responsible for the common case. A command that must wait before it can begin, or ends before that, is left to
//! [`Luns::execute`], which carries out everything.

use crate::blocks::{Blocks, Flags};
use crate::execute::{Reply, Response, check_row, response};
use crate::io::Step;
use crate::luns::Luns;
use crate::nexus::{Nexus, Running};
use crate::ranges::Held;
use crate::table::{Run, find};
use crate::unit::Switches;
use block::{Completion, CompletionSink, IoBuf, Op, OpKind};
use std::sync::Arc;

/// A read or write that the device has.
pub struct Direct {
    /// Counts as running until this is dropped, and keeps the nexus.
    running: Running,
    /// Ranges being written, for tasks that need exclusive access.
    _held: Option<Held>,
    reads: bool,
    /// Bytes that it transfers.
    length: u64,
}

/// A command's device request, if it is a read or write that may begin now.
fn step(nexus: &Nexus, cdb: &[u8; 16], given: usize) -> Option<Step> {
    let row = find(cdb)?;
    let kind = match row.run {
        Run::Read => OpKind::Read,
        Run::Write => OpKind::Write,
        _ => return None,
    };
    // An attention is not taken here: it belongs to the command's answer.
    if nexus.has_attention() || check_row(nexus, cdb, Some(row)).is_err() {
        return None;
    }
    let flags = Flags::parse(cdb).ok()?;
    let range = nexus.transfer(Blocks::parse(cdb)).ok()?;
    let len = range.end - range.start;
    let is_usual = match kind {
        // A read with FUA has a flush before it.
        OpKind::Read => len > 0 && !flags.fua,
        _ => len > 0 && given as u64 == len,
    };
    is_usual.then(|| Step::new(kind, range.start, len).fua(flags.fua))
}

impl Luns {
    /// Begins a read or write that arrived in `generation` with all of its data. Its completion, of operation
    /// `number`, goes to `done`, and is for [`Direct::end`].
    ///
    /// # Errors
    /// The data of a command that is for [`Luns::execute`], which nothing was done about.
    pub fn begin(
        &self,
        lun: Option<u16>,
        (cdb, data): (&[u8; 16], IoBuf),
        generation: u64,
        (number, done): (u64, &Arc<dyn CompletionSink>),
    ) -> Result<Direct, IoBuf> {
        let luns = self.borrow();
        let Some(nexus) = lun.and_then(|lun| luns.get(&lun)) else {
            return Err(data);
        };
        let Some(step) = step(nexus, cdb, data.len()) else {
            return Err(data);
        };
        let Some(running) = nexus.begin(generation) else {
            return Err(data);
        };
        let reads = step.kind == OpKind::Read;
        let held = match reads {
            true => None,
            false => match nexus
                .unit
                .try_hold_to_change(step.offset..step.offset + step.len)
            {
                None => return Err(data),
                held => held,
            },
        };
        let op = Op {
            tag: number,
            kind: step.kind,
            flags: step.flags,
            offset: step.offset,
            len: step.len,
            // A read that succeeds has filled all of it.
            buf: if reads {
                IoBuf::spare(step.len as usize)
            } else {
                data
            },
            done: done.clone(),
        };
        match nexus.device.submit(op) {
            Ok(()) => Ok(Direct {
                running,
                _held: held,
                reads,
                length: step.len,
            }),
            Err(op) if reads => {
                op.buf.give_back();
                Err(IoBuf::empty())
            }
            Err(op) => Err(op.buf),
        }
    }
}

impl Direct {
    /// Ends it. None when it was aborted: then nothing is to be answered.
    pub fn end(self, completion: Completion) -> Option<Response> {
        let Completion { result, buf, .. } = completion;
        let data = match self.reads && result.is_ok() {
            true => buf,
            false => {
                buf.give_back();
                IoBuf::empty()
            }
        };
        let answer = result.map_err(Into::into).map(|()| Reply {
            data,
            length: self.length,
        });
        if self.running.is_aborted() {
            return None;
        }
        let switches = &self.running.nexus().unit.switches;
        let descriptor = Switches::get(&switches.descriptor_sense);
        Some(response(answer, descriptor))
    }
}
