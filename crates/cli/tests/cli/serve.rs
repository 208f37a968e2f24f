//! The program as a daemon: the real engine and protocols, and a clean shutdown.

use crate::scripted::{Ended, command, convect};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Enough time for a daemon to stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A daemon with all of its files in `folder`.
struct Daemon<'a> {
    folder: &'a Path,
    process: Child,
}

impl<'a> Daemon<'a> {
    fn start(folder: &'a Path) -> Self {
        let at = folder.display();
        let config = folder.join("convect.toml");
        let text = format!(
            "socket = '{at}/s'\nstate_dir = '{at}/state'\nthreads = 1\nram_tier = '16M'\n\
             map_cache = '16M'\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut process = command(&format!("serve --config {}", config.display()))
            .env("NOTIFY_SOCKET", folder.join("notify"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = process.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { folder, process }
    }

    fn convect(&self, arguments: &str) -> Ended {
        convect(&format!("--socket {}/s {arguments}", self.folder.display()))
    }

    fn end(mut self, signal: &str) -> Option<i32> {
        let process = self.process.id().to_string();
        let kill = Command::new("kill").args([signal, &process]).status();
        assert!(kill.unwrap().success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the daemon does not stop");
            std::thread::yield_now();
        }
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // It has exited already unless the test failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn told(manager: &UnixDatagram) -> String {
    let mut state = [0; 64];
    let length = manager.recv(&mut state).unwrap();
    String::from_utf8_lossy(&state[..length]).into_owned()
}

#[test]
fn offline_pool_is_checked_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let drives = format!("file:{at}/a file:{at}/b");
    let daemon = Daemon::start(folder.path());
    for arguments in [
        format!("pool create tank slow mirror file:{at}/a?size=256M file:{at}/b?size=256M"),
        "volume create tank/v --size 64M".to_owned(),
    ] {
        let said = daemon.convect(&arguments);
        assert_eq!(said.code, 0, "{arguments}: {said:?}");
    }
    let said = convect(&format!("check {drives}"));
    assert_eq!(said.code, 8, "{said:?}");
    assert!(said.error.contains("belongs to an open pool"), "{said:?}");
    assert_eq!(daemon.end("-TERM"), Some(0));

    let said = convect(&format!("check --data {drives}"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.ends_with("The pool is intact.\n"), "{said:?}");

    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("a"));
    std::os::unix::fs::FileExt::write_all_at(&file.unwrap(), &[7; 2 << 20], 0).unwrap();
    let bytes = || std::fs::read(folder.path().join("a")).unwrap();
    let damaged = bytes();
    for (arguments, code, says) in [
        ("check", 1, "can repair 1 bad copy"),
        ("repair", 1, "nothing was written: add --yes"),
    ] {
        let said = convect(&format!("{arguments} {drives}"));
        assert_eq!(said.code, code, "{arguments}: {said:?}");
        assert!(said.out.contains(says), "{arguments}: {said:?}");
    }
    assert!(bytes() == damaged, "nothing is written without --yes");
    let said = convect(&format!("repair --yes {drives}"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("1 label on"), "{said:?}");
    let said = convect(&format!("--json repair --yes {drives}"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("\"mends\": []"),
        "a second repair has nothing to do: {said:?}"
    );

    let copy = folder.path().join("copy");
    let restore = format!("restore v --to {} --drive {drives}", copy.display());
    let said = convect(&restore);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(copy.metadata().unwrap().len(), 64 << 20);
    let said = convect(&restore);
    assert_eq!(said.code, 8, "a file is not overwritten: {said:?}");
    let said = convect(&format!("dump label --drive {drives}"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("\"name\": \"tank\""), "{said:?}");
}

#[test]
fn daemon_reports_readiness_stops_on_signal_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();

    let first = Daemon::start(folder.path());
    assert_eq!(told(&manager), "READY=1");
    for arguments in [
        format!("pool create tank slow file:{at}/d?size=1G"),
        "volume create tank/v --size 64M".to_owned(),
        format!("export create e tank/v nbd --listen unix:{at}/n"),
    ] {
        let said = first.convect(&arguments);
        assert_eq!(said.code, 0, "{arguments}: {said:?}");
    }
    assert!(folder.path().join("n").exists());
    assert_eq!(first.end("-TERM"), Some(0));
    assert_eq!(told(&manager), "STOPPING=1");
    assert!(!folder.path().join("n").exists());
    assert!(!folder.path().join("s").exists());

    let second = Daemon::start(folder.path());
    let said = second.convect("export show e");
    assert!(said.out.contains("online"), "{said:?}");
    assert!(folder.path().join("n").exists());
    assert_eq!(second.end("-INT"), Some(0));

    std::fs::rename(folder.path().join("d"), folder.path().join("gone")).unwrap();
    let third = Daemon::start(folder.path());
    let said = third.convect("pool status tank");
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.error.contains("pool tank is not open"), "{said:?}");
    assert!(said.error.contains(&format!("{at}/d")), "{said:?}");
    assert_eq!(third.end("-TERM"), Some(0));
}
