//! PDUs of the full feature phase, over one connection or two of a session to a portal of the loopback. Each input has an export of its own, and
//! beside it in the same target a unit for somebody else, whose bytes must never come back.
#![no_main]

use convect_fuzz::bounded;
use libfuzzer_sys::fuzz_target;
use reactor::{Export, NoKeeper, ReactorThread, StartExport};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const TARGET: &str = "iqn.2026-11.io.convect:fuzz";
/// What the other one's unit is full of.
const HIDDEN: u8 = 0xa5;
/// Bytes of a header, and before it: how the PDU is to be sent, and sixteenths of its data.
const HEAD: usize = 48;
const PREFIX: usize = 2;
/// The session has ended long before, or it never does.
const PATIENCE: Duration = Duration::from_secs(8);

fn start(portal: &str, lun: &str, initiator: &str, fill: u8) -> Box<dyn Export> {
    static LOOP: OnceLock<ReactorThread> = OnceLock::new();
    let on = LOOP.get_or_init(|| ReactorThread::start("fuzz", 1).expect("a loop"));
    let parameters = [
        ("portal", portal),
        ("target", TARGET),
        ("lun", lun),
        ("initiators", initiator),
    ];
    (frontend_iscsi::FRONT_END.start)(StartExport {
        name: lun.to_owned(),
        volume: lun.to_owned(),
        device: scsi::fuzz::volume(lun, fill),
        open_for: None,
        keeper: Arc::new(NoKeeper),
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        remotes: vec![on.remote().clone()],
    })
    .expect("it is offered")
}

/// The bit of an input's first byte that asks for a second connection, and that of a PDU that goes by it.
const TWO: u8 = 0x80;
const BY_SECOND: u8 = 4;

/// A login, straight to the full feature phase, of the connection with this number (CID) to the session with this handle
/// (TSIH); the first byte of the input chooses how it negotiates.
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

/// The input as PDUs, each with whether it goes by the second connection: lengths that are right and commands that are
/// in order, unless the input wants it otherwise.
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
        if how & 1 == 0 {
            head[4] = 0;
            head[5..8].copy_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
        }
        if how & 2 == 0 {
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

/// A connection that has logged in, and the session's handle.
fn connect(portal: &str, login: &[u8]) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(portal).expect("it listens");
    reset_at_end(&stream);
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream.write_all(login).expect("it is read");
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).expect("an answer");
    assert_eq!(head[36..38], [0, 0], "it is let in");
    let len = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
    let mut text = vec![0; len.next_multiple_of(4)];
    stream.read_exact(&mut text).expect("its text");
    (stream, u16::from_be_bytes([head[14], head[15]]))
}

/// So that a million connections leave no ports behind.
fn reset_at_end(stream: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let len = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the value lives through the call, its length is given with it.
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
    let portal = portal.expect("an address");
    let hidden = start(portal, "1", "iqn.2026-11.test:b", HIDDEN);
    let (first, handle) = connect(portal, &login(data[0], 0, 0));
    let mut streams = vec![first];
    if data[0] & TWO != 0 {
        streams.push(connect(portal, &login(data[0], handle, 1)).0);
    }
    let last = streams.len() - 1;
    for (by_second, pdu) in pdus(data) {
        // The target may have ended the connection, and then there is nothing left to read.
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
                "it never ends"
            );
        }
        let leaked = answers.windows(64).any(|all| all == [HIDDEN; 64]);
        assert!(!leaked || data.contains(&HIDDEN), "another one's bytes");
    }
    drop(streams);
    drop(hidden);
}

fuzz_target!(|data: &[u8]| {
    if !data.is_empty() {
        // Two volumes, the buffers of a connection, and 8 MiB of data that a command may hold, several times.
        bounded(96 << 20, || session(data));
    }
});
