//! Disabling and enabling exports, and stopping them for a change of their volume.
//!
//! A disabled export stays stored with its parameters, but its socket, port or unit is free, and no
//! host has its volume open.

use super::{Exports, NotOffered, frontends};
use crate::manager::Result;
use crate::mapping::ToApi;
use crate::sync::lock;
use api::v1::{self, Problem, ProblemCode};
use engine::ExportRecord;

/// An export that a user enabled or disabled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::manager) struct Switched {
    pub pool: String,
    pub name: String,
    pub volume: String,
    /// It was enabled.
    pub enabled: bool,
}

/// Maximum number of changes that are remembered for events.
const SWITCHED_MAX: usize = 1024;

impl Exports {
    /// Disables an export: it is no longer offered, and stays stored. No effect if it is disabled.
    ///
    /// # Errors
    /// When it does not exist or cannot be stored, and `Busy` without `force` while hosts are
    /// connected.
    pub fn disable(&self, name: &str, pool: Option<&str>, force: bool) -> Result<v1::Export> {
        let _changes = self.registry.begin_change();
        let found = self.show(name, pool)?;
        if found.state == "disabled" {
            return Ok(found);
        }
        if !force {
            self.check_no_hosts_of(&found.pool, name)?;
        }
        let mut records = self
            .control
            .pool_exports(&found.pool)
            .map_err(ToApi::to_api)?;
        let of_name = records.iter_mut().filter(|known| known.name == name);
        of_name.for_each(|known| known.disabled = true);
        self.control
            .pool_set_exports(&found.pool, records)
            .map_err(ToApi::to_api)?;
        let key = (found.pool.clone(), name.to_owned());
        let ended = lock(&self.running).get_mut(&key).map(|running| {
            running.record.disabled = true;
            std::mem::replace(&mut running.offer, Err(NotOffered::Disabled))
        });
        // Ending sessions takes time.
        drop(ended);
        tracing::info!("export {name} disabled");
        self.note_switched(&found, false);
        self.show(name, Some(&found.pool))
    }

    /// Enables an export again with its parameters. No effect unless it is disabled.
    ///
    /// # Errors
    /// When it does not exist, cannot be started or cannot be stored: it stays disabled then.
    pub fn enable(&self, name: &str, pool: Option<&str>) -> Result<v1::Export> {
        let before = self.show(name, pool)?;
        frontends::look_up(&before.kind, &before.parameters);
        let _changes = self.registry.begin_change();
        let found = self.show(name, Some(&before.pool))?;
        if found.state != "disabled" {
            return Ok(found);
        }
        let key = (found.pool.clone(), name.to_owned());
        let mut other = None;
        let mut record = None;
        for (known, running) in &*lock(&self.running) {
            if *known == key {
                record = Some(running.record.clone());
            } else if known.1 == name && !running.record.disabled {
                other = Some(known.0.clone());
            }
        }
        if let Some(other) = other {
            return Err(Problem::new(
                ProblemCode::Exists,
                format!(
                    "pool {other} already has an export {name}: disable or delete it first, with \
                     `convect export disable {other}/{name}`"
                ),
            ));
        }
        let Some(mut record) = record else {
            return self.show(name, Some(&found.pool));
        };
        record.disabled = false;
        let shown = self.offer_and_keep(&found.pool, record)?;
        self.note_switched(&found, true);
        Ok(shown)
    }

    fn note_switched(&self, export: &v1::Export, enabled: bool) {
        let mut switched = lock(&self.switched);
        if switched.len() < SWITCHED_MAX {
            switched.push(Switched {
                pool: export.pool.clone(),
                name: export.name.clone(),
                volume: export.volume.clone(),
                enabled,
            });
        }
    }

    /// Exports that were enabled or disabled since the last call, oldest first.
    pub(in crate::manager) fn take_switched(&self) -> Vec<Switched> {
        std::mem::take(&mut *lock(&self.switched))
    }

    /// Stops the offers of a volume for a change of it; returns their stored exports.
    pub(in crate::manager) fn stop_offers(&self, pool: &str, volume: &str) -> Vec<ExportRecord> {
        let mut stopped = Vec::new();
        let mut ended = Vec::new();
        for ((of, _), running) in &mut *lock(&self.running) {
            if of == pool && running.record.volume == volume && !running.record.disabled {
                // Not `Failed`, which would raise an alert and be retried.
                let waits = Err(NotOffered::Disabled);
                ended.push(std::mem::replace(&mut running.offer, waits));
                stopped.push(running.record.clone());
            }
        }
        // Ending sessions takes time.
        drop(ended);
        stopped
    }

    /// Starts exports that were stopped again.
    pub(in crate::manager) fn restart(&self, pool: &str, stopped: Vec<ExportRecord>) {
        for record in stopped {
            self.start_one(pool, record, None);
        }
    }

    /// Deletes a volume or snapshot by `delete`, with `force` also its exports. If it fails, they
    /// are offered again.
    ///
    /// # Errors
    /// As `delete`, when a stream of it is in progress, and without `force` when it is exported.
    pub(in crate::manager) fn delete_with<T>(
        &self,
        pool: &str,
        volume: &str,
        force: bool,
        delete: &dyn Fn() -> Result<T>,
    ) -> Result<T> {
        self.check_unused_unless(force, pool, Some(volume))?;
        if self.names_of(pool, Some(volume)).is_empty() {
            return delete();
        }
        let before = self.control.pool_exports(pool).map_err(ToApi::to_api)?;
        let mut kept = before.clone();
        kept.retain(|known| known.volume != volume);
        let stopped = self.stop_offers(pool, volume);
        let stored = self.control.pool_set_exports(pool, kept);
        let deleted = stored.map_err(ToApi::to_api).and_then(|()| delete());
        match &deleted {
            Ok(_) => lock(&self.running)
                .retain(|(of, _), running| of != pool || running.record.volume != volume),
            Err(_) => {
                if let Err(error) = self.control.pool_set_exports(pool, before) {
                    tracing::error!("cannot store the exports of {pool}/{volume} again: {error}");
                }
                self.restart(pool, stopped);
            }
        }
        deleted
    }
}
