//! Memory budget of the sessions.

use crate::support::client::Client;
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};

const READ: u16 = 0;
const WRITE: u16 = 1;
const MIB: usize = 1 << 20;

fn server() -> Server {
    Server::start(MemoryDevice::new(64 << 20, 512))
}

#[test]
fn non_reading_peers_share_a_budget_and_are_disconnected_under_pressure() {
    let server = server();
    let mut slow: Vec<Client> = (0..8)
        .map(|_| Client::transmission(&server, false))
        .collect();
    for client in &mut slow {
        for cookie in 0..64 {
            client.request(0, READ, cookie, 0, 8 << 20);
        }
    }
    wait_until("the memory is taken", || server.memory.waiting() > 0);
    let mut other = Client::transmission(&server, false);
    other.request(0, READ, 1, 0, MIB as u32);
    let watched = std::thread::scope(|scope| {
        let answered = scope.spawn(|| {
            assert_eq!(other.simple_reply(), (0, 1));
            other.take(MIB);
        });
        let mut most = 0;
        while !answered.is_finished() {
            most = most.max(server.memory.used());
            std::thread::yield_now();
        }
        answered.join().unwrap();
        most
    });
    assert!(watched <= server.memory.most(), "{watched}");
    drop(slow);
    wait_until("the others have disconnected", || server.sessions() == 1);
    // Small requests need none of the shared memory.
    other.request(0, READ, 2, 0, 4096);
    assert_eq!(other.simple_reply(), (0, 2));
    other.take(4096);
    wait_until("an idle session keeps nothing", || {
        server.memory.used() == 0
    });
}

#[test]
fn small_request_is_served_without_free_memory() {
    let server = server();
    let hoard = reactor::Account::new([server.memory.clone()]);
    assert!(hoard.try_take(64 * MIB + reactor::OWN));
    let mut client = Client::transmission(&server, false);
    client.request(0, WRITE, 1, 0, 4096);
    client.send(&[7; 4096]);
    assert_eq!(client.simple_reply(), (0, 1));
    client.request(0, READ, 2, 0, 4096);
    assert_eq!(client.simple_reply(), (0, 2));
    assert_eq!(client.take(4096), [7; 4096]);
    // A large one waits until memory is available.
    client.request(0, READ, 3, 0, MIB as u32);
    wait_until("the request waits", || server.memory.waiting() == 1);
    drop(hoard);
    assert_eq!(client.simple_reply(), (0, 3));
    client.take(MIB);
}

#[test]
fn disconnect_while_waiting_for_memory_is_noticed() {
    let server = server();
    let hoard = reactor::Account::new([server.memory.clone()]);
    assert!(hoard.try_take(64 * MIB + reactor::OWN));
    let mut client = Client::transmission(&server, false);
    client.request(0, READ, 1, 0, MIB as u32);
    wait_until("the request waits", || server.memory.waiting() == 1);
    drop(client);
    wait_until("the client has disconnected", || server.sessions() == 0);
    assert_eq!(server.memory.waiting(), 0);
}
