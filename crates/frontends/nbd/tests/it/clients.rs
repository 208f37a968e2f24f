//! The server with common clients: libnbd's tools and QEMU.

use crate::support::client::Client;
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};
use std::process::{Command, Output};

const MIB: u64 = 1 << 20;

pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    // The system's Python has libnbd's module.
    let path = format!(
        "/usr/bin:/bin:{}",
        std::env::var("PATH").unwrap_or_default()
    );
    Command::new("timeout")
        .env("PATH", path)
        .arg("600")
        .arg(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program} cannot be run ({error}): ./dev test installs it"))
}

pub(crate) fn good(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Deterministic bytes without a pattern.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn nbdinfo_shows_the_volume() {
    let server = Server::start(MemoryDevice::new(64 * MIB, 512));
    let text = good("nbdinfo", &[&server.uri()]);
    for line in [
        "export-size: 67108864",
        "export=\"disk\"",
        "description: pool/volume",
        "base:allocation",
        "is_read_only: false",
        "can_multi_conn: true",
        "can_fast_zero: true",
        "can_fua: true",
        "can_df: true",
        "block_size_minimum: 512",
        "block_size_preferred: 4096",
        "block_size_maximum: 33554432",
        "using structured packets",
    ] {
        assert!(text.contains(line), "{line} is missing from:\n{text}");
    }
    assert!(good("nbdinfo", &["--list", &server.uri()]).contains("export=\"disk\""));
    let default = server.uri().replace("/disk?", "/?");
    assert_eq!(good("nbdinfo", &["--size", &default]).trim(), "67108864");
}

#[test]
fn nbdinfo_maps_data_and_holes() {
    let server = Server::start(MemoryDevice::new(4 * MIB, 512));
    good(
        "nbdsh",
        &["-u", &server.uri(), "-c", "h.pwrite(b'x' * 65536, 1048576)"],
    );
    let map = good("nbdinfo", &["--map", &server.uri()]);
    let words: Vec<Vec<&str>> = map
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(words[0][..3], ["0", "1048576", "3"], "{map}");
    assert_eq!(words[1][..3], ["1048576", "65536", "0"], "{map}");
    assert_eq!(words[2][..3], ["1114112", "3080192", "3"], "{map}");
}

#[test]
fn nbdcopy_copies_in_both_directions() {
    let server = Server::start(MemoryDevice::new(64 * MIB, 512));
    let (from, to) = (server.folder.join("from"), server.folder.join("to"));
    let mut data = noise(64 * MIB as usize);
    data[16 << 20..32 << 20].fill(0);
    std::fs::write(&from, &data).unwrap();
    good(
        "nbdcopy",
        &["--flush", from.to_str().unwrap(), &server.uri()],
    );
    assert!(server.device.content(0, data.len()) == data);
    good("nbdcopy", &[&server.uri(), to.to_str().unwrap()]);
    assert!(std::fs::read(&to).unwrap() == data);
}

#[test]
fn qemu_converts_compares_and_verifies() {
    let server = Server::start(MemoryDevice::new(32 * MIB, 4096));
    let from = server.folder.join("from");
    std::fs::write(&from, noise(32 * MIB as usize)).unwrap();
    let (from, uri) = (from.to_str().unwrap().to_owned(), server.uri());
    good("qemu-img", &["convert", "-n", "-O", "raw", &from, &uri]);
    good(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &from, &uri],
    );
    let text = good(
        "qemu-io",
        &[
            "-f",
            "raw",
            "-c",
            "write -P 7 0 1M",
            "-c",
            "write -z 64k 64k",
            "-c",
            "discard 128k 64k",
            "-c",
            "flush",
            "-c",
            "read -P 7 0 64k",
            "-c",
            "read -P 0 64k 128k",
            "-c",
            "write -f -P 9 100 1000",
            "-c",
            "read -P 9 100 1000",
            &uri,
        ],
    );
    assert!(!text.contains("failed"), "{text}");
    assert!(
        server
            .device
            .content(100, 1000)
            .iter()
            .all(|byte| *byte == 9)
    );
}

#[test]
fn libnbd_supports_every_command_and_error() {
    let server = Server::start(MemoryDevice::new(64 * MIB, 512));
    let script = r#"
import errno
h.set_strict_mode(0)
data = bytes(range(256)) * 16
h.pwrite(data, 8192, nbd.CMD_FLAG_FUA)
assert h.pread(4096, 8192) == data
assert h.pread_structured(4096, 8192, lambda b, o, s, e: None, nbd.CMD_FLAG_DF) == data
big = b'y' * (32 << 20)
h.pwrite(big, 1 << 20)
assert h.pread(32 << 20, 1 << 20) == big
h.zero(4096, 8192, nbd.CMD_FLAG_NO_HOLE)
assert h.pread(4096, 8192) == bytes(4096)
h.zero(4096, 1 << 20, nbd.CMD_FLAG_FAST_ZERO)
h.trim(1 << 20, 2 << 20)
h.cache(1 << 20, 0)
h.flush()
runs = []
h.block_status(4 << 20, 0, lambda c, o, e, err: runs.append((c, o, e)))
assert runs == [('base:allocation', 0, [8192, 3, 4096, 0, 1040384, 3, 1044480, 0, 1048576, 3, 1048576, 0])], runs
runs = []
h.block_status(4 << 20, 0, lambda c, o, e, err: runs.append(e), nbd.CMD_FLAG_REQ_ONE)
assert runs == [[8192, 3]], runs
def refused(code, call):
    try:
        call()
    except nbd.Error as error:
        assert error.errno == errno.errorcode[code], error
    else:
        raise AssertionError('not refused')
refused(errno.EINVAL, lambda: h.pread(512, 64 << 20))
refused(errno.ENOSPC, lambda: h.pwrite(bytes(512), 64 << 20))
refused(errno.EINVAL, lambda: h.pread(512, 100))
refused(errno.EINVAL, lambda: h.pwrite(bytes(100), 0))
assert h.pread(512, 0) == bytes(512)
"#;
    good(
        "nbdsh",
        &["--base-allocation", "-u", &server.uri(), "-c", script],
    );
}

#[test]
fn clients_report_the_connection_limit() {
    let server = Server::start_with(MemoryDevice::new(MIB, 512), &[("max-connections", "1")]);
    let first = Client::transmission(&server, false);
    let image = format!(
        "driver=nbd,server.type=unix,server.path={},export=disk",
        server.socket().display()
    );
    let told = run("qemu-img", &["info", "--image-opts", &image]);
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(text.contains("raise max-connections"), "{text}");
    let told = run("nbdinfo", &[&server.uri()]);
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(text.contains("server replied with error"), "{text}");
    drop(first);
    wait_until("the client has disconnected", || server.sessions() == 0);
    good("nbdinfo", &[&server.uri()]);
}

#[test]
fn write_is_visible_on_another_connection() {
    let server = Server::start(MemoryDevice::new(MIB, 512));
    let script = format!(
        "import nbd\na = nbd.NBD(); b = nbd.NBD()\nfor h in (a, b): h.connect_uri('{}')\n\
         a.pwrite(b'z' * 4096, 4096)\nassert b.pread(4096, 4096) == b'z' * 4096\nb.flush()\n",
        server.uri()
    );
    good("nbdsh", &["-n", "-c", &script]);
    wait_until("both sessions have ended", || server.sessions() == 0);
}

#[test]
fn fio_verifies_over_a_reordering_and_rejecting_device() {
    let server = Server::start(MemoryDevice::new(32 * MIB, 512));
    server.device.backwards();
    server.device.limit(1);
    let uri = format!("--uri={}", server.uri());
    good(
        "fio",
        &[
            "--name=verify",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            "--bsrange=512-256k",
            "--blockalign=512",
            "--iodepth=32",
            "--size=32M",
            "--verify=crc32c",
            "--verify_state_save=0",
            "--fsync=64",
            "--randseed=7",
        ],
    );
    assert!(server.device.given_back() > 0);
}
