//! Eight initiators increment counters in one block with COMPARE AND WRITE and digests, while
//! connections are cut: no increment is lost or duplicated.

use crate::support::client::Client;
use crate::support::server::Server;
use std::net::{Shutdown, SocketAddr};

const INITIATORS: usize = 8;
const COUNTS: u64 = 60;
const KEYS: &str = "HeaderDigest=CRC32C\0DataDigest=CRC32C\0";
const BLOCK: usize = 512;

/// Address of the target.
#[derive(Clone)]
struct At(SocketAddr, String);

fn session(at: &At, number: usize) -> Client {
    let initiator = format!("iqn.2026-11.test:h{number}");
    Client::log_in_to(at.0, &at.1, &initiator, KEYS).settle()
}

/// The initiator's counter within the block.
fn own(block: &mut [u8], number: usize) -> &mut [u8; 8] {
    (&mut block[8 * number..8 * number + 8]).try_into().unwrap()
}

/// COMPARE AND WRITE of block 3; none if the connection was cut before the response.
fn compare_and_write(client: &mut Client, expected: &[u8], new: &[u8], cut: bool) -> Option<u8> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[9], cdb[13]) = (0x89, 3, 1);
    let command = client.command(0xa1, 2 * BLOCK as u32, &cdb);
    client.send(&command.data(&[expected, new].concat()));
    if cut {
        client.stream.shutdown(Shutdown::Both).unwrap();
        return None;
    }
    Some(client.receive().unwrap().head[3])
}

fn count(at: &At, number: usize) {
    let mut client = session(at, number);
    let (mut done, mut tries) = (0, 0);
    while done < COUNTS {
        tries += 1;
        let (mut block, status) = client.read(3, 1);
        assert_eq!(status, 0);
        let now = u64::from_be_bytes(*own(&mut block, number));
        assert!(now == done || now == done + 1, "{now} after {done}");
        done = now;
        let mut new = block.clone();
        *own(&mut new, number) = (done + 1).to_be_bytes();
        let cut = (tries + number).is_multiple_of(7);
        match compare_and_write(&mut client, &block, &new, cut) {
            Some(0) => done += 1,
            Some(status) => assert_eq!(status, 2, "another initiator was faster"),
            // The block tells whether it was executed.
            None => client = session(at, number),
        }
    }
    let (mut block, _) = client.read(3, 1);
    assert!(u64::from_be_bytes(*own(&mut block, number)) >= COUNTS);
}

#[test]
fn counters_of_many_initiators_are_exact() {
    let server = Server::start(&[]);
    let at = At(server.portal(), server.target.clone());
    let threads: Vec<_> = (0..INITIATORS)
        .map(|number| {
            let at = at.clone();
            std::thread::spawn(move || count(&at, number))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let mut block = server.device.content(3 * BLOCK as u64, BLOCK);
    for number in 0..INITIATORS {
        let counted = u64::from_be_bytes(*own(&mut block, number));
        assert!(
            (COUNTS..=COUNTS + 1).contains(&counted),
            "{number}: {counted}"
        );
    }
}
