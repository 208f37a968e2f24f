//! POPULATE TOKEN, WRITE USING TOKEN (SBC-3 5.11, 5.44) and the commands that report their result: RECEIVE ROD TOKEN
//! INFORMATION and RECEIVE COPY STATUS(LID4) (SPC-4 6.29, 6.25). Used by Windows' offloaded transfers.

use super::tokens::{self, TIMEOUT_MAX_S, TIMEOUT_S, TOKEN_LEN, Token};
use crate::blocks::Blocks;
use crate::execute::{Answer, Call};
use crate::fields::{put, u16_at, u32_at, u64_at};
use crate::io::{Step, run};
use crate::sense::Sense;
use crate::table::Access;
use crate::transfer::{PIECE, pieces};
use block::{IoBuf, OpKind};
use std::ops::Range;
use std::time::Instant;

/// Ranges of one command, and bytes of all of them (VPD 8Fh).
pub(super) const RANGES_MAX: usize = 64;
pub(super) const TRANSFER_MAX: u64 = 256 << 20;
/// Results kept for one nexus.
const RESULTS_MAX: usize = 16;
/// Where the ranges of the two parameter lists are.
const POPULATE_RANGES: usize = 16;
const WRITE_RANGES: usize = 536;
const RANGE_LEN: usize = 16;
/// Statuses (SPC-4 table 249): all was copied, or all that the token stands for.
const DONE: u8 = 0x01;
const FAILED: u8 = 0x02;
const RESIDUAL: u8 = 0x03;
/// TRANSFER COUNT is in logical blocks.
const BLOCKS: u8 = 0xf1;

/// How a command with a list identifier of four bytes ended.
#[derive(Clone)]
pub(crate) struct Ended {
    pub id: u32,
    /// Its service action.
    pub action: u8,
    pub status: u8,
    pub sense: Option<Sense>,
    /// Blocks, or segments.
    pub count: u64,
    pub segments: u16,
    pub token: Option<Box<[u8; TOKEN_LEN]>>,
}

/// The ranges of a parameter list, in bytes of the unit.
fn ranges(call: &Call<'_>, list: &[u8], at: usize) -> Result<Vec<Range<u64>>, Sense> {
    let len = usize::from(u16_at(list, at - 2));
    let entries = list.get(at..at + len).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    if entries.is_empty() || !len.is_multiple_of(RANGE_LEN) {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    if len / RANGE_LEN > RANGES_MAX {
        return Err(Sense::TOO_MANY_SEGMENTS);
    }
    let mut found: Vec<Range<u64>> = Vec::new();
    for entry in entries.chunks_exact(RANGE_LEN) {
        let blocks = Blocks {
            lba: u64_at(entry, 0),
            count: u64::from(u32_at(entry, 8)),
        };
        if blocks.count == 0 {
            continue;
        }
        let range = call.nexus.range(blocks)?;
        let apart = |other: &Range<u64>| other.end <= range.start || range.end <= other.start;
        if !found.iter().all(apart) {
            return Err(Sense::INVALID_FIELD_IN_LIST);
        }
        found.push(range);
    }
    if length(&found) > TRANSFER_MAX {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    Ok(found)
}

fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The parameter list, of the length that the CDB and the list itself say.
fn list<'a>(call: &'a Call<'_>, least: usize) -> Result<&'a [u8], Sense> {
    let announced = u64::from(u32_at(call.cdb, 10));
    let list = call.data(announced)?;
    let own = usize::from(u16_at(list, 0)) + 2;
    let list = list.get(..own).filter(|list| list.len() >= least);
    list.ok_or(Sense::PARAMETER_LIST_LENGTH)
}

fn note(call: &Call<'_>, ended: Ended) {
    let mut results = call.nexus.offloads.borrow_mut();
    results.retain(|known| known.id != ended.id);
    if results.len() == RESULTS_MAX {
        results.remove(0);
    }
    results.push(ended);
}

/// The list identifier of the two commands of tokens.
fn list_id(call: &Call<'_>) -> u32 {
    u32_at(call.cdb, 6)
}

/// Keeps how a command ended, under its list identifier, and answers.
pub(super) fn end(
    call: &Call<'_>,
    id: u32,
    (status, count, segments): (u8, u64, u16),
    token: Option<&Token>,
    failed: Option<Sense>,
) -> Answer {
    note(
        call,
        Ended {
            id,
            action: call.cdb[1] & 0x1f,
            status,
            sense: failed,
            count,
            segments,
            token: token.map(|token| Box::new(token.bytes)),
        },
    );
    match failed {
        Some(sense) => Err(sense.into()),
        None => Ok(call.took(call.data.len() as u64)),
    }
}

pub(crate) async fn populate(call: Call<'_>) -> Answer {
    if u32_at(call.cdb, 10) == 0 {
        return Ok(call.empty());
    }
    let list = list(&call, POPULATE_RANGES)?;
    let is_typed = list[2] & 0x02 != 0;
    let kind = u32_at(list, 8);
    if is_typed && kind != tokens::CHANGE_VULNERABLE {
        return Err(Sense::INVALID_FIELD_IN_LIST.into());
    }
    let timeout_s = match u32_at(list, 4) {
        0 => TIMEOUT_S,
        wanted if wanted <= TIMEOUT_MAX_S => wanted,
        _ => return Err(Sense::INVALID_FIELD_IN_LIST.into()),
    };
    let ranges = ranges(&call, list, POPULATE_RANGES)?;
    let blocks = length(&ranges) / call.nexus.block_size();
    let segments = ranges.len() as u16;
    // No write is in flight there when the watch begins.
    let locks = &call.nexus.unit.ranges;
    let mut held = Vec::new();
    let mut sorted = ranges.clone();
    sorted.sort_by_key(|range| range.start);
    for range in sorted {
        held.push(locks.hold(range, true).await);
    }
    let token = tokens::make(call.nexus, ranges, timeout_s)?;
    drop(held);
    end(
        &call,
        list_id(&call),
        (DONE, blocks, segments),
        Some(&token),
        None,
    )
}

/// Where `len` bytes lie from `offset` on, in pieces: none beyond the end.
fn part(ranges: &[Range<u64>], mut offset: u64, mut len: u64) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    for range in ranges {
        let own = range.end - range.start;
        if offset >= own {
            offset -= own;
            continue;
        }
        let take = (own - offset).min(len);
        if take > 0 {
            found.push(range.start + offset..range.start + offset + take);
        }
        (offset, len) = (0, len - take);
    }
    found
}

/// The token of a command, if it may be used for it now.
fn usable(call: &Call<'_>, bytes: &[u8]) -> Result<std::sync::Arc<Token>, Sense> {
    let token = tokens::find(bytes).ok_or(Sense::TOKEN_UNKNOWN)?;
    let initiator = &call.nexus.member.ports.initiator;
    let maker = token.maker(initiator, Instant::now());
    let maker = maker.ok_or(Sense::TOKEN_REVOKED)?;
    let reservations = &token.unit.reservations;
    if reservations.conflicts(Access::Read, maker.number, &maker.ports) {
        return Err(Sense::TOKEN_UNKNOWN);
    }
    Ok(token)
}

/// Copies one range from the token's unit; as much as was read while the token was valid is written.
async fn copy(call: &Call<'_>, token: &Token, from: Range<u64>, to: u64) -> Result<(), Sense> {
    for piece in pieces(from.clone()) {
        call.goes_on()?;
        let len = piece.end - piece.start;
        let at = to + (piece.start - from.start);
        let step = Step::new(OpKind::Read, piece.start, len);
        let buf = IoBuf::spare(len as usize);
        let (buf, _) = run(&call.nexus.handle, &token.device, step, buf).await?;
        if !token.is_valid() {
            return Err(Sense::TOKEN_REVOKED);
        }
        let held = call.hold(at..at + len, false).await;
        let (buf, _) = call.run(Step::new(OpKind::Write, at, len), buf).await?;
        drop(held);
        buf.give_back();
    }
    Ok(())
}

/// Writes what `source` gives to ranges one after the other: the bytes, and why it went no further.
async fn write_all(
    call: &Call<'_>,
    token: Option<&Token>,
    source: &[Range<u64>],
    targets: &[Range<u64>],
) -> (u64, Option<Sense>) {
    let mut done = 0;
    for target in targets {
        let mut at = target.start;
        while at < target.end {
            let len = (target.end - at).min(PIECE);
            let written = match token {
                None => zero(call, at..at + len).await,
                Some(token) => {
                    let mut to = at;
                    let mut ended = Ok(());
                    for from in part(source, done, len) {
                        let taken = from.end - from.start;
                        ended = copy(call, token, from, to).await;
                        to += taken;
                        if ended.is_err() {
                            break;
                        }
                    }
                    ended
                }
            };
            if let Err(sense) = written {
                return (done, Some(sense));
            }
            (at, done) = (at + len, done + len);
        }
    }
    (done, None)
}

async fn zero(call: &Call<'_>, range: Range<u64>) -> Result<(), Sense> {
    call.goes_on()?;
    let _held = call.hold(range.clone(), false).await;
    let step = Step::new(OpKind::WriteZeroes, range.start, range.end - range.start);
    call.run(step, IoBuf::empty()).await?;
    Ok(())
}

/// The first `len` bytes of ranges.
fn first(targets: &[Range<u64>], len: u64) -> Vec<Range<u64>> {
    part(targets, 0, len)
}

pub(crate) async fn write_using(call: Call<'_>) -> Answer {
    if u32_at(call.cdb, 10) == 0 {
        return Ok(call.empty());
    }
    let list = list(&call, WRITE_RANGES)?;
    let size = call.nexus.block_size();
    let (deletes, offset) = (list[2] & 0x02 != 0, u64_at(list, 8));
    let bytes = &list[16..16 + TOKEN_LEN];
    let targets = ranges(&call, list, WRITE_RANGES)?;
    let segments = targets.len() as u16;
    let wanted = length(&targets);
    if tokens::is_zeroes(bytes) {
        let (done, failed) = write_all(&call, None, &[], &targets).await;
        let status = if failed.is_some() { FAILED } else { DONE };
        return end(
            &call,
            list_id(&call),
            (status, done / size, segments),
            None,
            failed,
        );
    }
    let token = usable(&call, bytes)?;
    let offset = offset.checked_mul(size);
    let offset = offset.filter(|offset| *offset < length(&token.ranges));
    let offset = offset.ok_or(Sense::INVALID_FIELD_IN_LIST)?;
    let source = part(&token.ranges, offset, wanted);
    let there = length(&source);
    let targets = first(&targets, there);
    if !there.is_multiple_of(size) {
        return Err(Sense::INVALID_FIELD_IN_LIST.into());
    }
    let (done, failed) = write_all(&call, Some(&token), &source, &targets).await;
    if deletes && failed.is_none() {
        tokens::forget(&token);
    }
    let status = match failed {
        Some(_) => FAILED,
        None if there < wanted => RESIDUAL,
        None => DONE,
    };
    end(
        &call,
        list_id(&call),
        (status, done / size, segments),
        None,
        failed,
    )
}

/// The head that both answers share (SPC-4 tables 246 and 258).
fn head(ended: &Ended) -> Vec<u8> {
    let mut data = vec![0; 32];
    data[4] = ended.action;
    data[5] = ended.status;
    put(&mut data, 6, &1u16.to_be_bytes());
    put(&mut data, 8, &[0xff; 4]);
    data[12] = if ended.sense.is_some() { 0x02 } else { 0x00 };
    data[15] = BLOCKS;
    put(&mut data, 16, &ended.count.to_be_bytes());
    put(&mut data, 24, &ended.segments.to_be_bytes());
    if let Some(sense) = ended.sense {
        let sense = sense.encode(false);
        (data[13], data[14]) = (sense.len() as u8, sense.len() as u8);
        data.extend(sense);
    }
    data
}

fn result(call: &Call<'_>) -> Result<Ended, Sense> {
    let id = u32_at(call.cdb, 2);
    let results = call.nexus.offloads.borrow();
    let found = results.iter().find(|known| known.id == id).cloned();
    found.ok_or(Sense::INVALID_FIELD_IN_CDB)
}

fn give(call: &Call<'_>, mut data: Vec<u8>) -> Answer {
    let len = data.len() as u32 - 4;
    put(&mut data, 0, &len.to_be_bytes());
    Ok(call.give_cut(data, u32_at(call.cdb, 10) as usize))
}

/// RECEIVE ROD TOKEN INFORMATION.
pub(crate) fn token_information(call: &Call<'_>) -> Answer {
    let ended = result(call)?;
    let mut data = head(&ended);
    let tokens = ended.token.as_ref().map_or(0, |token| 2 + token.len());
    data.extend((tokens as u32).to_be_bytes());
    if let Some(token) = &ended.token {
        data.extend([0, 0]);
        data.extend(token.iter());
    }
    give(call, data)
}

/// RECEIVE COPY STATUS(LID4).
pub(crate) fn status(call: &Call<'_>) -> Answer {
    let data = head(&result(call)?);
    give(call, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_ranges_is_found_across_their_borders() {
        let ranges = [10..14, 20..21, 30..40];
        assert_eq!(part(&ranges, 0, 15), [10..14, 20..21, 30..40]);
        assert_eq!(part(&ranges, 3, 3), [13..14, 20..21, 30..31]);
        assert_eq!(part(&ranges, 4, 2), [20..21, 30..31]);
        assert!(part(&ranges, 15, 1).is_empty());
    }
}
