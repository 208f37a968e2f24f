//! A request with a key on its way to its operation, or to the answer that was given.

use super::dispatch::{Answer, Arguments};
use super::keys::{Begun, Kept, Keys, Ticket};
use crate::access::Caller;
use api::Operation;
use api::v1::Problem;
use std::sync::Arc;
use std::time::Instant;

/// What a request's key says of it.
pub enum Keyed {
    /// It has none.
    Without,
    /// It is the first with its key.
    First(Ticket),
    /// What it asks for was made, and answered so.
    Again(Kept),
}

/// Takes a request's key. The same request again waits for the first one.
///
/// # Errors
/// As [`Keys::begin`], and where the operation takes no key.
pub async fn keyed(
    keys: &Arc<Keys>,
    caller: &Caller,
    operation: Operation,
    with: &Arguments,
) -> Result<Keyed, Problem> {
    let Some(key) = &with.key else {
        return Ok(Keyed::Without);
    };
    if !operation.takes_key() {
        return Err(Problem::invalid(format!(
            "{operation:?} makes nothing under an Idempotency-Key: leave it out"
        )));
    }
    let asked = format!("{operation:?} {:?} {:?}", with.path, with.query);
    let parts = [asked.as_bytes(), &with.body];
    loop {
        match keys.begin(&caller.who, key, &parts, Instant::now())? {
            Begun::First(ticket) => return Ok(Keyed::First(ticket)),
            Begun::Again(kept) => return Ok(Keyed::Again(kept)),
            // It has ended when this is an error.
            Begun::Wait(mut ended) => while ended.changed().await.is_ok() {},
        }
    }
}

/// Keeps an answer for the same request again.
pub fn keep(ticket: &Ticket, done: &Answer) {
    if let Answer::Json(kept) = done {
        ticket.keep(kept.clone());
    }
}
