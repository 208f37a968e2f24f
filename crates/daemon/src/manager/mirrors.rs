//! Drives that leave mirrors, return and are replaced.

use super::core::{Manager, Result, lock};
use api::v1;

impl Manager {
    /// Brings a drive back into its mirrors.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_online(&self, pool: &str, request: &v1::DriveOnline) -> Result<v1::JobRef> {
        let _changes = lock(&self.changes);
        let started = self
            .control
            .drive_online(pool, &request.drive, request.force);
        let job = started.map_err(|error| self.pool_problem(pool, error))?;
        self.remember_drives(pool);
        Ok(self.job_ref(job))
    }

    /// Takes a drive out of its mirrors.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_offline(&self, pool: &str, request: &v1::DriveOffline) -> Result<()> {
        let taken = self.control.drive_offline(pool, &request.drive);
        taken.map_err(|error| self.pool_problem(pool, error))
    }

    /// Puts a new drive in another one's place.
    ///
    /// # Errors
    /// As the engine's.
    pub fn drive_replace(&self, pool: &str, request: &v1::DriveReplace) -> Result<v1::JobRef> {
        let _changes = lock(&self.changes);
        let started = self
            .control
            .drive_replace(pool, &request.old, &request.new, request.force);
        let job = started.map_err(|error| self.pool_problem(pool, error))?;
        self.remember_drives(pool);
        Ok(self.job_ref(job))
    }

    fn remember_drives(&self, pool: &str) {
        if let Err(error) = self.remember() {
            tracing::error!(
                "the drives of pool {pool} are not on the list for the next start: {error}"
            );
        }
    }
}
