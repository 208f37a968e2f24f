//! Persistent reservations across restarts of the target (APTPL).

use crate::support::client::Client;
use crate::support::server::Server;
use reactor::{Keeper, Kept};
use std::io::Result;
use std::sync::{Arc, Mutex};

const HOST: &str = "iqn.2026-11.test:host";
const OTHER: &str = "iqn.2026-11.test:other";

/// Result of a call.
#[derive(Default)]
struct State {
    text: Option<String>,
    /// Calls are answered later, by the test.
    holds: bool,
    held: Option<(Option<String>, Kept)>,
    fails: bool,
}

#[derive(Default)]
struct Memory(Mutex<State>);

impl Keeper for Memory {
    fn is_there(&self) -> bool {
        true
    }

    fn load(&self) -> Result<Option<String>> {
        Ok(self.0.lock().unwrap().text.clone())
    }

    fn keep(&self, text: Option<String>, done: Kept) {
        let mut state = self.0.lock().unwrap();
        if state.holds {
            state.held = Some((text, done));
            return;
        }
        let kept = !state.fails;
        if kept {
            state.text = text;
        }
        drop(state);
        done(kept);
    }
}

/// PERSISTENT RESERVE OUT: action, type, own key, new key, flags.
fn send_out(client: &mut Client, (action, kind): (u8, u8), key: u8, new: u8, flags: u8) {
    let mut list = [0; 24];
    (list[7], list[15], list[20]) = (key, new, flags);
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
    let pdu = client.command(0xa1, 24, &cdb).data(&list);
    client.send(&pdu);
}

fn out(client: &mut Client, what: (u8, u8), key: u8, new: u8, flags: u8) -> u8 {
    send_out(client, what, key, new, flags);
    client.receive().unwrap().head[3]
}

const CONFLICT: u8 = 0x18;

#[test]
fn reservation_fences_after_restart() {
    let keeper = Arc::<Memory>::default();
    let mut server = Server::keeping(keeper, &[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    assert_eq!(out(&mut client, (0, 0), 0, 7, 1), 0);
    assert_eq!(out(&mut client, (1, 3), 7, 0, 0), 0);
    server.restart();
    let mut other = Client::log_in(&server, OTHER, "").settle();
    assert_eq!(other.write(0, &[1; 512]), CONFLICT);
    let mut client = Client::log_in(&server, HOST, "").settle();
    assert_eq!(client.write(0, &[1; 512]), 0, "it is still registered");
    assert_eq!(out(&mut client, (3, 0), 7, 0, 0), 0);
    server.restart();
    let mut other = Client::log_in(&server, OTHER, "").settle();
    assert_eq!(other.write(0, &[1; 512]), 0, "the reservation was cleared");
}

/// Every command that changes the medium conflicts with a reservation of another host, whatever its
/// effect; reads conflict if they are excluded as well (SPC-4 table 62, SBC-3 table 13).
#[test]
fn every_medium_command_respects_reservations() {
    let writes: [&[u8]; 18] = [
        &[0x0a, 0, 0, 0, 1],
        &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x2e, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0xae, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x8e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x41, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x93, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x42],
        &[0x48, 2],
        &[0x8b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x83, 0],
        &[0x83, 0x11],
        &[0x35],
        &[0x91],
    ];
    let reads: [&[u8]; 9] = [
        &[0x08, 0, 0, 0, 1],
        &[0x28, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x2f, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x34],
        &[0x90],
        &[0x9e, 0x12],
        &[0x83, 0x10],
    ];
    for (kind, shuts_out_reads) in [(1, false), (3, true)] {
        let server = Server::keeping(Arc::<Memory>::default(), &[]);
        let mut holder = Client::log_in(&server, HOST, "").settle();
        let mut other = Client::log_in(&server, OTHER, "").settle();
        assert_eq!(out(&mut holder, (0, 0), 0, 7, 0), 0);
        assert_eq!(out(&mut holder, (1, kind), 7, 0, 0), 0);
        let mut conflicts = |cdb: &[u8]| {
            let command = other.command(0x81, 0, cdb);
            other.send(&command);
            other.receive().unwrap().head[3] == CONFLICT
        };
        for cdb in writes {
            assert!(conflicts(cdb), "{cdb:02x?} with type {kind}");
        }
        for cdb in reads {
            assert_eq!(
                conflicts(cdb),
                shuts_out_reads,
                "{cdb:02x?} with type {kind}"
            );
        }
    }
}

#[test]
fn reservation_is_answered_when_durable() {
    let keeper = Arc::<Memory>::default();
    let server = Server::keeping(keeper.clone(), &[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    keeper.0.lock().unwrap().holds = true;
    send_out(&mut client, (0, 0), 0, 7, 1);
    let mut taken = (0..120_000).filter_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        keeper.0.lock().unwrap().held.take()
    });
    let held = taken.next().expect("a call to store it");
    assert!(held.0.unwrap().contains(HOST));
    assert_eq!(client.ready(), 0, "a later command is answered before it");
    held.1(true);
    assert_eq!(client.receive().unwrap().head[3], 0);
}

#[test]
fn reservation_that_cannot_be_stored_fails() {
    let keeper = Arc::<Memory>::default();
    let server = Server::keeping(keeper.clone(), &[]);
    let mut client = Client::log_in(&server, HOST, "").settle();
    keeper.0.lock().unwrap().fails = true;
    assert_eq!(out(&mut client, (0, 0), 0, 7, 1), 2);
    assert_eq!(
        out(&mut client, (1, 3), 7, 0, 0),
        CONFLICT,
        "not registered"
    );
    keeper.0.lock().unwrap().fails = false;
    assert_eq!(out(&mut client, (0, 0), 0, 7, 1), 0);
    assert_eq!(out(&mut client, (1, 3), 7, 0, 0), 0);
}
