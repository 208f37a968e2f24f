//! Wrong tokens at the page's login and elsewhere, from as many addresses as a host has.

use crate::hostile::peers::http;
use crate::hostile::stage::Stage;
use std::io::Write;

/// Connections at a time.
const CONNECTIONS: u64 = 4;

pub fn attack(stage: &Stage<'_>) {
    let server = match http::server(stage) {
        Ok(server) => server,
        Err(error) => return stage.refused(&error),
    };
    stage.together(CONNECTIONS, |_, chance| {
        let mut wire = http::tls(stage, &server, stage.next_address())?;
        let token = format!("convect_{:016x}_{:064x}", chance.next(), chance.next());
        let body = format!("{{\"token\":\"{token}\"}}");
        let json = "Content-Type: application/json\r\n";
        let bearer = http::bearer(&token);
        for request in [
            http::request("POST", "/v1/login", json, &body),
            http::request("GET", "/v1/pools", &bearer, ""),
        ] {
            wire.write_all(&request)?;
            http::some_answer(&mut wire)?;
            stage.did(1);
        }
        Ok(())
    });
}
