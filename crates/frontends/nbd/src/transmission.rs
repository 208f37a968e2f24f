//! Requests ("Transmission"): validated and split into operations.

use crate::errors::{EINVAL, ENOSPC, ENOTSUP, EPERM};
use crate::flight::Answer;
use crate::protocol::{Header, PAYLOAD_MAX, command, command_flag as flag};
use block::{ErrorKind, IoError, OpFlags, OpKind};

/// Maximum size of an operation with data, in bytes; requests are split at multiples of it.
pub(crate) const PART: u64 = 1 << 20;

/// Limits for validating requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Size of the volume in bytes.
    pub size: u64,
    pub lba_size: u32,
    pub read_only: bool,
    /// Block status was negotiated.
    pub status: bool,
}

/// A valid request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Task {
    pub kind: OpKind,
    pub flags: OpFlags,
    pub answer: Answer,
}

impl Task {
    /// Whether its operations have buffers.
    pub(crate) fn has_data(self) -> bool {
        matches!(self.kind, OpKind::Read | OpKind::Write)
    }

    /// Whether its range may be long since it has no buffer: it is processed piece by piece.
    pub(crate) fn is_long(self) -> bool {
        matches!(
            self.kind,
            OpKind::Discard | OpKind::WriteZeroes | OpKind::Status
        )
    }
}

/// Kind of the reply to a request, even if it is refused.
pub(crate) fn answer(header: &Header) -> Answer {
    match header.command {
        command::READ => Answer::Data,
        command::BLOCK_STATUS => Answer::Status {
            one: header.flags & flag::REQ_ONE != 0,
        },
        _ => Answer::Done,
    }
}

fn refused(code: u32, text: &str) -> IoError {
    let kind = match code {
        EPERM => ErrorKind::ReadOnly,
        ENOSPC => ErrorKind::NoSpace,
        ENOTSUP => ErrorKind::Unsupported,
        _ => ErrorKind::Invalid,
    };
    IoError::new(kind, text)
}

/// Validates a request ("Request types": flags, bounds, alignment).
pub(crate) fn check(header: &Header, limits: &Limits) -> Result<Task, IoError> {
    let (kind, allowed, changes) = match header.command {
        command::READ => (OpKind::Read, flag::DF, false),
        command::CACHE => (OpKind::Read, 0, false),
        command::WRITE => (OpKind::Write, 0, true),
        command::FLUSH => (OpKind::Flush, 0, false),
        command::TRIM => (OpKind::Discard, 0, true),
        command::WRITE_ZEROES => (OpKind::WriteZeroes, flag::NO_HOLE | flag::FAST_ZERO, true),
        command::BLOCK_STATUS if limits.status => (OpKind::Status, flag::REQ_ONE, false),
        _ => return Err(refused(EINVAL, "unknown command")),
    };
    // FUA is accepted with every command and effective for those that modify data.
    if header.flags & !(allowed | flag::FUA) != 0 {
        return Err(refused(EINVAL, "unknown command flags"));
    }
    if changes && limits.read_only {
        return Err(refused(EPERM, "the export is read-only"));
    }
    let task = Task {
        kind,
        flags: OpFlags {
            fua: changes && header.flags & flag::FUA != 0,
            no_unmap: header.flags & flag::NO_HOLE != 0,
        },
        answer: answer(header),
    };
    if kind == OpKind::Flush {
        if header.offset != 0 || header.len != 0 {
            return Err(refused(EINVAL, "a flush has no range"));
        }
        return Ok(task);
    }
    if header.flags & flag::FAST_ZERO != 0 && task.flags.no_unmap {
        // Zeroes that keep their allocation may have to be written, which is slow.
        return Err(refused(ENOTSUP, "zeroes without a hole are not fast"));
    }
    range(header, limits, task, changes)
}

fn range(header: &Header, limits: &Limits, task: Task, changes: bool) -> Result<Task, IoError> {
    if header.len == 0 {
        return Err(refused(EINVAL, "the length is zero"));
    }
    if task.has_data() && header.len > PAYLOAD_MAX {
        return Err(refused(EINVAL, "the request is longer than 32 MiB"));
    }
    let lba = u64::from(limits.lba_size);
    if !header.offset.is_multiple_of(lba) || !u64::from(header.len).is_multiple_of(lba) {
        let text = "offset and length must be multiples of the minimum block size";
        return Err(refused(EINVAL, text));
    }
    let end = header.offset.checked_add(u64::from(header.len));
    if end.is_none_or(|end| end > limits.size) {
        let code = if changes { ENOSPC } else { EINVAL };
        return Err(refused(
            code,
            "the request extends beyond the end of the volume",
        ));
    }
    Ok(task)
}

/// Parts of a range, as offset and length.
pub(crate) fn parts(offset: u64, len: u64) -> impl ExactSizeIterator<Item = (u64, u64)> {
    let end = offset + len;
    let first = offset / PART;
    let count = (end.div_ceil(PART) - first) as usize;
    (0..count).map(move |index| {
        let start = ((first + index as u64) * PART).max(offset);
        let stop = ((first + index as u64 + 1) * PART).min(end);
        (start, stop - start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors;

    const LIMITS: Limits = Limits {
        size: 1 << 30,
        lba_size: 512,
        read_only: false,
        status: true,
    };

    fn header(command: u16, flags: u16, offset: u64, len: u32) -> Header {
        Header {
            flags,
            command,
            cookie: 7,
            offset,
            len,
        }
    }

    fn code(header: Header, limits: &Limits) -> u32 {
        check(&header, limits).map_or_else(|error| errors::code(error.kind), |_| 0)
    }

    #[test]
    fn invalid_requests_get_the_specified_error() {
        use command::*;
        for (name, header, expected) in [
            ("read", header(READ, 0, 512, 512), 0),
            ("read with DF", header(READ, flag::DF, 0, 512), 0),
            ("write with FUA", header(WRITE, flag::FUA, 0, 512), 0),
            ("read of nothing", header(READ, 0, 0, 0), EINVAL),
            ("odd offset", header(READ, 0, 1, 512), EINVAL),
            ("odd length", header(WRITE, 0, 0, 513), EINVAL),
            ("read past the end", header(READ, 0, 1 << 30, 512), EINVAL),
            (
                "write past the end",
                header(WRITE, 0, (1 << 30) - 512, 1024),
                ENOSPC,
            ),
            (
                "offset that wraps",
                header(TRIM, 0, u64::MAX - 511, 512),
                ENOSPC,
            ),
            ("32 MiB", header(READ, 0, 0, PAYLOAD_MAX), 0),
            (
                "more than 32 MiB",
                header(READ, 0, 0, PAYLOAD_MAX + 512),
                EINVAL,
            ),
            ("large trim", header(TRIM, 0, 0, 1 << 30), 0),
            ("zeroes", header(WRITE_ZEROES, flag::NO_HOLE, 0, 512), 0),
            (
                "fast zeroes",
                header(WRITE_ZEROES, flag::FAST_ZERO, 0, 512),
                0,
            ),
            (
                "both",
                header(WRITE_ZEROES, flag::FAST_ZERO | flag::NO_HOLE, 0, 512),
                ENOTSUP,
            ),
            (
                "zeroes with DF",
                header(WRITE_ZEROES, flag::DF, 0, 512),
                EINVAL,
            ),
            ("flush", header(FLUSH, 0, 0, 0), 0),
            ("flush of a range", header(FLUSH, 0, 512, 512), EINVAL),
            ("status", header(BLOCK_STATUS, flag::REQ_ONE, 0, 512), 0),
            ("cache", header(CACHE, 0, 0, 512), 0),
            ("unknown command", header(99, 0, 0, 512), EINVAL),
            ("unknown flag", header(WRITE, 1 << 9, 0, 512), EINVAL),
        ] {
            assert_eq!(code(header, &LIMITS), expected, "{name}");
        }
    }

    #[test]
    fn block_status_without_negotiation_is_refused() {
        let limits = Limits {
            status: false,
            ..LIMITS
        };
        assert_eq!(
            code(header(command::BLOCK_STATUS, 0, 0, 512), &limits),
            EINVAL
        );
    }

    #[test]
    fn read_only_volume_refuses_changes() {
        let limits = Limits {
            read_only: true,
            ..LIMITS
        };
        for (command, expected) in [
            (command::READ, 0),
            (command::WRITE, EPERM),
            (command::TRIM, EPERM),
            (command::WRITE_ZEROES, EPERM),
        ] {
            assert_eq!(
                code(header(command, 0, 0, 512), &limits),
                expected,
                "{command}"
            );
        }
    }

    #[test]
    fn flags_reach_the_operation() {
        let task = check(&header(command::WRITE, flag::FUA, 0, 512), &LIMITS).unwrap();
        assert!(task.flags.fua && !task.flags.no_unmap);
        let zeroes = header(command::WRITE_ZEROES, flag::NO_HOLE, 0, 512);
        assert!(check(&zeroes, &LIMITS).unwrap().flags.no_unmap);
        let read = header(command::READ, flag::FUA, 0, 512);
        assert!(!check(&read, &LIMITS).unwrap().flags.fua);
    }

    #[test]
    fn range_is_split_at_multiples_of_a_mebibyte() {
        let cut = |offset, len| parts(offset, len).collect::<Vec<_>>();
        assert_eq!(cut(512, 4096), [(512, 4096)]);
        assert_eq!(cut(PART - 512, 1024), [(PART - 512, 512), (PART, 512)]);
        assert_eq!(cut(0, 2 * PART), [(0, PART), (PART, PART)]);
    }
}
