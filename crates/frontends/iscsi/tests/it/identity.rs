//! Ownership of sessions: names are not authenticated, so authenticated hosts keep their sessions.

use crate::support::chap::{log_in, with_secrets};
use crate::support::client::Client;
use crate::support::server::Server;

const VICTIM: &str = "iqn.2026-11.test:victim";
const A: (&str, &[u8]) = ("hosta", b"secret-of-a-12345");
const B: (&str, &[u8]) = ("hostb", b"secret-of-b-12345");
/// A's name with another secret.
const C: (&str, &[u8]) = ("hosta", b"secret-of-c-12345");

fn file((name, secret): (&str, &[u8])) -> String {
    format!("name {name}\nsecret {}\n", String::from_utf8_lossy(secret))
}

/// A target whose unit 0 requires A's secret, and unit 1 `second`.
fn target(test: &str, second: (&str, &[u8])) -> (Server, Box<dyn reactor::Export>) {
    let server = with_secrets(test, &file(A), |path| Server::start(&[("chap", path)]));
    let export = with_secrets(test, &file(second), |path| {
        server.second(&[("chap", path)]).0
    });
    (server, export)
}

fn try_log_in(server: &Server, proves: (&str, &[u8])) -> (Client, [u8; 2]) {
    log_in(server, VICTIM, Client::connect(server), proves, "")
}

#[test]
fn session_is_reinstated_only_with_the_same_credentials() {
    for (test, other) in [("reinstated", B), ("same-name", C)] {
        let (server, _second) = target(test, other);
        let (a, status) = try_log_in(&server, A);
        assert_eq!(status, [0, 0]);
        let mut a = a.settle();
        for _ in 0..3 {
            let (mut b, status) = try_log_in(&server, other);
            assert_eq!(status, [2, 2], "{other:?}");
            assert!(b.receive().is_none());
            assert_eq!(a.ready(), 0, "its session continues");
        }
        let (again, status) = try_log_in(&server, A);
        assert_eq!(status, [0, 0]);
        assert!(a.receive().is_none(), "its own login replaces it");
        again.settle();
    }
}

#[test]
fn unauthenticated_host_cannot_end_an_authenticated_session() {
    let server = Server::start(&[]);
    let _second = with_secrets("unproved", &file(A), |path| {
        server.second(&[("chap", path)]).0
    });
    let unproved = || {
        let mut client = Client::connect(&server);
        let names = format!("InitiatorName={VICTIM}\0TargetName={}\0", server.target);
        let answer = client.login(0x87, &names);
        (client, [answer.head[36], answer.head[37]])
    };
    let (mut nobody, status) = unproved();
    assert_eq!(status, [0, 0], "unit 0 requires no secret");
    let (a, status) = try_log_in(&server, A);
    assert_eq!(
        status,
        [0, 0],
        "a host that claims its name does not exclude it"
    );
    assert!(nobody.receive().is_none());
    let mut a = a.settle();
    assert_eq!(unproved().1, [2, 2]);
    assert_eq!(a.ready(), 0);
}

#[test]
fn session_of_a_removed_secret_can_be_reinstated() {
    let mut server = with_secrets("changed", &file(A), |path| Server::start(&[("chap", path)]));
    let _second = server.second(&[]).0;
    let (a, status) = try_log_in(&server, A);
    assert_eq!(status, [0, 0]);
    let mut a = a.settle();
    with_secrets("changed", &file(B), |path| server.change(&[("chap", path)])).unwrap();
    let (_, status) = try_log_in(&server, B);
    assert_eq!(status, [0, 0]);
    while a.receive().is_some() {}
}
