//! Delivers events to targets, one delivery at a time per target, each on its own thread.

use super::check::route;
use super::targets::{Targets, Work};
use super::{mail, webhook};
use crate::events::Events;
use api::v1::{Event, TargetCreate, TargetTo};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Polling interval if nothing wakes the task.
const IDLE_TIME: Duration = Duration::from_secs(60);

/// This host's name, for receivers of several daemons.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// Delivers events to a target now and waits for the result; `link_local` permits link-local
/// addresses.
///
/// # Errors
/// Why the target did not accept them.
pub fn deliver_now(to: &TargetCreate, events: &[Event], link_local: bool) -> Result<(), String> {
    let host = host();
    if let Some(route) = route(to) {
        return mail::send(&route, link_local, &host, events);
    }
    let TargetTo::Webhook { url, secret } = &to.to else {
        return Ok(());
    };
    let place = (
        url.expose(),
        secret.as_ref().map(api::Secret::expose),
        to.ca.as_deref(),
    );
    events
        .iter()
        .try_for_each(|event| webhook::send(place, link_local, &host, event))
}

async fn carry_out(work: Work, targets: Arc<Targets>, link_local: bool, began: Instant) {
    let work = Arc::new(work);
    let taken = Arc::clone(&work);
    let done =
        tokio::task::spawn_blocking(move || deliver_now(&taken.to, &taken.events, link_local));
    let result = done.await.unwrap_or_else(|error| Err(error.to_string()));
    let now = began.elapsed();
    let ending = tokio::task::spawn_blocking(move || targets.ended(&work, result, now));
    // A panic on that thread was reported already.
    let _ = ending.await;
}

/// Delivers events to their targets while it is polled; `link_local` permits link-local addresses.
pub async fn deliver(events: Arc<Events>, targets: Arc<Targets>, link_local: bool) {
    let began = Instant::now();
    let (mut news, mut changes) = (events.subscribe(), targets.subscribe());
    loop {
        let now = began.elapsed();
        let (work, next) = targets.take_due(&events, now);
        for work in work {
            tokio::spawn(carry_out(work, Arc::clone(&targets), link_local, began));
        }
        let wait = next.map_or(IDLE_TIME, |next| next.saturating_sub(now));
        tokio::select! {
            _ = news.changed() => {}
            _ = changes.changed() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}
