//! Runs `smartctl` for a device with a time limit.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Maximum size of its output, in bytes.
const ANSWER_MAX: u64 = 1 << 20;
/// Polling interval for its exit.
const LOOK: Duration = Duration::from_millis(20);
/// Polls after a kill: ten seconds on a busy host, before the process counts as stuck in the
/// kernel.
const STOP_LOOKS: usize = 500;

/// Result of a run.
pub enum SmartctlResult {
    /// Its output.
    Answer(Vec<u8>),
    /// No output: why.
    Nothing(String),
    /// It did not exit even when killed, as the kernel waits for the drive. The device is not
    /// polled again before it exits.
    Stuck(Child),
}

/// Runs `program` for a device such as `/dev/sda`, for at most `limit`.
pub fn ask(program: &Path, device: &str, limit: Duration) -> SmartctlResult {
    let mut command = Command::new(program);
    command
        .args(["--json", "-n", "standby", "-i", "-H", "-A", "--", device])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let text = format!(
                "{} is not installed: install smartmontools to see the health of drives",
                program.display()
            );
            return SmartctlResult::Nothing(text);
        }
        Err(error) => {
            let text = format!("cannot run {}: {error}", program.display());
            return SmartctlResult::Nothing(text);
        }
    };
    let Some(output) = child.stdout.take() else {
        return stop(child, "smartctl has no output".to_owned());
    };
    let (give, take) = mpsc::channel();
    let reader = move || {
        let mut answer = Vec::new();
        let read = output.take(ANSWER_MAX + 1).read_to_end(&mut answer);
        // The receiver is gone only after a timeout.
        let _ = give.send(read.map(|_| answer));
    };
    if std::thread::Builder::new()
        .name("smartctl".to_owned())
        .spawn(reader)
        .is_err()
    {
        return stop(
            child,
            "cannot create a thread to read the output of smartctl".to_owned(),
        );
    }
    let began = Instant::now();
    match take.recv_timeout(limit) {
        Ok(Ok(answer)) if answer.len() as u64 <= ANSWER_MAX => {
            while began.elapsed() < limit {
                match child.try_wait() {
                    Ok(Some(_)) => return SmartctlResult::Answer(answer),
                    Ok(None) => std::thread::sleep(LOOK),
                    Err(_) => break,
                }
            }
            stop(child, "smartctl did not exit".to_owned())
        }
        Ok(Ok(_)) => stop(child, "the output of smartctl is too large".to_owned()),
        Ok(Err(error)) => stop(
            child,
            format!("cannot read the output of smartctl: {error}"),
        ),
        Err(_) => stop(
            child,
            format!("smartctl took longer than {} s", limit.as_secs()),
        ),
    }
}

/// Kills smartctl and its children, and waits briefly for its exit.
fn stop(mut child: Child, why: String) -> SmartctlResult {
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: kill accesses no memory; the process group is the child's own, which is not
        // reaped yet, so that its id is not reused.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    for _ in 0..STOP_LOOKS {
        match child.try_wait() {
            Ok(Some(_)) => return SmartctlResult::Nothing(why),
            Ok(None) => std::thread::sleep(LOOK),
            Err(_) => break,
        }
    }
    SmartctlResult::Stuck(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by another process: a descriptor open for writing could be inherited by the child of
    /// a concurrent test, and executing the file would fail.
    fn program(folder: &Path, script: &str) -> std::path::PathBuf {
        let (text, path) = (folder.join("script"), folder.join("smartctl"));
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mut install = Command::new("install");
        let installed = install.args(["-m", "755"]).args([&text, &path]).status();
        assert!(installed.unwrap().success());
        path
    }

    fn asked(script: &str, limit_ms: u64) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), script);
        match ask(&program, "/dev/sdx", Duration::from_millis(limit_ms)) {
            SmartctlResult::Answer(answer) => Ok(String::from_utf8_lossy(&answer).into_owned()),
            SmartctlResult::Nothing(why) => Err(why),
            SmartctlResult::Stuck(child) => Err(format!("stuck: {}", child.id())),
        }
    }

    #[test]
    fn smartctl_does_not_wake_sleeping_disks() {
        let said = asked("echo \"$@\"; exit 4", 300_000).unwrap();
        assert_eq!(said, "--json -n standby -i -H -A -- /dev/sdx\n");
    }

    #[test]
    fn hanging_smartctl_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pids");
        let at = note.display();
        let script = format!("sleep 1000 & echo $! $$ > {at}.new; mv {at}.new {at}; wait");
        // On a busy machine it may be killed before it has written its process ids.
        for limit_ms in [1000, 10_000, 100_000] {
            let why = asked(&script, limit_ms).unwrap_err();
            assert!(why.contains("took longer"), "{why}");
            if note.exists() {
                break;
            }
        }
        let is_there = |pid: &str| {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z")
        };
        for pid in std::fs::read_to_string(note).unwrap().split_whitespace() {
            let mut looks = 0..6000;
            while is_there(pid) {
                assert!(looks.next().is_some(), "{pid} is there");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    #[test]
    fn endless_or_missing_smartctl_gives_nothing() {
        let why = asked("yes", 300_000).unwrap_err();
        assert!(why.contains("too large"), "{why}");
        let missing = ask(
            Path::new("/nowhere/smartctl"),
            "/dev/sdx",
            Duration::from_secs(1),
        );
        let SmartctlResult::Nothing(why) = missing else {
            panic!("it is not installed");
        };
        assert!(why.contains("install smartmontools"), "{why}");
    }
}
