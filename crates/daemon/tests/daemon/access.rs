//! Access control: Unix socket, TLS, tokens and roles, and the audit log.

use crate::common::{FRONT_ENDS, Fake, World, free_port};
use api::{Least, Method, ROUTES};
use daemon::{Config, Control, run};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// Enough time for any response.
const PATIENCE: Duration = Duration::from_secs(300);
const ROLES: [&str; 3] = ["viewer", "operator", "admin"];

type Tls = StreamOwned<ClientConnection, TcpStream>;

struct Answer {
    status: u16,
    head: String,
    body: Value,
}

/// A daemon with a network port whose certificate is trusted.
struct Site {
    folder: TempDir,
    at: SocketAddr,
    client: Arc<ClientConfig>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn parse(answer: &[u8]) -> Answer {
    let answer = String::from_utf8_lossy(answer);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    }
}

impl Site {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_in(folder)
    }

    fn start_in(folder: TempDir) -> Self {
        let at = free_port();
        let config = Config {
            socket: folder.path().join("c.sock"),
            state_dir: folder.path().join("state"),
            listen: Some(at),
            ..Config::default()
        };
        let control: Arc<dyn Control> = Fake::over(&Arc::new(World::default()));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, announced) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let announce = || ready.send(()).unwrap();
            let stop = async {
                let _ = stopped.await;
            };
            run(&config, || Ok(control), FRONT_ENDS, announce, stop).unwrap();
        });
        announced.recv_timeout(PATIENCE).unwrap();
        let mut roots = RootCertStore::empty();
        let made = folder.path().join("state/certificate.pem");
        roots
            .add(CertificateDer::from_pem_file(made).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            folder,
            at,
            client: Arc::new(client),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn finish(mut self) -> TempDir {
        let _ = self.stop.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }

    fn origin(&self) -> String {
        format!("https://{}", self.at)
    }

    fn connect(&self) -> Tls {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        StreamOwned::new(
            ClientConnection::new(Arc::clone(&self.client), name).unwrap(),
            stream,
        )
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.at,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        format!("{request}\r\n{body}").into_bytes()
    }

    /// Sends a request over TLS, and reads the whole response, or the head of an endless one.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = self.connect();
        stream
            .write_all(&self.request(method, path, headers, body))
            .unwrap();
        let mut answer = Vec::new();
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut part) {
            answer.extend_from_slice(&part[..length]);
            let text = String::from_utf8_lossy(&answer);
            if text.contains("text/event-stream") && text.contains("\r\n\r\n") {
                break;
            }
        }
        parse(&answer)
    }

    fn with_token(&self, method: &str, path: &str, token: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        self.ask(method, path, &[("Authorization", &bearer)], body)
    }

    fn by_socket(&self, method: &str, path: &str, body: &Value) -> Answer {
        let mut stream = UnixStream::connect(self.folder.path().join("c.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        stream
            .write_all(&self.request(method, path, &[], &body))
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        parse(&answer)
    }

    /// A new token with a role, created by a local administrator.
    fn token(&self, name: &str, role: &str) -> String {
        let made = self.by_socket("POST", "/v1/tokens", &json!({"name": name, "role": role}));
        assert_eq!(made.status, 201, "{}", made.body);
        made.body["secret"].as_str().unwrap().to_owned()
    }

    /// A session: its cookie, and the CSRF token of changes.
    fn log_in(&self, token: &str) -> (String, String) {
        let body = json!({"token": token}).to_string();
        let begun = self.ask("POST", "/v1/login", &[("Origin", &self.origin())], &body);
        assert_eq!(begun.status, 201, "{}", begun.body);
        let line = begun
            .head
            .lines()
            .find(|line| line.starts_with("set-cookie: "))
            .unwrap();
        for word in [
            "__Host-convect-",
            "Secure",
            "HttpOnly",
            "SameSite=Strict",
            "Path=/",
        ] {
            assert!(line.contains(word), "{line}");
        }
        let cookie = line["set-cookie: ".len()..].split(';').next().unwrap();
        (
            cookie.to_owned(),
            begun.body["csrf"].as_str().unwrap().to_owned(),
        )
    }

    fn audit(&self) -> Vec<Value> {
        let list = self
            .by_socket("GET", "/v1/audit?limit=1000", &Value::Null)
            .body;
        assert_eq!(list["broken_at"], Value::Null);
        list["items"].as_array().unwrap().clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

fn path_of(route: &api::Route) -> String {
    let segments = route
        .path
        .split('/')
        .map(|segment| match segment.starts_with('{') {
            true => "1",
            false => segment,
        });
    segments.collect::<Vec<_>>().join("/")
}

#[test]
fn operations_require_their_role() {
    let site = Site::start();
    let tokens = ROLES.map(|role| site.token(role, role));
    let callers = [None, Some(0), Some(1), Some(2)];
    for route in ROUTES {
        let least = match route.least {
            Least::Anyone => None,
            Least::Viewer => Some(0),
            Least::Operator => Some(1),
            Least::Admin => Some(2),
        };
        for caller in callers {
            let (method, path) = (route.method.as_str(), path_of(route));
            let body = if route.has_request() { "{}" } else { "" };
            let answer = match caller {
                None => site.ask(method, &path, &[], body),
                Some(role) => site.with_token(method, &path, &tokens[role], body),
            };
            let wanted = match caller {
                _ if caller >= least => None,
                None => Some(401),
                Some(_) => Some(403),
            };
            let refused = Some(answer.status).filter(|status| [401, 403].contains(status));
            let who = caller.map_or("nobody", |role| ROLES[role]);
            assert_eq!(refused, wanted, "{who}: {method} {path}: {}", answer.body);
        }
    }
}

#[test]
fn changes_require_more_than_the_viewer_role() {
    for route in ROUTES {
        let looks = route.method == Method::Get;
        let own_login = route.path == "/v1/login";
        assert!(
            looks || own_login || matches!(route.least, Least::Operator | Least::Admin),
            "{} {}",
            route.method.as_str(),
            route.path
        );
    }
}

#[test]
fn without_token_only_the_page_is_served() {
    let site = Site::start();
    for (method, path) in [
        ("GET", "/metrics"),
        ("GET", "/v1"),
        ("GET", "/nowhere"),
        ("DELETE", "/v1/version"),
        ("GET", "/assets/../v1/pools"),
    ] {
        let answer = site.ask(method, path, &[], "");
        assert_eq!(answer.status, 401, "{method} {path}: {}", answer.body);
    }
    for path in ["/", "/assets/page.js", "/assets/page.css", "/icon.svg"] {
        let answer = site.ask("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}");
        for line in [
            "content-security-policy: default-src 'none';",
            "x-frame-options: DENY",
        ] {
            assert!(answer.head.contains(line), "{path}: {}", answer.head);
        }
    }
    let token = site.token("ci", "viewer");
    assert_eq!(site.with_token("GET", "/nowhere", &token, "").status, 404);
    assert_eq!(
        site.with_token("DELETE", "/v1/version", &token, "").status,
        405
    );
    assert_eq!(site.with_token("GET", "/metrics", &token, "").status, 200);
}

#[test]
fn session_changes_require_same_origin() {
    let site = Site::start();
    let (cookie, csrf) = site.log_in(&site.token("me", "admin"));
    let own = site.origin();
    let shown = site.ask("GET", "/v1/login", &[("Cookie", &cookie)], "");
    assert_eq!((shown.status, &shown.body["csrf"]), (200, &json!(csrf)));
    let change = |headers: &[(&str, &str)]| {
        let headers = [&[("Cookie", cookie.as_str())], headers].concat();
        site.ask("DELETE", "/v1/tokens/none", &headers, "").status
    };
    for (headers, status) in [
        (
            vec![("Origin", own.as_str()), ("X-Convect-CSRF", &csrf)],
            404,
        ),
        (vec![("Origin", own.as_str())], 403),
        (vec![("Origin", own.as_str()), ("X-Convect-CSRF", "")], 403),
        (
            vec![("Origin", own.as_str()), ("X-Convect-CSRF", &csrf[1..])],
            403,
        ),
        (vec![("X-Convect-CSRF", csrf.as_str())], 403),
        (vec![("Origin", "null"), ("X-Convect-CSRF", &csrf)], 403),
        (
            vec![
                ("Origin", "https://evil.example"),
                ("X-Convect-CSRF", &csrf),
            ],
            403,
        ),
        (
            vec![("Origin", "https://127.0.0.1"), ("X-Convect-CSRF", &csrf)],
            403,
        ),
    ] {
        assert_eq!(change(&headers), status, "{headers:?}");
    }
    let body = json!({"token": site.token("you", "viewer")}).to_string();
    let evil = [("Origin", "https://evil.example")];
    assert_eq!(site.ask("POST", "/v1/login", &evil, &body).status, 403);
    let long = json!({"token": "x".repeat(20_000)}).to_string();
    let long = site.ask("POST", "/v1/login", &[("Origin", &own)], &long);
    assert_eq!(long.status, 413, "limit of unauthenticated callers");
    let good = [
        ("Cookie", cookie.as_str()),
        ("Origin", &own),
        ("X-Convect-CSRF", &csrf),
    ];
    let ended = site.ask("DELETE", "/v1/login", &good, "");
    assert!(
        ended.status == 204 && ended.head.contains("Max-Age=0"),
        "{}",
        ended.head
    );
    assert_eq!(site.ask("GET", "/v1/login", &good[..1], "").status, 401);
}

#[test]
fn guessing_is_limited_and_valid_tokens_still_work() {
    let site = Site::start();
    let token = site.token("ci", "viewer");
    let (cookie, _) = site.log_in(&token);
    let guess = json!({"token": format!("{token}x")}).to_string();
    for _ in 0..5 {
        assert_eq!(site.ask("POST", "/v1/login", &[], &guess).status, 401);
        assert_eq!(site.with_token("GET", "/v1/pools", "guess", "").status, 401);
    }
    assert_eq!(site.ask("POST", "/v1/login", &[], &guess).status, 429);
    assert_eq!(site.with_token("GET", "/v1/pools", "guess", "").status, 429);
    assert_eq!(site.with_token("GET", "/v1/pools", &token, "").status, 200);
    assert_eq!(
        site.ask("GET", "/v1/pools", &[("Cookie", &cookie)], "")
            .status,
        200
    );
}

#[test]
fn valid_token_logs_in_from_an_attackers_address() {
    let site = Site::start();
    let token = site.token("ci", "viewer");
    for _ in 0..12 {
        site.with_token("GET", "/v1/pools", "guess", "");
    }
    assert_eq!(site.with_token("GET", "/v1/pools", "guess", "").status, 429);
    site.log_in(&token);
}

#[test]
fn silent_connections_do_not_exclude_others() {
    let site = Site::start();
    let token = site.token("ci", "viewer");
    let silent: Vec<TcpStream> = (0..120)
        .map(|_| TcpStream::connect(site.at).unwrap())
        .collect();
    assert_eq!(site.with_token("GET", "/v1/pools", &token, "").status, 200);
    let local: Vec<UnixStream> = (0..80)
        .map(|_| UnixStream::connect(site.folder.path().join("c.sock")).unwrap())
        .collect();
    let answered = site.by_socket("GET", "/v1/pools", &Value::Null);
    assert_eq!(answered.status, 200);
    drop((silent, local));
}

#[test]
fn remote_callers_name_only_permitted_paths() {
    let site = Site::start();
    assert_eq!(
        site.by_socket("POST", "/v1/pools", &crate::http::pool())
            .status,
        201
    );
    let volume = json!({"pool": "tank", "name": "v", "size": 1 << 20});
    assert_eq!(site.by_socket("POST", "/v1/volumes", &volume).status, 201);
    let export = |name: &str, at: &str| json!({"name": name, "pool": "tank", "volume": "v", "kind": "pipe", "parameters": {"listen": at}});
    let elsewhere = site.folder.path().join("elsewhere").display().to_string();
    for role in ["operator", "admin"] {
        let token = site.token(role, role);
        let refused = export("e", &elsewhere).to_string();
        let refused = site.with_token("POST", "/v1/exports", &token, &refused);
        assert_eq!(refused.status, 403, "{}", refused.body);
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains("remote_paths.secrets"), "{message}");
        let word = format!("word-{role}");
        let made = export(role, &word).to_string();
        let made = site.with_token("POST", "/v1/exports", &token, &made);
        assert_eq!(made.status, 201, "{}", made.body);
        let change = json!({"parameters": {"queues": elsewhere}}).to_string();
        let path = format!("/v1/exports/{role}/parameters");
        assert_eq!(site.with_token("PUT", &path, &token, &change).status, 403);
    }
    let by_root = site.by_socket("POST", "/v1/exports", &export("e", &elsewhere));
    assert_eq!(by_root.status, 201, "{}", by_root.body);
}

#[test]
fn revoked_token_ends_its_sessions_and_streams() {
    let site = Site::start();
    let token = site.token("ci", "viewer");
    let (cookie, _) = site.log_in(&token);
    let mut stream = site.connect();
    let live = site.request("GET", "/v1/live", &[("Cookie", &cookie)], "");
    stream.write_all(&live).unwrap();
    let mut part = [0; 4096];
    assert!(stream.read(&mut part).unwrap() > 0);
    assert_eq!(
        site.by_socket("DELETE", "/v1/tokens/ci", &Value::Null)
            .status,
        204
    );
    // Updates sent before, then the end.
    let told = (0..20).take_while(|_| matches!(stream.read(&mut part), Ok(1..)));
    assert!(told.count() < 20, "the stream continues");
    assert_eq!(
        site.ask("GET", "/v1/pools", &[("Cookie", &cookie)], "")
            .status,
        401
    );
    assert_eq!(site.with_token("GET", "/v1/pools", &token, "").status, 401);
}

#[test]
fn tokens_and_audit_log_survive_restart_and_sessions_do_not() {
    let site = Site::start();
    let token = site.token("ci", "viewer");
    let (cookie, _) = site.log_in(&token);
    let before = site.audit();
    let site = Site::start_in(site.finish());
    assert_eq!(site.with_token("GET", "/v1/pools", &token, "").status, 200);
    assert_eq!(
        site.ask("GET", "/v1/pools", &[("Cookie", &cookie)], "")
            .status,
        401
    );
    assert_eq!(site.audit(), before);
    let kept = std::fs::read_to_string(site.folder.path().join("state/tokens.json")).unwrap();
    assert!(kept.contains("\"ci\"") && !kept.contains(&token), "{kept}");
}

#[test]
fn changes_are_audited_before_and_after_and_queries_are_not() {
    let site = Site::start();
    let token = site.token("ci", "admin");
    site.with_token("GET", "/v1/pools", &token, "");
    site.with_token("DELETE", "/v1/pools/none", &token, "");
    site.log_in(&token);
    site.ask("POST", "/v1/login", &[], r#"{"token":"guess"}"#);
    let mut entries = site.audit();
    entries.reverse();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap();
            let outcome: String = text("outcome").chars().take(16).collect();
            (text("who"), text("operation"), text("subject"), outcome)
        })
        .collect();
    let uid = format!(
        "uid {}",
        std::fs::metadata("/proc/self")
            .map(|meta| { std::os::unix::fs::MetadataExt::uid(&meta) })
            .unwrap()
    );
    let uid = uid.as_str();
    let expected = [
        (uid, "TokenCreate", "name=ci role=admin", "asked"),
        (uid, "TokenCreate", "", "done"),
        ("ci", "PoolDestroy", "pool=none", "asked"),
        ("ci", "PoolDestroy", "", "there is no pool"),
        ("nobody", "LogIn", "", "asked"),
        ("ci", "LogIn", "", "done"),
        ("nobody", "LogIn", "", "asked"),
        ("nobody", "LogIn", "", "invalid or revok"),
    ];
    let expected = expected.map(|(who, what, of, outcome)| (who, what, of, outcome.to_owned()));
    assert_eq!(told, expected);
}

#[test]
fn viewers_receive_full_state_then_changes_and_are_bounded() {
    let site = Site::start();
    let token = site.token("ci", "viewer");
    assert_eq!(
        site.by_socket("POST", "/v1/pools", &crate::http::pool())
            .status,
        201
    );
    let volume = json!({"pool": "tank", "name": "v", "size": 1 << 20});
    assert_eq!(site.by_socket("POST", "/v1/volumes", &volume).status, 201);
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let watch = |path: &str| {
        let mut stream = site.connect();
        stream
            .write_all(&site.request("GET", path, &headers, ""))
            .unwrap();
        stream
    };
    let read_until = |stream: &mut Tls, count: usize| {
        let mut text = String::new();
        let mut part = [0; 4096];
        while text.matches("event: state").count() < count || !text.ends_with("\n\n\r\n") {
            let length = stream.read(&mut part).unwrap();
            assert!(length > 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&part[..length]));
        }
        text
    };
    let mut first = watch("/v1/live?maps=tank/v,tank/none&cells=8");
    let text = read_until(&mut first, 2);
    let data: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    assert_eq!(data.len(), 3, "{text}");
    assert_eq!(
        (&data[0]["whole"], &data[0]["pools"][0]["name"]),
        (&json!(true), &json!("tank"))
    );
    assert_eq!(data[1]["all"], json!("00000000000000000000000000000000"));
    assert_eq!(
        (&data[2]["whole"], &data[2]["pools"]),
        (&json!(false), &json!([]))
    );
    let mut others: Vec<Tls> = (1..16).map(|_| watch("/v1/live")).collect();
    for stream in &mut others {
        read_until(stream, 1);
    }
    assert_eq!(site.ask("GET", "/v1/live", &headers, "").status, 429);
    let another = site.token("another", "viewer");
    let looked = site.with_token("GET", "/v1/live?looks=1", &another, "");
    assert_eq!(looked.status, 200, "one caller uses all streams");
    drop(others);
    let again = || site.ask("GET", "/v1/live", &headers, "").status;
    // Disconnected viewers are noticed with the next event.
    let mut status = again();
    for _ in 0..1200 {
        if status != 429 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        status = again();
    }
    assert_eq!(status, 200);
    for path in [
        "/v1/live?maps=tank",
        "/v1/live?cells=4097",
        "/v1/live?map=tank/v",
    ] {
        assert_eq!(site.ask("GET", path, &headers, "").status, 422, "{path}");
    }
}

#[test]
fn sessions_of_two_daemons_on_one_host_are_independent() {
    let sites = [Site::start(), Site::start()];
    let tokens = sites.each_ref().map(|site| site.token("me", "viewer"));
    let [(one, _), (other, _)] = [0, 1].map(|at| sites[at].log_in(&tokens[at]));
    let name = |cookie: &str| cookie.split('=').next().unwrap().to_owned();
    assert_ne!(name(&one), name(&other), "a browser would keep one of both");
    // Send both cookies to each.
    let both = format!("{one}; {other}");
    for site in &sites {
        let answer = site.ask("GET", "/v1/version", &[("Cookie", &both)], "");
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    // The name is stable across restarts.
    let [site, _] = sites;
    let site = Site::start_in(site.finish());
    let (again, _) = site.log_in(&site.token("again", "viewer"));
    assert_eq!(name(&one), name(&again));
}
