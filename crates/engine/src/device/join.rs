//! One operation carried out as several. The parts have slices of its memory: a copy would take as much memory as hosts
//! choose.

use block::{Completion, CompletionSink, CutBuf, IoError, Op, OpKind, StatusExtent};
use std::sync::{Arc, Mutex, PoisonError};

/// Collects the parts of an operation; the last one ends it.
pub struct Join {
    state: Mutex<Option<State>>,
}

struct State {
    tag: u64,
    done: Arc<dyn CompletionSink>,
    /// `None` for an operation without data.
    buf: Option<CutBuf>,
    left: usize,
    error: Option<IoError>,
    /// For a status query, the length and result of each part; otherwise empty.
    extents: Vec<(u64, Vec<StatusExtent>)>,
}

impl Join {
    /// Takes an operation that is cut into parts of these starts (within it) and lengths, in
    /// bytes; returns the parts, whose numbers are their tags.
    pub fn split(op: Op, parts: &[(u64, u64)]) -> Vec<Op> {
        let Op {
            tag,
            kind,
            flags,
            offset,
            buf,
            done,
            ..
        } = op;
        let (buf, slices) = match kind {
            OpKind::Read | OpKind::Write => {
                let range = |(start, len): &(u64, u64)| (*start as usize, *len as usize);
                let ranges: Vec<_> = parts.iter().map(range).collect();
                let (buf, slices) = buf.cut(&ranges);
                (Some(buf), slices)
            }
            _ => (None, Vec::new()),
        };
        let extents = match kind {
            OpKind::Status | OpKind::Changed(_) => {
                parts.iter().map(|part| (part.1, Vec::new())).collect()
            }
            _ => Vec::new(),
        };
        let state = State {
            tag,
            done,
            buf,
            left: parts.len(),
            error: None,
            extents,
        };
        let join = Arc::new(Self {
            state: Mutex::new(Some(state)),
        });
        let mut slices = slices.into_iter();
        let part = |(index, (start, len)): (usize, &(u64, u64))| Op {
            tag: index as u64,
            kind,
            flags,
            offset: offset + start,
            len: *len,
            buf: slices.next().unwrap_or_default(),
            done: join.clone(),
        };
        parts.iter().enumerate().map(part).collect()
    }
}

impl CompletionSink for Join {
    fn complete(&self, part: Completion) {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = guard.as_mut() else { return };
        // The memory is complete again when its last part has been returned.
        drop(part.buf);
        match part.result {
            Err(error) => state.error = Some(error),
            Ok(()) => {
                if let Some((_, extents)) = state.extents.get_mut(part.tag as usize) {
                    *extents = part.extents;
                }
            }
        }
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        let Some(state) = guard.take() else { return };
        drop(guard);
        // Each part has returned its memory.
        let buf = state.buf.and_then(CutBuf::rejoin).unwrap_or_default();
        let extents = joined(&state.extents);
        let result = state.error.map_or(Ok(()), Err);
        state.done.complete(Completion {
            tag: state.tag,
            result,
            buf,
            extents,
        });
    }
}

/// Results in order, as far as they are complete.
fn joined(parts: &[(u64, Vec<StatusExtent>)]) -> Vec<StatusExtent> {
    let mut all: Vec<StatusExtent> = Vec::new();
    for (len, part) in parts {
        for extent in part {
            match all.last_mut() {
                Some(last) if last.state == extent.state => last.len += extent.len,
                _ => all.push(*extent),
            }
        }
        if part.iter().map(|extent| extent.len).sum::<u64>() < *len {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{CompletionQueue, IoBuf, OpFlags};

    fn split(kind: OpKind, bytes: &[u8], done: &Arc<CompletionQueue>) -> Vec<Op> {
        let op = Op {
            tag: 7,
            kind,
            flags: OpFlags::default(),
            offset: 4096,
            len: bytes.len() as u64,
            buf: IoBuf::from_bytes(bytes.into()),
            done: done.clone(),
        };
        Join::split(op, &[(0, 512), (512, 1024)])
    }

    fn complete(part: Op, result: Result<(), IoError>) {
        let Op { tag, buf, done, .. } = part;
        let extents = Vec::new();
        done.complete(Completion {
            tag,
            result,
            buf,
            extents,
        });
    }

    #[test]
    fn parts_have_slices_of_the_memory_of_their_operation() {
        for kind in [OpKind::Read, OpKind::Write] {
            let done = CompletionQueue::new();
            let mut parts = split(kind, &[3; 1536], &done);
            assert!(
                parts.iter().all(|part| part.buf.as_bytes().is_none()),
                "a copy"
            );
            let places: Vec<_> = parts.iter().map(|part| (part.offset, part.len)).collect();
            assert_eq!(places, [(4096, 512), (4608, 1024)]);
            let mut bytes = [0; 1024];
            parts[1].buf.read(0, &mut bytes);
            assert_eq!(bytes, [3; 1024]);
            parts[1].buf.write(0, &[9; 1024]);
            while let Some(part) = parts.pop() {
                assert!(done.try_next().is_none());
                complete(part, Ok(()));
            }
            let whole = done.try_next().expect("it has ended");
            assert_eq!((whole.tag, &whole.result), (7, &Ok(())));
            let bytes = whole.buf.into_bytes().expect("the operation's own memory");
            assert!(bytes[..512] == [3; 512] && bytes[512..] == [9; 1024]);
        }
    }

    #[test]
    fn a_failed_part_fails_the_operation() {
        let done = CompletionQueue::new();
        let error = IoError::new(block::ErrorKind::Medium, "as the test wants it");
        for (index, part) in split(OpKind::Write, &[3; 1536], &done)
            .into_iter()
            .enumerate()
        {
            complete(
                part,
                if index == 0 {
                    Err(error.clone())
                } else {
                    Ok(())
                },
            );
        }
        assert_eq!(done.try_next().expect("it has ended").result, Err(error));
    }
}
