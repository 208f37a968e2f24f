//! Several connections per session (RFC 7143, sections 4.2.2.1, 4.2.3, 6.3 and 11.14): adding
//! connections, command ordering across them, commands of ended connections, functions and logouts.

use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

const HOST: &str = "iqn.2026-11.test:host";
const KEYS: &str = "MaxConnections=4\0InitialR2T=No\0ImmediateData=Yes\0";

/// A session of two connections, with the initial unit attention consumed.
fn two(server: &Server) -> (Client, Client) {
    let one = Client::log_in(server, HOST, KEYS).settle();
    let two = join(server, &one, 2);
    (one, two)
}

fn join(server: &Server, first: &Client, number: u16) -> Client {
    Client::join(first, HOST, &server.target, number).expect("it may join")
}

/// Sends a TEST UNIT READY with this number.
fn send_ready(client: &mut Client, number: u32) -> u32 {
    client.command_number = number;
    let pdu = client.command(0x81, 0, &[0; 6]);
    client.send(&pdu);
    client.tag
}

/// Sends a write of one block with this number and attribute.
fn send_write(client: &mut Client, number: u32, attribute: u8, lba: u32, fill: u8) -> u32 {
    client.command_number = number;
    let pdu = client.write_10(lba, 1, 0xa0 | attribute);
    client.send(&pdu.data(&[fill; 512]));
    client.tag
}

/// Asserts that the target has read what was sent: an immediate ping is answered, and nothing
/// before it.
fn only_read(client: &mut Client) {
    let ping = Pdu::new(0x40, 0x80).word(16, 0x77).word(20, NO_TAG);
    client.send(&ping.word(24, client.command_number));
    let echo = client.receive().expect("the answer to a ping");
    assert_eq!((echo.opcode(), echo.get(16)), (0x20, 0x77));
}

/// Acknowledges received statuses.
fn acknowledge(client: &mut Client) {
    let pdu = Pdu::new(0x40, 0x80).word(16, NO_TAG).word(20, NO_TAG);
    client.send(&pdu.word(24, client.command_number));
}

fn answered(client: &mut Client, tag: u32) -> u8 {
    let answer = client.receive().expect("an answer");
    assert_eq!((answer.opcode(), answer.get(16)), (0x21, tag));
    answer.head[3]
}

/// Key, code and qualifier of the sense data of a response.
fn sense(answer: &Pdu) -> (u8, u8, u8) {
    (answer.data[4] & 0x0f, answer.data[14], answer.data[15])
}

fn function(client: &Client, function: u8, tag: u32) -> Pdu {
    Pdu::new(0x42, 0x80 | function)
        .word(16, 0x55)
        .word(20, tag)
        .word(24, client.command_number)
}

fn log_out(client: &mut Client, why: u8, connection: u16) -> Pdu {
    let pdu = Pdu::new(0x46, 0x80 | why)
        .word(16, 0x66)
        .word(20, u32::from(connection) << 16);
    client.send(&pdu.word(24, client.command_number));
    client.receive().expect("an answer to the log-out")
}

fn connections(server: &Server) -> Vec<u32> {
    let sessions = server.export.as_ref().unwrap().session_list();
    sessions.iter().map(|session| session.connections).collect()
}

/// Waits until the sessions have these numbers of connections.
fn until(server: &Server, wanted: &[u32]) {
    while connections(server) != wanted {
        std::thread::yield_now();
    }
}

#[test]
fn negotiated_connections_carry_commands() {
    let server = Server::start(&[]);
    let mut one = Client::connect(&server);
    let text = format!(
        "InitiatorName={HOST}\0TargetName={}\0MaxConnections=3\0",
        server.target
    );
    let answer = one.login(0x87, &text).text();
    assert!(answer.contains("MaxConnections=3"), "{answer}");
    let mut one = one.settle();
    let mut all = [join(&server, &one, 2), join(&server, &one, 3)];
    let refused = Client::join(&one, HOST, &server.target, 4).err();
    assert_eq!(refused, Some([2, 6]), "too many connections");
    assert_eq!(connections(&server), [3]);
    for (index, client) in all.iter_mut().enumerate() {
        client.command_number = one.command_number;
        assert_eq!(client.write(8 * index as u32, &[index as u8 + 1; 512]), 0);
        assert_eq!(
            client.read(8 * index as u32, 1),
            (vec![index as u8 + 1; 512], 0)
        );
        one.command_number = client.command_number;
    }
    assert_eq!(one.ready(), 0, "one session: no new nexus");
}

#[test]
fn export_limits_connections_and_default_is_one() {
    let server = Server::start(&[("connections", "2")]);
    let one = Client::log_in(&server, HOST, "MaxConnections=8\0").settle();
    let _two = join(&server, &one, 2);
    let refused = Client::join(&one, HOST, &server.target, 3).err();
    assert_eq!(refused, Some([2, 6]));
    let alone = Client::log_in(&server, "iqn.2026-11.test:alone", "").settle();
    let refused = Client::join(&alone, "iqn.2026-11.test:alone", &server.target, 2).err();
    assert_eq!(refused, Some([2, 6]), "one by default");
}

#[test]
fn connection_of_another_session_is_refused() {
    let server = Server::start(&[]);
    let mut one = Client::log_in(&server, HOST, KEYS).settle();
    let other = "iqn.2026-11.test:other";
    let refused = |first: &Client, name: &str, isid: u8| {
        let mut client = Client::connect(&server);
        (client.handle, client.connection) = (first.handle, 2);
        let text = format!("InitiatorName={name}\0TargetName={}\0", server.target);
        let [high, low] = first.handle.to_be_bytes();
        let pdu = Pdu::new(0x43, 0x87).byte(13, isid).byte(14, high);
        let pdu = pdu.byte(15, low).word(20, 2 << 16).word(24, 1);
        client.send(&pdu.data(text.as_bytes()));
        let answer = client.receive().unwrap();
        assert!(client.receive().is_none(), "the connection ends");
        [answer.head[36], answer.head[37]]
    };
    assert_eq!(refused(&one, other, 1), [2, 0x0a], "another's name");
    assert_eq!(refused(&one, HOST, 9), [2, 0x0a], "another ISID");
    let right = one.handle;
    for forged in [right ^ 1, right ^ 0x8000, !right] {
        one.handle = forged;
        assert_eq!(refused(&one, HOST, 1), [2, 0x0a], "a forged TSIH");
    }
    one.handle = right;
    // The other host has its own session: neither can join the other's.
    let mut theirs = Client::log_in(&server, other, KEYS).settle();
    assert_eq!(refused(&theirs, HOST, 1), [2, 0x0a]);
    assert_eq!(connections(&server), [1, 1]);
    assert_eq!((one.ready(), theirs.ready()), (0, 0));
}

#[test]
fn session_access_is_the_intersection_of_its_connections() {
    let open = ("without-authentication", "yes");
    let mut server = Server::start(&[("portal", "[::]:0"), open]);
    let (second, device, _) = server.second(&[("addresses", "::1"), open]);
    let port = server.portal().port();
    let log_in = |portal: SocketAddr| Client::log_in_to(portal, &server.target, HOST, KEYS);
    // An address with access to both units; another one, with access to one, cannot join.
    let both = log_in((Ipv6Addr::LOCALHOST, port).into());
    let join = |first: &Client, portal: SocketAddr| {
        let mut client = Client::connect_to(portal);
        client.be_of(first, 2);
        let text = format!("InitiatorName={HOST}\0TargetName={}\0", server.target);
        let answer = client.login(0x87, &text);
        (client, [answer.head[36], answer.head[37]])
    };
    let (_, status) = join(&both, (Ipv4Addr::LOCALHOST, port).into());
    assert_eq!(status, [2, 3], "none of it is accessible");
    // The reverse: it may join, and accesses what the session does.
    drop(both);
    let mut one = log_in((Ipv4Addr::LOCALHOST, port).into()).settle();
    let (mut two, status) = join(&one, (Ipv6Addr::LOCALHOST, port).into());
    assert_eq!(status, [0, 0]);
    two.command_number = one.command_number;
    let mut pdu = two.command(0xa1, 512, &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    pdu.head[9] = 1;
    two.send(&pdu.data(&[9; 512]));
    let refused = two.receive().unwrap();
    assert_eq!(sense(&refused), (5, 0x25, 0), "no such unit");
    assert_eq!(device.content(0, 512), [0; 512]);
    // All connections lose the access that the address of one loses.
    one.command_number = two.command_number;
    assert_eq!(one.ready(), 0);
    server.change(&[("addresses", "::1")]).unwrap();
    for client in [&mut one, &mut two] {
        let told = client.receive().unwrap();
        assert_eq!((told.opcode(), told.head[36]), (0x32, 3));
        assert!(client.receive().is_none());
    }
    drop(second);
}

#[test]
fn commands_execute_in_number_order() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let mut three = join(&server, &one, 3);
    let next = one.command_number;
    // The last one first: ordered writes to one block, each waiting for those before it.
    let third = send_write(&mut two, next + 2, 2, 0, 3);
    only_read(&mut two);
    let second = send_write(&mut one, next + 1, 2, 0, 2);
    only_read(&mut one);
    assert_eq!(
        server.device.content(0, 512),
        [0; 512],
        "a gap is before them"
    );
    // Duplicates are ignored, and immediate commands do not wait.
    send_write(&mut three, next + 1, 2, 0, 9);
    only_read(&mut three);
    let first = send_write(&mut three, next, 2, 0, 1);
    assert_eq!(answered(&mut three, first), 0);
    assert_eq!(answered(&mut two, third), 0);
    assert_eq!(answered(&mut one, second), 0);
    assert_eq!(server.device.content(0, 512), [3; 512]);
}

#[test]
fn data_belongs_to_the_connection_of_its_command() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let next = one.command_number;
    // Unsolicited data of a command that waits for its turn.
    two.command_number = next + 1;
    let early = two.write_10(8, 4, 0x21);
    two.send(&early.data(&[5; 512]));
    let rest = Pdu::new(0x05, 0x80).word(16, two.tag).word(20, NO_TAG);
    two.send(&rest.word(40, 512).data(&[5; 1536]));
    only_read(&mut two);
    let ready = send_ready(&mut one, next);
    assert_eq!(answered(&mut one, ready), 0);
    let tag = two.tag;
    assert_eq!(answered(&mut two, tag), 0);
    assert_eq!(server.device.content(8 * 512, 2048), [5; 2048]);
    // An R2T is sent on the command's connection; data on another one ends that connection, and
    // nothing is written.
    two.command_number = next + 2;
    let asked = two.write_10(16, 1, 0xa1);
    two.send(&asked);
    let r2t = two.receive().unwrap();
    assert_eq!(r2t.opcode(), 0x31);
    let data = Pdu::new(0x05, 0x80).word(16, two.tag).word(20, r2t.get(20));
    one.send(&data.clone().data(&[6; 512]));
    assert!(one.receive().is_none(), "data of another connection");
    let told = two.receive().unwrap();
    assert_eq!((told.opcode(), told.head[36]), (0x32, 2), "one was dropped");
    assert_eq!(told.get(36) & 0xffff, u32::from(one.connection));
    assert_eq!(server.device.content(16 * 512, 512), [0; 512]);
    two.send(&data.data(&[7; 512]));
    let tag = two.tag;
    assert_eq!(answered(&mut two, tag), 0);
    assert_eq!(server.device.content(16 * 512, 512), [7; 512]);
}

#[test]
fn window_is_shared_by_all_connections() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    server.device.hold();
    let next = one.command_number;
    for number in 0..128 {
        let client = if number % 2 == 0 { &mut one } else { &mut two };
        send_write(client, next + number, 1, 8 * number, 1);
    }
    while server.export.as_ref().unwrap().session_list()[0].commands < 128 {
        std::thread::yield_now();
    }
    // The window is closed: a further command, on either connection, is ignored.
    for client in [&mut one, &mut two] {
        send_write(client, next + 128, 1, 2048, 9);
        only_read(client);
    }
    server.device.go_on();
    for client in [&mut one, &mut two] {
        let answers: Vec<_> = (0..64).map(|_| client.receive().unwrap()).collect();
        assert!(answers.iter().all(|answer| answer.head[3] == 0));
    }
    only_read(&mut one);
    only_read(&mut two);
    assert_eq!(server.device.content(2048 * 512, 512), [0; 512]);
    let ready = send_ready(&mut two, next + 128);
    assert_eq!(answered(&mut two, ready), 0, "and open again");
}

#[test]
fn lost_connection_takes_its_commands_along() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let next = one.command_number;
    // One running, one waiting for data, and one that arrived early.
    server.device.hold();
    send_write(&mut two, next, 1, 0, 1);
    two.command_number = next + 1;
    let waits = two.write_10(8, 16, 0xa1);
    two.send(&waits);
    assert_eq!(two.receive().unwrap().opcode(), 0x31);
    send_write(&mut two, next + 3, 1, 32, 4);
    only_read(&mut two);
    drop(two);
    // The connection remains until its commands have ended.
    one.command_number = next + 2;
    only_read(&mut one);
    assert_eq!(connections(&server), [2]);
    server.device.go_on();
    until(&server, &[1]);
    let ready = send_ready(&mut one, next + 2);
    let answer = one.receive().unwrap();
    assert_eq!((answer.get(16), sense(&answer)), (ready, (6, 0x47, 0x7f)));
    // The early one was never acknowledged: it is sent again.
    assert_eq!(answer.get(28), next + 3);
    assert_eq!(server.device.content(32 * 512, 512), [0; 512]);
    let again = send_write(&mut one, next + 3, 1, 32, 4);
    assert_eq!(answered(&mut one, again), 0);
    assert_eq!(server.device.content(32 * 512, 512), [4; 512]);
    // The first connection may leave as well, and the session continues.
    let mut three = join(&server, &one, 3);
    drop(one);
    until(&server, &[1]);
    let ready = send_ready(&mut three, next + 4);
    assert_eq!(answered(&mut three, ready), 0);
}

#[test]
fn same_cid_reinstates_the_connection() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let next = one.command_number;
    two.command_number = next;
    let waits = two.write_10(0, 16, 0xa1);
    two.send(&waits);
    assert_eq!(two.receive().unwrap().opcode(), 0x31);
    let mut again = join(&server, &one, 2);
    assert!(two.receive().is_none(), "the one before has ended");
    assert_eq!(connections(&server), [2]);
    acknowledge(&mut one);
    send_ready(&mut again, next + 1);
    assert_eq!(sense(&again.receive().unwrap()), (6, 0x47, 0x7f));
    let ready = send_ready(&mut again, next + 2);
    assert_eq!(answered(&mut again, ready), 0);
    assert_eq!(server.device.content(0, 8192), [0; 8192]);
}

#[test]
fn session_reinstatement_ends_all_connections() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let mut new = Client::log_in(&server, HOST, KEYS).settle();
    assert!(one.receive().is_none() && two.receive().is_none());
    assert_eq!((new.ready(), connections(&server)), (0, vec![1]));
}

#[test]
fn command_is_aborted_on_its_connection_or_after_its_failure_on_any() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let next = one.command_number;
    server.device.hold();
    let runs = send_write(&mut two, next, 1, 0, 1);
    only_read(&mut two);
    one.command_number = next + 1;
    let abort = function(&one, 1, runs).byte(0, 0x42);
    one.send(&abort);
    let answer = one.receive().unwrap();
    assert_eq!(
        (answer.opcode(), answer.head[2]),
        (0x22, 255),
        "the command of another connection"
    );
    drop(two);
    // After that connection has failed it may: then the response follows the end of the command.
    loop {
        one.send(&abort);
        let ping = Pdu::new(0x40, 0x80).word(16, 0x77).word(20, NO_TAG);
        one.send(&ping);
        let first = one.receive().unwrap();
        if first.opcode() == 0x20 {
            break;
        }
        assert_eq!((first.opcode(), first.head[2]), (0x22, 255));
        assert_eq!(one.receive().unwrap().opcode(), 0x20);
    }
    server.device.go_on();
    let answer = one.receive().unwrap();
    assert_eq!((answer.opcode(), answer.head[2]), (0x22, 0));
}

#[test]
fn command_aborted_before_arrival_is_not_executed() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let next = one.command_number;
    // The command is in flight on the second connection; the function arrived first.
    one.command_number = next + 1;
    let abort = function(&one, 1, 0x1234).byte(0, 0x42);
    one.send(&abort.clone().word(32, next));
    let answer = one.receive().unwrap();
    assert_eq!((answer.opcode(), answer.head[2]), (0x22, 0));
    assert_eq!(answer.get(28), next + 1, "its number counts as come");
    send_write(&mut two, next, 1, 0, 1);
    only_read(&mut two);
    let after = send_write(&mut two, next + 1, 1, 8, 2);
    assert_eq!(answered(&mut two, after), 0);
    assert_eq!(server.device.content(0, 512), [0; 512]);
    // An aborted early command leaves its number behind.
    let early = send_write(&mut two, next + 3, 1, 16, 3);
    let own = function(&two, 1, early).byte(0, 0x42);
    two.send(&own);
    assert_eq!(two.receive().unwrap().head[2], 0);
    let ready = send_ready(&mut one, next + 2);
    assert_eq!(answered(&mut one, ready), 0);
    let ready = send_ready(&mut one, next + 4);
    assert_eq!(answered(&mut one, ready), 0, "numbering continues");
    assert_eq!(server.device.content(16 * 512, 512), [0; 512]);
    // Numbers outside of the window, and of later commands, refer to nothing.
    one.command_number = next + 5;
    for number in [next + 4, next + 5, next + 300] {
        one.send(&function(&one, 1, 0x1234).byte(0, 0x42).word(32, number));
        let answer = one.receive().unwrap();
        assert_eq!((answer.opcode(), answer.head[2]), (0x22, 1), "{number}");
    }
}

#[test]
fn reset_waits_for_earlier_commands_and_its_response_is_fenced() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let next = one.command_number;
    // The response to this one is not acknowledged yet.
    let written = send_write(&mut two, next, 1, 0, 1);
    assert_eq!(answered(&mut two, written), 0);
    // An immediate reset behind a command in flight on the other connection.
    one.command_number = next + 2;
    one.send(&function(&one, 5, NO_TAG).byte(0, 0x42));
    only_read(&mut one);
    server.device.hold();
    two.acknowledges = false;
    send_write(&mut two, next + 1, 1, 8, 2);
    // When its connection reads on, the reset has been executed.
    only_read(&mut two);
    server.device.go_on();
    // Its earlier responses must be acknowledged before the response is sent: an acknowledgement is
    // requested.
    let ping = two.receive_any().unwrap();
    assert_eq!((ping.opcode(), ping.get(16)), (0x20, NO_TAG));
    only_read(&mut one);
    let answer = Pdu::new(0x40, 0x80).word(16, NO_TAG).word(20, ping.get(20));
    two.send(&answer.word(28, two.status_number));
    let done = one.receive_any().unwrap();
    assert_eq!((done.opcode(), done.head[2]), (0x22, 0));
    one.status_number = done.get(24) + 1;
    // Nothing is sent before that; then the unit attention, also fenced.
    two.acknowledges = true;
    send_ready(&mut two, next + 2);
    let ping = one.receive_any().unwrap();
    assert_eq!((ping.opcode(), ping.get(16)), (0x20, NO_TAG));
    only_read(&mut two);
    let answer = Pdu::new(0x40, 0x80).word(16, NO_TAG).word(20, ping.get(20));
    one.send(&answer.word(28, one.status_number));
    let told = two.receive().unwrap();
    assert_eq!(sense(&told), (6, 0x29, 3), "the write was not answered");
    let ready = send_ready(&mut two, next + 3);
    assert_eq!(answered(&mut two, ready), 0);
}

#[test]
fn connections_and_sessions_log_out() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let mut three = join(&server, &one, 3);
    assert_eq!(log_out(&mut one, 1, 9).head[2], 1, "no such connection");
    assert_eq!(log_out(&mut one, 2, 2).head[2], 2, "no recovery");
    let next = one.command_number;
    two.command_number = next + 1;
    let waits = two.write_10(0, 16, 0xa1);
    two.send(&waits);
    only_read(&mut two);
    assert_eq!(log_out(&mut one, 1, 2).head[2], 0, "another one");
    assert!(two.receive().is_none());
    until(&server, &[2]);
    // The early command of the other connection counts as never received.
    for number in [next, next + 1] {
        let ready = send_ready(&mut one, number);
        assert_eq!(answered(&mut one, ready), 0);
    }
    three.command_number = next + 2;
    assert_eq!(log_out(&mut three, 1, 3).head[2], 0, "its own");
    assert!(three.receive().is_none());
    let mut four = join(&server, &one, 4);
    one.command_number = next + 3;
    assert_eq!(log_out(&mut one, 0, 0).head[2], 0, "the session");
    assert!(one.receive().is_none() && four.receive().is_none());
    until(&server, &[]);
}

#[test]
fn disconnecting_a_session_asks_each_connection() {
    let server = Server::start(&[]);
    let (mut one, mut two) = two(&server);
    let export = server.export.as_ref().unwrap();
    assert!(export.end_session(export.session_list()[0].id));
    for client in [&mut one, &mut two] {
        let told = client.receive().unwrap();
        assert_eq!((told.opcode(), told.head[36]), (0x32, 1));
    }
    for client in [&mut one, &mut two] {
        while client.receive().is_some() {}
    }
    until(&server, &[]);
}
