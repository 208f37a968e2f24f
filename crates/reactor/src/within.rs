//! A bound in time for one step.

use crate::Handle;
use std::future::{Future, poll_fn};
use std::io::{ErrorKind, Result};
use std::pin::{Pin, pin};
use std::task::Poll;

/// One second, in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The result of `future`, or `None` if it takes longer than `ns` nanoseconds. No timer is set
/// if it is ready immediately.
pub async fn within<T>(handle: &Handle, ns: u64, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut limit = None;
    poll_fn(|context| {
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        let limit = limit.get_or_insert_with(|| handle.sleep(ns));
        Pin::new(limit).poll(context).map(|()| None)
    })
    .await
}

/// The same for what may fail.
///
/// # Errors
/// Its own, or `TimedOut`.
pub async fn in_time<T>(
    handle: &Handle,
    ns: u64,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    let ended = within(handle, ns, future).await;
    ended.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()))
}
