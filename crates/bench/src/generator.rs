//! Requests that come into being on a shard's own loop.

use block::{BlockDevice, CompletionQueue, IoBuf, Op, OpFlags, OpKind};
use reactor::Handle;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a loop sends.
#[derive(Clone)]
pub struct Generator {
    pub device: Arc<dyn BlockDevice>,
    pub kind: OpKind,
    /// First byte, and blocks of 4 KiB.
    pub range: (u64, u64),
    pub requests: u64,
    /// Requests outstanding.
    pub depth: u64,
}

/// When the first request was sent and the last one answered, in nanoseconds of the process.
pub type Span = (u64, u64);

const BLOCK: usize = 4096;

impl Generator {
    fn send(&self, tag: u64, buf: IoBuf, done: &Arc<CompletionQueue>) {
        let (first, blocks) = self.range;
        let op = Op {
            tag,
            kind: self.kind,
            flags: OpFlags::default(),
            offset: first + reactor::mix(tag) % blocks * BLOCK as u64,
            len: BLOCK as u64,
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
        let done = CompletionQueue::new();
        let mut sent = self.depth.min(self.requests);
        (0..sent).for_each(|tag| self.send(tag, IoBuf::zeroed(BLOCK), &done));
        let mut ready = VecDeque::new();
        let mut answered = 0;
        while answered < self.requests {
            ready.push_back(done.next().await);
            done.take(&mut ready);
            for completion in ready.drain(..) {
                completion.result.map_err(|failed| failed.to_string())?;
                answered += 1;
                if sent < self.requests {
                    self.send(sent, completion.buf, &done);
                    sent += 1;
                }
            }
        }
        Ok((began, handle.now_ns()))
    }
}
