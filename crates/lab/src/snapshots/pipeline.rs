//! Requests of our own on one NBD connection, several outstanding.

use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::nbd::{Client, Request};

/// Requests outstanding on a connection.
const OUTSTANDING: usize = 16;

/// Sends all of them and waits for every answer; `answered` is called at each.
///
/// # Errors
/// When the connection breaks, a request fails, or after an interrupt.
pub fn run(
    client: &mut Client,
    mut requests: impl Iterator<Item = Request>,
    answered: impl Fn(),
) -> Result<()> {
    let doing = || "the volume cannot be used".to_owned();
    let (mut sent, mut outstanding) = (0, 0);
    loop {
        while outstanding < OUTSTANDING
            && let Some(request) = requests.next()
        {
            client.send(sent, &request).during(doing)?;
            sent += 1;
            outstanding += 1;
        }
        if outstanding == 0 {
            return Ok(());
        }
        interrupt::check()?;
        let reply = client.receive().during(doing)?;
        outstanding -= 1;
        if reply.error != 0 {
            let error = reply.error;
            return Err(Failure::new(format!(
                "a request was answered with error {error}: the daemon's log says why"
            )));
        }
        answered();
    }
}

/// Puts them into an order of chance.
pub fn shuffle<T>(items: &mut [T], chance: &mut crate::chance::Chance) {
    for end in (1..items.len()).rev() {
        items.swap(end, chance.below(end as u64 + 1) as usize);
    }
}
