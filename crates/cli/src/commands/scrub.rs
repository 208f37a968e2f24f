//! `convect pool scrub`, and scrub results in a pool's status.

use super::job::follow;
use crate::progress::{duration, wait};
use crate::show::{print, print_json, read};
use crate::{Client, Failure};
use api::Operation;
use api::v1::{JobRef, Scrub, ScrubFault, ScrubStart};
use units::{Utc, format_bytes, parse_bytes};

/// Maximum faults shown in a pool's status.
const SHOWN: usize = 10;

/// Starts a scrub and waits for it if requested.
pub fn start(
    client: &Client,
    json: bool,
    name: &str,
    rate: Option<&str>,
    follow_it: bool,
) -> Result<(), Failure> {
    let rate = rate.map(parse_bytes).transpose();
    let request = ScrubStart {
        rate: rate.map_err(|error| Failure::Usage(error.to_string()))?,
    };
    let answer = client.send(Operation::PoolScrub, &[name], &request)?;
    if !follow_it {
        return follow(client, json, true, &answer, "");
    }
    wait(client, read::<JobRef>(&answer)?.job, json)?;
    let answer = client.get(Operation::PoolScrubShow, &[name])?;
    let scrub: Scrub = read(&answer)?;
    match json {
        true => print_json(&answer, true)?,
        false => print(&format!(
            "pool {name}: {}\n{}",
            line(&scrub),
            faults(&scrub)
        ))?,
    }
    match scrub.lost {
        0 => Ok(()),
        lost => Err(Failure::Failed(format!(
            "{lost} blocks of pool {name} have no correct copy left: restore the ranges listed by \
             `convect pool status {name}` from a backup, or discard them"
        ))),
    }
}

/// Cancels the running scrub.
pub fn cancel(client: &Client, json: bool, name: &str) -> Result<(), Failure> {
    client.get(Operation::PoolScrubCancel, &[name])?;
    match json {
        true => Ok(()),
        false => print(&format!("scrub of pool {name} cancelled\n")),
    }
}

/// A scrub in one line.
pub fn line(scrub: &Scrub) -> String {
    let found = format!(
        "{} corrupt copies, {} repaired, {} blocks lost",
        scrub.errors, scrub.repaired, scrub.lost
    );
    match scrub.state.as_str() {
        "running" | "paused" => {
            let share = 100.0 * scrub.bytes as f64 / scrub.total.max(1) as f64;
            let left = scrub.seconds_left.map(duration).unwrap_or_default();
            let pace = match scrub.state.as_str() {
                "running" => format!(", {}/s, {left} left", format_bytes(scrub.rate)),
                _ => String::new(),
            };
            format!(
                "{} since {}: {:.1} % of {}{pace}; {found} so far",
                scrub.state,
                date(scrub.began_s),
                share.min(99.9),
                format_bytes(scrub.total),
            )
        }
        "done" | "cancelled" => format!(
            "{} on {} after {}: {} read; {found}",
            scrub.state,
            date(scrub.began_s + scrub.took_s),
            duration(scrub.took_s),
            format_bytes(scrub.bytes)
        ),
        _ => "never".to_owned(),
    }
}

fn fault(fault: &ScrubFault) -> String {
    let place = match fault.volume.as_str() {
        "" => "pool metadata".to_owned(),
        volume => format!(
            "volume {volume}, offset {}, {}",
            fault.offset,
            format_bytes(fault.length)
        ),
    };
    let repaired = match fault.repaired {
        true => "repaired",
        false => "lost",
    };
    format!(
        "  {repaired}: {place}, on {}: {}\n",
        fault.drive, fault.error
    )
}

/// The most recent corrupt copies, one per line.
pub fn faults(scrub: &Scrub) -> String {
    let lines = scrub.faults.iter().take(SHOWN).map(fault);
    lines.collect()
}

/// Seconds since 1970 as a date and time in UTC.
pub fn date(seconds: u64) -> String {
    Utc::from_unix(seconds).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrub_is_summarised_in_one_line() {
        let mut scrub = Scrub {
            state: "done".to_owned(),
            began_s: 1_735_689_600,
            took_s: 61,
            bytes: 3 << 30,
            errors: 2,
            repaired: 2,
            ..Scrub::default()
        };
        let said = "done on 2025-01-01 00:01 UTC after 1 min 1 s: 3 GiB read; 2 corrupt copies, 2 repaired, 0 blocks lost";
        assert_eq!(line(&scrub), said);
        scrub.state = "running".to_owned();
        (scrub.total, scrub.rate) = (4 << 30, 64 << 20);
        assert!(
            line(&scrub).contains("75.0 % of 4 GiB, 64 MiB/s"),
            "{}",
            line(&scrub)
        );
        assert_eq!(line(&Scrub::default()), "never");
    }
}
