//! Copying, and its results.

use super::offload::end;
use super::parameters::{
    BLOCK_TO_BLOCK, IDENTIFICATION, LIST_MAX, Named, SEGMENT_MAX, SEGMENTS_MAX, Segment,
    TARGETS_MAX, parse, parse_long,
};
use crate::execute::{Answer, Call};
use crate::fields::{put, u8_at, u32_at};
use crate::io::{Step, run};
use crate::luns::Luns;
use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::table::{Access, Run};
use crate::transfer::pieces;
use block::{IoBuf, OpKind};
use std::ops::Range;
use std::rc::Rc;

/// Results kept for one nexus.
const RESULTS_MAX: usize = 16;

/// How a copy ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CopyEnded {
    id: u8,
    failed: bool,
    segments: u16,
}

impl Named {
    fn names(&self, nexus: &Nexus) -> bool {
        let identity = &nexus.unit.identity;
        match self.kind {
            2 => self.value == identity.eui(),
            3 => self.value == identity.naa(),
            _ => false,
        }
    }

    fn find(&self, luns: &Luns) -> Result<Rc<Nexus>, Sense> {
        let found = luns.all().into_iter().find(|nexus| self.names(nexus));
        let nexus = found.ok_or(Sense::COPY_UNREACHABLE)?;
        if self.block_size != 0 && self.block_size != nexus.block_size() {
            return Err(Sense::COPY_UNREACHABLE);
        }
        Ok(nexus)
    }
}

/// Whether a unit is reserved by another, or the session's port does not serve it.
fn refuses(nexus: &Nexus, access: Access, run: Run) -> bool {
    let member = &nexus.member;
    let reservations = &nexus.unit.reservations;
    reservations.conflicts(access, member.number, &member.ports)
        || nexus
            .groups
            .refuses(member.ports.target_port, run)
            .is_some()
}

fn bytes(nexus: &Nexus, lba: u64, len: u64) -> Result<Range<u64>, Sense> {
    let start = lba.checked_mul(nexus.block_size());
    let end = start.and_then(|start| start.checked_add(len));
    match (start, end) {
        (Some(start), Some(end)) if end <= nexus.unit.size() => Ok(start..end),
        _ => Err(Sense::COPY_OUT_OF_RANGE),
    }
}

async fn copy(call: &Call<'_>, units: &[Rc<Nexus>], segment: &Segment) -> Result<(), Sense> {
    let get = |index: usize| units.get(index).ok_or(Sense::COPY_UNREACHABLE);
    let (source, destination) = (get(segment.source)?, get(segment.destination)?);
    let counted = match segment.counts_destination {
        true => destination,
        false => source,
    };
    let len = segment.count * counted.block_size();
    if len > SEGMENT_MAX || !len.is_multiple_of(destination.block_size()) {
        return Err(Sense::COPY_FAILED);
    }
    let from = bytes(source, segment.source_lba, len)?;
    let to = bytes(destination, segment.destination_lba, len)?;
    let refused =
        refuses(source, Access::Read, Run::Read) || refuses(destination, Access::Write, Run::Write);
    if refused || destination.check_writable().is_err() {
        return Err(Sense::COPY_FAILED);
    }
    let _held = destination.unit.hold_to_change(to.clone(), false).await;
    for piece in pieces(from.clone()) {
        call.goes_on()?;
        let at = to.start + (piece.start - from.start);
        let len = piece.end - piece.start;
        let step = Step::new(OpKind::Read, piece.start, len);
        let buf = IoBuf::spare(len as usize);
        let read = run(&source.handle, &source.device, step, buf).await;
        let (buf, _) = read.map_err(|_| Sense::COPY_FAILED)?;
        let step = Step::new(OpKind::Write, at, len);
        let written = run(&destination.handle, &destination.device, step, buf).await;
        let (buf, _) = written.map_err(|_| Sense::COPY_FAILED)?;
        buf.give_back();
    }
    Ok(())
}

async fn copy_all(
    call: &Call<'_>,
    targets: &[Named],
    segments: &[Segment],
) -> (usize, Result<(), Sense>) {
    let found: Result<Vec<_>, _> = targets.iter().map(|named| named.find(call.luns)).collect();
    let units = match found {
        Ok(units) => units,
        Err(sense) => return (0, Err(sense)),
    };
    for (done, segment) in segments.iter().enumerate() {
        if let Err(sense) = copy(call, &units, segment).await {
            return (done, Err(sense));
        }
    }
    (segments.len(), Ok(()))
}

pub(crate) async fn extended_copy(call: Call<'_>) -> Answer {
    let announced = u64::from(u32_at(call.cdb, 10));
    if announced == 0 {
        return Ok(call.empty());
    }
    if announced > LIST_MAX {
        return Err(Sense::PARAMETER_LIST_LENGTH.into());
    }
    let list = call.data(announced.min(call.data.len() as u64))?;
    let list = parse(list)?;
    let (segments, ended) = copy_all(&call, &list.targets, &list.segments).await;
    if !list.no_result {
        let mut results = call.nexus.copies.borrow_mut();
        results.retain(|known| known.id != list.id);
        if results.len() == RESULTS_MAX {
            results.remove(0);
        }
        results.push(CopyEnded {
            id: list.id,
            failed: ended.is_err(),
            segments: segments as u16,
        });
    }
    ended?;
    Ok(call.took(announced))
}

/// EXTENDED COPY(LID4): the list names its identifier itself, and the end is reported by RECEIVE COPY
/// STATUS(LID4).
pub(crate) async fn extended_copy_long(call: Call<'_>) -> Answer {
    let announced = u64::from(u32_at(call.cdb, 10));
    if announced == 0 {
        return Ok(call.empty());
    }
    if announced > LIST_MAX {
        return Err(Sense::PARAMETER_LIST_LENGTH.into());
    }
    let (id, targets, segments) = parse_long(call.data(announced)?)?;
    let (done, ended) = copy_all(&call, &targets, &segments).await;
    let status = if ended.is_ok() { 1 } else { 2 };
    end(
        &call,
        id,
        (status, done as u64, done as u16),
        None,
        ended.err(),
    )
}

/// COPY STATUS: of a copy that has ended.
pub(crate) fn status(call: &Call<'_>) -> Answer {
    let id = u8_at(call.cdb, 2);
    let mut results = call.nexus.copies.borrow_mut();
    let found = results.iter().position(|known| known.id == id);
    let ended = found.map(|index| results.remove(index));
    let ended = ended.ok_or(Sense::INVALID_FIELD_IN_CDB)?;
    let mut data = vec![0; 12];
    put(&mut data, 0, &8u32.to_be_bytes());
    data[4] = if ended.failed { 2 } else { 1 };
    put(&mut data, 5, &ended.segments.to_be_bytes());
    Ok(call.give_cut(data, u32_at(call.cdb, 10) as usize))
}

/// OPERATING PARAMETERS (SPC-4 table 259).
pub(crate) fn parameters(call: &Call<'_>) -> Answer {
    let mut data = vec![0; 44];
    data[4] = 0x01;
    put(&mut data, 8, &(TARGETS_MAX as u16).to_be_bytes());
    put(&mut data, 10, &(SEGMENTS_MAX as u16).to_be_bytes());
    put(&mut data, 12, &(LIST_MAX as u32).to_be_bytes());
    put(&mut data, 16, &(SEGMENT_MAX as u32).to_be_bytes());
    put(&mut data, 34, &1u16.to_be_bytes());
    data[36] = 1;
    data[37] = 9;
    data[43] = 2;
    data.extend([BLOCK_TO_BLOCK, IDENTIFICATION]);
    let len = data.len() as u32 - 4;
    put(&mut data, 0, &len.to_be_bytes());
    Ok(call.give_cut(data, u32_at(call.cdb, 10) as usize))
}
