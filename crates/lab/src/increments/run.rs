//! The initiators, and their connections that are cut.

use super::count;
use crate::arguments::Increments;
use crate::chance::Chance;
use crate::failure::{Failure, Result, While};
use crate::interrupt;
use crate::iscsi::{Initiator, Lun, Opened, protocol as p};
use std::io::Write;
use std::net::Shutdown;
use std::time::{Duration, Instant};

/// One in this many steps is interrupted.
const CUT_ONE_OF: u64 = 6;
/// How long a target may be away.
const AWAY_MAX: Duration = Duration::from_secs(300);
/// Steps for each count at most: others are faster, and connections are cut.
const TRIES_MAX: u64 = 1000;
/// Status CHECK CONDITION; and the sense key of what was not as expected (SPC-4, 4.5.6: MISCOMPARE).
const CHECK_CONDITION: u8 = 2;
const MISCOMPARE: u8 = 0x0e;
const UNIT_ATTENTION: u8 = 0x06;

/// Results of one initiator.
#[derive(Clone, Copy, Default)]
struct Seen {
    steps: u64,
    overtaken: u64,
    cut: u64,
}

struct Counter<'a> {
    lun: &'a Lun,
    initiator: Initiator,
    number: usize,
    block_len: u32,
    session: Opened,
    chance: Chance,
    /// How far it has counted, as it last saw.
    done: u64,
    seen: Seen,
}

/// Logs in, as soon as the target is there.
fn log_in(lun: &Lun, initiator: &Initiator) -> Result<(Opened, u32)> {
    let begun = Instant::now();
    loop {
        let opened = Opened::open(lun, initiator).and_then(|mut opened| {
            let (_, block_len) = opened.capacity()?;
            Ok((opened, block_len))
        });
        match opened {
            Ok(opened) => return Ok(opened),
            Err(error) if begun.elapsed() > AWAY_MAX => {
                return Err(Failure::new(format!("cannot log in to {lun}: {error}")));
            }
            Err(_) => interrupt::pause(Duration::from_millis(20))?,
        }
    }
}

fn initiator(number: usize) -> Initiator {
    Initiator {
        name: format!("iqn.2026-11.io.convect.lab:counts{number}"),
        digests: true,
    }
}

fn read(session: &mut Opened, block_len: u32, lba: usize, blocks: u32) -> std::io::Result<Vec<u8>> {
    let cdb = p::transfer(false, lba as u64, blocks);
    let (status, data) = session.ask(&cdb, blocks * block_len)?;
    match status {
        0 => Ok(data),
        status => Err(std::io::Error::other(format!(
            "a read ended with status {status:#04x}"
        ))),
    }
}

impl Counter<'_> {
    /// Sends a part of a command, or all of it, and ends the connection.
    fn cut(&mut self, bytes: &[u8]) {
        // A place within the command as often as its end.
        let part = match self.chance.below(2) {
            0 => self.chance.below(bytes.len() as u64) as usize,
            _ => bytes.len(),
        };
        let _ = self.session.wire.stream.write_all(&bytes[..part]);
        if self.chance.below(2) == 0 {
            std::thread::sleep(Duration::from_micros(self.chance.below(2000)));
        }
        // It is cut; whether it was there still does not matter.
        let _ = self.session.wire.stream.shutdown(Shutdown::Both);
        self.seen.cut += 1;
    }

    /// One step. An error of the connection leaves open whether it was done, which the next one sees.
    fn step(&mut self, counts: u64) -> std::io::Result<Result<()>> {
        let done = self.done;
        let blocks = read(&mut self.session, self.block_len, self.number, 2)?;
        self.done = match count::counted(&blocks, self.number) {
            Ok(now) if now == done || now == done + 1 => now,
            Ok(now) => {
                let text = format!(
                    "initiator {} finds {now} after it has counted to {done}",
                    self.number
                );
                return Ok(Err(Failure::new(text)));
            }
            Err(why) => return Ok(Err(Failure::new(why))),
        };
        if self.done == counts {
            return Ok(Ok(()));
        }
        let data = [&blocks[..], &count::next(&blocks, self.number)].concat();
        let cdb = p::compare_and_write(self.number as u64, 2);
        let head = self.session.next_command(&cdb, &data, 0);
        let bytes = self.session.wire.encode(head, &data);
        self.seen.steps += 1;
        if self.chance.below(CUT_ONE_OF) == 0 {
            self.cut(&bytes);
            return Err(std::io::ErrorKind::ConnectionAborted.into());
        }
        self.session.wire.stream.write_all(&bytes)?;
        let answer = self.session.answer()?;
        Ok(match answer {
            (0, _) => {
                self.done += 1;
                Ok(())
            }
            // Sense data follow their length.
            (CHECK_CONDITION, sense)
                if sense.get(4).is_some_and(|key| key & 0x0f == MISCOMPARE) =>
            {
                self.seen.overtaken += 1;
                Ok(())
            }
            (CHECK_CONDITION, sense)
                if sense.get(4).is_some_and(|key| key & 0x0f == UNIT_ATTENTION) =>
            {
                Ok(())
            }
            (status, sense) => Err(Failure::new(format!(
                "COMPARE AND WRITE ended with status {status:#04x}, sense data {sense:02x?}"
            ))),
        })
    }

    fn count(mut self, counts: u64) -> Result<Seen> {
        for _ in 0..counts.saturating_mul(TRIES_MAX) {
            interrupt::check()?;
            match self.step(counts) {
                Ok(done) => done?,
                Err(_) => self.session = log_in(self.lun, &self.initiator)?.0,
            }
            if self.done == counts {
                return Ok(self.seen);
            }
        }
        Err(Failure::new(format!(
            "initiator {} has counted to {} of {counts} in {TRIES_MAX} steps for each",
            self.number, self.done
        )))
    }
}

fn begin<'a>(with: &'a Increments, number: usize, chance: &mut Chance) -> Result<Counter<'a>> {
    let initiator = initiator(number);
    let (session, block_len) = log_in(&with.lun, &initiator)?;
    Ok(Counter {
        lun: &with.lun,
        initiator,
        number,
        block_len,
        session,
        chance: Chance::new(chance.next()),
        done: 0,
        seen: Seen::default(),
    })
}

/// Counts and checks, and prints what was seen.
///
/// # Errors
/// When a sum is not exact, or the target is away for too long.
pub fn run(with: &Increments) -> Result<()> {
    let initiators = usize::from(with.initiators);
    let (mut session, block_len) = log_in(&with.lun, &initiator(0))?;
    let blocks = u32::from(with.initiators) + 1;
    let zeroes = vec![0; (blocks * block_len) as usize];
    let cdb = p::transfer(true, 0, blocks);
    let head = session.next_command(&cdb, &zeroes, 0);
    session.wire.send(head, &zeroes)?;
    let status = session.answer()?.0;
    if status != 0 {
        return Err(Failure::new(format!(
            "the first blocks cannot be written: status {status:#04x}"
        )));
    }
    let mut chance = Chance::new(with.seed);
    let mut counters = Vec::new();
    for number in 0..initiators {
        counters.push(begin(with, number, &mut chance)?);
    }
    let seen: Result<Vec<Seen>> = std::thread::scope(|scope| {
        let threads: Vec<_> = counters
            .into_iter()
            .map(|counter| scope.spawn(|| counter.count(with.counts)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let broken = |_| Failure::new("a thread that counts panicked");
            thread.join().map_err(broken)?
        });
        ended.collect()
    });
    let seen = seen?;
    let (mut session, _) = log_in(&with.lun, &initiator(0))?;
    let all = read(&mut session, block_len, 0, blocks).during(|| "the end".to_owned())?;
    count::check(&all, block_len as usize, initiators, with.counts).map_err(Failure::new)?;
    let sum = |of: fn(&Seen) -> u64| seen.iter().map(of).sum::<u64>();
    println!(
        "{initiators} initiators have counted to {} each: {} steps, {} overtaken, {} cut; every sum is exact",
        with.counts,
        sum(|seen| seen.steps),
        sum(|seen| seen.overtaken),
        sum(|seen| seen.cut),
    );
    Ok(())
}
