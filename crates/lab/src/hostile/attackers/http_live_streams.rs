//! One viewer with one token opens all live streams, and reads none of them to the end.

use crate::hostile::peers::http;
use crate::hostile::stage::Stage;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

/// Connections at a time that ask.
const ASKING: u64 = 4;
/// Streams that are held at most.
const HELD_MAX: usize = 256;
/// How long one waits when there are no more.
const REST: Duration = Duration::from_millis(200);

pub fn attack(stage: &Stage<'_>) {
    let server = match http::server(stage) {
        Ok(server) => server,
        Err(error) => return stage.refused(&error),
    };
    let held = Mutex::new(Vec::new());
    let bearer = http::bearer(&stage.places.token);
    stage.together(ASKING, |_, _| {
        let mut wire = http::tls(stage, &server, stage.address())?;
        wire.write_all(&http::request("GET", "/v1/live?cells=4096", &bearer, ""))?;
        http::some_answer(&mut wire)?;
        stage.did(1);
        let full = held.lock().is_ok_and(|mut held| {
            held.push(wire);
            held.len() >= HELD_MAX
        });
        stage.pause(if full { Duration::MAX / 4 } else { REST / 20 });
        Ok(())
    });
}
