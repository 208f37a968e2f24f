//! Requests, errors, and disconnects of peers and volumes.

use crate::support::client::{Client, string};
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};
use block::{ErrorKind, OpKind};
use std::os::unix::net::UnixStream;

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISC: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;
const FUA: u16 = 1;

const MIB: u64 = 1 << 20;

fn server() -> Server {
    Server::start(MemoryDevice::new(64 * MIB, 512))
}

/// A peer that sends all requests before it reads a reply.
#[test]
fn peer_may_send_all_requests_before_reading_replies() {
    let server = Server::start(MemoryDevice::new(64 << 20, 512));
    let mut client = Client::transmission(&server, false);
    for cookie in 0..8 {
        client.request(0, READ, cookie, cookie << 20, 1 << 20);
    }
    client.request(0, WRITE, 8, 32 << 20, 4 << 20);
    client.send(&[7; 4 << 20]);
    let mut ended = [false; 9];
    for _ in 0..9 {
        let (error, cookie) = client.simple_reply();
        assert_eq!(error, 0);
        if cookie < 8 {
            client.take(1 << 20);
        }
        ended[cookie as usize] = true;
    }
    assert_eq!(ended, [true; 9]);
    assert_eq!(server.device.content(32 << 20, 3), [7; 3]);
}

#[test]
fn volume_errors_become_protocol_errors() {
    let server = server();
    let mut simple = Client::transmission(&server, false);
    let mut structured = Client::transmission(&server, true);
    for (error, code) in [
        (ErrorKind::NoSpace, 28),
        (ErrorKind::ReadOnly, 1),
        (ErrorKind::Medium, 5),
        (ErrorKind::Device, 5),
        (ErrorKind::Gone, 108),
        (ErrorKind::Invalid, 22),
        (ErrorKind::Unsupported, 95),
    ] {
        server.device.fail(OpKind::Write, error);
        simple.request(0, WRITE, 1, 0, 512);
        simple.send(&[1; 512]);
        assert_eq!(simple.simple_reply(), (code, 1), "{error:?}");
        server.device.fail(OpKind::Read, error);
        simple.request(0, READ, 2, 0, 512);
        assert_eq!(simple.simple_reply(), (code, 2), "{error:?}");
        structured.request(0, READ, 3, 0, 512);
        let chunk = structured.chunk();
        assert_eq!((chunk.flags, chunk.kind, chunk.cookie), (1, 0x8001, 3));
        assert_eq!(chunk.payload[..4], u32::to_be_bytes(code), "{error:?}");
    }
    server.device.heal();
    simple.request(0, READ, 4, 0, 512);
    assert_eq!(simple.simple_reply(), (0, 4));
}

#[test]
fn failed_part_fails_the_long_write() {
    let server = server();
    let mut client = Client::transmission(&server, false);
    server.device.fail(OpKind::Write, ErrorKind::NoSpace);
    client.request(0, WRITE, 1, 512, 3 << 20);
    client.send(&vec![1; 3 << 20]);
    assert_eq!(client.simple_reply(), (28, 1));
    assert_eq!(server.device.seen().len(), 4);
}

#[test]
fn replies_are_sent_in_completion_order() {
    let server = server();
    server.device.backwards();
    server.device.hold();
    let mut client = Client::transmission(&server, false);
    for cookie in 0..8 {
        client.request(0, TRIM, cookie, cookie * 4096, 4096);
    }
    wait_until("all are in flight", || server.device.in_flight() == 8);
    server.device.go_on();
    let cookies: Vec<u64> = (0..8).map(|_| client.simple_reply().1).collect();
    assert_eq!(cookies, [7, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn long_read_is_reassembled_in_order() {
    let server = server();
    server.device.backwards();
    let mut client = Client::transmission(&server, true);
    let data: Vec<u8> = (0..5 << 20)
        .map(|at: u32| (at >> 9) as u8 ^ (at >> 17) as u8)
        .collect();
    client.request(0, WRITE, 1, 512, data.len() as u32);
    client.send(&data);
    assert_eq!(client.simple_reply(), (0, 1));
    client.request(0, READ, 2, 512, data.len() as u32);
    let chunk = client.chunk();
    assert_eq!((chunk.flags, chunk.kind, chunk.cookie), (1, 1, 2));
    assert_eq!(chunk.payload[..8], 512u64.to_be_bytes());
    assert!(chunk.payload[8..] == data);
}

#[test]
fn requests_in_flight_are_bounded_and_all_answered() {
    let server = server();
    server.device.hold();
    let mut client = Client::transmission(&server, false);
    for cookie in 0..600 {
        client.request(0, TRIM, cookie, 0, 4096);
    }
    wait_until("the bound is reached", || server.device.in_flight() == 512);
    server.device.go_on();
    let mut cookies: Vec<u64> = (0..600).map(|_| client.simple_reply().1).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..600).collect::<Vec<_>>());
    assert_eq!(server.device.most_in_flight(), 512);
}

#[test]
fn memory_in_flight_is_bounded() {
    let server = server();
    server.device.hold();
    let mut client = Client::transmission(&server, false);
    for cookie in 0..3 {
        client.request(0, READ, cookie, 0, 32 << 20);
    }
    wait_until("two are in flight", || server.device.in_flight() == 64);
    server.device.go_on();
    for _ in 0..3 {
        assert_eq!(client.simple_reply().0, 0);
        client.take(32 << 20);
    }
    assert_eq!(server.device.most_in_flight(), 64);
}

#[test]
fn rejected_operation_is_resubmitted() {
    let server = server();
    server.device.limit(1);
    server.device.hold();
    let mut client = Client::transmission(&server, false);
    for cookie in 0..50 {
        client.request(0, WRITE, cookie, cookie * 512, 512);
        client.send(&[cookie as u8; 512]);
    }
    wait_until("an operation was rejected", || {
        server.device.given_back() > 0
    });
    server.device.go_on();
    for _ in 0..50 {
        assert_eq!(client.simple_reply().0, 0);
    }
    assert_eq!(server.device.content(49 * 512, 1), [49]);
}

#[test]
fn another_protocol_that_fills_the_device_does_not_stall_a_session() {
    let server = server();
    server.device.limit(0);
    let mut client = Client::transmission(&server, false);
    client.request(0, FLUSH, 1, 0, 0);
    wait_until("the operation was rejected", || {
        server.device.given_back() > 0
    });
    server.device.limit(1);
    assert_eq!(client.simple_reply(), (0, 1));
}

#[test]
fn flush_follows_answered_writes_and_fua_is_passed_on() {
    let server = server();
    let mut client = Client::transmission(&server, false);
    for (flags, command, fua) in [
        (0, WRITE, false),
        (FUA, WRITE, true),
        (FUA, TRIM, true),
        (FUA, WRITE_ZEROES, true),
    ] {
        client.request(flags, command, 1, 4096, 4096);
        if command == WRITE {
            client.send(&[1; 4096]);
        }
        assert_eq!(client.simple_reply(), (0, 1));
        client.request(0, FLUSH, 2, 0, 0);
        assert_eq!(client.simple_reply(), (0, 2));
        let seen = server.device.seen();
        assert_eq!(seen[0].flags.fua, fua, "{command}");
        assert_eq!(seen[1].kind, OpKind::Flush);
    }
}

/// A long write is several operations.
#[test]
fn fua_is_set_on_every_operation_of_a_long_write() {
    let server = server();
    let mut client = Client::transmission(&server, false);
    client.request(FUA, WRITE, 1, MIB - 4096, 2 * MIB as u32);
    client.send(&vec![1; 2 * MIB as usize]);
    assert_eq!(client.simple_reply(), (0, 1));
    let seen = server.device.seen();
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen.iter().all(|seen| seen.flags.fua), "{seen:?}");
}

#[test]
fn structured_read_beyond_4_gib_has_its_offset() {
    let server = Server::start(MemoryDevice::new(5 << 30, 512));
    let mut client = Client::transmission(&server, true);
    let offset = (4 << 30) + 512;
    client.request(0, READ, 1, offset, 512);
    let chunk = client.chunk();
    assert_eq!((chunk.flags, chunk.kind, chunk.cookie), (1, 1, 1));
    assert_eq!(chunk.payload[..8], u64::to_be_bytes(offset));
}

#[test]
fn refused_write_consumes_its_payload() {
    let server = server();
    let mut client = Client::transmission(&server, false);
    for (offset, len, code) in [(1, 512, 22), (0, 700, 22), (64 * MIB, 4096, 28)] {
        client.request(0, WRITE, 1, offset, len);
        client.send(&vec![0x25; len as usize]);
        assert_eq!(client.simple_reply(), (code, 1));
    }
    client.request(0, FLUSH, 2, 0, 0);
    assert_eq!(client.simple_reply(), (0, 2));
    assert!(server.device.content(0, 4096).iter().all(|byte| *byte == 0));
}

#[test]
fn hostile_lengths_end_only_their_session() {
    let server = server();
    let mut witness = Client::transmission(&server, false);
    let mut client = Client::transmission(&server, false);
    client.request(0, READ, 1, 0, u32::MAX);
    assert_eq!(client.simple_reply(), (22, 1));
    client.request(0, WRITE, 2, 0, u32::MAX);
    client.expect_end();
    let mut client = Client::transmission(&server, false);
    client.send(&[0; 28]);
    client.expect_end();
    let mut client = Client::transmission(&server, false);
    client.request(0, WRITE, 3, 0, 32 << 20);
    client.send(&[7; 3 << 20]);
    drop(client);
    wait_until("only the witness is left", || server.sessions() == 1);
    witness.request(0, FLUSH, 4, 0, 0);
    assert_eq!(witness.simple_reply(), (0, 4));
}

#[test]
fn disconnect_with_requests_in_flight_affects_no_other() {
    let server = server();
    server.device.hold();
    let mut client = Client::transmission(&server, false);
    for cookie in 0..100 {
        client.request(0, READ, cookie, 0, 65536);
    }
    wait_until("all are in flight", || server.device.in_flight() == 100);
    drop(client);
    server.device.go_on();
    wait_until("the session has ended", || server.sessions() == 0);
}

#[test]
fn disconnect_command_answers_requests_in_flight() {
    let server = server();
    server.device.hold();
    let mut client = Client::transmission(&server, false);
    client.request(0, TRIM, 1, 0, 512);
    client.request(0, DISC, 2, 0, 0);
    wait_until("the request is in flight", || {
        server.device.in_flight() == 1
    });
    server.device.go_on();
    assert_eq!(client.simple_reply(), (0, 1));
    client.expect_end();
}

#[test]
fn block_status_must_be_negotiated() {
    let server = server();
    let mut client = Client::connect(&server);
    client.send(&3u32.to_be_bytes());
    client.option(8, &[]);
    client.option_reply();
    client.option(7, &[string(""), vec![0, 0]].concat());
    while client.option_reply().1 != 1 {}
    client.request(0, BLOCK_STATUS, 1, 0, 4096);
    let chunk = client.chunk();
    assert_eq!(
        (chunk.kind, &chunk.payload[..4]),
        (0x8001, &[0, 0, 0, 22][..])
    );
}

#[test]
fn read_only_volume_refuses_writes() {
    let server = server();
    server.device.read_only();
    let mut client = Client::transmission(&server, false);
    client.request(0, WRITE, 1, 0, 512);
    client.send(&[1; 512]);
    assert_eq!(client.simple_reply(), (1, 1));
    client.request(0, READ, 2, 0, 512);
    assert_eq!(client.simple_reply(), (0, 2));
}

#[test]
fn resize_applies_to_requests_and_new_connections() {
    let server = server();
    let mut client = Client::transmission(&server, false);
    server.device.resize(128 * MIB);
    wait_until("the end has moved", || {
        client.request(0, TRIM, 1, 100 * MIB, 4096);
        client.simple_reply().0 == 0
    });
    let mut later = Client::connect(&server);
    later.send(&3u32.to_be_bytes());
    later.option(1, b"");
    assert_eq!(later.take(10)[..8], (128 * MIB).to_be_bytes());
}

#[test]
fn ended_volume_ends_its_sessions_and_socket() {
    let server = server();
    let client = Client::transmission(&server, false);
    server.device.end();
    client.expect_end();
    wait_until("the socket is removed", || !server.socket().exists());
    wait_until("the session has ended", || server.sessions() == 0);
}

#[test]
fn stopped_export_answers_requests_in_flight_and_releases_its_address() {
    let mut server = server();
    let mut client = Client::transmission(&server, false);
    let _silent = UnixStream::connect(server.socket()).unwrap();
    server.device.hold();
    client.request(0, TRIM, 1, 0, 512);
    wait_until("the request is in flight", || {
        server.device.in_flight() == 1
    });
    let device = server.device.clone();
    let export = server.export.take();
    let ending = std::thread::spawn(move || drop(export));
    wait_until("the socket is removed", || !server.socket().exists());
    device.go_on();
    assert_eq!(client.simple_reply(), (0, 1));
    client.expect_end();
    ending.join().unwrap();
    let listen = format!("unix:{}", server.socket().display());
    drop(server.try_export(&[("listen", &listen)]).unwrap());
}

#[test]
fn export_stops_although_a_peer_does_not_read() {
    let mut server = server();
    let mut client = Client::transmission(&server, false);
    for cookie in 0..4 {
        client.request(0, READ, cookie, 0, 16 << 20);
    }
    wait_until("the device has done its part", || {
        server.device.seen().len() >= 4
    });
    server.export = None;
    assert!(!server.socket().exists());
}

#[test]
fn address_in_use_is_refused_without_affecting_the_first_export() {
    let server = server();
    let listen = format!("unix:{}", server.socket().display());
    let error = server.try_export(&[("listen", &listen)]).err().unwrap();
    assert!(
        error.to_string().contains("in use by another program"),
        "{error}"
    );
    let tcp = server.try_export(&[("listen", "tcp:127.0.0.1:0")]).unwrap();
    let error = server
        .try_export(&[("listen", &tcp.address())])
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("in use by another program"),
        "{error}"
    );
    drop(tcp);
    // The address can be reused, unless another process was assigned the port in between.
    let again = (0..5).any(|_| {
        let tcp = server.try_export(&[("listen", "tcp:127.0.0.1:0")]).unwrap();
        let address = tcp.address();
        drop(tcp);
        server.try_export(&[("listen", &address)]).is_ok()
    });
    assert!(again);
    Client::transmission(&server, false);
}

/// Each has a socket and a task on a loop, but no thread.
#[test]
fn fifteen_hundred_exports_are_served() {
    raise_descriptors(8192);
    let server = server();
    let path = |number: u32| server.folder.join(format!("{number}.sock"));
    let exports: Vec<_> = (0..1500)
        .map(|number| {
            let listen = format!("unix:{}", path(number).display());
            server.try_export(&[("listen", &listen)]).unwrap()
        })
        .collect();
    for number in (0..1500).step_by(3) {
        let mut client = Client::over(UnixStream::connect(path(number)).unwrap()).go(false);
        client.request(0, READ, 1, 0, 512);
        assert_eq!(client.simple_reply(), (0, 1));
        client.take(512);
    }
    drop(exports);
    assert!((0..1500).all(|number| !path(number).exists()));
}

/// Lets this process have so many descriptors, as the daemon does for itself.
fn raise_descriptors(count: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls take the address of a value that lives during them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max.min(count.max(limit.rlim_cur));
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
}
