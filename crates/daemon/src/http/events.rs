//! Live data as server-sent events (HTML Living Standard, section 9.2).

use super::hub::{Hub, Viewing, Wish};
use super::streams::{Ending, Parts};
use crate::Manager;
use crate::access::Caller;
use api::v1::Problem;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A viewer that reads nothing for this long is disconnected.
const STALL_TIME: Duration = Duration::from_secs(60);

/// Sends updates until the viewer disconnects, has received the requested number, loses its access,
/// or the daemon stops.
///
/// # Errors
/// When there are too many viewers.
pub fn tell(
    hub: &Arc<Hub>,
    (wish, looks): (Wish, Option<u64>),
    caller: Caller,
    manager: Arc<Manager>,
    ending: Ending,
) -> Result<Response, Problem> {
    let viewing = hub.join(&caller.who, wish)?;
    let (give, take) = mpsc::channel(1);
    tokio::spawn(tell_parts((viewing, looks), give, caller, manager, ending));
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((head, Body::new(Parts(take))).into_response())
}

async fn tell_parts(
    (mut viewing, looks): (Viewing, Option<u64>),
    parts: mpsc::Sender<Bytes>,
    caller: Caller,
    manager: Arc<Manager>,
    mut ending: Ending,
) {
    let mut told = 0;
    while looks.is_none_or(|looks| told < looks) {
        told += 1;
        let text = tokio::select! {
            text = viewing.next() => text,
            () = parts.closed() => return,
            _ = ending.wait_for(|ending| *ending) => return,
        };
        let Some(text) = text.filter(|_| manager.access.holds(&caller)) else {
            return;
        };
        tokio::select! {
            sent = parts.send(text) => if sent.is_err() {
                return;
            },
            _ = ending.wait_for(|ending| *ending) => return,
            () = tokio::time::sleep(STALL_TIME) => return,
        }
    }
}
