//! Resolves a request's idempotency key: execute the operation, or repeat the stored response.

use super::dispatch::{Answer, Arguments};
use super::keys::{KeyState, Keys, StoredResponse, Ticket};
use crate::access::Caller;
use api::Operation;
use api::v1::Problem;
use std::sync::Arc;
use std::time::Instant;

/// Outcome of looking up a request's key.
pub enum KeyOutcome {
    /// No key.
    Without,
    /// First request with its key.
    First(Ticket),
    /// The request was executed before; its stored response.
    Again(StoredResponse),
}

/// Looks up a request's key. A repetition waits for the first request.
///
/// # Errors
/// As [`Keys::begin`], and where the operation accepts no key.
pub async fn keyed(
    keys: &Arc<Keys>,
    caller: &Caller,
    operation: Operation,
    with: &Arguments,
) -> Result<KeyOutcome, Problem> {
    let Some(key) = &with.key else {
        return Ok(KeyOutcome::Without);
    };
    if !operation.takes_key() {
        return Err(Problem::invalid(format!(
            "{operation:?} does not support an Idempotency-Key: remove the header"
        )));
    }
    let asked = format!("{operation:?} {:?} {:?}", with.path, with.query);
    let parts = [asked.as_bytes(), &with.body];
    loop {
        match keys.begin(&caller.who, key, &parts, Instant::now())? {
            KeyState::First(ticket) => return Ok(KeyOutcome::First(ticket)),
            KeyState::Again(kept) => return Ok(KeyOutcome::Again(kept)),
            // An error means that the sender was dropped: the request has finished.
            KeyState::Wait(mut ended) => while ended.changed().await.is_ok() {},
        }
    }
}

/// Stores a response for repetitions of the request.
pub fn keep(ticket: &Ticket, done: &Answer) {
    if let Answer::Json(kept) = done {
        ticket.keep(kept.clone());
    }
}
