//! Parses a descriptor chain as a virtio-blk request (virtio 1.2, section 5.2.6).
//!
//! Responsible for: all validation of guest data. Leaves out: the ring, and execution of the
//! request.

use crate::chain::{Chain, Defect};
use crate::config::{RANGE_SECTORS_MAX, REQUEST_BYTES_MAX, SECTOR, ZEROES_SECTORS_MAX};
use crate::guest::{Guest, read_volatile};
use crate::status;
use crate::volume::Volume;
use block::{IoBuf, OpFlags, OpKind, Segment};
use smallvec::SmallVec;
use units::div_rem;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_ID_BYTES, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID,
    VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
    VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP,
};
use vm_memory::{Bytes, GuestAddress, Permissions};

const HEADER_BYTES: usize = 16;
const RANGE_BYTES: usize = HEADER_BYTES;

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Address of the status byte, which is within guest memory.
    pub(crate) status_at: GuestAddress,
    /// Bytes written to guest memory on success, including the status.
    pub(crate) written: u32,
    /// Number of memory pieces of its data.
    pub(crate) pieces: u16,
}

/// Result of parsing a chain.
#[derive(Debug)]
pub(crate) enum Request {
    /// An operation on the volume.
    Submit(Submission),
    /// Completed without an operation.
    Done {
        /// The virtio-blk status.
        status: u8,
        /// Where it is written.
        answer: Answer,
    },
    /// Malformed; it fails.
    Refused {
        /// The violation.
        reason: &'static str,
        /// Where its status is written.
        answer: Answer,
    },
    /// It has no place for a status: it is returned with no bytes written.
    Malformed(&'static str),
}

/// A validated operation on the volume, without its buffer, which [`Parser::take_buf`] returns.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) kind: OpKind,
    pub(crate) flags: OpFlags,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) answer: Answer,
}

type Piece = (GuestAddress, u32);

/// Maximum number of pieces of the readable or the writable part of a request, after merging
/// adjacent ones: a ring's descriptors, and more than drivers use that ignore both `seg_max` and
/// the ring size.
const PIECES_MAX: usize = 1026;

/// Parser of chains; reuses its lists.
#[derive(Default)]
pub(crate) struct Parser {
    readable: Vec<Piece>,
    writable: Vec<Piece>,
    /// The data buffer of the last request, until it is taken.
    buf: IoBuf,
    /// Number of descriptors of all chains so far.
    steps: u64,
}

/// Adds a piece, merging it with the previous one if adjacent: how a guest divides its memory has
/// no meaning (virtio 1.2, section 2.7.4).
fn add(pieces: &mut Vec<Piece>, (address, len): Piece) {
    if let Some((last, before)) = pieces.last_mut()
        // No piece extends beyond the address space.
        && last.0 + u64::from(*before) == address.0
        && let Some(both) = before.checked_add(len)
    {
        *before = both;
        return;
    }
    pieces.push((address, len));
}

/// Removes `bytes` from the front of the pieces.
fn skip(pieces: &mut Vec<Piece>, bytes: usize) {
    let mut left = bytes;
    pieces.retain_mut(|(address, len)| {
        let cut = left.min(*len as usize);
        left -= cut;
        *len -= cut as u32;
        // The pieces were checked not to extend beyond the address space.
        address.0 += cut as u64;
        *len > 0
    });
}

fn total(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|(_, len)| u64::from(*len)).sum()
}

/// Copies the first bytes of the pieces; false if there are too few, or they are not mapped.
fn copy(memory: &Guest, pieces: &[Piece], target: &mut [u8; HEADER_BYTES]) -> bool {
    if let [(address, len), ..] = pieces
        && *len as usize >= HEADER_BYTES
        && let Some(at) = memory.at(*address, HEADER_BYTES)
    {
        // SAFETY: mapped for that length.
        *target = unsafe { read_volatile(at) };
        return true;
    }
    let mut filled = 0;
    for (address, len) in pieces {
        let take = (*len as usize).min(target.len() - filled);
        let part = &mut target[filled..filled + take];
        if memory.map().read_slice(part, *address).is_err() {
            return false;
        }
        filled += take;
        if filled == target.len() {
            return true;
        }
    }
    false
}

fn segments(
    memory: &Guest,
    pieces: &[Piece],
    access: Permissions,
) -> Option<SmallVec<[Segment; 2]>> {
    let mut segments = SmallVec::new();
    for (address, len) in pieces {
        let take = |at: std::ptr::NonNull<u8>, len| {
            segments.push(Segment {
                ptr: at.as_ptr(),
                len,
            });
        };
        if !memory.pieces(*address, *len as usize, access, take) {
            return None;
        }
    }
    Some(segments)
}

impl Parser {
    /// Collects the descriptors of a chain. If there are too many, only the last writable one,
    /// which has the status, is kept.
    fn collect(&mut self, mut chain: Chain<'_>) -> Option<Defect> {
        self.readable.clear();
        self.writable.clear();
        let mut reason = None;
        for descriptor in &mut chain {
            let piece = (descriptor.addr(), descriptor.len());
            if descriptor.is_write_only() {
                if self.writable.len() >= PIECES_MAX {
                    reason = Some("the chain has too many segments");
                    if piece.1 > 0 {
                        self.writable.truncate(PIECES_MAX - 1);
                        self.writable.push(piece);
                    }
                } else {
                    add(&mut self.writable, piece);
                }
            } else if !self.writable.is_empty() {
                reason = Some("a readable descriptor follows a writable one");
            } else if self.readable.len() >= PIECES_MAX {
                reason = Some("the chain has too many segments");
            } else {
                add(&mut self.readable, piece);
            }
        }
        self.steps += u64::from(chain.steps());
        let is_torn = false;
        let of_order = reason.map(|reason| Defect { reason, is_torn });
        chain.defect().or(of_order)
    }

    /// Number of descriptors read so far, which bounds the work done.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Removes the status byte from the end of the writable pieces.
    fn take_status(&mut self, memory: &Guest) -> Option<GuestAddress> {
        while let Some((address, len)) = self.writable.pop() {
            if len == 0 {
                continue;
            }
            let last = GuestAddress(address.0 + u64::from(len) - 1);
            if len > 1 {
                self.writable.push((address, len - 1));
            }
            return memory.at(last, 1).map(|_| last);
        }
        None
    }

    /// Parses one chain. With `write_through` every write must be durable before it is answered.
    pub(crate) fn parse(
        &mut self,
        memory: &Guest,
        chain: Chain<'_>,
        volume: &Volume,
        write_through: bool,
    ) -> Request {
        let defect = self.collect(chain);
        if let Some(Defect {
            reason,
            is_torn: true,
        }) = defect
        {
            return Request::Malformed(reason);
        }
        let Some(status_at) = self.take_status(memory) else {
            return Request::Malformed("the chain has no place for its status");
        };
        let answer = Answer {
            status_at,
            written: 1,
            pieces: 0,
        };
        if let Some(Defect { reason, .. }) = defect {
            return Request::Refused { reason, answer };
        }
        self.buf = IoBuf::empty();
        match self.decide(memory, volume, write_through, answer) {
            Ok(request) => request,
            Err(status) => Request::Done { status, answer },
        }
    }

    /// The data buffer of the last parsed request. It is separate from the submission to avoid
    /// moving it twice.
    pub(crate) fn take_buf(&mut self) -> IoBuf {
        std::mem::take(&mut self.buf)
    }

    /// Decides on a request that can be answered; the error is its status.
    fn decide(
        &mut self,
        memory: &Guest,
        volume: &Volume,
        write_through: bool,
        answer: Answer,
    ) -> Result<Request, u8> {
        let mut header = [0; HEADER_BYTES];
        if !copy(memory, &self.readable, &mut header) {
            return Err(status::IO_ERROR);
        }
        skip(&mut self.readable, HEADER_BYTES);
        let (kind, rest) = header.split_at(4);
        let kind = u32::from_le_bytes(kind.try_into().expect("four bytes"));
        let sector = u64::from_le_bytes(rest[4..].try_into().expect("eight bytes"));
        let mut flags = OpFlags {
            fua: write_through,
            no_unmap: false,
        };
        match kind {
            VIRTIO_BLK_T_IN => self.transfer(OpKind::Read, sector, memory, volume, answer),
            VIRTIO_BLK_T_OUT => {
                let mut request = self.transfer(OpKind::Write, sector, memory, volume, answer)?;
                if let Request::Submit(submission) = &mut request {
                    submission.flags = flags;
                }
                Ok(request)
            }
            VIRTIO_BLK_T_FLUSH => Ok(Request::Submit(Submission {
                kind: OpKind::Flush,
                flags: OpFlags::default(),
                offset: 0,
                len: 0,
                answer,
            })),
            VIRTIO_BLK_T_GET_ID => self.identify(memory, volume, answer),
            VIRTIO_BLK_T_DISCARD => {
                let (offset, len, bits) = self.range(memory, volume, RANGE_SECTORS_MAX)?;
                if bits != 0 {
                    return Err(status::UNSUPPORTED);
                }
                Ok(ranged(OpKind::Discard, flags, offset, len, answer))
            }
            VIRTIO_BLK_T_WRITE_ZEROES => {
                let (offset, len, bits) = self.range(memory, volume, ZEROES_SECTORS_MAX)?;
                if bits & !VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP != 0 {
                    return Err(status::UNSUPPORTED);
                }
                flags.no_unmap = bits == 0;
                Ok(ranged(OpKind::WriteZeroes, flags, offset, len, answer))
            }
            _ => Err(status::UNSUPPORTED),
        }
    }

    fn transfer(
        &mut self,
        kind: OpKind,
        sector: u64,
        memory: &Guest,
        volume: &Volume,
        mut answer: Answer,
    ) -> Result<Request, u8> {
        let (pieces, access) = if kind == OpKind::Read {
            (&self.writable, Permissions::Write)
        } else {
            (&self.readable, Permissions::Read)
        };
        let len = total(pieces);
        if len > REQUEST_BYTES_MAX || (kind == OpKind::Write && volume.read_only) {
            return Err(status::IO_ERROR);
        }
        let offset = within(volume, sector, len)?;
        let segments = segments(memory, pieces, access).ok_or(status::IO_ERROR)?;
        if kind == OpKind::Read {
            answer.written += len as u32;
        }
        answer.pieces = u16::try_from(segments.len()).unwrap_or(u16::MAX);
        if len == 0 {
            return Ok(Request::Done {
                status: status::OK,
                answer,
            });
        }
        // SAFETY: the segments are within the mapped memory, which `memory` keeps mapped readable
        // and writable.
        self.buf = unsafe { IoBuf::foreign(segments, memory.map().clone()) };
        Ok(Request::Submit(Submission {
            kind,
            flags: OpFlags::default(),
            offset,
            len,
            answer,
        }))
    }

    fn identify(
        &mut self,
        memory: &Guest,
        volume: &Volume,
        mut answer: Answer,
    ) -> Result<Request, u8> {
        let mut serial = [0; VIRTIO_BLK_ID_BYTES as usize];
        let name = volume.serial.as_bytes();
        let known = name.len().min(serial.len());
        serial[..known].copy_from_slice(&name[..known]);
        let mut rest = &serial[..];
        for (address, len) in &self.writable {
            let (part, after) = rest.split_at(rest.len().min(*len as usize));
            memory
                .map()
                .write_slice(part, *address)
                .map_err(|_| status::IO_ERROR)?;
            answer.written += part.len() as u32;
            rest = after;
        }
        Ok(Request::Done {
            status: status::OK,
            answer,
        })
    }

    /// The single range of a discard or write-zeroes, in bytes, and its flags.
    fn range(
        &self,
        memory: &Guest,
        volume: &Volume,
        sectors_max: u32,
    ) -> Result<(u64, u64, u32), u8> {
        let mut bytes = [0; RANGE_BYTES];
        if total(&self.readable) != RANGE_BYTES as u64
            || !copy(memory, &self.readable, &mut bytes)
            || volume.read_only
        {
            return Err(status::IO_ERROR);
        }
        let word =
            |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let sector = u64::from(word(0)) | u64::from(word(4)) << 32;
        let sectors = word(8);
        if sectors > sectors_max {
            return Err(status::IO_ERROR);
        }
        let len = u64::from(sectors) * SECTOR;
        Ok((within(volume, sector, len)?, len, word(12)))
    }
}

fn ranged(kind: OpKind, flags: OpFlags, offset: u64, len: u64, answer: Answer) -> Request {
    if len == 0 {
        return Request::Done {
            status: status::OK,
            answer,
        };
    }
    Request::Submit(Submission {
        kind,
        flags,
        offset,
        len,
        answer,
    })
}

/// Byte offset of a range, which must be within the volume and aligned to LBAs.
fn within(volume: &Volume, sector: u64, len: u64) -> Result<u64, u8> {
    let offset = sector.checked_mul(SECTOR).ok_or(status::IO_ERROR)?;
    let end = offset.checked_add(len).ok_or(status::IO_ERROR)?;
    let lba = u64::from(volume.lba_size);
    let is_whole = |bytes| div_rem(bytes, lba).1 == 0;
    if end > volume.size() || !is_whole(offset) || !is_whole(len) {
        return Err(status::IO_ERROR);
    }
    Ok(offset)
}

#[cfg(test)]
mod tests;
