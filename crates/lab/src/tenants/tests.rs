//! Tenants whose server is a queue in memory.

use super::session::Session;
use super::source::{Closed, Next, Open, Shape, Source};
use super::{Crowd, Outcome, Tenant, WINDOW_NS};
use crate::chance::Chance;
use crate::load::{Arrivals, Blocks, Pace, Pattern, Port, Rate, Request};
use std::io::{Error, Read, Result, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Returns what was sent as soon as it is asked; after so many requests the next one fails.
struct Answers {
    queued: Vec<u16>,
    left: u64,
    near: UnixStream,
    far: UnixStream,
}

impl Answers {
    fn new(left: u64) -> Self {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        Self {
            queued: Vec::new(),
            left,
            near,
            far,
        }
    }
}

impl Port for Answers {
    fn queue(&mut self, slot: u16, _: Request) -> Result<()> {
        self.queued.push(slot);
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        self.far.write_all(b"x")
    }

    fn take(&mut self, answered: &mut Vec<u16>) -> Result<()> {
        let _ = self.near.read(&mut [0; 64]);
        self.left = self.left.saturating_sub(self.queued.len() as u64);
        match self.left {
            0 => Err(Error::other("a request failed")),
            _ => {
                answered.append(&mut self.queued);
                Ok(())
            }
        }
    }

    fn fill(&mut self, _: u16, _: usize, _: &[u8]) {}

    fn fetch(&self, _: u16, _: usize, _: &mut [u8]) {}

    fn arm(&mut self) -> bool {
        !self.queued.is_empty()
    }

    fn event(&self) -> (RawFd, bool) {
        (self.near.as_raw_fd(), false)
    }
}

fn shape() -> Shape {
    Shape {
        blocks: Blocks::of(4096),
        read_percent: 50,
        aim: Pattern::Random.aim(0..1 << 20, 4096, 1),
    }
}

fn closed() -> Box<dyn Source> {
    Box::new(Closed {
        shape: shape(),
        chance: Chance::new(1),
    })
}

fn open(per_second: f64) -> Box<dyn Source> {
    let rate = Rate {
        per_second,
        arrivals: Arrivals::Even,
    };
    Box::new(Open {
        shape: shape(),
        chance: Chance::new(1),
        pace: Pace::new(rate, 0, 1),
    })
}

fn tenant(name: &str, thread: usize, sessions: Vec<(bool, u64, Box<dyn Source>)>) -> Tenant {
    let sessions = sessions.into_iter().map(|(is_ring, left, source)| {
        let port = Box::new(Answers::new(left));
        Session::on_port(port, 4, is_ring, source)
    });
    Tenant {
        name: name.to_owned(),
        thread,
        sessions: sessions.collect(),
    }
}

fn run(tenants: Vec<Tenant>, windows: u64) -> Outcome {
    let time = Duration::from_nanos(windows * WINDOW_NS);
    let crowd = Crowd::start(tenants, time).unwrap();
    crowd.finish(|_| Ok(())).unwrap()
}

const ENDLESS: u64 = u64::MAX;

#[test]
fn every_tenant_has_its_windows_whatever_thread_and_port_it_has() {
    let all = vec![
        tenant("ring", 0, vec![(true, ENDLESS, closed())]),
        tenant(
            "sockets",
            1,
            (0..5).map(|_| (false, ENDLESS, closed())).collect(),
        ),
        tenant("paced", 1, vec![(false, ENDLESS, open(200.0))]),
    ];
    let outcome = run(all, 5);
    assert!(!outcome.interrupted);
    for name in ["ring", "sockets", "paced"] {
        let seen = outcome.of(name);
        assert_eq!(seen.windows.len(), 5, "{name}");
        assert!(seen.answered() > 0 && seen.bytes_per_s() > 0.0, "{name}");
        assert_eq!(seen.latencies.count(), seen.answered(), "{name}");
        let per_request = seen.bytes_per_s() / seen.iops();
        assert!((per_request - 4096.0).abs() < 1e-6, "{name}");
    }
    assert!(
        outcome
            .of("ring")
            .windows
            .iter()
            .all(|window| window.queued)
    );
    // Requests that are due now and then leave nothing outstanding between them.
    let paced = outcome.of("paced");
    assert!(paced.answered() <= 100, "{}", paced.answered());
    assert!(paced.windows.iter().any(|window| !window.queued));
    assert_eq!(outcome.of("nobody").answered(), 0);
}

#[test]
fn a_request_that_fails_ends_the_run_with_its_reason() {
    let all = vec![
        tenant("good", 0, vec![(false, ENDLESS, closed())]),
        tenant("bad", 1, vec![(false, 100, closed())]),
    ];
    let crowd = Crowd::start(all, Duration::from_secs(3_600)).unwrap();
    let failure = crowd.finish(|_| Ok(())).unwrap_err();
    assert!(
        failure.to_string().contains("a request failed"),
        "{failure}"
    );
}

#[test]
fn what_is_stopped_ends_with_the_windows_that_there_are() {
    let all = vec![tenant("one", 0, vec![(true, ENDLESS, closed())])];
    let crowd = Crowd::start(all, Duration::from_secs(3_600)).unwrap();
    while crowd.last(0, 1).is_empty() {
        std::thread::yield_now();
    }
    assert!(crowd.answered(0) > 0);
    crowd.stop();
    let outcome = crowd.finish(|_| Ok(())).unwrap();
    assert!(!outcome.of("one").windows.is_empty());
}

/// Starts, and then asks for nothing more.
struct Starting(u32);

impl Source for Starting {
    fn next(&mut self, now_ns: u64) -> Next {
        match self.0 {
            0 => Next::At(u64::MAX),
            _ => {
                self.0 -= 1;
                Next::Send {
                    request: Request::default(),
                    due_ns: now_ns,
                }
            }
        }
    }

    fn is_starting(&self) -> bool {
        self.0 > 0
    }
}

#[test]
fn sessions_in_their_first_stage_are_counted_until_they_leave_it() {
    let sources: [Box<dyn Source>; 2] = [Box::new(Starting(20)), closed()];
    let sessions = sources.map(|source| (false, ENDLESS, source));
    let outcome = run(vec![tenant("desktops", 0, sessions.into())], 3);
    let windows = outcome.of("desktops").windows;
    assert_eq!(windows.last().map(|window| window.starting), Some(0));
}
