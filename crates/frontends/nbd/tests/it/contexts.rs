//! Metadata contexts: names and block status.

use crate::support::client::{Client, string};
use crate::support::memory_device::MemoryDevice;
use crate::support::server::Server;
use block::{ErrorKind, OpKind};

const LIST: u32 = 9;
const SET: u32 = 10;
const BLOCK_STATUS: u16 = 7;
const REQ_ONE: u16 = 1 << 3;

fn server() -> Server {
    let device = MemoryDevice::new(1 << 20, 512);
    device.set_bases(&[("tuesday", 2), ("monday", 3), ("other@sunday", 4)]);
    Server::start(device)
}

/// A client that has negotiated structured replies.
fn structured(server: &Server) -> Client {
    let mut client = Client::connect(server);
    client.send(&3u32.to_be_bytes());
    client.option(8, &[]);
    assert_eq!(client.option_reply().1, 1);
    client
}

/// Contexts in the reply with their ids, and its final type.
fn ask(client: &mut Client, option: u32, queries: &[&str]) -> (Vec<(u32, String)>, u32) {
    let mut data = string("");
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query)));
    client.option(option, &data);
    let mut found = Vec::new();
    loop {
        let (_, kind, payload) = client.option_reply();
        if kind != 4 {
            return (found, kind);
        }
        let (number, name) = payload.split_first_chunk().unwrap();
        let name = String::from_utf8(name.to_vec()).unwrap();
        found.push((u32::from_be_bytes(*number), name));
    }
}

fn go(client: &mut Client) {
    client.option(7, &[string(""), vec![0, 0]].concat());
    while client.option_reply().1 != 1 {}
}

/// Id and extents of a context.
fn told(payload: &[u8]) -> (u32, Vec<(u32, u32)>) {
    let words: Vec<u32> = payload
        .chunks(4)
        .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
        .collect();
    let runs = words[1..].chunks(2).map(|run| (run[0], run[1])).collect();
    (words[0], runs)
}

#[test]
fn contexts_are_listed_by_prefix() {
    let server = server();
    let mut client = structured(&server);
    let all = [
        "base:allocation",
        "convect:changed:tuesday",
        "convect:changed:monday",
        "convect:changed:other@sunday",
    ];
    for (queries, found) in [
        (&[][..], &all[..]),
        (&["convect:"], &all[1..]),
        (&["convect:changed:"], &all[1..]),
        (&["base:", "convect:changed:monday"], &[all[0], all[2]]),
        (&["convect:changed:mon", "qemu:", "convect"], &[]),
    ] {
        let (listed, end) = ask(&mut client, LIST, queries);
        let names: Vec<_> = listed.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!((names, end), (found.to_vec(), 1), "{queries:?}");
        assert!(listed.iter().all(|(number, _)| *number == 0));
    }
}

#[test]
fn block_status_covers_every_selected_context() {
    let server = server();
    let mut client = structured(&server);
    let queries = ["convect:changed:monday", "base:allocation", "convect:"];
    let (set, end) = ask(&mut client, SET, &queries);
    let due = [
        (1, "base:allocation".to_owned()),
        (2, "convect:changed:monday".to_owned()),
    ];
    assert_eq!((&set[..], end), (&due[..], 1));
    go(&mut client);
    server.device.backwards();
    client.request(0, BLOCK_STATUS, 7, 0, 24 << 10);
    let (first, second) = (client.chunk(), client.chunk());
    assert_eq!((first.flags, first.kind, first.cookie), (0, 5, 7));
    assert_eq!((second.flags, second.kind, second.cookie), (1, 5, 7));
    assert_eq!(told(&first.payload), (1, vec![(24 << 10, 3)]));
    let runs = vec![(4096, 1), (8192, 0), (4096, 1), (8192, 0)];
    assert_eq!(told(&second.payload), (2, runs));
    client.request(REQ_ONE, BLOCK_STATUS, 8, 4096, 24 << 10);
    client.chunk();
    assert_eq!(told(&client.chunk().payload), (2, vec![(8192, 0)]));
}

#[test]
fn failing_context_fails_the_whole_query() {
    let server = server();
    let mut client = structured(&server);
    let queries = ["base:allocation", "convect:changed:tuesday"];
    ask(&mut client, SET, &queries);
    go(&mut client);
    // The snapshot is deleted.
    server.device.fail(OpKind::Changed(2), ErrorKind::Invalid);
    client.request(0, BLOCK_STATUS, 9, 0, 4096);
    let chunk = client.chunk();
    assert_eq!((chunk.flags, chunk.kind, chunk.cookie), (1, 0x8001, 9));
    assert_eq!(chunk.payload[..4], [0, 0, 0, 22]);
}

#[test]
fn too_many_contexts_are_refused() {
    let server = server();
    let names: Vec<String> = (1..=9).map(|number| format!("s{number}")).collect();
    let bases: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(1..).collect();
    server.device.set_bases(&bases);
    let mut client = structured(&server);
    let queries: Vec<String> = names
        .iter()
        .map(|name| format!("convect:changed:{name}"))
        .collect();
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let (set, end) = ask(&mut client, SET, &queries);
    assert_eq!((set, end), (vec![], 0x8000_0009));
    assert_eq!(ask(&mut client, SET, &queries[..8]).0.len(), 8);
    let (set, end) = ask(&mut client, SET, &queries);
    assert_eq!((set, end), (vec![], 0x8000_0009));
    go(&mut client);
    client.request(0, BLOCK_STATUS, 1, 0, 4096);
    assert_eq!(client.chunk().kind, 0x8001);
}
