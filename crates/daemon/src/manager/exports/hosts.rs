//! Connected hosts, and what is refused while hosts use a volume.

use super::{Exports, Running};
use crate::manager::Result;
use crate::sync::lock;
use api::v1::{Problem, ProblemCode};
use std::time::{Duration, Instant};

/// Time for hosts that have just ended their sessions to leave, and the interval of checks.
const LEAVING: Duration = Duration::from_millis(500);
const CHECK: Duration = Duration::from_millis(20);
/// Maximum number of exports, and of hosts of each, that a message names.
const TOLD_MAX: usize = 8;
/// What to do about exports.
const DELETE: &str = "delete the export first with `convect export delete NAME`";
const DISABLE: &str = "disable the export first with `convect export disable NAME`";
const OR_FORCE: &str = "or use --force (`force` in the API)";

fn subject(pool: &str, volume: Option<&str>) -> String {
    match volume {
        Some(volume) => format!("volume {pool}/{volume} is"),
        None => format!("volumes of pool {pool} are"),
    }
}

/// At most `TOLD_MAX` of `names`, and how many more there are.
fn listed(names: &[String], between: &str) -> String {
    let told = names.iter().take(TOLD_MAX).map(String::as_str);
    let told = told.collect::<Vec<_>>().join(between);
    match names.len().saturating_sub(TOLD_MAX) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

/// Connected hosts of an export, for messages; none if there are none.
fn hosts(name: &str, running: &Running) -> Option<String> {
    let offer = running.offer.as_ref().ok()?;
    let sessions = offer.sessions();
    if sessions == 0 {
        return None;
    }
    let hosts = match listed(&offer.hosts(), ", ") {
        unnamed if unnamed.is_empty() => format!("{sessions} connected"),
        hosts => hosts,
    };
    Some(format!(
        "{hosts} by export {name} ({})",
        running.record.kind
    ))
}

fn busy(message: String) -> Problem {
    Problem::new(ProblemCode::Busy, message)
}

impl Exports {
    /// Connected hosts of the exports that `of` selects by pool and name.
    fn connected(&self, of: &dyn Fn(&str, &str, &Running) -> bool) -> Vec<String> {
        let exports = lock(&self.running);
        exports
            .iter()
            .filter(|((pool, name), running)| of(pool, name, running))
            .filter_map(|((_, name), running)| hosts(name, running))
            .collect()
    }

    /// Refuses a change while hosts are connected to exports that `of` selects. Hosts that are
    /// just leaving are waited for. `what` is the subject with its verb.
    fn check_left(&self, what: &str, of: &dyn Fn(&str, &str, &Running) -> bool) -> Result<()> {
        let began = Instant::now();
        loop {
            let connected = self.connected(of);
            if connected.is_empty() {
                return Ok(());
            }
            if began.elapsed() >= LEAVING {
                return Err(busy(format!(
                    "{what} in use by {}: disconnect the hosts first, or use --force (`force` in \
                     the API) to continue although they lose access",
                    listed(&connected, "; ")
                )));
            }
            std::thread::sleep(CHECK);
        }
    }

    /// Refuses a volume of a pool, or all of them, while hosts are connected.
    pub(in crate::manager) fn check_no_hosts(
        &self,
        pool: &str,
        volume: Option<&str>,
    ) -> Result<()> {
        self.check_left(&subject(pool, volume), &|of, _, running| {
            of == pool && volume.is_none_or(|volume| running.record.volume == volume)
        })
    }

    /// Refuses an export while hosts are connected to it.
    pub(super) fn check_no_hosts_of(&self, pool: &str, export: &str) -> Result<()> {
        self.check_left(&format!("export {export} is"), &|of, name, _| {
            of == pool && name == export
        })
    }

    /// Refuses volumes with a stream in progress.
    pub(in crate::manager) fn check_not_moving(
        &self,
        pool: &str,
        volume: Option<&str>,
    ) -> Result<()> {
        if !self.uses.has(pool, volume) {
            return Ok(());
        }
        Err(busy(format!(
            "{} being sent or received: wait until that has finished, or cancel it",
            subject(pool, volume)
        )))
    }

    /// Refuses volumes that are exported, or have a stream in progress.
    pub(in crate::manager) fn check_unused(&self, pool: &str, volume: Option<&str>) -> Result<()> {
        self.check_not_exported(pool, volume, &|_| true, DELETE)
    }

    /// The same; with `force` only a stream in progress counts.
    pub(in crate::manager) fn check_unused_unless(
        &self,
        force: bool,
        pool: &str,
        volume: Option<&str>,
    ) -> Result<()> {
        match force {
            true => self.check_not_moving(pool, volume),
            false => {
                let advice = format!("{DELETE}, {OR_FORCE}");
                self.check_not_exported(pool, volume, &|_| true, &advice)
            }
        }
    }

    /// Refuses a volume that an export offers, or is to offer, or that has a stream in progress.
    /// Disabled exports do not count.
    pub(in crate::manager) fn check_not_offered(&self, pool: &str, volume: &str) -> Result<()> {
        let offers = |running: &Running| !running.record.disabled;
        self.check_not_exported(pool, Some(volume), &offers, DISABLE)
    }

    /// The same; with `force` only a stream in progress counts.
    pub(in crate::manager) fn check_not_offered_unless(
        &self,
        force: bool,
        pool: &str,
        volume: &str,
    ) -> Result<()> {
        match force {
            true => self.check_not_moving(pool, Some(volume)),
            false => {
                let offers = |running: &Running| !running.record.disabled;
                let advice = format!("{DISABLE}, {OR_FORCE}");
                self.check_not_exported(pool, Some(volume), &offers, &advice)
            }
        }
    }

    fn check_not_exported(
        &self,
        pool: &str,
        volume: Option<&str>,
        counts: &dyn Fn(&Running) -> bool,
        advice: &str,
    ) -> Result<()> {
        self.check_not_moving(pool, volume)?;
        let of = |of: &str, _: &str, running: &Running| {
            of == pool
                && volume.is_none_or(|volume| running.record.volume == volume)
                && counts(running)
        };
        let names: Vec<String> = lock(&self.running)
            .iter()
            .filter(|((pool, name), running)| of(pool, name, running))
            .map(|((_, name), _)| name.clone())
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let connected = self.connected(&of);
        let used = match connected.is_empty() {
            true => String::new(),
            false => format!(", and in use by {}", listed(&connected, "; ")),
        };
        Err(busy(format!(
            "{} exported as {}{used}: {advice}",
            subject(pool, volume),
            listed(&names, ", "),
        )))
    }
}
