//! One operation carried out as several.

use block::{Completion, CompletionSink, IoBuf, IoError, Op, OpKind, StatusExtent};
use std::sync::{Arc, Mutex, PoisonError};

/// Collects the parts of an operation; the last one ends it.
pub struct Join {
    state: Mutex<Option<State>>,
}

struct State {
    tag: u64,
    kind: OpKind,
    done: Arc<dyn CompletionSink>,
    buf: IoBuf,
    /// First byte of each part within the operation.
    starts: Vec<u64>,
    left: usize,
    error: Option<IoError>,
    /// Answers of a status question, by part.
    extents: Vec<Vec<StatusExtent>>,
    lens: Vec<u64>,
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
        let pieces: Vec<(u64, u64, IoBuf)> = parts
            .iter()
            .map(|(start, len)| {
                let bytes = match kind {
                    OpKind::Write => {
                        let mut bytes = vec![0; *len as usize].into_boxed_slice();
                        buf.read(*start as usize, &mut bytes);
                        IoBuf::from_bytes(bytes)
                    }
                    OpKind::Read => IoBuf::zeroed(*len as usize),
                    _ => IoBuf::empty(),
                };
                (offset + start, *len, bytes)
            })
            .collect();
        let state = State {
            tag,
            kind,
            done,
            buf,
            starts: parts.iter().map(|part| part.0).collect(),
            left: parts.len(),
            error: None,
            extents: vec![Vec::new(); parts.len()],
            lens: parts.iter().map(|part| part.1).collect(),
        };
        let join = Arc::new(Self {
            state: Mutex::new(Some(state)),
        });
        let part = |(index, (offset, len, buf)): (usize, (u64, u64, IoBuf))| Op {
            tag: index as u64,
            kind,
            flags,
            offset,
            len,
            buf,
            done: join.clone(),
        };
        pieces.into_iter().enumerate().map(part).collect()
    }
}

impl CompletionSink for Join {
    fn complete(&self, part: Completion) {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = guard.as_mut() else { return };
        let index = part.tag as usize;
        match part.result {
            Err(error) => state.error = Some(error),
            Ok(()) if state.kind == OpKind::Read => {
                if let Some(bytes) = part.buf.as_bytes() {
                    state.buf.write(state.starts[index] as usize, bytes);
                }
            }
            Ok(()) => state.extents[index] = part.extents,
        }
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        let Some(state) = guard.take() else { return };
        drop(guard);
        let extents = joined(&state.extents, &state.lens);
        let result = state.error.map_or(Ok(()), Err);
        state.done.complete(Completion {
            tag: state.tag,
            result,
            buf: state.buf,
            extents,
        });
    }
}

/// Answers one after the other, as far as they are whole.
fn joined(parts: &[Vec<StatusExtent>], lens: &[u64]) -> Vec<StatusExtent> {
    let mut all: Vec<StatusExtent> = Vec::new();
    for (part, len) in parts.iter().zip(lens) {
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
