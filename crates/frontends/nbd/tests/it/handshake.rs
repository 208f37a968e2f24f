//! The handshake with misbehaving peers.

use crate::support::client::{Client, string};
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};
use std::io::{ErrorKind, Write};

const ERR_UNSUP: u32 = 0x8000_0001;
const ERR_POLICY: u32 = 0x8000_0002;
const ERR_INVALID: u32 = 0x8000_0003;
const ERR_UNKNOWN: u32 = 0x8000_0006;
const ERR_TOO_BIG: u32 = 0x8000_0009;

fn server() -> Server {
    Server::start(MemoryDevice::new(1 << 20, 512))
}

/// Connects and sends the client's flags.
fn greeted(server: &Server) -> Client {
    let mut client = Client::connect(server);
    client.send(&3u32.to_be_bytes());
    client
}

#[test]
fn unsupported_options_are_refused_and_the_handshake_continues() {
    let server = server();
    let mut client = greeted(&server);
    let name = string("disk");
    for (what, option, data, error) in [
        ("unknown option", 77, vec![1, 2, 3], ERR_UNSUP),
        ("extended headers", 11, vec![], ERR_UNSUP),
        ("TLS", 5, vec![], ERR_POLICY),
        ("list with data", 3, vec![0], ERR_INVALID),
        ("structured replies with data", 8, vec![0], ERR_INVALID),
        (
            "context before structured replies",
            10,
            [&name[..], &[0; 4]].concat(),
            ERR_INVALID,
        ),
        (
            "info of another export",
            6,
            [string("x"), vec![0, 0]].concat(),
            ERR_UNKNOWN,
        ),
        (
            "go to another export",
            7,
            [string("x"), vec![0, 0]].concat(),
            ERR_UNKNOWN,
        ),
        ("go with a cut name", 7, vec![0, 0, 0, 9, b'x'], ERR_INVALID),
        ("go with a name of 4 GiB", 7, vec![0xff; 6], ERR_INVALID),
        (
            "go with bytes left over",
            7,
            [&name[..], &[0; 3]].concat(),
            ERR_INVALID,
        ),
        (
            "go with too few kinds",
            7,
            [&name[..], &[0xff, 0xff]].concat(),
            ERR_INVALID,
        ),
        ("an option of 100 KiB", 7, vec![0; 100 << 10], ERR_TOO_BIG),
    ] {
        client.option(option, &data);
        let (replied, kind, _) = client.option_reply();
        assert_eq!((replied, kind), (option, error), "{what}");
    }
    client.option(8, &[]);
    assert_eq!(client.option_reply().1, 1);
    for (what, data, error) in [
        (
            "another export",
            [string("x"), vec![0; 4]].concat(),
            ERR_UNKNOWN,
        ),
        (
            "four billion queries",
            [&name[..], &[0xff; 4]].concat(),
            ERR_INVALID,
        ),
        ("no query", name.clone(), ERR_INVALID),
    ] {
        client.option(10, &data);
        assert_eq!(client.option_reply().1, error, "{what}");
    }
    client.option(7, &[&name[..], &[0, 0]].concat());
    while client.option_reply().1 != 1 {}
    client.request(0, 0, 5, 0, 512);
    assert_eq!(client.chunk().cookie, 5);
}

#[test]
fn old_export_name_option_enters_transmission() {
    let server = server();
    for (flags, len) in [(3u32, 10), (1, 134)] {
        let mut client = Client::connect(&server);
        client.send(&flags.to_be_bytes());
        client.option(1, b"disk");
        let answer = client.take(len);
        assert_eq!(answer[..8], (1u64 << 20).to_be_bytes());
        client.request(0, 0, 9, 0, 512);
        assert_eq!(client.simple_reply(), (0, 9));
        assert_eq!(client.take(512), vec![0; 512]);
    }
}

#[test]
fn abort_is_acknowledged_and_ends_the_connection() {
    let server = server();
    let mut client = greeted(&server);
    client.option(2, &[]);
    assert_eq!(client.option_reply(), (2, 1, vec![]));
    client.expect_end();
}

#[test]
fn protocol_violation_ends_only_its_connection() {
    let server = server();
    let mut witness = Client::transmission(&server, false);
    let cases: [(&str, &[&[u8]]); 6] = [
        ("unknown client flags", &[&[0xff; 4]]),
        ("no option magic", &[&[0, 0, 0, 3], &[0x41; 16]]),
        ("HTTP", &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]),
        (
            "an option of 4 GiB",
            &[&[0, 0, 0, 3], b"IHAVEOPT", &[0, 0, 0, 7], &[0xff; 4]],
        ),
        (
            "another name",
            &[&[0, 0, 0, 3], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 1], b"x"],
        ),
        (
            "a name that is not UTF-8",
            &[&[0, 0, 0, 3], b"IHAVEOPT", &[0, 0, 0, 1, 0, 0, 0, 1, 0xff]],
        ),
    ];
    for (what, bytes) in cases {
        let mut client = Client::connect(&server);
        client.send(&bytes.concat());
        client.expect_end();
        witness.request(0, 0, 1, 0, 512);
        assert_eq!(witness.simple_reply(), (0, 1), "after {what}");
        witness.take(512);
    }
    wait_until("only the witness is left", || server.sessions() == 1);
}

#[test]
fn undecided_peer_is_disconnected() {
    let server = server();
    let mut client = greeted(&server);
    let list = [b"IHAVEOPT".as_slice(), &3u32.to_be_bytes(), &[0; 4]].concat();
    // The connection may be closed before all of them are sent.
    if let Err(error) = client.stream.write_all(&list.repeat(256)) {
        let dropped = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(dropped.contains(&error.kind()), "{error}");
    }
    client.expect_end();
}

#[test]
fn silent_peers_do_not_exclude_others_and_time_out() {
    let server = Server::start_with(MemoryDevice::new(1 << 20, 512), &[("max-connections", "1")]);
    let mut silent: Vec<Client> = (0..64).map(|_| Client::connect(&server)).collect();
    assert_eq!(server.sessions(), 0);
    let client = Client::transmission(&server, false);
    assert_eq!(server.sessions(), 1);
    // The limit of handshakes was reached: the oldest one was closed.
    silent.remove(0).expect_end();
    drop(client);
    wait_until("the client has disconnected", || server.sessions() == 0);
    silent.remove(0).expect_end();
}

/// Requests the export; returns the type and payload of the final reply.
fn go(client: &mut Client) -> (u32, Vec<u8>) {
    client.option(7, &[0; 6]);
    loop {
        let (_, kind, payload) = client.option_reply();
        if kind == 1 || kind > 1 << 31 {
            return (kind, payload);
        }
    }
}

#[test]
fn excess_connection_is_refused_and_may_retry() {
    let server = Server::start_with(MemoryDevice::new(1 << 20, 512), &[("max-connections", "2")]);
    let _first = Client::transmission(&server, false);
    let second = Client::transmission(&server, false);
    let mut third = greeted(&server);
    let (kind, text) = go(&mut third);
    assert_eq!(kind, ERR_POLICY);
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("2 connections") && text.contains("max-connections"),
        "{text}"
    );
    // It may still list it.
    third.option(6, &[0; 6]);
    while third.option_reply().1 != 1 {}
    // The old option has no error reply.
    let mut old = greeted(&server);
    old.option(1, b"disk");
    old.expect_end();
    drop(second);
    wait_until("the second has disconnected", || server.sessions() == 1);
    assert_eq!(go(&mut third).0, 1);
    third.request(0, 0, 5, 0, 512);
    assert_eq!(third.simple_reply(), (0, 5));
}

#[test]
fn many_connections_are_served_by_default() {
    let server = server();
    let _all: Vec<Client> = (0..64)
        .map(|_| Client::transmission(&server, false))
        .collect();
    assert_eq!(server.sessions(), 64);
    assert_eq!(go(&mut greeted(&server)).0, ERR_POLICY);
}
