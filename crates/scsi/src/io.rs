//! One operation on the device as a future.

use crate::once::Once;
use block::{
    BlockDevice, Completion, CompletionSink, IoBuf, IoError, Op, OpFlags, OpKind, StatusExtent,
};
use reactor::Handle;
use std::sync::Arc;

/// When the device gave an operation back, it is asked again after this time.
const RETRY_NS: u64 = 1_000_000;

impl CompletionSink for Once<Completion> {
    fn complete(&self, completion: Completion) {
        self.give(completion);
    }
}

/// An operation and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub kind: OpKind,
    pub flags: OpFlags,
    pub offset: u64,
    pub len: u64,
}

impl Step {
    pub(crate) fn new(kind: OpKind, offset: u64, len: u64) -> Self {
        Self {
            kind,
            flags: OpFlags::default(),
            offset,
            len,
        }
    }

    pub(crate) fn fua(mut self, fua: bool) -> Self {
        self.flags.fua = fua;
        self
    }
}

/// Carries out one operation: its memory, and the runs of a status.
pub(crate) async fn run(
    handle: &Handle,
    device: &Arc<dyn BlockDevice>,
    step: Step,
    buf: IoBuf,
) -> Result<(IoBuf, Vec<StatusExtent>), IoError> {
    let one = Arc::new(Once::default());
    let mut op = Op {
        tag: 0,
        kind: step.kind,
        flags: step.flags,
        offset: step.offset,
        len: step.len,
        buf,
        done: one.clone(),
    };
    while let Err(back) = device.submit(op) {
        op = back;
        handle.sleep(RETRY_NS).await;
    }
    let completion: Completion = one.take().await;
    completion
        .result
        .map(|()| (completion.buf, completion.extents))
}
