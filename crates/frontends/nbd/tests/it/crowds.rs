//! Many connections of one address, beside others.

use crate::support::client::Client;
use crate::support::connect::connect_from;
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

const ERR_POLICY: u32 = 0x8000_0002;
const ACK: u32 = 1;
const LIST: u32 = 3;
const GO: u32 = 7;

/// Handshakes per address.
const HANDSHAKES: usize = 64;
/// Options per handshake.
const OPTIONS: usize = 64;

/// An export over TCP, and its address.
fn by_tcp(parameters: &[(&str, &str)]) -> (Server, SocketAddr) {
    let mut server = Server::start(MemoryDevice::new(1 << 20, 512));
    let all = [&[("listen", "tcp:127.0.0.1:0")], parameters].concat();
    server.export = Some(server.try_export(&all).unwrap());
    let address = server.export.as_ref().unwrap().address();
    let address = address.strip_prefix("tcp:").unwrap().parse().unwrap();
    (server, address)
}

/// A connection from a loopback address, before anything was read.
fn silent(at: SocketAddr, from: u8) -> TcpStream {
    connect_from(Ipv4Addr::new(127, 0, 0, from), at)
}

/// Whether the server has not closed it; reads its greeting.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut bytes = [0; 64];
    loop {
        match (&*stream).read(&mut bytes) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Requests the export; returns the type and text of the final reply.
fn go(client: &mut Client) -> (u32, String) {
    client.option(GO, &[0; 6]);
    loop {
        let (_, kind, payload) = client.option_reply();
        if kind == ACK || kind > 1 << 31 {
            return (kind, String::from_utf8_lossy(&payload).into_owned());
        }
    }
}

#[test]
fn silent_connections_of_an_address_replace_only_each_other() {
    let (server, at) = by_tcp(&[]);
    let other = silent(at, 2);
    let mut crowd: Vec<TcpStream> = (0..3 * HANDSHAKES).map(|_| silent(at, 3)).collect();
    wait_until("only the newest remain", || {
        crowd.retain(is_open);
        crowd.len() <= HANDSHAKES
    });
    assert!(is_open(&other), "it has another address");
    // Others are admitted meanwhile, including some of the same address.
    for from in [1, 2, 3] {
        let mut client = Client::over(silent(at, from)).go(false);
        client.request(0, 0, 5, 0, 512);
        assert_eq!(client.simple_reply(), (0, 5));
    }
    drop((crowd, server));
}

#[test]
fn address_share_applies_and_limit_can_change() {
    let parameters = [
        ("max-connections", "4"),
        ("max-connections-per-address", "2"),
    ];
    let (server, at) = by_tcp(&parameters);
    let connect = |from| Client::over(silent(at, from));
    let first = connect(2).go(false);
    let _second = connect(2).go(false);
    let mut third = connect(2);
    third.send(&3u32.to_be_bytes());
    let (kind, text) = go(&mut third);
    assert_eq!(kind, ERR_POLICY);
    assert!(
        text.contains("2 connections") && text.contains("max-connections-per-address"),
        "{text}"
    );
    let _others = [connect(3).go(false), connect(4).go(false)];
    assert_eq!(server.sessions(), 4);
    let mut fifth = connect(5);
    fifth.send(&3u32.to_be_bytes());
    let (kind, text) = go(&mut fifth);
    assert_eq!(kind, ERR_POLICY);
    assert!(text.contains("raise max-connections"), "{text}");
    drop(first);
    wait_until("the client has disconnected", || server.sessions() == 3);
    assert_eq!(go(&mut third).0, ACK);
    let more = [
        ("listen", "tcp:127.0.0.1:0"),
        ("max-connections", "5"),
        ("max-connections-per-address", "2"),
    ];
    let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
    server
        .export
        .as_ref()
        .unwrap()
        .change(&more.into())
        .unwrap();
    assert_eq!(go(&mut fifth).0, ACK);
    assert_eq!(server.sessions(), 5);
}

#[test]
fn handshake_options_are_bounded_and_all_answered() {
    let (_server, at) = by_tcp(&[]);
    let mut client = Client::over(silent(at, 2));
    client.send(&3u32.to_be_bytes());
    let list = [b"IHAVEOPT".as_slice(), &LIST.to_be_bytes(), &[0; 4]].concat();
    client.send(&list.repeat(OPTIONS + 10));
    for option in 0..OPTIONS {
        let server = client.option_reply();
        let ack = client.option_reply();
        assert_eq!((server.1, ack.1), (2, ACK), "option {option}");
    }
    // The others are not.
    let mut rest = Vec::new();
    if let Err(error) = client.stream.read_to_end(&mut rest) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    assert!(rest.is_empty(), "{} bytes", rest.len());
}

#[test]
fn option_received_byte_by_byte_is_answered() {
    let (_server, at) = by_tcp(&[]);
    let mut client = Client::over(silent(at, 2));
    client.send(&3u32.to_be_bytes());
    let list = [b"IHAVEOPT".as_slice(), &LIST.to_be_bytes(), &[0; 4]].concat();
    // The reply to the first is expected while part of the second was sent.
    for cut in [0, 1, 15] {
        client.send(&[&list, &list[..cut]].concat());
        assert_eq!(client.option_reply().1, 2, "{cut} bytes");
        assert_eq!(client.option_reply().1, ACK);
        client.send(&list[cut..]);
        assert_eq!(client.option_reply().1, 2);
        assert_eq!(client.option_reply().1, ACK);
    }
}
