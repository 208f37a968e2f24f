//! System calls that may wait, in crates whose code runs on engine loops: where they are, and why no loop waits there.
//!
//! A loop serves many volumes: while it waits for a file system, a peer or another thread, none of them is served. So
//! each call that can wait is in this list, with who makes it. A call that is not in the list fails the test, and so does an
//! entry without a call. Calls that do not wait because of their arguments (`O_NONBLOCK`, a timeout of zero) are in it, too.

use architecture_test::{mentions, sources_under};
use std::collections::BTreeMap;

/// Folders of the crates whose code runs on loops.
const ON_LOOPS: [&str; 9] = [
    "crates/block/src",
    "crates/checksum/src",
    "crates/drives/src",
    "crates/engine/src",
    "crates/frontends",
    "crates/reactor/src",
    "crates/scsi/src",
    "crates/stream/src",
    "crates/units/src",
];

/// Calls that may wait: for a file system, a peer, another process or another thread.
const MAY_WAIT: &[&str] = &[
    // Files and folders.
    "File::open",
    "File::create",
    "OpenOptions::new",
    "DirBuilder::new",
    "fs::canonicalize",
    "fs::copy",
    "fs::create_dir",
    "fs::create_dir_all",
    "fs::hard_link",
    "fs::metadata",
    "fs::read",
    "fs::read_dir",
    "fs::read_link",
    "fs::read_to_string",
    "fs::remove_dir",
    "fs::remove_dir_all",
    "fs::remove_file",
    "fs::rename",
    "fs::set_permissions",
    "fs::symlink",
    "fs::symlink_metadata",
    "fs::write",
    "set_len",
    "sync_all",
    "sync_data",
    "libc::fallocate",
    "libc::fdatasync",
    "libc::flock",
    "libc::fstat",
    "libc::fstatfs",
    "libc::fsync",
    "libc::ftruncate",
    "libc::ioctl",
    "libc::mkdir",
    "libc::mount",
    "libc::open",
    "libc::openat",
    "libc::rename",
    "libc::stat",
    "libc::statfs",
    "libc::umount2",
    "libc::unlink",
    // Peers, and descriptors that peers gave.
    "TcpListener::bind",
    "TcpStream::connect",
    "UnixListener::bind",
    "UnixStream::connect",
    "UnixListener",
    "to_socket_addrs",
    "libc::accept",
    "libc::accept4",
    "libc::bind",
    "libc::connect",
    "libc::poll",
    "libc::pread",
    "libc::pwrite",
    "libc::read",
    "libc::readv",
    "libc::recv",
    "libc::recvmsg",
    "libc::send",
    "libc::sendmsg",
    "libc::write",
    "libc::writev",
    "libc::getaddrinfo",
    // Memory: what is mapped may be a file of a peer.
    "libc::madvise",
    "libc::mlock",
    "libc::mmap",
    "libc::munmap",
    // Processes and threads.
    "Command::new",
    "Condvar",
    "libc::nanosleep",
    "libc::waitpid",
    "park_timeout",
    "recv_timeout",
    "thread::park",
    "thread::sleep",
];

/// Where such calls are: a line with a file, then one for each call with how often it stands there, and why no loop waits.
const PLACES: &str = include_str!("blocking.txt");

fn places() -> impl Iterator<Item = (String, &'static str, usize, &'static str)> {
    let mut file = "";
    let lines = PLACES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(move |line| {
        let Some(entry) = line.strip_prefix("  ") else {
            file = line;
            return None;
        };
        let words: Vec<&str> = entry.splitn(3, " | ").collect();
        let [call, count, why] = words[..] else {
            panic!("{line}: a call, a number and a reason are wanted");
        };
        Some((file.to_owned(), call, count.parse().expect("a number"), why))
    })
}

#[test]
fn every_call_that_may_wait_is_listed_with_who_makes_it() {
    let mut found: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for folder in ON_LOOPS {
        let sources = sources_under(folder);
        assert!(!sources.is_empty(), "{folder} has no sources");
        for source in sources.iter().filter(|source| !source.is_test()) {
            let code = source.code();
            for (_, line) in code.filter(|(_, line)| !line.trim_start().starts_with("use ")) {
                for call in MAY_WAIT.iter().filter(|call| mentions(line, call)) {
                    *found.entry((source.name.clone(), call)).or_default() += 1;
                }
            }
        }
    }
    let mut faults = Vec::new();
    for (file, call, count, why) in places() {
        assert!(why.len() > 10, "{file}: {call} has no reason");
        let seen = found.remove(&(file.clone(), call)).unwrap_or(0);
        if seen != count {
            faults.push(format!(
                "{file}: {call} is listed {count} times and found {seen} times"
            ));
        }
    }
    faults.extend(found.iter().map(|((file, call), count)| {
        format!("{file}: {call}, {count} times, is not listed: it may wait, and a loop may not")
    }));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
