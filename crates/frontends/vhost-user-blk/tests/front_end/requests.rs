//! Requests of a guest over real sockets and rings.

use crate::device::{Counts, TestDevice, memory_file};
use crate::support::*;
use block::{BlockDevice, ErrorKind, Geometry, Op};
use frontend_vhost_user_blk::FRONT_END;
use reactor::ReactorThread;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};
use vhost_client::{Client, Command, Options};

#[test]
fn written_data_is_read_back_with_any_features() {
    let served = serve(volume());
    for (indirect, event_idx) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut client = served.connect(Options {
            indirect,
            event_idx,
            slot_bytes: 64 << 10,
            ..Options::default()
        });
        let queue = client.queue(0);
        for (sector, len) in [(0, 512), (1, 4096), (9, 64 << 10), (SIZE / 512 - 8, 4096)] {
            let bytes = pattern(sector ^ u64::from(indirect), len);
            assert_eq!(write(queue, sector, &bytes), OK);
            assert_eq!(read(queue, sector, len), bytes, "at {sector}");
            assert_eq!(served.device.bytes(sector * 512, len), bytes);
        }
    }
}

#[test]
fn data_of_many_segments_is_in_order() {
    let served = serve(volume());
    let mut client = served.connect(Options {
        slot_bytes: 64 << 10,
        ..Options::default()
    });
    let queue = client.queue(0);
    queue.set_segment_bytes(1000);
    let bytes = pattern(5, 64 << 10);
    assert_eq!(write(queue, 16, &bytes), OK);
    assert_eq!(served.device.bytes(16 * 512, bytes.len()), bytes);
    queue.set_segment_bytes(700);
    assert_eq!(read(queue, 16, bytes.len()), bytes);
}

#[test]
fn flush_discard_zeroes_and_identify_are_served() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    let queue = client.queue(0);
    assert_eq!(write(queue, 0, &[7; 4096]), OK);
    assert_eq!(ask(queue, Command::Flush).status, OK);
    let done = ask(queue, Command::Identify);
    let mut serial = [0; 20];
    queue.fetch(done.slot, &mut serial);
    assert_eq!(&serial, b"test-volume-0001\0\0\0\0");
    assert_eq!(
        ask(
            queue,
            Command::Discard {
                sector: 0,
                sectors: 2
            }
        )
        .status,
        OK
    );
    let zeroes = |unmap| Command::WriteZeroes {
        sector: 2,
        sectors: 1,
        unmap,
    };
    assert_eq!(ask(queue, zeroes(true)).status, OK);
    assert_eq!(ask(queue, zeroes(false)).status, OK);
    let bytes = read(queue, 0, 4096);
    assert!(bytes[..1536].iter().all(|byte| *byte == 0));
    assert!(bytes[1536..].iter().all(|byte| *byte == 7));
    let counts = served.device.counts();
    assert_eq!((counts.flushes, counts.discards, counts.zeroes), (1, 1, 1));
}

#[test]
fn write_zeroes_without_unmap_keeps_the_range_allocated() {
    // Including a volume that rejects operations in between.
    for limit in [64, 1] {
        let served = serve(TestDevice::new(memory_file(SIZE), 512, limit, false));
        let mut client = served.connect(Options::default());
        let config = client.config().unwrap();
        let most = u32::from_le_bytes(config[48..52].try_into().unwrap());
        assert_eq!(u64::from(most) * 512, SIZE, "as large as the volume");
        let queue = client.queue(0);
        assert_eq!(write(queue, 0, &[7; 4096]), OK);
        let before = served.device.counts().writes;
        let zeroes = |sector, sectors| Command::WriteZeroes {
            sector,
            sectors,
            unmap: false,
        };
        // Three at a time, each executed in steps.
        let commands = [zeroes(1, 6), zeroes(8, 10_000), zeroes(20_000, 5_000)];
        for command in commands {
            let slot = queue.take_slot().unwrap();
            queue.push(slot, command);
        }
        queue.kick();
        for _ in commands {
            let done = queue.wait(TIMEOUT).unwrap();
            assert_eq!((done.status, done.written), (OK, 1));
        }
        let counts = served.device.counts();
        assert_eq!((counts.zeroes, counts.discards), (0, 0));
        assert_eq!(counts.writes - before, 1 + 5 + 3);
        let bytes = read(queue, 0, 4096);
        assert!(bytes[512..3584].iter().all(|byte| *byte == 0));
        assert_eq!((bytes[511], bytes[3584]), (7, 7));
        assert_eq!(ask(queue, zeroes(0, most)).status, OK);
        assert_eq!(ask(queue, zeroes(0, most + 1)).status, IO_ERROR);
        served.device.fail_with(Some(ErrorKind::NoSpace));
        assert_eq!(ask(queue, zeroes(0, most)).status, IO_ERROR);
        served.device.fail_with(None);
        assert_eq!(read(queue, 0, 512), [0; 512]);
    }
}

#[test]
fn stopping_queue_completes_zeroing_in_progress() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    served.device.hold(true);
    let queue = client.queue(0);
    let slot = queue.take_slot().unwrap();
    queue.push(
        slot,
        Command::WriteZeroes {
            sector: 0,
            sectors: 10_000,
            unmap: false,
        },
    );
    queue.kick();
    until("the first part is submitted", || {
        served.device.waiting() == 1
    });
    std::thread::scope(|scope| {
        scope.spawn(|| served.device.hold(false));
        client.stop_queue(0).unwrap();
    });
    assert_eq!(client.queue(0).poll().map(|done| done.status), Some(OK));
    assert_eq!(served.device.counts().writes, 5);
}

#[test]
fn write_without_write_cache_is_durable() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    write(client.queue(0), 0, &[1; 512]);
    assert_eq!(served.device.counts().durable_writes, 0);
    client.set_writeback(false).unwrap();
    assert_eq!(client.config().unwrap()[32], 0);
    write(client.queue(0), 0, &[1; 512]);
    assert_eq!(served.device.counts().durable_writes, 1);
    // Zeroes are executed as writes.
    for unmap in [false, true] {
        let zeroes = Command::WriteZeroes {
            sector: 0,
            sectors: 1,
            unmap,
        };
        assert_eq!(ask(client.queue(0), zeroes).status, OK);
    }
    assert_eq!(served.device.counts().durable_writes, 3);
    client.set_writeback(true).unwrap();
    write(client.queue(0), 0, &[1; 512]);
    assert_eq!(served.device.counts().durable_writes, 3);
    drop(client);
    let mut client = served.connect(Options {
        flush: false,
        ..Options::default()
    });
    write(client.queue(0), 0, &[1; 512]);
    assert_eq!(served.device.counts().durable_writes, 4);
}

#[test]
fn out_of_range_or_unaligned_requests_fail() {
    let served = serve(TestDevice::new(memory_file(SIZE), 4096, 64, false));
    let mut client = served.connect(Options::default());
    assert_eq!(client.config().unwrap()[20..24], 4096u32.to_le_bytes());
    let queue = client.queue(0);
    let end = SIZE / 512;
    for command in [
        Command::Read {
            sector: end,
            len: 4096,
        },
        Command::Read {
            sector: end - 1,
            len: 4096,
        },
        Command::Read {
            sector: u64::MAX,
            len: 4096,
        },
        Command::Write {
            sector: u64::MAX / 512,
            len: 4096,
        },
        Command::Read {
            sector: 1,
            len: 4096,
        },
        Command::Write {
            sector: 0,
            len: 512,
        },
        Command::Read {
            sector: 0,
            len: 100,
        },
        Command::Discard {
            sector: end - 8,
            sectors: 16,
        },
        Command::Discard {
            sector: 0,
            sectors: u32::MAX,
        },
        Command::Discard {
            sector: 1,
            sectors: 8,
        },
    ] {
        assert_eq!(ask(queue, command).status, IO_ERROR, "{command:?}");
    }
    assert_eq!(
        ask(queue, Command::Other { kind: 77, len: 0 }).status,
        UNSUPPORTED
    );
    assert_eq!(
        served.device.counts(),
        Counts::default(),
        "no operation is submitted"
    );
    assert_eq!(read(queue, end - 8, 4096), [0; 4096]);
}

#[test]
fn read_only_volume_refuses_writes_and_is_advertised() {
    let device = volume();
    device.set_read_only();
    let served = serve(device);
    let mut client = served.connect(Options::default());
    assert_ne!(client.features() & 1 << 5, 0);
    assert_eq!(client.features() & 1 << 13, 0);
    assert_eq!(write(client.queue(0), 0, &[1; 512]), IO_ERROR);
    let discard = Command::Discard {
        sector: 0,
        sectors: 8,
    };
    assert_eq!(ask(client.queue(0), discard).status, IO_ERROR);
    assert_eq!(read(client.queue(0), 0, 512), [0; 512]);
}

#[test]
fn failed_operation_fails_only_its_request() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    served.device.fail_with(Some(ErrorKind::NoSpace));
    assert_eq!(write(client.queue(0), 0, &[1; 512]), IO_ERROR);
    served.device.fail_with(Some(ErrorKind::Unsupported));
    assert_eq!(ask(client.queue(0), Command::Flush).status, UNSUPPORTED);
    served.device.fail_with(None);
    assert_eq!(write(client.queue(0), 0, &[1; 512]), OK);
}

#[test]
fn every_queue_is_served_while_the_volume_rejects_operations() {
    let served = serve(TestDevice::new(memory_file(SIZE), 512, 3, false));
    let mut client = served.connect(Options {
        queues: 4,
        queue_size: 64,
        ..Options::default()
    });
    let threads: Vec<_> = client
        .take_queues()
        .into_iter()
        .enumerate()
        .map(|(index, mut queue)| {
            std::thread::spawn(move || {
                let sector = index as u64 * 8192;
                keep_busy(&mut queue, 64, sector, 4096)
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(served.device.counts().refused > 0);
}

#[test]
fn kicks_are_suppressed_while_requests_are_in_flight() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    let queue = client.queue(0);
    let kicks = keep_busy(queue, 32, 0, 16_384);
    assert!(kicks < 16_384 / 2, "{kicks} kicks");
}

#[test]
fn request_does_not_wait_for_the_completion_of_another() {
    let served = serve(volume());
    let mut client = served.connect(Options {
        queues: 2,
        ..Options::default()
    });
    served.device.hold(true);
    let queue = client.queue(0);
    let slot = queue.take_slot().unwrap();
    queue.push(slot, Command::Flush);
    queue.kick();
    until("the first waits in the volume", || {
        served.device.waiting() == 1
    });
    // Identify needs no operation and can be answered immediately.
    assert_eq!(ask(queue, Command::Identify).status, OK);
    served.device.hold(false);
    assert_eq!(queue.wait(TIMEOUT).unwrap().status, OK);
}

/// A volume that accepts some operations, and more only once the guest has received their
/// responses.
struct Pausing {
    volume: TestDevice,
    taken: AtomicUsize,
    first: usize,
    answered: AtomicBool,
}

impl BlockDevice for Pausing {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn submit(&self, op: Op) -> Result<(), Op> {
        if self.taken.fetch_add(1, Ordering::Relaxed) >= self.first {
            let is_answered = || self.answered.load(Ordering::Acquire);
            until("the guest has received the first responses", is_answered);
        }
        self.volume.submit(op)
    }

    fn on_change(&self, listener: u64, waker: Waker) {
        self.volume.on_change(listener, waker);
    }

    fn is_gone(&self) -> bool {
        self.volume.is_gone()
    }
}

#[test]
fn most_of_many_requests_are_answered_before_the_rest_is_taken() {
    let folder = Folder::new();
    let path = folder.0.join("disk.sock");
    let volume = Arc::new(Pausing {
        volume: TestDevice::new(memory_file(SIZE), 512, 64, true),
        taken: AtomicUsize::new(0),
        first: 24,
        answered: AtomicBool::new(false),
    });
    let loops = [ReactorThread::start("loop", 0).unwrap()];
    let _export = start(volume.clone(), &path, &loops).unwrap();
    let mut client = Client::connect(&path, Options::default()).unwrap();
    let queue = client.queue(0);
    for _ in 0..32 {
        let slot = queue.take_slot().unwrap();
        queue.push(
            slot,
            Command::Read {
                sector: 0,
                len: 512,
            },
        );
    }
    queue.kick();
    until("the first are answered", || queue.used_index() == 24);
    volume.answered.store(true, Ordering::Release);
    for _ in 0..32 {
        assert_eq!(queue.wait(TIMEOUT).unwrap().status, OK);
    }
}

#[test]
fn resize_is_announced_and_usable() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    assert_eq!(client.capacity().unwrap(), SIZE / 512);
    served.device.resize(2 * SIZE);
    client.wait_for_change(TIMEOUT).unwrap();
    assert_eq!(client.capacity().unwrap(), 2 * SIZE / 512);
    assert_eq!(write(client.queue(0), SIZE / 512, &[3; 512]), OK);
}

#[test]
fn memory_is_replaced_and_rings_stopped_with_requests_in_flight() {
    let served = serve(volume());
    let mut client = served.connect(Options::default());
    served.device.hold(true);
    let queue = client.queue(0);
    let slot = queue.take_slot().unwrap();
    queue.fill(slot, &[9; 512]);
    queue.push(
        slot,
        Command::Write {
            sector: 0,
            len: 512,
        },
    );
    queue.kick();
    until("it is submitted to the volume", || {
        served.device.waiting() == 1
    });
    let exchanged = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.exchange_memory().unwrap();
            exchanged.store(true, Ordering::Release);
        });
        let deadline = Instant::now() + Duration::from_millis(200);
        while Instant::now() < deadline {
            assert!(
                !exchanged.load(Ordering::Acquire),
                "memory was unmapped during a request"
            );
            std::thread::yield_now();
        }
        served.device.hold(false);
    });
    assert_eq!(client.queue(0).wait(TIMEOUT).unwrap().status, OK);
    assert_eq!(write(client.queue(0), 1, &[8; 512]), OK);
    assert_eq!(client.stop_queue(0).unwrap(), 2);
}

#[test]
fn export_stops_with_its_connection_and_socket() {
    let mut served = serve(volume());
    let mut client = served.connect(Options::default());
    let export = served.export.as_ref().unwrap();
    assert_eq!(export.sessions(), 1);
    assert_eq!(export.address(), format!("unix:{}", served.path.display()));
    let second = start(served.device.clone(), &served.path, &served.loops);
    let error = second.err().unwrap().to_string();
    assert!(error.contains("choose another path"), "{error}");
    served.export = None;
    assert!(!served.path.exists());
    assert!(client.capacity().is_err());
}

#[test]
fn invalid_parameters_are_refused_with_advice() {
    let served = serve(volume());
    for (path, queues, advice) in [
        ("/nowhere/at/all.sock", "1", "create it first"),
        ("/tmp/x.sock", "17", "1 to 16"),
        ("/tmp/x.sock", "many", "1 to 16"),
        ("/etc/passwd", "1", "not a socket"),
    ] {
        let error = (FRONT_END.start)(reactor::StartExport {
            name: "disk".into(),
            volume: "pool/disk".into(),
            device: served.device.clone(),
            open_for: None,
            keeper: std::sync::Arc::new(reactor::NoKeeper),
            memory: reactor::Budget::new(64 << 20),
            parameters: [("path", path), ("queues", queues)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            remotes: vec![served.loops[0].remote().clone()],
        });
        let error = error.err().unwrap().to_string();
        assert!(error.contains(advice), "{error}");
    }
}
