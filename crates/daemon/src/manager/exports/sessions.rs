//! Sessions of hosts: list and disconnect.

use super::Exports;
use crate::manager::Result;
use crate::sync::lock;
use api::v1::{Problem, Session, SessionList};
use std::collections::BTreeMap;

impl Exports {
    /// Sessions of hosts, for protocols that have them.
    pub fn session_list(&self) -> SessionList {
        let mut found: BTreeMap<u64, Session> = BTreeMap::new();
        for ((pool, name), running) in &*lock(&self.running) {
            let Ok(offer) = &running.offer else {
                continue;
            };
            for info in offer.session_list() {
                let entry = found.entry(info.id).or_insert_with(|| Session {
                    id: info.id,
                    exports: Vec::new(),
                    kind: running.record.kind.clone(),
                    initiator: info.initiator,
                    address: info.address,
                    target: info.target,
                    portal: info.portal,
                    user: info.user,
                    since_s: info.since_s,
                    connections: info.connections,
                    commands: info.commands,
                    bytes_read: info.read,
                    bytes_written: info.written,
                });
                entry.exports.push(format!("{pool}/{name}"));
            }
        }
        SessionList {
            items: found.into_values().collect(),
        }
    }

    /// Problems of hosts, by pool and export.
    pub(in crate::manager) fn host_troubles(&self) -> Vec<((String, String), String)> {
        let mut found = Vec::new();
        for (name, running) in &*lock(&self.running) {
            if let Ok(offer) = &running.offer {
                let troubles = offer.troubles().into_iter();
                found.extend(troubles.map(|trouble| (name.clone(), trouble)));
            }
        }
        found
    }

    /// Asks a host to log out, and disconnects it soon after.
    ///
    /// # Errors
    /// `NotFound` when there is no such session.
    pub fn end_session(&self, id: u64) -> Result<()> {
        let exports = lock(&self.running);
        let mut offers = exports
            .values()
            .filter_map(|running| running.offer.as_ref().ok());
        if offers.any(|offer| offer.end_session(id)) {
            tracing::info!("disconnecting session {id}");
            return Ok(());
        }
        Err(Problem::not_found(format!(
            "unknown session {id}: see `convect session list`"
        )))
    }
}
