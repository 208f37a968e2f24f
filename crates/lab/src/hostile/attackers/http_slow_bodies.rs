//! Requests that do not end: headers and bodies without end, by byte or by MiB.

use crate::hostile::peers::connect_unix;
use crate::hostile::stage::Stage;
use std::io::{Result, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Connections at a time.
const CONNECTIONS: u64 = 16;
/// From one byte to the next.
const SLOWLY: Duration = Duration::from_millis(20);
/// Said of a body that does not end.
const ENDLESS: &str = "Content-Length: 1099511627776\r\n\r\n";

/// Sends the same again and again.
fn endlessly(stage: &Stage<'_>, stream: &mut UnixStream, part: &[u8], slowly: bool) -> Result<()> {
    while !stage.is_over() {
        match slowly {
            true => {
                stream.write_all(&part[..1])?;
                stage.pause(SLOWLY);
            }
            false => stream.write_all(part)?,
        }
        stage.did(1);
    }
    Ok(())
}

pub fn attack(stage: &Stage<'_>) {
    let header = format!("X-Long: {}\r\n", "x".repeat(4096));
    let body = vec![b'['; 1 << 16];
    stage.together(CONNECTIONS, |number, _| {
        let mut stream = connect_unix(&stage.places.control)?;
        let slowly = number % 2 == 0;
        let begin = match number / 2 % 4 {
            0 => "GET /v1/pools HTTP/1.1\r\nHost: convect\r\n".to_owned(),
            1 => format!("POST /v1/volumes HTTP/1.1\r\nHost: convect\r\nContent-Type: application/json\r\n{ENDLESS}"),
            2 => format!("POST /v1/login HTTP/1.1\r\nHost: convect\r\nContent-Type: application/json\r\n{ENDLESS}"),
            _ => "GET /".to_owned(),
        };
        stream.write_all(begin.as_bytes())?;
        match number / 2 % 4 {
            0 => endlessly(stage, &mut stream, header.as_bytes(), slowly),
            _ => endlessly(stage, &mut stream, &body, slowly),
        }
    });
}
