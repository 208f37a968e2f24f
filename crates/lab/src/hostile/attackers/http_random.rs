//! Random requests: paths of the interface with random parts, with a viewer's token; and bytes that are not requests.

use crate::chance::Chance;
use crate::hostile::peers::{connect_unix, http};
use crate::hostile::stage::Stage;
use std::io::Write;

/// Connections at a time.
const CONNECTIONS: u64 = 4;
/// Requests of each.
const REQUESTS: u64 = 16;
/// Paths that can be read; `*` is a random number or word.
const PATHS: [&str; 14] = [
    "/v1/pools/*",
    "/v1/pools/hostile/what-if",
    "/v1/pools/hostile/moves",
    "/v1/volumes/hostile/iscsi-attacked/map?cells=*",
    "/v1/volumes/hostile/iscsi-attacked/map/frames?from=*&to=*",
    "/v1/volumes/hostile/iscsi-attacked/explain?lba=*",
    "/v1/volumes/hostile/nbd-attacked/diff?from=*",
    "/v1/history?object=*&from=*&to=*",
    "/v1/events?after=*&limit=*",
    "/v1/audit?limit=*",
    "/v1/jobs/*",
    "/v1/live?looks=1&maps=hostile/iscsi-attacked&cells=*&start=*&length=*",
    "/metrics?*",
    "/*",
];
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "DELETE", "HEAD"];

fn word(chance: &mut Chance) -> String {
    match chance.below(4) {
        0 => chance.next().to_string(),
        1 => format!("-{}", chance.below(1 << 40)),
        2 => chance.below(5_000).to_string(),
        _ => "%00%ff../".repeat(chance.below(20) as usize),
    }
}

fn path(chance: &mut Chance) -> String {
    let mut path = String::new();
    for part in PATHS[chance.below(PATHS.len() as u64) as usize].split_inclusive('*') {
        match part.strip_suffix('*') {
            Some(part) => path += &format!("{part}{}", word(chance)),
            None => path += part,
        }
    }
    path
}

pub fn attack(stage: &Stage<'_>) {
    let server = match http::server(stage) {
        Ok(server) => server,
        Err(error) => return stage.refused(&error),
    };
    let bearer = http::bearer(&stage.places.token);
    stage.together(CONNECTIONS, |number, chance| {
        if number == 0 {
            // No request can be read out of these, so that nothing is done by the rights of the socket.
            let mut stream = connect_unix(&stage.places.control)?;
            let bytes: Vec<u8> = (0..chance.below(4096))
                .map(|_| chance.next() as u8)
                .collect();
            stream.write_all(b"\x00")?;
            stream.write_all(&bytes)?;
            stage.did(1);
            return http::some_answer(&mut stream).map(|_| ());
        }
        let mut wire = http::tls(stage, &server, stage.address())?;
        for _ in 0..REQUESTS {
            // Most look; the others are refused to a viewer.
            let method = METHODS[chance.below(8).saturating_sub(3) as usize];
            wire.write_all(&http::request(method, &path(chance), &bearer, ""))?;
            stage.did(1);
            if http::some_answer(&mut wire)? == 0 {
                break;
            }
        }
        Ok(())
    });
}
