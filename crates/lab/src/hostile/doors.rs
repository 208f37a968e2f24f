//! Newcomers during an attack: a new session or request at each entry point that attackers also use.

use super::peers::connect_unix;
use crate::failure::{Failure, Result, While};
use crate::iscsi::{Initiator, Lun, Opened};
use crate::nbd::{Client, Place};
use remote::{Bounds, Patience, Server};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a connection may take, and an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read, in bytes.
const ANSWER_MAX: u64 = 4 << 20;

/// Where they knock.
pub struct Doors {
    /// A victim's export.
    pub nbd: Place,
    /// A victim's unit.
    pub lun: Lun,
    /// The control socket.
    pub control: PathBuf,
    /// The metrics listener.
    pub metrics: SocketAddr,
    /// The daemon by TLS, with a good token.
    pub server: Server,
}

/// The daemon's report of requests' memory.
#[derive(Clone, Copy, Default, Debug)]
pub struct Told {
    /// Bytes that requests take.
    pub bytes: u64,
    /// Requests that wait for memory.
    pub waiting: u64,
}

/// A way in.
pub struct Door {
    /// Its name.
    pub name: &'static str,
    /// Comes in and leaves again.
    pub knock: fn(&Doors) -> Result<Option<Told>>,
}

/// All of them.
pub static ALL: &[Door] = &[
    Door {
        name: "NBD",
        knock: nbd,
    },
    Door {
        name: "iSCSI",
        knock: iscsi,
    },
    Door {
        name: "control",
        knock: control,
    },
    Door {
        name: "metrics",
        knock: metrics,
    },
    Door {
        name: "TLS",
        knock: tls,
    },
    Door {
        name: "live",
        knock: live,
    },
    Door {
        name: "log-in",
        knock: log_in,
    },
];

fn nbd(doors: &Doors) -> Result<Option<Told>> {
    let place = &doors.nbd;
    Client::connect(&place.socket, &place.export)?;
    Ok(None)
}

fn iscsi(doors: &Doors) -> Result<Option<Told>> {
    let initiator = Initiator {
        name: "iqn.2026-11.io.convect.lab:newcomer".to_owned(),
        digests: false,
    };
    Opened::open(&doors.lun, &initiator)?.capacity()?;
    Ok(None)
}

/// A metric without labels.
fn metric(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line?.trim().parse::<f64>().ok().map(|value| value as u64)
}

fn ask_metrics(mut stream: impl Read + Write) -> Result<Option<Told>> {
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: convect\r\n\r\n")?;
    let mut text = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut text)?;
    let told = |name| metric(&text, name);
    match (
        told("convect_request_memory_bytes "),
        told("convect_requests_waiting "),
    ) {
        (Some(bytes), Some(waiting)) => Ok(Some(Told { bytes, waiting })),
        _ => Err(Failure::new("the answer is not that of the metrics")),
    }
}

fn control(doors: &Doors) -> Result<Option<Told>> {
    let stream = connect_unix(&doors.control)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    ask_metrics(stream)
}

fn metrics(doors: &Doors) -> Result<Option<Told>> {
    let stream = TcpStream::connect_timeout(&doors.metrics, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    ask_metrics(stream)
}

fn look(doors: &Doors, target: &str) -> Result<Option<Told>> {
    let bounds = Bounds {
        bytes: ANSWER_MAX as usize,
        time: PATIENCE,
    };
    let looked = doors.server.look(target, bounds);
    looked.during(|| format!("looking at {target} by TLS"))?;
    Ok(None)
}

fn tls(doors: &Doors) -> Result<Option<Told>> {
    look(doors, "/v1/version")
}

fn live(doors: &Doors) -> Result<Option<Told>> {
    look(doors, "/v1/live?looks=1")
}

fn log_in(doors: &Doors) -> Result<Option<Told>> {
    let connected = doors.server.connect();
    let mut wire = connected.during(|| "connecting by TLS".to_owned())?;
    wire.set_patience(Patience::Each(PATIENCE, PATIENCE))?;
    let body = format!("{{\"token\":\"{}\"}}", doors.server.token());
    let json = "Content-Type: application/json\r\n";
    wire.write_all(&super::peers::http::request(
        "POST",
        "/v1/login",
        json,
        &body,
    ))?;
    let mut head = [0; 12];
    wire.read_exact(&mut head)?;
    match head.starts_with(b"HTTP/1.1 201") {
        true => Ok(None),
        false => Err(Failure::new(format!(
            "a log-in with a good token is answered with {}",
            String::from_utf8_lossy(&head)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_without_labels_are_found() {
        let text = "# HELP a b\nconvect_requests_waiting_more 2\nconvect_requests_waiting 7\n";
        assert_eq!(metric(text, "convect_requests_waiting "), Some(7));
        assert_eq!(metric(text, "convect_requests "), None);
    }
}
