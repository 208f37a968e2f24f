//! Persistent SCSI reservations of volumes (docs/iscsi.md). Their content is opaque here.

use super::{Pool, Result, error, lock};
use crate::control::types::ErrorCode;
use format::{RESERVATIONS_MAX, ReservationsConfig};
use units::mutation::{Mutation, is_on};

impl Pool {
    /// The stored reservations of a volume.
    ///
    /// # Errors
    /// When there is no such volume.
    pub fn reservations(&self, volume: &str) -> Result<Option<String>> {
        let volume = self.find_volume(volume)?;
        let config = lock(&self.config);
        let mut kept = config.reservations.iter();
        let found = kept.find(|known| known.volume == volume.id);
        Ok(found.map(|known| known.state.clone()))
    }

    /// Replaces the stored reservations of a volume; `None` removes them.
    ///
    /// # Errors
    /// `Invalid` when it is too long, when there is no such volume, or the labels cannot be written.
    pub fn set_reservations(&self, volume: &str, state: Option<String>) -> Result<()> {
        let length = state.as_ref().map_or(0, String::len);
        if length > RESERVATIONS_MAX {
            return error(
                ErrorCode::Invalid,
                format!(
                    "the reservations of volume '{volume}' take {length} bytes, and a pool keeps \
                     {RESERVATIONS_MAX}: have hosts that are no more unregister"
                ),
            );
        }
        let _changing = lock(&self.changing);
        let volume = self.find_volume(volume)?;
        if is_on(Mutation::ReservationLost) {
            return Ok(());
        }
        self.update_soon(|config| {
            config
                .reservations
                .retain(|known| known.volume != volume.id);
            let kept = state.map(|state| ReservationsConfig {
                volume: volume.id,
                state,
            });
            config.reservations.extend(kept);
            Ok(())
        })
    }
}
