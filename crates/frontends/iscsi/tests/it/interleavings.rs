//! Ordered writes over four connections of one session in a thousand orders: the result follows the
//! command numbers (RFC 7143, section 4.2.2.1), regardless of the order of arrival and of cut
//! connections.

use crate::support::client::{Client, Pdu};
use crate::support::server::Server;
use std::collections::BTreeMap;

const HOST: &str = "iqn.2026-11.test:host";
const KEYS: &str = "MaxConnections=4\0InitialR2T=No\0ImmediateData=Yes\0";

fn join(server: &Server, first: &Client, number: u16) -> Client {
    Client::join(first, HOST, &server.target, number).expect("it may join")
}

/// SplitMix64 (Steele, Lea and Flood), for reproducible orders.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// Receives until a command is answered, sending solicited data.
fn settle(client: &mut Client, wanted: u32, fills: &BTreeMap<u32, u8>) {
    loop {
        let pdu = client.receive().expect("an answer");
        let tag = pdu.get(16);
        match pdu.opcode() {
            0x31 => {
                let data = Pdu::new(0x05, 0x80)
                    .word(16, tag)
                    .word(20, pdu.get(20))
                    .word(40, pdu.get(40));
                client.send(&data.data(&vec![fills[&tag]; pdu.get(44) as usize]));
            }
            0x21 => {
                assert_eq!((tag, pdu.head[3]), (wanted, 0));
                return;
            }
            other => panic!("opcode {other:02x}"),
        }
    }
}

/// A write to be sent.
#[derive(Clone)]
struct Write {
    number: u32,
    lba: usize,
    len: usize,
    fill: u8,
    /// With immediate data.
    at_once: bool,
}

#[test]
fn thousand_interleavings_follow_command_numbers() {
    const BLOCKS: usize = 12;
    let server = Server::start(&[]);
    let one = Client::log_in(&server, HOST, KEYS).settle();
    let mut number = one.command_number;
    let mut clients = vec![one];
    for id in 2..=4 {
        clients.push(join(&server, &clients[0], id));
    }
    let mut random = Random(7);
    let mut content = [0u8; BLOCKS];
    for round in 0..1000u32 {
        // Overlapping ordered writes on random connections; those of each connection in order.
        let mut queues: Vec<Vec<Write>> = vec![Vec::new(); clients.len()];
        for _ in 0..1 + random.below(8) {
            let lba = random.below(BLOCKS);
            let len = 1 + random.below(BLOCKS - lba);
            let fill = 1 + random.below(255) as u8;
            content[lba..lba + len].fill(fill);
            let at_once = random.below(2) == 0;
            let by = random.below(queues.len());
            queues[by].push(Write {
                number,
                lba,
                len,
                fill,
                at_once,
            });
            number += 1;
        }
        // Connection and tag by number; data by tag.
        let (mut sent, mut fills) = (BTreeMap::new(), BTreeMap::new());
        while queues.iter().any(|queue| !queue.is_empty()) {
            let by = random.below(queues.len());
            if queues[by].is_empty() {
                continue;
            }
            let write = queues[by].remove(0);
            let len = write.len as u16;
            let client = &mut clients[by];
            client.command_number = write.number;
            let command = client.write_10(write.lba as u32, len, 0xa2);
            client.send(&match write.at_once {
                true => command.data(&vec![write.fill; write.len * 512]),
                false => command,
            });
            sent.insert(write.number, (by, client.tag));
            fills.insert(client.tag, write.fill);
        }
        for (by, tag) in sent.into_values() {
            settle(&mut clients[by], tag, &fills);
        }
        for (block, fill) in content.iter().enumerate() {
            let found = server.device.content(512 * block as u64, 512);
            assert_eq!(found, [*fill; 512], "round {round}, block {block}");
        }
        if round % 50 == 49 {
            // One connection is cut and reconnects with the same CID.
            let at = 1 + random.below(clients.len() - 1);
            let id = clients[at].connection;
            clients[0].command_number = number;
            clients[at] = join(&server, &clients[0], id);
        }
    }
}
