//! Listeners under silent, slow or very many connections.

use crate::common::{World, free_port};
use crate::http::{Daemon, PATIENCE};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

const SCRAPE: &[u8] = b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n";

/// Threads of this process, including daemons of other tests.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0; 1 << 16]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn scrape(mut stream: impl Read + Write) -> std::io::Result<bool> {
    stream.write_all(SCRAPE)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.contains("convect_build_info"))
}

fn scrape_by_tcp(at: SocketAddr) -> bool {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    scrape(stream).unwrap()
}

#[test]
fn abandoned_scrapes_are_not_rendered_and_use_no_threads() {
    const ASKED: usize = 400;
    let world: Arc<World> = Arc::default();
    let at = free_port();
    let _daemon = Daemon::start_with(&world, |config| config.metrics = Some(at));
    let gate = world.gate.lock().unwrap();
    let before = (threads(), world.looks.load(Ordering::Relaxed));
    let mut most = before.0;
    let readers: Vec<TcpStream> = (0..ASKED)
        .map(|_| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(SCRAPE).unwrap();
            most = most.max(threads());
            stream
        })
        .collect();
    wait_until("older ones end for newer ones of their address", || {
        most = most.max(threads());
        readers.iter().filter(|reader| is_closed(reader)).count() >= ASKED - 8
    });
    assert!(most < before.0 + 100, "{most} threads, {} before", before.0);
    drop(gate);
    assert!(scrape_by_tcp(at));
    drop(readers);
    assert!(scrape_by_tcp(at));
    let looks = world.looks.load(Ordering::Relaxed) - before.1;
    assert!(
        looks < ASKED / 2,
        "{looks} looks for {ASKED} scrapes, of which few had a reader"
    );
}

/// Holds very many silent connections, and replaces those that are closed.
fn hold_silent(path: &Path, over: &AtomicBool) {
    let mut held: Vec<UnixStream> = Vec::new();
    while !over.load(Ordering::Relaxed) {
        while held.len() < 1000 && !over.load(Ordering::Relaxed) {
            held.push(UnixStream::connect(path).unwrap());
        }
        held.retain(|mut stream| {
            stream.set_nonblocking(true).unwrap();
            matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
        });
    }
}

/// Whether a connection gets its response, without being closed before its request is complete.
fn comes_in(path: &Path) -> bool {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    scrape(stream).unwrap_or(false)
}

#[test]
fn newcomers_of_a_user_connect_beside_many_silent_connections() {
    const NEWCOMERS: usize = 20;
    /// Attempts of one newcomer: on a busy machine it may stall between connection and request for
    /// longer than the grace period.
    const TRIES: usize = 50;
    let daemon = Daemon::start(&Arc::default());
    let (path, over) = (daemon.socket(), AtomicBool::new(false));
    let came_in = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| hold_silent(&path, &over));
        }
        let came_in = (0..NEWCOMERS).take_while(|_| (0..TRIES).any(|_| comes_in(&path)));
        let came_in = came_in.count();
        over.store(true, Ordering::Relaxed);
        came_in
    });
    assert_eq!(came_in, NEWCOMERS);
}

#[test]
fn user_at_its_limit_is_refused_more_and_all_are_answered() {
    /// Connections of one user, beyond the limit.
    const CONNECTIONS: usize = 48;
    const MORE: usize = 12;
    let world: Arc<World> = Arc::default();
    let daemon = Daemon::start(&world);
    let gate = world.gate.lock().unwrap();
    let (tell, told) = mpsc::channel();
    for _ in 0..CONNECTIONS + MORE {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(SCRAPE).unwrap();
        let tell = tell.clone();
        std::thread::spawn(move || {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let _ = tell.send(answer);
        });
    }
    for _ in 0..MORE {
        let refused = told.recv_timeout(PATIENCE).unwrap();
        assert!(refused.starts_with("HTTP/1.0 429"), "{refused}");
        assert!(refused.contains("too_many"), "{refused}");
    }
    drop(gate);
    for _ in 0..CONNECTIONS {
        let answer = told.recv_timeout(PATIENCE).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    }
    assert_eq!(daemon.ask("GET", "/v1/version", Value::Null).0, 200);
}
