//! One connection's load, until the daemon is gone.

use super::ledger::{Covered, Ledger};
use crate::chance::Chance;
use crate::content::{self, BLOCK, Content};
use crate::nbd::{Client, Reply, Request};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Requests outstanding on a connection.
const DEPTH: usize = 16;
/// Longest request in blocks.
const LONGEST: u64 = 16;

/// Results of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Writes, zeroes and trims that were answered.
    pub writes: u64,
    /// Flushes that were answered.
    pub flushes: u64,
    /// Reads that were answered and checked.
    pub reads: u64,
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.reads += other.reads;
    }
}

/// An outstanding request.
enum Sent {
    Write {
        range: Range<u64>,
        version: u32,
        /// Once it is answered it may not be lost any longer.
        durable: bool,
    },
    Read {
        range: Range<u64>,
    },
    Flush(Covered),
}

/// A connection's load.
pub struct Lane {
    pub socket: PathBuf,
    pub export: String,
    pub ledger: Arc<Mutex<Ledger>>,
    /// Set before the daemon is killed: from then on a broken connection is expected.
    pub killed: Arc<AtomicBool>,
    /// Acknowledged data has to outlive the daemon, flushed or not: no drive fails meanwhile.
    pub kept: bool,
    pub chance: Chance,
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger
        .lock()
        .expect("no lane panics while it holds the ledger")
}

impl Lane {
    fn range(&mut self, ledger: &Ledger) -> Range<u64> {
        let length = 1 + self.chance.below(LONGEST).min(self.chance.below(LONGEST));
        // One half of the requests goes to a sixteenth of the volume, so that there is something
        // hot, and blocks are written again before they are flushed.
        let region = if self.chance.below(2) == 0 {
            ledger.len() / 16
        } else {
            ledger.len()
        };
        let begin = self.chance.below(region - length);
        begin..begin + length
    }

    /// Chooses a request and enters it; none when its blocks are taken.
    fn choose(&mut self) -> Option<(Request, Sent)> {
        let shared = Arc::clone(&self.ledger);
        let mut ledger = locked(&shared);
        let dice = self.chance.below(100);
        if dice < 5 {
            return Some((Request::Flush, Sent::Flush(ledger.flush_sent())));
        }
        let range = self.range(&ledger);
        if !ledger.take(range.clone()) {
            return None;
        }
        let offset = range.start * BLOCK as u64;
        let length = (range.end - range.start) as u32 * BLOCK as u32;
        if dice < 25 {
            return Some((Request::Read { offset, length }, Sent::Read { range }));
        }
        if dice < 32 {
            let version = ledger.sent(range.clone(), |_| Content::Zero);
            let request = match dice % 2 {
                0 => Request::Zero { offset, length },
                _ => Request::Trim { offset, length },
            };
            return Some((
                request,
                Sent::Write {
                    range,
                    version,
                    durable: self.kept,
                },
            ));
        }
        let version = ledger.sent(range.clone(), Content::Data);
        drop(ledger);
        let mut data = vec![0; length as usize];
        for (block, bytes) in range.clone().zip(data.chunks_exact_mut(BLOCK)) {
            content::write(block, version, bytes);
        }
        let fua = dice < 37;
        let sent = Sent::Write {
            range,
            version,
            durable: fua || self.kept,
        };
        Some((Request::Write { offset, data, fua }, sent))
    }

    fn answered(&self, sent: Sent, reply: &Reply, done: &mut Done) -> Result<(), String> {
        if reply.error != 0 {
            return Err(format!("the daemon answered with error {}", reply.error));
        }
        let mut ledger = locked(&self.ledger);
        match sent {
            Sent::Flush(covered) => {
                ledger.flushed(covered);
                done.flushes += 1;
            }
            Sent::Write {
                range,
                version,
                durable,
            } => {
                ledger.wrote(range, version, durable);
                done.writes += 1;
            }
            Sent::Read { range } => {
                for (block, bytes) in range.clone().zip(reply.data.chunks_exact(BLOCK)) {
                    let checked = content::read(block, bytes)
                        .and_then(|found| ledger.check_newest(block, found));
                    checked.map_err(|what| format!("while it ran, block {block} {what}"))?;
                }
                ledger.give_back(range);
                done.reads += 1;
            }
        }
        Ok(())
    }

    /// Goes on until the daemon is killed.
    ///
    /// # Errors
    /// A sentence when something was read that should not be, or the daemon failed by itself.
    pub fn run(mut self) -> Result<Done, String> {
        let mut done = Done::default();
        let broken = |error: std::io::Error, done: Done, killed: &AtomicBool| match killed
            .load(Ordering::SeqCst)
        {
            true => Ok(done),
            false => Err(format!(
                "the connection broke before the daemon was killed: {error}"
            )),
        };
        let mut client = match Client::connect(&self.socket, &self.export) {
            Ok(client) => client,
            Err(error) => return broken(error, done, &self.killed),
        };
        let mut outstanding = BTreeMap::new();
        let mut cookie = 0;
        loop {
            while outstanding.len() < DEPTH {
                let Some((request, sent)) = self.choose() else {
                    break;
                };
                cookie += 1;
                outstanding.insert(cookie, sent);
                if let Err(error) = client.send(cookie, &request) {
                    return broken(error, done, &self.killed);
                }
            }
            if outstanding.is_empty() {
                continue;
            }
            let reply = match client.receive() {
                Ok(reply) => reply,
                Err(error) => return broken(error, done, &self.killed),
            };
            let sent = outstanding
                .remove(&reply.cookie)
                .ok_or_else(|| format!("an answer to no request ({})", reply.cookie))?;
            self.answered(sent, &reply, &mut done)?;
        }
    }
}
