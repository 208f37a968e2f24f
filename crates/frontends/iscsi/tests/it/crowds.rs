//! Many connections: idle ones do not exclude others, and are closed.

use crate::support::chap::{challenge, log_in, with_secrets};
use crate::support::client::{Client, is_closed};
use crate::support::connect::connect_from;
use crate::support::server::Server;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

const HOST: &str = "iqn.2026-11.test:host";

/// Raises the descriptor limit to the maximum: a connection takes three here.
fn raise_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls are passed a valid limit.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    limit.rlim_cur
}

#[test]
fn silent_connections_do_not_exclude_other_addresses() {
    if raise_limit() < 8192 {
        println!("too few descriptors for this");
        return;
    }
    let server = Server::start(&[]);
    let portal = server.portal();
    let from = |last: u8| connect_from(Ipv4Addr::new(127, 0, 0, last), portal);
    // All from one address, and then some from many.
    let mut silent: Vec<_> = (0..1100).map(|_| from(1)).collect();
    let mut logged_in = Vec::new();
    for host in 100..104 {
        logged_in.push(Client::log_in_over(
            from(host),
            &server.target,
            &format!("{HOST}{host}"),
        ));
    }
    for attacker in 2..60 {
        silent.extend((0..20).map(|_| from(attacker)));
    }
    for host in 104..110 {
        logged_in.push(Client::log_in_over(
            from(host),
            &server.target,
            &format!("{HOST}{host}"),
        ));
    }
    assert_eq!(server.sessions(), logged_in.len());
    let logged_in: Vec<_> = logged_in.into_iter().map(Client::settle).collect();
    drop((silent, logged_in));
}

#[test]
fn silent_logins_time_out() {
    let server = Server::start(&[]);
    let silent = TcpStream::connect(server.portal()).unwrap();
    let mut half = Client::connect(&server);
    let names = format!("InitiatorName={HOST}\0TargetName={}\0", server.target);
    // It is asked for more, and sends none.
    let answer = half.login(0x04, &names);
    assert_eq!(answer.head[36], 0);
    assert!(is_closed(&silent, Duration::from_secs(60)));
    assert!(is_closed(&half.stream, Duration::from_secs(60)));
}

#[test]
fn failed_proofs_are_delayed_without_delaying_others() {
    let secret: &[u8] = b"0123456789abcdef";
    let text = "name slowed\nsecret 0123456789abcdef\n";
    let server = with_secrets("slowed", text, |path| Server::start(&[("chap", path)]));
    let (portal, target) = (server.portal(), &*server.target);
    let from = |last: u8| Client::over(connect_from(Ipv4Addr::new(127, 0, 3, last), portal));
    let prove =
        |client: Client, secret: &[u8]| log_in(&server, HOST, client, ("slowed", secret), "");
    let (own, status) = prove(from(1), secret);
    assert_eq!(status, [0, 0]);
    // A stranger guesses on many connections in parallel.
    let guesses = std::thread::scope(|scope| {
        let wrong = |_| {
            let guess = move || {
                let (mut client, _, _) = challenge(target, HOST, from(2));
                let proof = "CHAP_N=slowed\0CHAP_R=0x00\0";
                let answer = client.login(0x81, proof);
                [answer.head[36], answer.head[37]]
            };
            scope.spawn(guess)
        };
        let started: Vec<_> = (0..40).map(wrong).collect();
        // The real host logs in meanwhile, and also from an address that has proved nothing.
        for last in [1, 3] {
            let (client, status) = prove(from(last), secret);
            assert_eq!(status, [0, 0], "{last}");
            drop(client);
        }
        let ended = started.into_iter().map(|guess| guess.join().unwrap());
        ended.collect::<Vec<_>>()
    });
    let looked_at = guesses.iter().filter(|status| **status == [2, 1]).count();
    let put_off = guesses.iter().filter(|status| **status == [3, 1]).count();
    assert_eq!(looked_at + put_off, 40);
    assert!(put_off > 0 && looked_at >= 5, "{looked_at} of 40");
    drop(own);
}
