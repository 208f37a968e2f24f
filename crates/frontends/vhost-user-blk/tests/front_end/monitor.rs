//! A malicious monitor only affects its own session.

use crate::support::*;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;
pub use vhost_client::monitor::request as message;
use vhost_client::{Client, Command, Options, RawConnection, memory_file};

const USER: u64 = 0x7f00_0000_0000;
const MEMORY: u64 = 1 << 20;

fn options() -> Options {
    Options {
        queue_size: 16,
        queues: 2,
        ..Options::default()
    }
}

pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A connection with negotiated features.
pub fn negotiated(served: &Served) -> RawConnection {
    let connection = RawConnection::connect(&served.path, TIMEOUT).unwrap();
    let get = |request| {
        connection.send(request, 0, &[], &[]).unwrap();
        let (_, body) = connection.receive().unwrap();
        u64::from_le_bytes(body.try_into().unwrap())
    };
    connection.send(message::SET_OWNER, 0, &[], &[]).unwrap();
    let features = get(message::GET_FEATURES);
    let protocol = get(message::GET_PROTOCOL_FEATURES);
    let set = |request, value| connection.send(request, 0, &words(&[value]), &[]);
    set(message::SET_PROTOCOL_FEATURES, protocol).unwrap();
    set(message::SET_FEATURES, features).unwrap();
    connection
}

/// The body of SET_MEM_TABLE with one region.
pub fn table(guest: u64, user: u64, size: u64, offset: u64) -> Vec<u8> {
    words(&[1, guest, size, user, offset])
}

pub fn event() -> std::fs::File {
    // SAFETY: a system call without memory access.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    assert!(fd >= 0, "no event descriptor");
    // SAFETY: a new descriptor.
    unsafe { std::fs::File::from_raw_fd(fd) }
}

/// Asserts that a new connection is served.
fn serves_others(served: &Served) {
    until("the session has ended", || {
        served.export.as_ref().unwrap().sessions() == 0
    });
    let mut client = served.connect(options());
    assert_eq!(write(client.queue(1), 8, &[4; 512]), OK);
    assert_eq!(read(client.queue(0), 8, 512), [4; 512]);
}

#[test]
fn truncation_of_memory_in_use_ends_only_its_session() {
    let served = serve(volume());
    for rings in [false, true] {
        for write in [false, true] {
            let mut client = served.connect(options());
            let queue = client.queue(1);
            let slot = queue.take_slot().unwrap();
            let (sector, len) = (0, 4096);
            queue.push(
                slot,
                match write {
                    true => Command::Write { sector, len },
                    false => Command::Read { sector, len },
                },
            );
            served.device.hold(true);
            queue.kick();
            until("the volume has it", || served.device.waiting() == 1);
            client.cut_memory(rings).unwrap();
            served.device.hold(false);
            serves_others(&served);
        }
    }
}

#[test]
fn truncation_of_in_flight_memory_ends_only_its_session() {
    let served = serve(volume());
    let connection = negotiated(&served);
    let (memory, inflight) = (memory_file(MEMORY).unwrap(), memory_file(8192).unwrap());
    let (kick, call) = (event(), event());
    let mut info = words(&[8192, 0]);
    // One queue of eight entries.
    info.extend([1, 0, 8, 0]);
    info.extend([0; 4]);
    let ask = |request, body: &[u8], files: &[RawFd]| connection.ask(request, body, files).unwrap();
    assert_eq!(
        ask(message::SET_INFLIGHT_FD, &info, &[inflight.as_raw_fd()]),
        0
    );
    let table = table(0, USER, MEMORY, 0);
    assert_eq!(
        ask(message::SET_MEM_TABLE, &table, &[memory.as_raw_fd()]),
        0
    );
    let number = |index: u32, number: u32| [index.to_le_bytes(), number.to_le_bytes()].concat();
    assert_eq!(ask(message::SET_VRING_NUM, &number(0, 8), &[]), 0);
    let addresses = words(&[0, USER, USER + 0x2000, USER + 0x1000, 0]);
    assert_eq!(ask(message::SET_VRING_ADDR, &addresses, &[]), 0);
    assert_eq!(
        ask(message::SET_VRING_CALL, &words(&[0]), &[call.as_raw_fd()]),
        0
    );
    assert_eq!(
        ask(message::SET_VRING_KICK, &words(&[0]), &[kick.as_raw_fd()]),
        0
    );
    assert_eq!(ask(message::SET_VRING_ENABLE, &number(0, 1), &[]), 0);
    inflight.set_len(0).unwrap();
    // An available entry, which is recorded there.
    memory.write_all_at(&[0, 0, 1, 0], 0x1000).unwrap();
    (&mut &kick).write_all(&1u64.to_ne_bytes()).unwrap();
    serves_others(&served);
    drop(connection);
}

#[test]
fn invalid_or_short_memory_files_are_refused() {
    let served = serve(volume());
    let memory = memory_file(MEMORY).unwrap();
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let (fd, wrong) = (memory.as_raw_fd(), file.as_raw_fd());
    for (name, fd, table) in [
        ("longer than its file", fd, table(0, USER, 2 * MEMORY, 0)),
        ("past the end of its file", fd, table(0, USER, MEMORY, 4096)),
        (
            "at odd addresses",
            fd,
            table(0x1001, USER + 1, MEMORY - 0x2000, 0),
        ),
        (
            "past the end of all addresses",
            fd,
            table(0u64.wrapping_sub(4096), USER, MEMORY, 0),
        ),
        ("of a file system", wrong, table(0, USER, 4096, 0)),
    ] {
        let connection = negotiated(&served);
        let answer = connection.ask(message::SET_MEM_TABLE, &table, &[fd]);
        assert!(!matches!(answer, Ok(0)), "{name}: {answer:?}");
        let connection = negotiated(&served);
        let region = [&[0; 8], &table[8..]].concat();
        let answer = connection.ask(message::ADD_MEM_REG, &region, &[fd]);
        assert!(!matches!(answer, Ok(0)), "{name}: {answer:?}");
    }
    serves_others(&served);
}

#[test]
fn blocking_call_descriptor_stalls_nothing() {
    let served = serve(volume());
    let mut client = served.connect(Options {
        event_idx: false,
        ..options()
    });
    let fd = client.queue(0).notifications();
    // Consume the initial notification, so that the counter can be filled.
    assert_eq!(write(client.queue(0), 0, &[1; 512]), OK);
    client.queue(0).disarm();
    let full = (u64::MAX - 1).to_ne_bytes();
    // SAFETY: system calls on a descriptor owned by the client.
    unsafe {
        assert_eq!(libc::write(fd, full.as_ptr().cast(), 8), 8);
        let flags = libc::fcntl(fd, libc::F_GETFL);
        assert_eq!(libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK), 0);
    }
    for sector in 0..100 {
        let queue = client.queue(0);
        let slot = queue.take_slot().unwrap();
        queue.push(slot, Command::Read { sector, len: 512 });
        queue.kick();
        let deadline = std::time::Instant::now() + TIMEOUT;
        let done = loop {
            match queue.poll() {
                Some(done) => break done,
                None => std::thread::sleep(Duration::from_micros(100)),
            }
            assert!(std::time::Instant::now() < deadline, "sector {sector}");
        };
        assert_eq!(done.status, OK);
    }
    // The loops also serve others: one queue of each export runs on each.
    let other = serve_on(&served.loops, volume());
    let mut second: Client = other.connect(options());
    for index in 0..2 {
        assert_eq!(write(second.queue(index), 0, &[1; 512]), OK);
    }
    drop(client);
    serves_others(&served);
}

#[test]
fn foreign_descriptors_and_partial_messages_end_the_connection() {
    let served = serve(volume());
    let (mut pipe, null) = ([0; 2], std::fs::File::open("/dev/null").unwrap());
    // SAFETY: space for two descriptors.
    let made = unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) };
    assert_eq!(made, 0);
    for (name, bytes, files) in [
        ("a pipe", 12, vec![pipe[0]]),
        ("a device", 12, vec![null.as_raw_fd()]),
        (
            "a device behind an event",
            12,
            vec![event_fd(), null.as_raw_fd()],
        ),
        ("a part of a header", 5, vec![]),
        ("a part of a header with a pipe", 5, vec![pipe[1]]),
    ] {
        let connection = negotiated(&served);
        let header = [
            &message::SET_VRING_CALL.to_le_bytes()[..],
            &[1, 0, 0, 0, 8, 0, 0, 0],
        ]
        .concat();
        connection.send_bytes(&header[..bytes], &files).unwrap();
        assert!(connection.receive().is_err(), "{name}");
    }
    serves_others(&served);
}

fn event_fd() -> RawFd {
    event().into_raw_fd()
}

#[test]
fn unfinished_message_yields_to_other_connections() {
    let served = serve(volume());
    let silent = RawConnection::connect(&served.path, TIMEOUT).unwrap();
    drop(negotiated(&served));
    assert!(silent.receive().is_err());
    let half = negotiated(&served);
    let header = [message::SET_VRING_NUM, 1, 8]
        .map(u32::to_le_bytes)
        .concat();
    half.send_bytes(&header, &[]).unwrap();
    serves_others(&served);
}
