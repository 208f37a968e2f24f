//! TLS with common clients, and with misbehaving peers.

use crate::clients::{good, noise, run};
use crate::support::certificates::Certificates;
use crate::support::client::Client;
use crate::support::memory_device::MemoryDevice;
use crate::support::server::{Server, wait_until};

const MIB: u64 = 1 << 20;
const ERR_INVALID: u32 = 0x8000_0003;
const ERR_TLS_REQD: u32 = 0x8000_0005;

struct Secured {
    server: Server,
    certificates: Certificates,
}

impl Secured {
    /// An export with TLS, with these parameters besides the server's certificate.
    fn start(parameters: &[(&str, &str)]) -> Self {
        let mut server = Server::start(MemoryDevice::new(64 * MIB, 512));
        let certificates = Certificates::make(&server.folder);
        let listen = format!("unix:{}", server.socket().display());
        let files = ["server-cert.pem", "server-key.pem", "ca-cert.pem"];
        let [certificate, key, ca] = files.map(|name| certificates.path(name));
        let mut all = vec![
            ("listen", &*listen),
            ("tls-certificate", &certificate),
            ("tls-key", &key),
        ];
        all.extend(parameters);
        for (name, value) in &mut all {
            if *name == "tls-client-ca" {
                *value = &ca;
            }
        }
        server.export = None;
        server.export = Some(server.try_export(&all).unwrap());
        Self {
            server,
            certificates,
        }
    }

    fn uri(&self, client: &str) -> String {
        format!(
            "nbds+unix:///disk?socket={}&tls-certificates={}",
            self.server.socket().display(),
            self.certificates.path(client)
        )
    }

    fn qemu(&self, client: &str, arguments: &[&str]) -> std::process::Output {
        let object = format!(
            "tls-creds-x509,id=tls,endpoint=client,dir={}",
            self.certificates.path(client)
        );
        let image = format!(
            "driver=nbd,server.type=unix,server.path={},export=disk,tls-creds=tls,tls-hostname=localhost",
            self.server.socket().display()
        );
        let mut all = vec![arguments[0], "--object", &object, "--image-opts"];
        all.extend(&arguments[1..]);
        all.push(&image);
        run("qemu-img", &all)
    }
}

#[test]
fn libnbd_copies_over_tls() {
    let secured = Secured::start(&[]);
    let text = good("nbdinfo", &[&secured.uri("without")]);
    assert!(text.contains("protocol: newstyle-fixed with TLS"), "{text}");
    let data = noise(24 << 20);
    let [from, to] = ["from", "to"].map(|name| secured.server.folder.join(name));
    std::fs::write(&from, &data).unwrap();
    let [from, to] = [from, to].map(|path| path.display().to_string());
    good("nbdcopy", &[&from, &secured.uri("without")]);
    assert!(secured.server.device.content(0, data.len()) == data);
    good("nbdcopy", &[&secured.uri("without"), &to]);
    let read = std::fs::read(&to).unwrap();
    assert!(read[..data.len()] == data && read.len() as u64 == 64 * MIB);
    wait_until("all sessions have ended", || secured.server.sessions() == 0);
}

#[test]
fn qemu_reads_and_compares_over_tls() {
    let secured = Secured::start(&[("tls-client-ca", "")]);
    let output = secured.qemu("known", &["info"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("virtual size: 64 MiB"), "{output:?}");
    assert!(!secured.qemu("foreign", &["info"]).status.success());
}

#[test]
fn client_requires_a_certificate_of_the_ca() {
    let secured = Secured::start(&[("tls-client-ca", "")]);
    good("nbdinfo", &[&secured.uri("known")]);
    for client in ["foreign", "without"] {
        let output = run("nbdinfo", &[&secured.uri(client)]);
        assert!(!output.status.success(), "{client}");
        assert!(output.stdout.is_empty(), "{client}");
    }
    good("nbdinfo", &[&secured.uri("known")]);
}

#[test]
fn commands_and_long_requests_work_over_tls() {
    let secured = Secured::start(&[]);
    let script = "
data = bytes(range(256)) * 65536
h.pwrite(data, 512)
h.pwrite(data[:512], 40 << 20, nbd.CMD_FLAG_FUA)
cookies = [h.aio_pread(nbd.Buffer(len(data)), 512) for _ in range(8)]
assert h.pread(len(data), 512) == data
while h.aio_in_flight() > 0: h.poll(-1)
assert h.pread(512, 40 << 20) == data[:512]
h.zero(4096, 0)
h.trim(1 << 20, 1 << 20)
h.flush()
runs = []
h.block_status(4096, 0, lambda c, o, e, err: runs.append((c, o, e)))
assert runs == [('base:allocation', 0, [4096, 3])], runs
";
    let connect = format!(
        "import nbd\nh = nbd.NBD()\nh.set_uri_allow_local_file(True)\n\
         h.add_meta_context('base:allocation')\nh.connect_uri('{}')\n",
        secured.uri("without")
    );
    good("nbdsh", &["-n", "-c", &(connect + script)]);
}

#[test]
fn required_tls_refuses_plain_clients() {
    let secured = Secured::start(&[]);
    let mut client = Client::connect(&secured.server);
    client.send(&3u32.to_be_bytes());
    for option in [3, 6, 7, 8, 9, 10, 77] {
        client.option(option, &[0; 6]);
        assert_eq!(client.option_reply().1, ERR_TLS_REQD, "{option}");
    }
    client.option(5, &[1]);
    assert_eq!(client.option_reply().1, ERR_INVALID);
    let mut old = Client::connect(&secured.server);
    old.send(&3u32.to_be_bytes());
    old.option(1, b"disk");
    old.expect_end();
    client.option(2, &[]);
    assert_eq!(client.option_reply(), (2, 1, vec![]));
    client.expect_end();
    let plain = run("nbdinfo", &[&secured.server.uri()]);
    let text = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(
        !plain.status.success() && !text.contains("export-size"),
        "{plain:?}"
    );
}

#[test]
fn optional_tls_serves_both() {
    let secured = Secured::start(&[("tls", "optional")]);
    let text = good("nbdinfo", &[&secured.server.uri()]);
    assert!(text.contains("without TLS"), "{text}");
    let text = good("nbdinfo", &[&secured.uri("without")]);
    assert!(text.contains("with TLS"), "{text}");
}

#[test]
fn data_before_starttls_is_rejected() {
    let secured = Secured::start(&[("tls", "optional")]);
    let mut client = Client::connect(&secured.server);
    let go = [
        &b"IHAVEOPT"[..],
        &7u32.to_be_bytes(),
        &6u32.to_be_bytes(),
        &[0; 6],
    ]
    .concat();
    let start = [
        &3u32.to_be_bytes()[..],
        b"IHAVEOPT",
        &5u32.to_be_bytes(),
        &[0; 4],
        &go,
    ]
    .concat();
    client.send(&start);
    client.expect_end();
}

#[test]
fn tls_violation_ends_only_its_connection() {
    let secured = Secured::start(&[]);
    for bytes in [&[0; 64][..], &[0xff; 70_000], b"\x16\x03\x01\xff\xff", b""] {
        let mut client = Client::connect(&secured.server);
        client.send(&3u32.to_be_bytes());
        client.option(5, &[]);
        assert_eq!(client.option_reply(), (5, 1, vec![]));
        use std::io::Write;
        // The connection may be closed before all of them are sent.
        let _ = client.stream.write_all(bytes);
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        client.expect_end();
    }
    good("nbdinfo", &[&secured.uri("without")]);
}

#[test]
fn unusable_files_are_refused_with_advice() {
    let server = Server::start(MemoryDevice::new(MIB, 512));
    let certificates = Certificates::make(&server.folder);
    let path = |name: &str| certificates.path(name);
    let public = path("server-key.pem") + ".public";
    std::fs::copy(path("server-key.pem"), &public).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&public, std::fs::Permissions::from_mode(0o644)).unwrap();
    let fifo = path("fifo");
    good("mkfifo", &[&fifo]);
    let (certificate, key) = (path("server-cert.pem"), path("server-key.pem"));
    for (certificate, key, ca, part) in [
        (&certificate, &public, None, "chmod 600"),
        (&certificate, &path("nothing"), None, "No such file"),
        (&fifo, &key, None, "not a regular file"),
        (&certificate, &fifo, None, "not a regular file"),
        (&key, &key, None, "no certificate"),
        (&certificate, &path("known/client-key.pem"), None, "tls-key"),
        (&certificate, &key, Some(&fifo), "not a regular file"),
        (&certificate, &key, Some(&key), "no certificate"),
    ] {
        let listen = format!("unix:{}", path("other.sock"));
        let mut all = vec![
            ("listen", &*listen),
            ("tls-certificate", certificate),
            ("tls-key", key),
        ];
        all.extend(ca.map(|ca| ("tls-client-ca", &**ca)));
        let error = server.try_export(&all).err().expect("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn certificates_and_limits_change_for_new_connections() {
    let secured = Secured::start(&[]);
    let export = secured.server.export.as_ref().unwrap();
    let listen = format!("unix:{}", secured.server.socket().display());
    let renewed = Certificates::make(&secured.server.folder.join("renewed"));
    let change = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        export.change(&pairs.collect())
    };
    let [certificate, key] = ["server-cert.pem", "server-key.pem"].map(|name| renewed.path(name));
    let all = [
        ("listen", &*listen),
        ("tls-certificate", &certificate),
        ("tls-key", &key),
        ("max-connections", "1"),
    ];
    let is_trusted = |client: &str| secured.qemu(client, &["info"]).status.success();
    assert!(is_trusted("without") && !is_trusted("renewed/without"));
    change(&all).unwrap();
    assert!(!is_trusted("without") && is_trusted("renewed/without"));
    change(&all[..1]).unwrap();
    let plain = secured.server.uri();
    good("nbdinfo", &["--size", &plain]);
    let other = [("listen", "unix:/other")];
    assert!(change(&other).is_err() && change(&[]).is_err());
    good("nbdinfo", &["--size", &plain]);
}
