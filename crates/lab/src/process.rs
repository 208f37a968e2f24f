//! A child process that ends with the value that owns it.

use crate::failure::{Failure, Result, While};
use crate::interrupt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// How long a child that was asked to end may take.
const END_TIME: Duration = Duration::from_secs(120);

/// A running child.
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts it, in a process group of its own (Ctrl-C is for us to pass on) and so that it
    /// ends with us, however we end.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
        unsafe {
            command.process_group(0).pre_exec(|| {
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().during(|| format!("cannot start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
        })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, when it did.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .during(|| format!("cannot wait for {}", self.name))
    }

    /// Waits for it to end by itself, and calls `meanwhile` every so often.
    pub fn wait(&mut self, mut meanwhile: impl FnMut() -> Result<()>) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            meanwhile()?;
            interrupt::pause(Duration::from_millis(20))?;
        }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: kill takes no pointers; the child was not waited for, so the number is its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) -> Result<()> {
        self.child
            .kill()
            .during(|| format!("cannot kill {}", self.name))?;
        self.child
            .wait()
            .during(|| format!("cannot wait for {}", self.name))?;
        Ok(())
    }

    /// Asks it to end, and waits.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        self.signal(libc::SIGTERM);
        let end = std::time::Instant::now() + END_TIME;
        while std::time::Instant::now() < end {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill()?;
        Err(Failure::new(format!(
            "{} did not end within {END_TIME:?} and was killed",
            self.name
        )))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The error cannot be reported; the kill within `stop` is the last resort.
        let _ = self.stop();
    }
}

/// How a process ended, for people.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}
