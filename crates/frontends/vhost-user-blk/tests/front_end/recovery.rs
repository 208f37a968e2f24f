//! A guest survives a restart of its storage daemon.

use crate::device::TestDevice;
use crate::support::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use vhost_client::{Client, ClientQueue, Command, Options};

#[test]
fn unanswered_requests_are_served_after_a_restart() {
    let mut served = serve(volume());
    let mut client = served.connect(Options::default());
    assert_eq!(write(client.queue(0), 0, &[1; 512]), OK);
    // The volume ends: later results must not reach the guest.
    served.device.fail_with(Some(block::ErrorKind::Gone));
    let queue = client.queue(0);
    let slot = queue.take_slot().unwrap();
    queue.fill(slot, &[2; 512]);
    queue.push(
        slot,
        Command::Write {
            sector: 1,
            len: 512,
        },
    );
    queue.kick();
    until("the session has ended", || {
        served.export.as_ref().unwrap().sessions() == 0
    });
    let queue = client.queue(0);
    assert_eq!(queue.poll(), None);
    let slot = queue.take_slot().unwrap();
    queue.push(
        slot,
        Command::Read {
            sector: 1,
            len: 512,
        },
    );
    queue.publish();
    served.device.fail_with(None);
    served.restart();
    client.reconnect().unwrap();
    let queue = client.queue(0);
    assert_eq!(queue.wait(TIMEOUT).unwrap().status, OK);
    assert_eq!(queue.wait(TIMEOUT).unwrap().status, OK);
    assert_eq!(queue.poll(), None);
    assert_eq!(read(queue, 1, 512), [2; 512]);
}

#[test]
fn requests_of_a_disconnected_monitor_are_skipped_and_resumed() {
    let mut served = serve(volume());
    let mut client = served.connect(Options::default());
    served.device.hold(true);
    let queue = client.queue(0);
    let slot = queue.take_slot().unwrap();
    queue.fill(slot, &[3; 512]);
    queue.push(
        slot,
        Command::Write {
            sector: 1,
            len: 512,
        },
    );
    queue.kick();
    until("the request is in flight", || served.device.wanted() == 1);
    let device = served.device.clone();
    let released = std::thread::spawn(move || {
        until("its result is not needed", || device.wanted() == 0);
        device.hold(false);
    });
    served.restart();
    released.join().unwrap();
    assert_eq!(served.device.counts().writes, 0, "given up");
    let queue = client.queue(0);
    assert_eq!(queue.poll(), None, "and not answered");
    client.reconnect().unwrap();
    let queue = client.queue(0);
    assert_eq!(queue.wait(TIMEOUT).unwrap().status, OK);
    assert_eq!(read(queue, 1, 512), [3; 512]);
}

#[test]
fn ended_volume_disconnects_and_refuses_connections() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    served.device.end();
    until("the session has ended", || {
        served.export.as_ref().unwrap().sessions() == 0
    });
    assert!(client.reconnect().is_err());
}

#[test]
fn disabled_write_cache_stays_disabled_after_a_restart() {
    let mut served = serve(volume());
    let mut client = served.connect(Options::default());
    client.set_writeback(false).unwrap();
    served.restart();
    client.reconnect().unwrap();
    assert_eq!(client.config().unwrap()[32], 0);
    assert_eq!(write(client.queue(0), 0, &[1; 512]), OK);
    assert_eq!(served.device.counts().durable_writes, 1);
}

const CHILD: &str = "CONVECT_TEST_SERVE";

/// Not a test: the daemon that is killed by the next one.
#[test]
fn serves_when_it_is_asked_to() {
    let Ok(folder) = std::env::var(CHILD) else {
        return;
    };
    let folder = std::path::PathBuf::from(folder);
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(folder.join("volume"))
        .unwrap();
    let device = Arc::new(TestDevice::new(file, 512, 16, false));
    let loops = [reactor::ReactorThread::start("loop", 1).unwrap()];
    let path = folder.join("disk.sock");
    let _export = start(device, &path, &loops).unwrap();
    println!("serving");
    // It is killed, or ends with the test that reads its output.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

struct Daemon(Child);

impl Daemon {
    fn start(folder: &Folder) -> Self {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "recovery::serves_when_it_is_asked_to",
                "--nocapture",
            ])
            .env(CHILD, &folder.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let serving = output
            .lines()
            .map_while(Result::ok)
            .any(|line| line.ends_with("serving"));
        assert!(serving, "the daemon ended");
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Keeps every slot busy with writes of numbered blocks; returns the acknowledged ones.
struct Writer {
    next: u64,
    in_slot: Vec<u64>,
    acknowledged: Vec<u64>,
    in_flight: usize,
}

impl Writer {
    fn fill(&mut self, queue: &mut ClientQueue) {
        while let Some(slot) = queue.take_slot() {
            let number = self.next;
            self.next += 1;
            self.in_slot[usize::from(slot)] = number;
            queue.fill(slot, &pattern(number, 4096));
            let sector = number * 8;
            queue.push(slot, Command::Write { sector, len: 4096 });
            self.in_flight += 1;
        }
        queue.kick();
    }

    fn take(&mut self, done: vhost_client::Done) {
        assert_eq!((done.status, done.written), (OK, 1));
        self.acknowledged.push(self.in_slot[usize::from(done.slot)]);
        self.in_flight -= 1;
    }
}

#[test]
fn killed_daemon_loses_no_request_and_answers_none_twice() {
    let folder = Folder::new();
    let volume = std::fs::File::create(folder.0.join("volume")).unwrap();
    volume.set_len(SIZE).unwrap();
    let mut daemon = Daemon::start(&folder);
    let options = Options {
        queue_size: 64,
        ..Options::default()
    };
    let mut client = Client::connect(&folder.0.join("disk.sock"), options).unwrap();
    let mut writer = Writer {
        next: 0,
        in_slot: vec![0; 64],
        acknowledged: Vec::new(),
        in_flight: 0,
    };
    for round in 0..12 {
        let wanted = writer.acknowledged.len() + 150 + 17 * round;
        while writer.acknowledged.len() < wanted {
            writer.fill(client.queue(0));
            let done = client.queue(0).wait(TIMEOUT).unwrap();
            writer.take(done);
        }
        writer.fill(client.queue(0));
        daemon.kill();
        daemon = Daemon::start(&folder);
        client.reconnect().unwrap();
    }
    let queue = client.queue(0);
    while writer.in_flight > 0 {
        let done = queue.wait(TIMEOUT).unwrap();
        writer.take(done);
    }
    assert_eq!(queue.poll(), None, "an answer to nothing");
    writer.acknowledged.sort_unstable();
    let all: Vec<u64> = (0..writer.next).collect();
    assert_eq!(writer.acknowledged, all);
    for number in all {
        assert_eq!(read(queue, number * 8, 4096), pattern(number, 4096));
    }
    daemon.kill();
}
