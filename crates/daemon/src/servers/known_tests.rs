//! Servers with valid, invalid and slow responses.

use super::known::Servers;
use crate::state::StateFiles;
use api::v1::{ProblemCode, Server, ServerCreate, ServerState};
use remote::{Address, Bounds, Pin, Trust};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// Response to a request's head on a stream.
type Answers = fn(&str, &mut Stream);

struct Fake {
    url: String,
    pin: String,
    heads: Arc<Mutex<Vec<String>>>,
}

fn serve(answers: Answers) -> Fake {
    let made = rcgen::generate_simple_self_signed(vec!["storage".to_owned()]).unwrap();
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let pin = Pin::of(&certificate).to_string();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heads);
    // The thread ends with the test process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.extend(byte);
            }
            let head = String::from_utf8(head).unwrap();
            noted.lock().unwrap().push(head.clone());
            answers(&head, &mut stream);
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    Fake { url, pin, heads }
}

fn good(head: &str, stream: &mut Stream) {
    let body = match head.split(' ').nth(1).unwrap() {
        "/v1/pools" => {
            r#"{"items":[{"name":"tank","state":"degraded","capacity":10,"used":4,"fills":[]}],"absent":[]}"#
        }
        "/v1/alerts" => r#"{"items":[{"severity":"critical","message":"a leg is out"}]}"#,
        _ => "event: state\ndata: {\"pools\":[],\"jobs\":[]}\n\n",
    };
    let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}");
}

fn request(fake: &Fake) -> ServerCreate {
    ServerCreate {
        name: "storage2".to_owned(),
        url: fake.url.clone(),
        pin: Some(fake.pin.clone()),
        ca: None,
        token: api::Secret::new("convect_0_secret"),
    }
}

/// The only server, after a poll.
fn asked(servers: &Servers) -> Server {
    for _ in 0..6000 {
        let [server] = &servers.list()[..] else {
            panic!("one server");
        };
        if server.state != ServerState::Asking {
            return server.clone();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it was never polled");
}

#[test]
fn server_card_is_shown_without_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Servers::new(&StateFiles::new(folder.path()));
    servers.load();
    let fake = serve(good);
    let made = servers.create(request(&fake)).unwrap();
    assert_eq!(
        (made.state, made.url.as_str()),
        (ServerState::Asking, fake.url.as_str())
    );
    assert!(
        fake.heads.lock().unwrap().is_empty(),
        "no client is interested yet"
    );
    let server = asked(&servers);
    assert_eq!((server.state, server.error), (ServerState::Online, None));
    assert_eq!(
        (server.pools[0].name.as_str(), server.pools[0].used),
        ("tank", 4)
    );
    assert_eq!(
        (server.alerts_open, server.alerts[0].message.as_str()),
        (1, "a leg is out")
    );
    let heads = fake.heads.lock().unwrap().clone();
    let asked_for = ["/v1/pools", "/v1/alerts", "/v1/live?looks=1"];
    for (head, target) in heads.iter().zip(asked_for) {
        assert!(
            head.starts_with(&format!("GET {target} HTTP/1.1\r\n")),
            "{head}"
        );
    }
    assert!(heads.len() >= asked_for.len());
    assert!(
        heads
            .iter()
            .all(|head| head.contains("\r\nauthorization: Bearer convect_0_secret\r\n"))
    );
    let told = serde_json::to_string(&(&made, servers.list())).unwrap();
    assert!(
        told.contains(&fake.pin) && !told.contains("secret"),
        "{told}"
    );
    let path = folder.path().join("servers.json");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let again = Servers::new(&StateFiles::new(folder.path()));
    again.load();
    assert_eq!(asked(&again).pools.len(), 1);
    again.remove("storage2").unwrap();
    assert!(!std::fs::read_to_string(&path).unwrap().contains("secret"));
    let problem = again.remove("storage2").unwrap_err();
    assert_eq!(problem.code, ProblemCode::NotFound);
}

#[test]
fn invalid_responses_make_a_server_unreachable_with_a_reason() {
    let cases: [(Answers, &str); 5] = [
        (
            |_, stream| {
                drop(write!(
                    stream,
                    "HTTP/1.0 302 Found\r\nLocation: https://127.0.0.1:1/\r\n\r\n"
                ))
            },
            "status 302",
        ),
        (
            |_, stream| drop(write!(stream, "HTTP/1.0 401 Unauthorized\r\n\r\n")),
            "rejected the token",
        ),
        (
            |_, stream| drop(write!(stream, "SSH-2.0-x\r\n\r\n")),
            "not a convect daemon",
        ),
        (
            |_, stream| drop(write!(stream, "HTTP/1.0 200 OK\r\n\r\n<html>")),
            "malformed",
        ),
        (|_, _| {}, "not a convect daemon"),
    ];
    for (answers, why) in cases {
        let folder = tempfile::tempdir().unwrap();
        let servers = Servers::new(&StateFiles::new(folder.path()));
        servers.create(request(&serve(answers))).unwrap();
        let server = asked(&servers);
        assert_eq!(server.state, ServerState::Unreachable, "{why}");
        let error = server.error.unwrap();
        assert!(error.contains(why), "{why}: {error}");
        assert!(!error.contains("secret"));
    }
}

#[test]
fn server_with_another_certificate_receives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Servers::new(&StateFiles::new(folder.path()));
    let fake = serve(good);
    let other = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let pin = Some(other.to_owned());
    servers
        .create(ServerCreate {
            pin,
            ..request(&fake)
        })
        .unwrap();
    let server = asked(&servers);
    assert!(server.error.unwrap().contains("is not trusted"));
    let heads = fake.heads.lock().unwrap();
    assert!(heads.iter().all(String::is_empty), "{heads:?}");
}

#[test]
fn endless_response_is_aborted() {
    let slow: Answers = |_, stream| {
        let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let long: Answers = |_, stream| {
        let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n");
        while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
    };
    // The limits are far apart, so that the expected one is hit first even on a busy machine.
    for (answers, bytes, seconds, why) in [
        (slow, 1 << 20, 3, "in time"),
        (long, 1 << 17, 300, "longer than"),
    ] {
        let fake = serve(answers);
        let address = Address::parse(&fake.url).unwrap();
        let trust = Trust::Pin(Pin::parse(&fake.pin).unwrap());
        let server = remote::Server::new(address, &trust, "t".to_owned()).unwrap();
        let time = Duration::from_secs(seconds);
        let bounds = Bounds { bytes, time };
        let error = server.look("/v1/pools", bounds).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn invalid_servers_are_refused_and_their_number_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Servers::new(&StateFiles::new(folder.path()));
    let pin = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let create = |name: &str, url: &str, pin: Option<&str>, ca: Option<&str>, token: &str| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        servers.create(ServerCreate {
            name: name.to_owned(),
            url: url.to_owned(),
            pin: own(pin),
            ca: own(ca),
            token: api::Secret::new(token),
        })
    };
    let url = "https://storage:9443";
    for (url, pin, ca, token) in [
        ("http://storage:9443", Some(pin), None, "t"),
        ("https://storage:9443/x", Some(pin), None, "t"),
        (url, None, None, "t"),
        (url, Some(pin), Some("x"), "t"),
        (url, Some("1"), None, "t"),
        (url, None, Some("no certificate"), "t"),
        (url, Some(pin), None, ""),
        (url, Some(pin), None, "t\r\nX: y"),
    ] {
        let problem = create("a", url, pin, ca, token).unwrap_err();
        assert_eq!(
            problem.code,
            ProblemCode::Invalid,
            "{url} {pin:?} {ca:?} {token}"
        );
    }
    for number in 0..16 {
        create(&format!("s{number}"), url, Some(pin), None, "t").unwrap();
    }
    let code = |name: &str| create(name, url, Some(pin), None, "t").unwrap_err().code;
    assert_eq!(
        (code("s3"), code("more")),
        (ProblemCode::Exists, ProblemCode::TooMany)
    );
}
