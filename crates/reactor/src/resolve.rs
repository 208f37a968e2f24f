//! Names of hosts to addresses, within a time limit: the system's resolver may take minutes.
//!
//! Each query runs on a thread of its own, of which there are few; results, also negative ones, are cached for a while. So many
//! exports with one name cost the time of one lookup.

use crate::may_wait;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Timeout of a query.
const TIME_MAX: Duration = Duration::from_secs(5);
/// How long an answer counts, also that there was none.
const COUNTS_FOR: Duration = Duration::from_secs(30);
/// Most concurrent queries, including timed-out ones that have not ended; and most cached results.
const LOOKUPS_MAX: usize = 16;
const ANSWERS_MAX: usize = 64;
/// Addresses of a name that count.
const ADDRESSES_MAX: usize = 8;
/// Longest name with its port, in bytes (RFC 1035, section 2.3.4: 255 for the name).
const NAME_MAX: usize = 300;

type Answer = Result<Vec<SocketAddr>, (ErrorKind, String)>;

struct Known {
    answers: BTreeMap<String, (Instant, Answer)>,
    running: usize,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    answers: BTreeMap::new(),
    running: 0,
});

fn lock() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask(name: &str) -> Answer {
    let found = name.to_socket_addrs();
    let found = found.map(|found| found.take(ADDRESSES_MAX).collect::<Vec<_>>());
    match found {
        Ok(found) if found.is_empty() => Err((ErrorKind::NotFound, "it has no address".to_owned())),
        Ok(found) => Ok(found),
        Err(error) => Err((error.kind(), error.to_string())),
    }
}

/// The addresses of `HOST:PORT`, at least one. A numeric address does not wait; a name at most 5 s. Not to be called on a
/// loop.
///
/// # Errors
/// When the name has no address, or the resolver does not respond in time.
pub fn resolve(name: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    may_wait();
    if name.len() > NAME_MAX {
        let why = format!("a host name with its port has at most {NAME_MAX} bytes");
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let explain = |(kind, why): (ErrorKind, String)| {
        io::Error::new(kind, format!("{name} cannot be resolved: {why}"))
    };
    within(name, TIME_MAX, ask).map_err(explain)
}

fn within(name: &str, limit: Duration, ask: fn(&str) -> Answer) -> Answer {
    let mut known = lock();
    known.answers.retain(|_, (at, _)| at.elapsed() < COUNTS_FOR);
    if let Some((_, answer)) = known.answers.get(name) {
        return answer.clone();
    }
    if known.running >= LOOKUPS_MAX {
        let why = format!("{LOOKUPS_MAX} queries are pending: check the resolver");
        return Err((ErrorKind::TimedOut, why));
    }
    known.running += 1;
    drop(known);
    let (give, take) = mpsc::channel();
    let asked = name.to_owned();
    let thread = std::thread::Builder::new().name("resolve".to_owned());
    let started = thread.spawn(move || {
        let answer = ask(&asked);
        lock().running -= 1;
        // The receiver is gone after the timeout.
        let _ = give.send(answer);
    });
    if let Err(error) = started {
        lock().running -= 1;
        return Err((error.kind(), error.to_string()));
    }
    let answer = take.recv_timeout(limit).unwrap_or_else(|_| {
        let why = format!(
            "the resolver did not respond within {} s: use an IP address, or check the resolver",
            limit.as_secs()
        );
        Err((ErrorKind::TimedOut, why))
    });
    let mut known = lock();
    if known.answers.len() < ANSWERS_MAX {
        let entry = (Instant::now(), answer.clone());
        known.answers.insert(name.to_owned(), entry);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn numbers_are_addresses_and_long_names_are_refused() {
        assert_eq!(resolve("[::1]:7").unwrap(), ["[::1]:7".parse().unwrap()]);
        assert!(resolve(&format!("{}:7", "x".repeat(400))).is_err());
        assert!(resolve("127.0.0.1").is_err());
    }

    #[test]
    fn a_resolver_that_does_not_answer_costs_its_limit_once() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        fn never(_: &str) -> Answer {
            ASKED.fetch_add(1, Ordering::Relaxed);
            loop {
                std::thread::park();
            }
        }
        let asked = || within("silent:1", Duration::from_millis(10), never);
        assert_eq!(asked().unwrap_err().0, ErrorKind::TimedOut);
        assert_eq!(asked().unwrap_err().0, ErrorKind::TimedOut);
        // The first one's thread may not have run yet.
        while ASKED.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(
            ASKED.load(Ordering::Relaxed),
            1,
            "the second one asks nobody"
        );
    }
}
