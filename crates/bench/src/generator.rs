//! A load generator on a loop.

use block::{BlockDevice, CompletionQueue, IoBuf, Op, OpFlags, OpKind};
use reactor::Handle;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a loop sends.
#[derive(Clone)]
pub struct Generator {
    pub device: Arc<dyn BlockDevice>,
    pub kind: OpKind,
    /// The range that the requests are in, in bytes.
    pub first: u64,
    /// See `first`.
    pub bytes: u64,
    /// Bytes of each.
    pub length: u64,
    /// They follow one another, instead of lying anywhere.
    pub sequential: bool,
    /// Each is followed by a flush, which does not count as a request.
    pub flush: bool,
    pub requests: u64,
    /// Requests outstanding.
    pub depth: u64,
}

/// When the first request was sent and the last one answered, in nanoseconds of the loop.
pub type Span = (u64, u64);

impl Generator {
    fn submit(&self, kind: OpKind, tag: u64, buf: IoBuf, done: &Arc<CompletionQueue>) {
        let places = self.bytes / self.length;
        let place = match self.sequential {
            true => tag,
            false => reactor::mix(tag),
        };
        let op = Op {
            tag,
            kind,
            flags: OpFlags::default(),
            offset: self.first + place % places * self.length,
            len: self.length,
            buf,
            done: done.clone(),
        };
        let sent = self.device.submit(op);
        assert!(sent.is_ok(), "few are in flight");
    }

    /// Keeps so many outstanding until all are answered.
    ///
    /// # Errors
    /// The first that failed, as text.
    pub async fn run(self, handle: Handle) -> Result<Span, String> {
        let began = handle.now_ns();
        let (done, flushed) = (CompletionQueue::new(), CompletionQueue::new());
        let mut sent = self.depth.min(self.requests);
        let buf = || IoBuf::zeroed(self.length as usize);
        (0..sent).for_each(|tag| self.submit(self.kind, tag, buf(), &done));
        let mut ready = VecDeque::new();
        let mut answered = 0;
        while answered < self.requests {
            ready.push_back(done.next().await);
            done.take(&mut ready);
            for completion in ready.drain(..) {
                completion.result.map_err(|failed| failed.to_string())?;
                if self.flush {
                    self.submit(OpKind::Flush, sent, IoBuf::empty(), &flushed);
                    let flush = flushed.next().await.result;
                    flush.map_err(|failed| failed.to_string())?;
                }
                answered += 1;
                if sent < self.requests {
                    self.submit(self.kind, sent, completion.buf, &done);
                    sent += 1;
                }
            }
        }
        Ok((began, handle.now_ns()))
    }
}
