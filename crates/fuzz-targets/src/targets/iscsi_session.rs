//! iSCSI PDUs of the full feature phase, over one connection or two of one session, to a portal on the
//! loopback interface.
//!
//! Each input has an export of its own and, in the same target, a unit of another initiator, whose data
//! must never be returned. The first byte of the input chooses how the session negotiates and whether it
//! has a second connection; PDUs follow, each after two bytes: how it is sent, and sixteenths of its data.

use super::scsi_unit::{HIDDEN, volume};
use crate::memory::bounded;
use reactor::{Export, NoKeeper, ReactorThread, StartExport};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const TARGET: &str = "iqn.2026-11.io.convect:fuzz";
/// Bytes of a PDU's header.
const HEAD: usize = 48;
/// Bytes of the input before each header.
const PREFIX: usize = 2;
/// Wait after which a session that has not ended has hung.
const PATIENCE: Duration = Duration::from_secs(8);

fn start(portal: &str, lun: &str, initiator: &str, fill: u8) -> Box<dyn Export> {
    static LOOP: OnceLock<ReactorThread> = OnceLock::new();
    let on = LOOP.get_or_init(|| ReactorThread::start("fuzz", 1).expect("a loop starts"));
    let parameters = [
        ("portal", portal),
        ("target", TARGET),
        ("lun", lun),
        ("initiators", initiator),
    ];
    (frontend_iscsi::FRONT_END.start)(StartExport {
        name: lun.to_owned(),
        volume: lun.to_owned(),
        device: volume(lun, fill),
        open_for: None,
        keeper: Arc::new(NoKeeper),
        memory: reactor::Budget::new(64 << 20),
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        remotes: vec![on.remote().clone()],
    })
    .expect("the export starts")
}

/// Bit of the input's first byte: the session has two connections.
const TWO: u8 = 0x80;
/// Bits of a PDU's first byte: its lengths are those of the input, even if wrong; so is its number
/// (CmdSN); it is sent over the second connection.
const OWN_LENGTHS: u8 = 1;
const OWN_NUMBER: u8 = 2;
const BY_SECOND: u8 = 4;

/// The login request, straight to the full feature phase, of connection `number` (CID) to the session
/// with this handle (TSIH, 0 for a new one); `choice` decides what it negotiates.
fn login(choice: u8, handle: u16, number: u8) -> Vec<u8> {
    let keys = match (handle, choice % 3) {
        (0, 0) => "MaxConnections=2\0",
        (0, 1) => {
            "MaxConnections=2\0InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=4096\0MaxBurstLength=4096\0"
        }
        (0, _) => "MaxConnections=2\0ImmediateData=No\0MaxRecvDataSegmentLength=512\0",
        _ => "",
    };
    let text = format!("InitiatorName=iqn.2026-11.test:a\0TargetName={TARGET}\0{keys}");
    let mut pdu = vec![0; HEAD];
    (pdu[0], pdu[1], pdu[13], pdu[27]) = (0x43, 0x87, 1, 1);
    pdu[14..16].copy_from_slice(&handle.to_be_bytes());
    pdu[21] = number;
    pdu[5..8].copy_from_slice(&(text.len() as u32).to_be_bytes()[1..]);
    pdu.extend(text.as_bytes());
    pdu.resize(pdu.len().next_multiple_of(4), 0);
    pdu
}

/// The PDUs of the input, each with whether it goes over the second connection. Lengths are correct and
/// commands in order unless the input asks for its own.
fn pdus(data: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut all = Vec::new();
    let mut number: u32 = 1;
    let mut rest = &data[1..];
    while rest.len() >= PREFIX + HEAD {
        let (how, count) = (rest[0], usize::from(rest[1]) * 16);
        let mut head: [u8; HEAD] = rest[PREFIX..PREFIX + HEAD].try_into().expect("a header");
        rest = &rest[PREFIX + HEAD..];
        let (body, after) = rest.split_at(count.min(rest.len()));
        rest = after;
        if how & OWN_LENGTHS == 0 {
            head[4] = 0;
            head[5..8].copy_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
        }
        if how & OWN_NUMBER == 0 {
            head[24..28].copy_from_slice(&number.to_be_bytes());
            let takes = head[0] & 0x40 == 0 && head[0] & 0x3f != 0x05;
            number += u32::from(takes);
        }
        let mut out = head.to_vec();
        out.extend(body);
        out.resize(out.len().next_multiple_of(4), 0);
        all.push((how & BY_SECOND != 0, out));
    }
    all
}

/// Logs in: the connection, and the session's handle.
fn connect(portal: &str, login: &[u8]) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(portal).expect("the portal listens");
    reset_on_close(&stream);
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout is set");
    stream.write_all(login).expect("the login is read");
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).expect("a login response");
    assert_eq!(head[36..38], [0, 0], "the login succeeds");
    let len = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
    let mut text = vec![0; len.next_multiple_of(4)];
    stream
        .read_exact(&mut text)
        .expect("the text of the response");
    (stream, u16::from_be_bytes([head[14], head[15]]))
}

/// Closes the connection by a reset, without TIME_WAIT: many inputs would use up all ports.
fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let len = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: `linger` outlives the call, and `len` is its size.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            len,
        );
    }
}

fn session(data: &[u8]) {
    let shown = start("127.0.0.1:0", "0", "iqn.2026-11.test:a", 0);
    let address = shown.address();
    let portal = address.trim_start_matches("iscsi:").split('/').next();
    let portal = portal.expect("the address has a portal");
    let hidden = start(portal, "1", "iqn.2026-11.test:b", HIDDEN);
    let (first, handle) = connect(portal, &login(data[0], 0, 0));
    let mut streams = vec![first];
    if data[0] & TWO != 0 {
        streams.push(connect(portal, &login(data[0], handle, 1)).0);
    }
    let last = streams.len() - 1;
    for (by_second, pdu) in pdus(data) {
        // An error means that the target closed the connection, which it may.
        let _ = streams[usize::from(by_second).min(last)].write_all(&pdu);
    }
    for stream in &streams {
        let _ = stream.shutdown(Shutdown::Write);
    }
    for stream in &mut streams {
        let mut answers = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answers) {
            assert_ne!(
                error.kind(),
                std::io::ErrorKind::WouldBlock,
                "the session does not end"
            );
        }
        let leaked = answers.windows(64).any(|all| all == [HIDDEN; 64]);
        assert!(
            !leaked || data.contains(&HIDDEN),
            "data of another initiator's unit was returned"
        );
    }
    drop(streams);
    drop(hidden);
}

pub(crate) fn run(data: &[u8]) {
    if !data.is_empty() {
        // Two volumes, buffers of two connections, and several commands of up to 8 MiB of data each.
        bounded(96 << 20, || session(data));
    }
}
