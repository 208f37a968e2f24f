//! Memory under control of peers: bounded, and peers that make no progress while others wait are
//! disconnected.

use crate::support::client::{Client, NO_TAG, Pdu, is_closed};
use crate::support::connect::connect_from;
use crate::support::server::Server;
use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// Sessions that do not read.
const FLOODS: usize = 20;
const LIMIT: Duration = Duration::from_secs(100);

/// A session from an address.
fn log_in(server: &Server, [third, last]: [u8; 2], name: usize, keys: &str) -> Client {
    let source = Ipv4Addr::new(127, 0, third, last);
    let mut client = Client::over(connect_from(source, server.portal()));
    let text = format!(
        "InitiatorName=iqn.2026-11.test:{name}\0TargetName={}\0{keys}",
        server.target
    );
    assert_eq!(client.login(0x87, &text).head[36..38], [0, 0]);
    client
}

/// Sends the same bytes repeatedly until the target stops reading; returns their number.
fn flood(client: &mut Client, bytes: &[u8]) -> usize {
    client.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut idle) = (0, 0);
    while idle < 20 {
        match client.stream.write(&bytes[sent % bytes.len()..]) {
            Ok(count) => (sent, idle) = (sent + count, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                idle += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(_) => break,
        }
    }
    client.stream.set_nonblocking(false).unwrap();
    sent
}

fn ping(client: &Client, data: &[u8]) -> Vec<u8> {
    let pdu = Pdu::new(0x40, 0x80).word(16, 7).word(20, NO_TAG);
    let pdu = pdu.word(24, client.command_number).data(data);
    [&pdu.head[..], data].concat()
}

#[test]
fn unread_pings_use_bounded_memory() {
    let server = Server::with_memory(6 * MIB);
    let mut floods = Vec::new();
    for number in 0..FLOODS {
        let keys = "MaxRecvDataSegmentLength=262144\0";
        let mut client = log_in(&server, [4, 1], number, keys);
        let before = server.memory.used();
        let bytes = ping(&client, &[0x7a; 256 << 10]);
        flood(&mut client, &bytes);
        let used = server.memory.used();
        assert!(used <= before + 4 * MIB, "{used} after {before}");
        assert!(used <= server.memory.most());
        floods.push(client);
    }
    let mut host = log_in(&server, [4, 2], 1000, "").settle();
    let began = Instant::now();
    // It makes progress even if the volume's memory is exhausted.
    for _ in 0..20 {
        assert_eq!(host.write(0, &[5; 8192]), 0);
        assert_eq!(host.read(0, 8192).1, 0);
    }
    // Peers that never read are disconnected eventually.
    let mut gone = 0;
    while gone == 0 && began.elapsed() < LIMIT {
        assert_eq!(host.read(0, 8192).1, 0);
        gone = FLOODS + 1 - server.sessions();
    }
    assert!(gone > 0);
    drop(floods);
}

#[test]
fn announced_writes_without_data_hold_no_contended_memory() {
    let server = Server::start(&[]);
    let mut silent = Vec::new();
    for number in 0..6 {
        let mut client = log_in(&server, [5, number as u8 + 1], number, "").settle();
        // Each announces 8 MiB twice, and sends nothing.
        for _ in 0..2 {
            let mut cdb = [0; 16];
            cdb[0] = 0x8a;
            cdb[10..14].copy_from_slice(&16384u32.to_be_bytes());
            let pdu = client.command(0xa1, 8 << 20, &cdb);
            client.send(&pdu);
        }
        silent.push(client);
    }
    let mut host = log_in(&server, [5, 99], 99, "").settle();
    let asked = host.write_10(0, 4096, 0xa1);
    host.send(&asked);
    let r2t = host.receive().expect("an R2T");
    assert_eq!(r2t.opcode(), 0x31);
    let gone = silent.iter().filter(|client| {
        while client.stream.peek(&mut [0]).is_ok_and(|count| count > 0) {
            let mut some = [0; 4096];
            if std::io::Read::read(&mut &client.stream, &mut some).unwrap_or(0) == 0 {
                return true;
            }
            client
                .stream
                .set_read_timeout(Some(Duration::from_millis(50)))
                .unwrap();
        }
        is_closed(&client.stream, Duration::from_millis(50))
    });
    assert!(gone.count() > 0, "idle holders of memory were disconnected");
    assert!(server.memory.used() <= server.memory.most());
}

#[test]
fn charged_memory_is_released() {
    let server = Server::start(&[]);
    let mut client = log_in(&server, [6, 1], 1, "").settle();
    for _ in 0..50 {
        assert_eq!(client.write(0, &[5; 8192]), 0);
        assert_eq!(client.read(0, 4096).1, 0);
        client.send(
            &Pdu::new(0x40, 0x80)
                .word(16, 7)
                .word(20, NO_TAG)
                .data(&[1; 4000]),
        );
        assert_eq!(client.receive().unwrap().opcode(), 0x20);
    }
    let began = Instant::now();
    while server.memory.used() > 0 && began.elapsed() < LIMIT {
        assert_eq!(client.ready(), 0);
    }
    // An active session may keep a granule.
    assert!(
        server.memory.used() <= 512 << 10,
        "{}",
        server.memory.used()
    );
    let waiting = client.write_10(0, 16, 0xa1);
    client.send(&waiting);
    assert_eq!(client.receive().unwrap().opcode(), 0x31);
    drop(client);
    while server.sessions() > 0 && began.elapsed() < LIMIT {
        std::thread::yield_now();
    }
    while server.memory.used() > 0 && began.elapsed() < LIMIT {
        std::thread::yield_now();
    }
    assert_eq!(server.memory.used(), 0);
}
