//! Vdrives of pools and their drives: add, remove, online, offline, replace.

use super::Pools;
use crate::control::PoolCalls;
use crate::manager::Result;
use crate::mapping::ToEngine;
use api::v1;

impl Pools {
    /// The pool's vdrives.
    ///
    /// # Errors
    /// When it is not open.
    pub fn vdrive_list(&self, pool: &str) -> Result<v1::VdriveList> {
        Ok(v1::VdriveList {
            items: self.show(pool)?.vdrives,
        })
    }

    /// Adds a vdrive.
    ///
    /// # Errors
    /// As the engine's.
    pub fn vdrive_add(&self, pool: &str, request: v1::VdriveAdd) -> Result<v1::VdriveRef> {
        let _changes = self.registry.begin_change();
        let spec = v1::VdriveSpec {
            tier: request.tier,
            layout: request.layout,
            drives: request.drives,
        };
        let spec = spec.to_engine();
        let vdrive = self.registry.vdrive_add(pool, &spec, request.force)?;
        self.registry.try_save();
        Ok(v1::VdriveRef { vdrive })
    }

    /// Starts to evacuate a vdrive.
    ///
    /// # Errors
    /// As the engine's.
    pub fn vdrive_remove(&self, pool: &str, vdrive: u8) -> Result<v1::JobRef> {
        self.registry
            .vdrive_remove(pool, vdrive)
            .map(|job| self.jobs.reference(job))
    }

    /// Brings a drive online and resyncs its mirrors.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_online(&self, pool: &str, request: &v1::DriveOnline) -> Result<v1::JobRef> {
        let _changes = self.registry.begin_change();
        let job = self
            .registry
            .drive_online(pool, &request.drive, request.force)?;
        self.registry.try_save();
        Ok(self.jobs.reference(job))
    }

    /// Takes a drive offline.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_offline(&self, pool: &str, request: &v1::DriveOffline) -> Result<()> {
        self.registry.drive_offline(pool, &request.drive)
    }

    /// Replaces a drive and resilvers the new one.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_replace(&self, pool: &str, request: &v1::DriveReplace) -> Result<v1::JobRef> {
        let _changes = self.registry.begin_change();
        let job = self
            .registry
            .drive_replace(pool, &request.old, &request.new, request.force)?;
        self.registry.try_save();
        Ok(self.jobs.reference(job))
    }
}
