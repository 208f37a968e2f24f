//! Idempotency keys: a repeated request with the same `Idempotency-Key` gets the stored response.
//! Responses are kept in memory, bounded in number, size and time; refusals are not kept, as they
//! changed nothing.

use crate::access::sha256_hex;
use api::v1::{Problem, ProblemCode};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Maximum number of keys, and of bytes of their responses.
const KEYS_MAX: usize = 1024;
const BYTES_MAX: usize = 16 << 20;
/// Lifetime of a response.
const AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of a key, in bytes.
const KEY_MAX: usize = 128;

/// A stored response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredResponse {
    /// Its JSON.
    pub body: Vec<u8>,
    /// The entity tag of the created object, if it has one.
    pub tag: Option<String>,
}

enum State {
    /// The first request is in progress; waiters are woken when this is dropped.
    UnderWay(watch::Sender<()>),
    Done(StoredResponse),
}

struct Entry {
    /// SHA-256 of the request.
    request: String,
    began: Instant,
    state: State,
}

/// Caller and key.
type Name = (String, String);

/// The idempotency keys of one daemon.
#[derive(Default)]
pub struct Keys(Mutex<BTreeMap<Name, Entry>>);

/// State of a request with a key.
pub enum KeyState {
    /// The first request.
    First(Ticket),
    /// A repetition of a request in progress: retry when this signals its end.
    Wait(watch::Receiver<()>),
    /// A repetition of a completed request.
    Again(StoredResponse),
}

/// Represents the first request, and stores its response; dropped without one, the request was
/// refused.
pub struct Ticket {
    keys: Arc<Keys>,
    name: Name,
}

fn size(entry: &Entry) -> usize {
    match &entry.state {
        State::UnderWay(_) => 0,
        State::Done(kept) => kept.body.len(),
    }
}

/// Evicts the oldest entries to make room for one more.
fn make_room(entries: &mut BTreeMap<Name, Entry>, now: Instant) -> Result<(), Problem> {
    entries.retain(|_, entry| {
        matches!(entry.state, State::UnderWay(_)) || now - entry.began < AGE_MAX
    });
    while entries.len() >= KEYS_MAX || entries.values().map(size).sum::<usize>() > BYTES_MAX {
        let done = entries
            .iter()
            .filter(|(_, entry)| matches!(entry.state, State::Done(_)));
        let oldest = done.min_by_key(|(_, entry)| entry.began);
        let Some(name) = oldest.map(|(name, _)| name.clone()) else {
            return Err(Problem::new(
                ProblemCode::TooMany,
                format!(
                    "{KEYS_MAX} requests with idempotency keys are in progress: wait until \
                 some have finished"
                ),
            ));
        };
        entries.remove(&name);
    }
    Ok(())
}

impl Keys {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request of a caller with a key. `parts` are everything that identifies the
    /// request.
    ///
    /// # Errors
    /// When the key is malformed or was used for another request, or too many are in progress.
    pub fn begin(
        self: &Arc<Self>,
        who: &str,
        key: &str,
        parts: &[&[u8]],
        now: Instant,
    ) -> Result<KeyState, Problem> {
        let good = |byte: u8| byte.is_ascii_graphic();
        if !(1..=KEY_MAX).contains(&key.len()) || !key.bytes().all(good) {
            return Err(Problem::invalid(format!(
                "an Idempotency-Key has 1 to {KEY_MAX} printable characters without spaces: use a \
                 random UUID"
            )));
        }
        // Prefix each part with its length, so that different splits are different requests.
        let lengths: Vec<[u8; 8]> = parts
            .iter()
            .map(|part| (part.len() as u64).to_be_bytes())
            .collect();
        let told = lengths.iter().zip(parts);
        let told: Vec<&[u8]> = told
            .flat_map(|(length, part)| [&length[..], part])
            .collect();
        let request = sha256_hex(&told);
        let name = (who.to_owned(), key.to_owned());
        let mut entries = self.lock();
        let known = entries.get(&name).filter(|entry| {
            matches!(entry.state, State::UnderWay(_)) || now - entry.began < AGE_MAX
        });
        match known {
            Some(entry) if entry.request != request => Err(Problem::new(
                ProblemCode::KeyReused,
                "this Idempotency-Key was used for another request, and nothing was done: use a \
                 new key for a new request, and the same key only to repeat a request",
            )),
            Some(entry) => Ok(match &entry.state {
                State::UnderWay(ended) => KeyState::Wait(ended.subscribe()),
                State::Done(kept) => KeyState::Again(kept.clone()),
            }),
            None => {
                make_room(&mut entries, now)?;
                let entry = Entry {
                    request,
                    began: now,
                    state: State::UnderWay(watch::Sender::new(())),
                };
                entries.insert(name.clone(), entry);
                let keys = Arc::clone(self);
                Ok(KeyState::First(Ticket { keys, name }))
            }
        }
    }
}

impl Ticket {
    /// Stores the response to the request.
    pub fn keep(&self, kept: StoredResponse) {
        if let Some(entry) = self.keys.lock().get_mut(&self.name) {
            entry.state = State::Done(kept);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut entries = self.keys.lock();
        let under_way = |entry: &Entry| matches!(entry.state, State::UnderWay(_));
        if entries.get(&self.name).is_some_and(under_way) {
            entries.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(body: &str) -> StoredResponse {
        StoredResponse {
            body: body.as_bytes().to_vec(),
            tag: None,
        }
    }

    fn first(keys: &Arc<Keys>, key: &str, now: Instant) -> Ticket {
        match keys.begin("a", key, &[b"make"], now) {
            Ok(KeyState::First(ticket)) => ticket,
            Ok(_) => panic!("{key} is known"),
            Err(problem) => panic!("{problem}"),
        }
    }

    #[test]
    fn repeated_request_returns_the_stored_response() {
        let (keys, now) = (Arc::new(Keys::default()), Instant::now());
        let ticket = first(&keys, "k", now);
        let Ok(KeyState::Wait(waiting)) = keys.begin("a", "k", &[b"make"], now) else {
            panic!("it is in progress");
        };
        assert_eq!(waiting.has_changed().ok(), Some(false));
        ticket.keep(kept("made"));
        drop(ticket);
        assert!(waiting.has_changed().is_err(), "the waiter is not woken");
        let Ok(KeyState::Again(again)) = keys.begin("a", "k", &[b"make"], now) else {
            panic!("it was executed");
        };
        assert_eq!(again, kept("made"));
        // Keys of other callers are distinct.
        let other = keys.begin("b", "k", &[b"make"], now);
        assert!(matches!(other, Ok(KeyState::First(_))));
    }

    #[test]
    fn key_reuse_for_another_request_is_refused_even_in_progress() {
        let (keys, now) = (Arc::new(Keys::default()), Instant::now());
        let ticket = first(&keys, "k", now);
        let code = |parts: &[&[u8]]| {
            keys.begin("a", "k", parts, now)
                .err()
                .map(|problem| problem.code)
        };
        assert_eq!(code(&[b"other"]), Some(ProblemCode::KeyReused));
        ticket.keep(kept(""));
        assert_eq!(code(&[b"other"]), Some(ProblemCode::KeyReused));
        assert_eq!(code(&[b"ma", b"ke"]), Some(ProblemCode::KeyReused));
        assert_eq!(code(&[b"make"]), None);
    }

    #[test]
    fn refused_request_may_be_repeated() {
        let (keys, now) = (Arc::new(Keys::default()), Instant::now());
        drop(first(&keys, "k", now));
        let begun = keys.begin("a", "k", &[b"other"], now);
        assert!(matches!(begun, Ok(KeyState::First(_))));
    }

    #[test]
    fn keys_are_bounded_in_form_number_size_and_time() {
        let (keys, now) = (Arc::new(Keys::default()), Instant::now());
        let long = "x".repeat(KEY_MAX + 1);
        for bad in ["", "a b", "a\n", "ä", &long] {
            assert!(keys.begin("a", bad, &[], now).is_err(), "{bad}");
        }
        let at = |number: usize| now + Duration::from_millis(number as u64);
        for number in 0..KEYS_MAX + 10 {
            first(&keys, &number.to_string(), at(number)).keep(kept(""));
        }
        assert_eq!(keys.lock().len(), KEYS_MAX);
        let begin = |key: &str, now| keys.begin("a", key, &[b"make"], now).unwrap();
        let late = at(KEYS_MAX + 10);
        assert!(matches!(begin("10", late), KeyState::Again(_)));
        assert!(
            matches!(begin("9", late), KeyState::First(_)),
            "the oldest goes first"
        );
        assert!(
            matches!(begin("20", late + AGE_MAX), KeyState::First(_)),
            "it has expired"
        );
        let big = "x".repeat(BYTES_MAX / 2);
        for key in ["one", "two", "three"] {
            first(&keys, key, late + AGE_MAX).keep(kept(&big));
        }
        drop(first(&keys, "four", late + AGE_MAX));
        assert!(keys.lock().values().map(size).sum::<usize>() <= BYTES_MAX);
        // Requests in progress are never evicted.
        let keys = Arc::new(Keys::default());
        let held: Vec<Ticket> = (0..KEYS_MAX)
            .map(|number| first(&keys, &number.to_string(), now))
            .collect();
        let more = keys.begin("a", "more", &[], now + AGE_MAX).err();
        assert_eq!(more.map(|problem| problem.code), Some(ProblemCode::TooMany));
        drop(held);
        assert!(keys.lock().is_empty());
    }
}
