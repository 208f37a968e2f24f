//! Who may do what (SPC-4 tables 62 and 63, SBC-3 table 13).

use super::state::Reservations;
use crate::nexus::Ports;
use crate::table::Access;

impl Reservations {
    /// Whether a command with this access has to end with RESERVATION CONFLICT.
    pub(crate) fn conflicts(&self, access: Access, nexus: u64, ports: &Ports) -> bool {
        if !self.is_active() || access == Access::Always {
            return false;
        }
        let state = self.lock();
        if let Some(holder) = state.legacy {
            return holder != nexus && access != Access::Release;
        }
        let Some(held) = &state.reservation else {
            return false;
        };
        let excluded = match access {
            Access::Always | Access::Free | Access::Persistent | Access::Release => false,
            Access::Read => held.kind.excludes_reads(),
            Access::Write => true,
        };
        let is_privileged = state.is_holder(ports)
            || held.kind.is_for_registrants() && state.registration(ports).is_some();
        excluded && !is_privileged
    }
}
