//! Long requests, and requests of disconnected peers.

use crate::support::client::Client;
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};
use block::{ErrorKind, OpKind};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

const READ: u16 = 0;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;
const NO_HOLE: u16 = 1 << 1;
const REQ_ONE: u16 = 1 << 3;

const MIB: u64 = 1 << 20;
/// Maximum size of a piece, and maximum number of submitted pieces.
const PIECE: u64 = 64 * MIB;
const PIECES: usize = 16;
/// Length of the longest requests here: four times as many pieces.
const LONG: u32 = u32::MAX - 4095;

fn large() -> Server {
    Server::start(MemoryDevice::new(5 << 30, 512))
}

/// An export over TCP, and a connection in transmission.
fn by_tcp(server: &mut Server) -> Client {
    server.export = Some(server.try_export(&[("listen", "tcp:127.0.0.1:0")]).unwrap());
    let address = server.export.as_ref().unwrap().address();
    let address = address.strip_prefix("tcp:").unwrap();
    Client::over(TcpStream::connect(address).unwrap()).go(false)
}

/// Closes a TCP connection with a reset.
fn reset(client: Client) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the kernel reads the value during the call only; its length is passed.
    let set = unsafe {
        libc::setsockopt(
            client.stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as u32,
        )
    };
    assert_eq!(set, 0);
}

#[test]
fn queued_requests_of_a_disconnected_peer_are_not_executed() {
    for is_reset in [false, true] {
        let mut server = Server::start(MemoryDevice::new(64 * MIB, 512));
        let mut client = by_tcp(&mut server);
        server.device.hold();
        for cookie in 0..300 {
            client.request(0, READ, cookie, 0, 32 << 20);
        }
        wait_until("two are in flight", || server.device.in_flight() == 64);
        match is_reset {
            true => reset(client),
            false => drop(client),
        }
        server.device.go_on();
        wait_until("the session has ended", || server.sessions() == 0);
        // After an orderly close the peer may have closed only its sending direction, until it
        // refuses a reply.
        let most = if is_reset { 64 } else { 2 * 64 };
        let seen = server.device.seen().len();
        assert!(seen <= most, "reset {is_reset}: {seen} operations");
    }
}

#[test]
fn requests_before_a_reset_are_not_begun() {
    let mut server = Server::start(MemoryDevice::new(64 * MIB, 512));
    for command in [READ, TRIM, WRITE_ZEROES] {
        let mut client = by_tcp(&mut server);
        wait_until("the session exists", || server.sessions() == 1);
        // All of it arrives while the server's loops are busy.
        let (begun, has_begun) = std::sync::mpsc::channel();
        let ends = server.loops.iter().map(|one| {
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let begun = begun.clone();
            one.remote().run(move |_| {
                begun.send(()).unwrap();
                let _ = ended.recv();
            });
            end
        });
        let ends: Vec<_> = ends.collect();
        ends.iter().for_each(|_| has_begun.recv().unwrap());
        for cookie in 0..64 {
            client.request(0, command, cookie, 0, 32 << 20);
        }
        reset(client);
        drop(ends);
        wait_until("the session has ended", || server.sessions() == 0);
        let seen = server.device.seen();
        assert!(
            seen.is_empty(),
            "command {command}: {} operations",
            seen.len()
        );
    }
}

/// How a peer disconnects.
#[derive(Clone, Copy, Debug)]
enum End {
    Unix,
    Reset,
    HalfThenReset,
}

#[test]
fn long_request_ends_at_its_next_piece_on_disconnect() {
    for (end, command, flags) in [
        (End::Unix, TRIM, 0),
        (End::Reset, TRIM, 0),
        (End::HalfThenReset, WRITE_ZEROES, 0),
        (End::Reset, WRITE_ZEROES, NO_HOLE),
    ] {
        let mut server = large();
        let mut client = match end {
            End::Unix => Client::transmission(&server, false),
            _ => by_tcp(&mut server),
        };
        server.device.hold();
        client.request(flags, command, 1, 0, LONG);
        wait_until("pieces are in flight", || {
            server.device.in_flight() == PIECES
        });
        if let End::HalfThenReset = end {
            client.stream.shutdown(Shutdown::Write).unwrap();
            server.device.let_one_end();
            wait_until("it continues for a peer that may still read", || {
                server.device.in_flight() == PIECES && !server.device.seen().is_empty()
            });
        }
        match end {
            End::Unix => drop(client),
            _ => reset(client),
        }
        // It is noticed while pieces run, although no I/O on the socket is pending.
        let noticed = (0..2 * PIECES).any(|_| {
            server.device.let_one_end();
            std::thread::sleep(Duration::from_millis(100));
            server.device.in_flight() < PIECES
        });
        assert!(noticed, "{end:?} {command}");
        server.device.go_on();
        wait_until("the session has ended", || server.sessions() == 0);
    }
}

#[test]
fn long_requests_take_turns_with_few_submitted_pieces() {
    let server = large();
    let mut client = Client::transmission(&server, false);
    server.device.hold();
    client.request(0, TRIM, 1, 0, LONG);
    client.request(0, WRITE_ZEROES, 2, 0, LONG);
    client.request(0, TRIM, 3, 0, 4096);
    wait_until("pieces are in flight", || {
        server.device.in_flight() == PIECES
    });
    server.device.go_on();
    let mut cookies: Vec<u64> = (0..3).map(|_| client.simple_reply().1).collect();
    assert_eq!(cookies[0], 3);
    cookies.sort_unstable();
    assert_eq!(cookies, [1, 2, 3]);
    assert_eq!(server.device.most_in_flight(), PIECES);
    assert!(server.device.seen().iter().all(|seen| seen.len <= PIECE));
}

#[test]
fn zeroes_without_holes_are_submitted_in_short_pieces() {
    let server = large();
    let mut client = Client::transmission(&server, true);
    client.request(NO_HOLE, WRITE_ZEROES, 1, 0, 512 * MIB as u32);
    assert_eq!(client.simple_reply(), (0, 1));
    let seen = server.device.seen();
    assert_eq!(seen.iter().map(|seen| seen.len).sum::<u64>(), 512 * MIB);
    for seen in seen {
        assert!(seen.flags.no_unmap && seen.len <= 4 * MIB, "{seen:?}");
    }
    client.request(0, BLOCK_STATUS, 2, 0, 1 << 30);
    let data = client.chunk().payload;
    let run = |len: u64, state: u32| [(len as u32).to_be_bytes(), state.to_be_bytes()].concat();
    let expected = [&[0, 0, 0, 1][..], &run(512 * MIB, 0), &run(512 * MIB, 3)];
    assert_eq!(data, expected.concat());
}

#[test]
fn failed_piece_ends_the_request() {
    let server = large();
    server.device.fail(OpKind::Discard, ErrorKind::Medium);
    let mut client = Client::transmission(&server, false);
    client.request(0, TRIM, 1, 0, LONG);
    assert_eq!(client.simple_reply(), (5, 1));
    let seen = server.device.seen().len();
    assert!(seen <= 2 * PIECES, "{seen}");
    server.device.heal();
    client.request(0, TRIM, 2, 0, LONG);
    assert_eq!(client.simple_reply(), (0, 2));
}

#[test]
fn block_status_is_queried_piece_by_piece_until_full() {
    let server = large();
    let mut client = Client::transmission(&server, true);
    client.request(0, BLOCK_STATUS, 1, 0, LONG);
    let hole = [LONG.to_be_bytes(), 3u32.to_be_bytes()].concat();
    assert_eq!(client.chunk().payload[4..], hole);
    let seen = server.device.seen();
    assert_eq!(seen.len(), 4 * PIECES);
    assert!(seen.iter().all(|seen| seen.len <= PIECE));
    assert_eq!(server.device.most_in_flight(), 1);
    // Every other block of a piece: 8,192 extents of each state; a reply has at most 4,096.
    for block in (0..2 * PIECE / 4096).step_by(2) {
        client.request(0, 1, 2, block * 4096, 4096);
        client.send(&[1; 4096]);
        client.simple_reply();
    }
    server.device.seen();
    client.request(0, BLOCK_STATUS, 3, 0, LONG);
    assert_eq!(client.chunk().payload.len(), 4 + 8 * 4096);
    assert_eq!(server.device.seen().len(), 1);
    client.request(REQ_ONE, BLOCK_STATUS, 4, 0, LONG);
    assert_eq!(client.chunk().payload.len(), 12);
    assert_eq!(server.device.seen().len(), 1);
}
