//! Playing pieces of requests to a server with a limited queue depth.

use super::layout::Piece;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::Histogram;
use crate::nbd::{Client, Request};
use std::time::{Duration, Instant};

/// Bytes of answers that may be in flight at a time: a socket takes so many, so that a server which has to get rid
/// of them first never waits for us while we wait for it. One longer answer goes alone.
const ANSWERS: u64 = 128 << 10;
/// How often a person is asked whether to continue, in answers.
const LOOK: u64 = 256;

/// The result.
#[derive(Default)]
pub struct Played {
    pub requests: u64,
    pub bytes: u64,
    /// Nanoseconds of waiting, summed over requests.
    pub waited_ns: u64,
    /// In nanoseconds.
    pub latencies: Histogram,
    pub took: Duration,
}

impl Played {
    /// Mean latency in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.waited_ns as f64 / self.requests.max(1) as f64 / 1e6
    }
}

/// Requests that are outstanding, by their number.
struct Outstanding {
    /// When each was sent, and how many bytes its answer has.
    sent: Vec<Option<(Instant, u64)>>,
    free: Vec<usize>,
    /// Bytes of all answers.
    answers: u64,
}

impl Outstanding {
    fn new(count: usize) -> Self {
        Self {
            sent: vec![None; count],
            free: (0..count).collect(),
            answers: 0,
        }
    }

    /// Whether another one with so long an answer can be sent.
    fn has_room(&self, answer: u64) -> bool {
        !self.free.is_empty() && (self.answers == 0 || self.answers + answer <= ANSWERS)
    }
}

/// Plays them in order: as many are outstanding as are allowed, so what overlaps may come about in another order.
/// `meanwhile` is called with the number of completions.
///
/// # Errors
/// When the server gives an error or goes away, or a person ends it.
pub fn play(
    client: &mut Client,
    pieces: impl Iterator<Item = Piece>,
    outstanding: usize,
    mut meanwhile: impl FnMut(u64) -> Result<()>,
) -> Result<Played> {
    let begun = Instant::now();
    let mut played = Played::default();
    let mut open = Outstanding::new(outstanding);
    for piece in pieces {
        let answer = if piece.write {
            0
        } else {
            u64::from(piece.length)
        };
        while !open.has_room(answer) {
            receive(client, &mut open, &mut played)?;
        }
        if played.requests.is_multiple_of(LOOK) {
            interrupt::check()?;
            meanwhile(played.requests)?;
        }
        let number = open.free.pop().expect("one was answered");
        open.sent[number] = Some((Instant::now(), answer));
        open.answers += answer;
        client.send(number as u64, &request(piece))?;
        played.bytes += u64::from(piece.length);
    }
    while open.free.len() < outstanding {
        receive(client, &mut open, &mut played)?;
    }
    played.took = begun.elapsed();
    Ok(played)
}

fn request(piece: Piece) -> Request {
    let Piece {
        offset,
        length,
        write,
    } = piece;
    match write {
        true => Request::Write {
            offset,
            data: content(offset, length),
            fua: false,
        },
        false => Request::Read { offset, length },
    }
}

/// Data to write: all blocks differ, none is zeroes.
fn content(offset: u64, length: u32) -> Vec<u8> {
    let words = (0..u64::from(length) / 8).map(|word| (offset + 8 * word) | 1 << 63);
    words.flat_map(u64::to_le_bytes).collect()
}

fn receive(client: &mut Client, open: &mut Outstanding, played: &mut Played) -> Result<()> {
    let reply = client.receive()?;
    let number = usize::try_from(reply.cookie).ok();
    let sent = number.and_then(|number| open.sent.get_mut(number)?.take());
    let (Some(number), Some((since, answer))) = (number, sent) else {
        return Err(Failure::new("the server sent an unexpected response"));
    };
    if reply.error != 0 {
        return Err(Failure::new(format!(
            "a request was answered with error {}: look at the server's log",
            reply.error
        )));
    }
    open.free.push(number);
    open.answers -= answer;
    let waited_ns = since.elapsed().as_nanos() as u64;
    played.requests += 1;
    played.waited_ns += waited_ns;
    played.latencies.add(waited_ns);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_go_alone_and_writes_beside_short_ones() {
        let mut open = Outstanding::new(4);
        assert!(open.has_room(32 << 20));
        open.answers = 32 << 20;
        assert!(!open.has_room(0) && !open.has_room(4096));
        open.answers = ANSWERS - 4096;
        assert!(open.has_room(0) && open.has_room(4096) && !open.has_room(8192));
        open.free.clear();
        assert!(!open.has_room(0));
    }

    #[test]
    fn what_is_written_is_never_zeroes_and_never_twice_the_same() {
        let [one, other] = [content(0, 4096), content(4096, 4096)];
        assert_eq!((one.len(), other.len()), (4096, 4096));
        assert_ne!(one, other);
        assert!(one.chunks(8).all(|word| word.iter().any(|byte| *byte != 0)));
    }
}
