//! Descriptors for notifications to which nothing can be written without waiting, or nothing at all.

use crate::hostile::stage::Stage;
use std::fs::File;
use std::io::{ErrorKind, Read, Result, Write, pipe};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use vhost_client::{RawGuest, memory_file};

const MEMORY: u64 = 1 << 20;
const RING: u16 = 128;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
/// How long the other side has to notify.
const NOTICE: Duration = Duration::from_millis(100);

/// An event counter that is full, whose writers wait.
fn full_event() -> Result<File> {
    // SAFETY: takes numbers and gives one.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor.
    let mut event = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    event.write_all(&(u64::MAX - 1).to_ne_bytes())?;
    Ok(event)
}

fn set_blocking(fd: &impl AsRawFd, blocking: bool) {
    let flags = if blocking { 0 } else { libc::O_NONBLOCK };
    // SAFETY: takes numbers; the flags of an open description that is ours.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags) };
}

/// Writes until nothing more goes in, and leaves it so that writers wait.
fn fill(end: &mut (impl Write + AsRawFd)) -> Result<()> {
    set_blocking(end, false);
    loop {
        match end.write(&[0; 4096]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    set_blocking(end, true);
    Ok(())
}

/// One request after which the other side notifies.
fn ask(guest: &mut RawGuest) -> Result<()> {
    let header = RawGuest::FREE;
    guest.header(header, 0, 0)?;
    guest.descriptor(0, (header, 16, NEXT, 1))?;
    guest.descriptor(1, (header + 4096, 512, NEXT | WRITE, 2))?;
    guest.descriptor(2, (header + 32, 1, WRITE, 0))?;
    guest.publish(0)?;
    guest.kick();
    Ok(())
}

/// Has the guest notified by a descriptor until the attack is over, or for a moment; then what is full is emptied, so that
/// so that a waiter there does not wait forever.
fn notify(stage: &Stage<'_>, guest: &mut RawGuest, fd: &impl AsRawFd, hold: bool) -> Result<()> {
    guest.notify_by(fd.as_raw_fd())?;
    ask(guest)?;
    stage.did(1);
    match hold {
        true => stage.wait(),
        false => stage.pause(NOTICE),
    }
    Ok(())
}

pub fn attack(stage: &Stage<'_>) {
    let mut kind = 0;
    stage.again(|| {
        let mut guest = RawGuest::new(&stage.places.vhost, MEMORY, 1, RING)?;
        kind += 1;
        // The counter that is full is what monitors can do most simply: it is left so in the end.
        match kind {
            1 => notify(stage, &mut guest, &memory_file(8)?, false),
            2 => {
                let (mut near, mut far) = UnixStream::pair()?;
                fill(&mut far)?;
                let done = notify(stage, &mut guest, &far, false);
                near.set_nonblocking(true)?;
                while near.read(&mut [0; 4096]).is_ok_and(|got| got > 0) {}
                done
            }
            3 => {
                let (mut near, mut far) = pipe()?;
                fill(&mut far)?;
                let done = notify(stage, &mut guest, &far, false);
                set_blocking(&near, false);
                while near.read(&mut [0; 4096]).is_ok_and(|got| got > 0) {}
                done
            }
            _ => {
                let mut event = full_event()?;
                // A daemon may have made it one whose writers do not wait; the description is shared.
                guest.notify_by(event.as_raw_fd())?;
                set_blocking(&event, true);
                ask(&mut guest)?;
                stage.did(1);
                stage.wait();
                event.read(&mut [0; 8]).map(|_| ())
            }
        }
    });
}
