//! Exports: created, stored in their pool, and started whenever the pool is opened.
//!
//! An export is created or changed at the protocol first and then in the pool; if the latter fails,
//! the former is undone, so that running and stored exports agree. An export that cannot be started
//! is listed with its error and retried. A disabled one is stored, but not started.

mod hosts;
mod request_memory;
mod reservations;
mod sessions;
mod switch;

use super::Result;
use super::registry::PoolRegistry;
use super::uses::Uses;
use crate::control::{Control, PoolCalls};
use crate::mapping::ToApi;
use crate::names::check_name;
use crate::sync::lock;
use crate::{RemotePaths, frontends};
use api::v1::{self, Problem, ProblemCode};
use engine::ExportRecord;
use reactor::{Export, FrontEnd, OpenFor, Space, StartExport};
use reservations::keeper;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

pub(super) use request_memory::RequestMemory;
pub(super) use switch::Switched;

/// Why an export is not offered.
pub(super) enum NotOffered {
    /// A user disabled it.
    Disabled,
    /// It could not be started; it is retried.
    Failed(String),
}

/// An export of an open pool.
pub(super) struct Running {
    pub record: ExportRecord,
    pub offer: std::result::Result<Box<dyn Export>, NotOffered>,
}

fn start_problem(name: &str, error: &io::Error) -> Problem {
    let code = match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::AlreadyExists => ProblemCode::Exists,
        io::ErrorKind::InvalidInput | io::ErrorKind::AddrNotAvailable => ProblemCode::Invalid,
        io::ErrorKind::NotFound => ProblemCode::NotFound,
        io::ErrorKind::PermissionDenied => ProblemCode::Refused,
        _ => ProblemCode::Io,
    };
    Problem::new(code, format!("export {name}: {error}"))
}

fn to_api(pool: &str, running: &Running) -> v1::Export {
    let record = running.record.clone();
    let offer = running.offer.as_ref().ok();
    let (state, error) = match &running.offer {
        Ok(_) => ("online", None),
        Err(NotOffered::Disabled) => ("disabled", None),
        Err(NotOffered::Failed(why)) => ("failed", Some(why.clone())),
    };
    v1::Export {
        name: record.name,
        pool: pool.to_owned(),
        volume: record.volume,
        kind: record.kind,
        parameters: record.parameters,
        initiator: record.initiator,
        state: state.to_owned(),
        address: offer.map(|offer| offer.address()),
        hints: offer.map(|offer| offer.hints()).unwrap_or_default(),
        sessions: offer.map_or(0, |offer| offer.sessions() as u64),
        error,
    }
}

/// Exports of open pools, with the rights and memory of hosts.
pub struct Exports {
    control: Arc<dyn Control>,
    registry: Arc<PoolRegistry>,
    front_ends: &'static [FrontEnd],
    /// Memory for hosts' requests and unread responses.
    memory: RequestMemory,
    /// Folders in which remote callers may name paths.
    remote_paths: RemotePaths,
    /// Snapshot streams in progress.
    uses: Uses,
    /// By pool and name. Locked briefly, within a change.
    running: Mutex<BTreeMap<(String, String), Running>>,
    /// Exports that users enabled or disabled since the last [`Exports::take_switched`].
    switched: Mutex<Vec<Switched>>,
}

impl Exports {
    /// No exports.
    pub(super) fn new(
        registry: &Arc<PoolRegistry>,
        front_ends: &'static [FrontEnd],
        memory: RequestMemory,
        remote_paths: RemotePaths,
        uses: &Uses,
    ) -> Self {
        Self {
            control: Arc::clone(registry.control()),
            registry: Arc::clone(registry),
            front_ends,
            memory,
            remote_paths,
            uses: uses.clone(),
            running: Mutex::default(),
            switched: Mutex::default(),
        }
    }

    /// The protocols.
    pub fn front_end_list(&self) -> v1::FrontEndList {
        let items = self.front_ends.iter().map(|row| v1::FrontEnd {
            name: row.name.to_owned(),
            about: row.about.to_owned(),
            parameters: row
                .parameters
                .iter()
                .map(|parameter| v1::Parameter {
                    name: parameter.name.to_owned(),
                    about: parameter.about.to_owned(),
                    required: parameter.required,
                })
                .collect(),
        });
        v1::FrontEndList {
            items: items.collect(),
        }
    }

    /// Memory for hosts' requests.
    pub(super) fn memory(&self) -> &RequestMemory {
        &self.memory
    }

    fn offer(&self, pool: &str, record: &ExportRecord) -> Result<Box<dyn Export>> {
        let row = frontends::find(self.front_ends, &record.kind)?;
        frontends::check(row, &record.parameters)?;
        self.check_whole(pool, &record.volume)?;
        let initiator = record.initiator.as_deref();
        let (volume, name) = (&record.volume, &record.name);
        let device = self
            .registry
            .volume_open_export(pool, volume, name, initiator)?;
        let start = StartExport {
            name: record.name.clone(),
            volume: record.volume.clone(),
            device,
            open_for: initiator.is_none().then(|| self.open_for(pool, record)),
            keeper: keeper(&self.control, pool, &record.volume),
            memory: self.memory.of(pool, &record.volume),
            parameters: record.parameters.clone(),
            remotes: self.control.remotes(),
        };
        (row.start)(start).map_err(|error| start_problem(&record.name, &error))
    }

    /// Opens a volume on behalf of initiators, for a protocol's sessions.
    fn open_for(&self, pool: &str, record: &ExportRecord) -> OpenFor {
        let (control, pool) = (self.control.clone(), pool.to_owned());
        let (volume, export) = (record.volume.clone(), record.name.clone());
        Arc::new(move |initiator| {
            let opened = control.volume_open_export(&pool, &volume, &export, Some(initiator));
            let warn = |error| tracing::warn!("{pool}/{volume} for initiator {initiator}: {error}");
            opened.map_err(warn).ok()
        })
    }

    /// Refuses a volume with a partially received snapshot.
    fn check_whole(&self, pool: &str, volume: &str) -> Result<()> {
        let receiving = self.registry.volume_receiving(pool, volume)?;
        match receiving {
            None => Ok(()),
            Some(receiving) => Err(Problem::new(
                ProblemCode::Busy,
                format!(
                    "volume {pool}/{volume} contains an incomplete snapshot {}: resume the \
                     receive, roll the volume back to an earlier snapshot, or delete it",
                    receiving.snapshot
                ),
            )),
        }
    }

    /// The pool that has an export of this name.
    fn taken(&self, name: &str) -> Option<String> {
        let exports = lock(&self.running);
        exports
            .keys()
            .find(|(_, known)| known == name)
            .map(|(pool, _)| pool.clone())
    }

    /// Starts the exports of a pool. Those that fail are listed with their error.
    pub(super) fn start(&self, pool: &str) {
        let records = match self.control.pool_exports(pool) {
            Ok(records) => records,
            Err(error) => {
                tracing::error!("cannot read the exports of pool {pool}: {error}");
                return;
            }
        };
        for record in records {
            let other = self.taken(&record.name);
            self.start_one(pool, record, other);
        }
    }

    /// Starts a stored export unless it is disabled. `other`: a pool that has its name, too.
    fn start_one(&self, pool: &str, record: ExportRecord, other: Option<String>) {
        let offer = match other {
            _ if record.disabled => Err(NotOffered::Disabled),
            Some(other) => Err(NotOffered::Failed(format!(
                "pool {other} already has an export {}: delete one of them with `convect export \
                 delete POOL/{}`",
                record.name, record.name
            ))),
            None => self
                .offer(pool, &record)
                .map_err(|problem| NotOffered::Failed(problem.message)),
        };
        match &offer {
            Ok(offer) => tracing::info!("export {} at {}", record.name, offer.address()),
            Err(NotOffered::Disabled) => tracing::info!("export {} is disabled", record.name),
            Err(NotOffered::Failed(why)) => {
                tracing::error!("export {} of pool {pool}: {why}", record.name);
            }
        }
        let key = (pool.to_owned(), record.name.clone());
        lock(&self.running).insert(key, Running { record, offer });
    }

    /// Retries exports that could not be started, as their address may be available now.
    pub fn retry(&self) {
        let failed: Vec<((String, String), ExportRecord)> = lock(&self.running)
            .iter()
            .filter(|(_, running)| matches!(running.offer, Err(NotOffered::Failed(_))))
            .map(|(key, running)| (key.clone(), running.record.clone()))
            .collect();
        for (key, record) in failed {
            frontends::look_up(&record.kind, &record.parameters);
            // Locked per export, so that other changes can interleave.
            let _changes = self.registry.begin_change();
            let still = lock(&self.running)
                .get(&key)
                .is_some_and(|running| running.offer.is_err() && running.record == record);
            let (pool, name) = &key;
            let twice = lock(&self.running)
                .keys()
                .any(|other| other.1 == *name && other.0 != *pool);
            if !still || twice || self.registry.has_stopped() {
                continue;
            }
            let offer = self
                .offer(pool, &record)
                .map_err(|problem| NotOffered::Failed(problem.message));
            if let Ok(offer) = &offer {
                tracing::info!(
                    "export {name} at {}, started after earlier failures",
                    offer.address()
                );
            }
            lock(&self.running).insert(key, Running { record, offer });
        }
    }

    /// Stops the pool's exports; they stay stored.
    pub(super) fn stop(&self, pool: &str) {
        let ended = {
            let mut exports = lock(&self.running);
            let (ended, kept) = std::mem::take(&mut *exports)
                .into_iter()
                .partition::<std::collections::BTreeMap<_, _>, _>(|((of, _), _)| of == pool);
            *exports = kept;
            ended
        };
        drop(ended);
    }

    /// Stops all exports; they stay stored in their pools.
    pub(super) fn stop_all(&self) {
        let stopped = std::mem::take(&mut *lock(&self.running));
        drop(stopped);
    }

    /// Reports a pool's fill level to hosts, where the protocol supports it.
    pub(super) fn note_space(&self, pool: &str, space: Space, warns: bool) {
        for ((of, _), running) in &*lock(&self.running) {
            if of == pool
                && let Ok(offer) = &running.offer
            {
                offer.note_space(space, warns);
            }
        }
    }

    /// Reports the space that volumes store, by pool and volume, where the protocol supports it.
    pub(super) fn note_stored(&self, stored: &BTreeMap<(&str, &str), u64>) {
        for ((pool, _), running) in &*lock(&self.running) {
            if let Ok(offer) = &running.offer
                && let Some(bytes) = stored.get(&(pool.as_str(), running.record.volume.as_str()))
            {
                offer.note_stored(*bytes);
            }
        }
    }

    /// Names of the exports of a pool or of one of its volumes.
    pub(super) fn names_of(&self, pool: &str, volume: Option<&str>) -> Vec<String> {
        let exports = lock(&self.running);
        exports
            .iter()
            .filter(|((of, _), running)| {
                of == pool && volume.is_none_or(|volume| running.record.volume == volume)
            })
            .map(|((_, name), _)| name.clone())
            .collect()
    }

    /// Exports of one pool or of all.
    pub fn list(&self, pool: Option<&str>) -> v1::ExportList {
        let exports = lock(&self.running);
        let items = exports
            .iter()
            .filter(|((of, _), _)| pool.is_none_or(|pool| of == pool))
            .map(|((pool, _), running)| to_api(pool, running))
            .collect();
        v1::ExportList { items }
    }

    /// An export; `pool` disambiguates equal names.
    ///
    /// # Errors
    /// When it does not exist, or the name is ambiguous.
    pub fn show(&self, name: &str, pool: Option<&str>) -> Result<v1::Export> {
        let mut found = self.list(pool).items;
        found.retain(|known| known.name == name);
        if found.len() > 1 {
            let pools: Vec<_> = found.into_iter().map(|known| known.pool).collect();
            return Err(Problem::invalid(format!(
                "several pools have an export {name}: use POOL/{name} with one of {}",
                pools.join(", ")
            )));
        }
        found.pop().ok_or_else(|| {
            Problem::not_found(format!("unknown export {name}: see `convect export list`"))
        })
    }

    /// Checks the paths that a remote caller names in an export's parameters.
    ///
    /// # Errors
    /// When a path is outside of the configured folders.
    pub fn check_remote_paths(
        &self,
        kind: &str,
        parameters: &std::collections::BTreeMap<String, String>,
    ) -> Result<()> {
        self.remote_paths.check(kind, parameters)
    }

    /// Starts an export and stores it in its pool.
    ///
    /// # Errors
    /// When a name or parameter is invalid, the protocol cannot start it, or it cannot be stored. A
    /// clone created for it is deleted then.
    pub fn create(&self, request: v1::ExportCreate) -> Result<v1::Export> {
        check_name("an export", &request.name)?;
        let row = frontends::find(self.front_ends, &request.kind)?;
        frontends::check(row, &request.parameters)?;
        frontends::look_up(&request.kind, &request.parameters);
        let _changes = self.registry.begin_change();
        if let Some(pool) = self.taken(&request.name) {
            return Err(Problem::new(
                ProblemCode::Exists,
                format!(
                    "pool {pool} already has an export {}: choose another name",
                    request.name
                ),
            ));
        }
        let volume = match request.writable {
            true => self.clone_to_write(&request)?,
            false => request.volume,
        };
        let pool = request.pool;
        let record = ExportRecord {
            name: request.name,
            volume,
            kind: request.kind,
            parameters: request.parameters,
            initiator: request.initiator,
            disabled: false,
        };
        let clone = request.writable.then(|| record.volume.clone());
        let started = self.offer_and_keep(&pool, record);
        if let (Err(_), Some(clone)) = (&started, clone) {
            self.take_back(&pool, &clone);
        }
        started
    }

    /// Starts an export and stores it in its pool; undone if either fails.
    fn offer_and_keep(&self, pool: &str, mut record: ExportRecord) -> Result<v1::Export> {
        let offer = self.offer(pool, &record)?;
        record.parameters.extend(offer.chosen());
        let kept = self.control.pool_exports(pool).and_then(|mut records| {
            records.retain(|known| known.name != record.name);
            records.push(record.clone());
            self.control.pool_set_exports(pool, records)
        });
        if let Err(error) = kept {
            drop(offer);
            return Err(error.to_api());
        }
        tracing::info!("export {} at {}", record.name, offer.address());
        let running = Running {
            record,
            offer: Ok(offer),
        };
        let shown = to_api(pool, &running);
        lock(&self.running).insert((pool.to_owned(), shown.name.clone()), running);
        Ok(shown)
    }

    /// Creates the writable clone of a snapshot, named like the export.
    fn clone_to_write(&self, request: &v1::ExportCreate) -> Result<String> {
        let (pool, name) = (&request.pool, &request.name);
        let Some((volume, snapshot)) = request.volume.split_once('@') else {
            let text = format!(
                "{pool}/{} is not a snapshot and writable already: remove the writable flag",
                request.volume
            );
            return Err(Problem::invalid(text));
        };
        self.registry.snapshot_clone(pool, volume, snapshot, name)?;
        Ok(name.clone())
    }

    /// Deletes the clone of a failed export; it has no data of its own, so its name is available
    /// again soon.
    fn take_back(&self, pool: &str, clone: &str) {
        if let Err(error) = self.control.volume_delete(pool, clone) {
            tracing::error!(
                "cannot delete clone {pool}/{clone}, which was created for an export that failed: \
                 {error}"
            );
        }
    }

    /// Changes parameters of an export in use and stores them in its pool; undone if either fails.
    /// Those of a disabled export are stored, and take effect when it is enabled.
    ///
    /// # Errors
    /// When the export does not exist, the protocol cannot make this change, or it cannot be
    /// stored.
    pub fn set(
        &self,
        name: &str,
        pool: Option<&str>,
        change: v1::ExportChange,
    ) -> Result<v1::Export> {
        let _changes = self.registry.begin_change();
        let found = self.show(name, pool)?;
        let row = frontends::find(self.front_ends, &found.kind)?;
        let before = found.parameters;
        let mut after = before.clone();
        for (name, value) in change.parameters {
            match value.is_empty() {
                true => after.remove(&name),
                false => after.insert(name, value),
            };
        }
        frontends::check(row, &after)?;
        let mut exports = lock(&self.running);
        let running = exports.get_mut(&(found.pool.clone(), found.name));
        let (record, offer) = match running {
            Some(Running {
                record,
                offer: Ok(offer),
            }) => (record, Some(offer)),
            Some(Running {
                record,
                offer: Err(NotOffered::Disabled),
            }) => (record, None),
            _ => {
                return Err(Problem::new(
                    ProblemCode::Refused,
                    format!("export {name} is not online: see `convect export show {name}`"),
                ));
            }
        };
        if let Some(offer) = &offer {
            let refused = |error| start_problem(name, &error);
            offer.change(&after).map_err(refused)?;
        }
        let kept = self
            .control
            .pool_exports(&found.pool)
            .and_then(|mut records| {
                let of_name = records.iter_mut().filter(|known| known.name == name);
                of_name.for_each(|known| known.parameters.clone_from(&after));
                self.control.pool_set_exports(&found.pool, records)
            });
        if let Err(error) = kept {
            if let Some(Err(why)) = offer.map(|offer| offer.change(&before)) {
                tracing::error!("cannot revert the change of export {name}: {why}");
            }
            return Err(error.to_api());
        }
        record.parameters = after;
        drop(exports);
        tracing::info!("export {name} changed");
        self.show(name, Some(&found.pool))
    }

    /// Stops an export and removes it from its pool.
    ///
    /// # Errors
    /// When it does not exist, or the pool cannot be written.
    pub fn delete(&self, name: &str, pool: Option<&str>) -> Result<()> {
        let _changes = self.registry.begin_change();
        let found = self.show(name, pool)?;
        let mut records = self
            .control
            .pool_exports(&found.pool)
            .map_err(ToApi::to_api)?;
        records.retain(|known| known.name != name);
        let kept = self.control.pool_set_exports(&found.pool, records);
        kept.map_err(ToApi::to_api)?;
        let ended = lock(&self.running).remove(&(found.pool, found.name));
        drop(ended);
        tracing::info!("export {name} deleted");
        Ok(())
    }
}
