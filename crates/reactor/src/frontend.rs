//! The interface of front ends to the daemon: a row with a name, parameters and a start function.

use crate::{Budget, Remote};
use block::BlockDevice;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A parameter of an export.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name: `listen`.
    pub name: &'static str,
    /// Its meaning, form and default, in a sentence.
    pub about: &'static str,
    /// Whether an export must have it.
    pub required: bool,
}

/// Returns the volume as the initiator of a name has it open; none when it cannot be opened any longer.
/// It may wait: not to be called on a loop.
pub type OpenFor = Arc<dyn Fn(&str) -> Option<Arc<dyn BlockDevice>> + Send + Sync>;

/// Told whether it was kept.
pub type Kept = Box<dyn FnOnce(bool) + Send>;

/// Where it is kept what hosts have reserved of a volume, for as long as the volume is.
pub trait Keeper: Send + Sync {
    /// Whether it stores anything: reported to hosts.
    fn is_there(&self) -> bool;

    /// The stored state. It may wait: not to be called on a loop.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&self) -> io::Result<Option<String>>;

    /// Keeps `state` in place of what was kept before, or nothing; calls `done`, from any thread, when
    /// that is durable or has failed. It does not wait. A second call comes after `done` of the first.
    fn keep(&self, state: Option<String>, done: Kept);
}

/// Stores nothing, for read-only volumes and for tests.
pub struct NoKeeper;

impl Keeper for NoKeeper {
    fn is_there(&self) -> bool {
        false
    }

    fn load(&self) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn keep(&self, _state: Option<String>, done: Kept) {
        done(true);
    }
}

/// Parameters for starting an export.
pub struct StartExport {
    /// The export's name.
    pub name: String,
    /// The volume's name, for front ends that show one.
    pub volume: String,
    /// The volume.
    pub device: Arc<dyn BlockDevice>,
    /// For front ends whose sessions know their initiators' names, unless the export is for one alone.
    pub open_for: Option<OpenFor>,
    /// For front ends whose hosts reserve volumes.
    pub keeper: Arc<dyn Keeper>,
    /// The memory that requests of the volume's hosts and answers that they have not read may take, whichever export
    /// they use: a part of the daemon's.
    pub memory: Budget,
    /// Values of the front end's parameters; unknown names are refused before this is made.
    pub parameters: BTreeMap<String, String>,
    /// Loops that sessions may run on; at least one.
    pub remotes: Vec<Remote>,
}

/// A host's session with an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionInfo {
    /// Its number, which no other session of this process has had.
    pub id: u64,
    /// The peer's name.
    pub initiator: String,
    /// The host's address.
    pub address: String,
    /// The target that it logged in to.
    pub target: String,
    /// The address that it came to.
    pub portal: String,
    /// The name whose secret it proved.
    pub user: Option<String>,
    /// When it began: seconds since 1970.
    pub since_s: u64,
    /// Its connections.
    pub connections: u32,
    /// Commands that are not answered yet.
    pub commands: u64,
    /// Bytes that it read, and wrote.
    pub read: u64,
    /// See `read`.
    pub written: u64,
}

/// Usage of a volume's pool, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Used space; may exceed the capacity.
    pub used: u64,
    /// Capacity.
    pub capacity: u64,
    /// At how much that is taken hosts are to be warned first.
    pub warn_at: Option<u64>,
}

/// A volume that is being offered. Dropping it ends the sessions and removes its sockets.
pub trait Export: Send {
    /// Where it is offered, e.g. `unix:/run/convect/a.sock`.
    fn address(&self) -> String;

    /// Lines that a person can paste to use it.
    fn hints(&self) -> Vec<String>;

    /// Values of parameters that were not given and that it has chosen, so that they are the same when it is
    /// started again: they are kept with those that were given.
    fn chosen(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Connected hosts.
    fn sessions(&self) -> usize;

    /// The sessions that can be identified and disconnected; empty if the front end has none.
    fn session_list(&self) -> Vec<SessionInfo> {
        Vec::new()
    }

    /// Connected hosts, as administrators know them: names, addresses or processes, each once. By default those of
    /// [`Export::session_list`].
    fn hosts(&self) -> Vec<String> {
        let sessions = self.session_list().into_iter();
        let mut hosts: Vec<String> = sessions
            .map(|session| format!("{} at {}", session.initiator, session.address))
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// Disconnects a session; false if it does not exist.
    fn end_session(&self, _id: u64) -> bool {
        false
    }

    /// Present problems of hosts that administrators have to solve, a sentence each. Bounded.
    fn troubles(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes over how full the volume's pool is; `warns` says that another level was reached at which
    /// hosts have to be warned. For front ends that can notify hosts.
    fn note_space(&self, _space: Space, _warns: bool) {}

    /// Updates the number of bytes of the volume that were written and not discarded, as measured a moment ago. For
    /// front ends that report it.
    fn note_stored(&self, _bytes: u64) {}

    /// Takes over parameters that have changed, while hosts continue; all of them are given.
    ///
    /// # Errors
    /// One sentence that says what to do; then nothing has changed.
    fn change(&self, _parameters: &BTreeMap<String, String>) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "parameters of this protocol cannot be changed on a running export: delete the export and create \
             it again",
        ))
    }
}

/// A kind of front end: one row of the daemon's table.
#[derive(Clone, Copy)]
pub struct FrontEnd {
    /// Its name: `nbd`.
    pub name: &'static str,
    /// Description, in a sentence.
    pub about: &'static str,
    /// Parameters.
    pub parameters: &'static [Parameter],
    /// Starts an export. The error is one sentence that says what to do; nothing is left behind.
    pub start: fn(StartExport) -> io::Result<Box<dyn Export>>,
}
